"""A small race's records, shared by the tests of this room."""

import pytest

from deadheat.reports import Page, Section, Tone
from deadheat.reports.figures import Curve, GateCurve, StepSizes, denominators, gate_curves, learning_curves
from deadheat.reports.floors import Difference, difference_against_floor
from deadheat.reports.ink import figure_block
from deadheat.reports.page import (
    Align,
    Attempt,
    Callout,
    Cell,
    Column,
    Grade,
    KeyValues,
    Prose,
    Table,
    Transcript,
)
from deadheat.stats.intervals import wilson

HOSTILE = (
    "\x00\x1b[31mred\x07\r \u202egnp.exe\u2066 \ud800 </pre><script>alert(1)</script>"
    "<img src=http://tracker.invalid/x.png onerror=alert(2)> {{ 7 * 7 }} $\\frac{1}{"
    + "x" * 3000
    + " e\u0301\u0302\u0303"
)


@pytest.fixture(scope="session")
def hostile() -> str:
    """What a model may write."""
    return HOSTILE


@pytest.fixture(scope="session")
def curves() -> list[Curve]:
    """Two arms, two seeds each; checker's second seed stopped at step 3."""

    def curve(arm: str, seed: int, rewards: tuple[float | None, ...], right: tuple[int, ...]) -> Curve:
        shares = tuple(wilson(k, 20) for k in right)
        steps = tuple(range(1, len(rewards) + 1))
        return Curve(
            arm=arm,
            seed=seed,
            steps=steps,
            train_reward=rewards,
            eval_steps=(0, 2, 4)[: len(right)],
            eval_shares=shares,
        )

    return [
        curve("checker", 0, (0.1, 0.3, None, 0.5), (4, 8, 12)),
        curve("checker", 1, (0.2, 0.4, 0.6), (2, 10)),
        curve("plant", 0, (0.1, 0.1, 0.1, 0.1), (3, 3, 3)),
        curve("plant", 1, (0.2, 0.2, 0.2, 0.2), (1, 5, 3)),
    ]


@pytest.fixture(scope="session")
def gates() -> list[GateCurve]:
    """Four groups a step, three steps, two arms."""
    return [
        GateCurve(
            arm=arm,
            seed=seed,
            steps=(1, 2, 3),
            live=(1, 2, 4),
            all_right=(0, 1, 0),
            all_wrong=(2, 1, 0),
            tied_other=(1, 0, 0),
        )
        for arm in ("checker", "plant")
        for seed in (0, 1)
    ]


@pytest.fixture(scope="session")
def step_sizes() -> list[StepSizes]:
    """The second arm's steps are three times the first's."""
    return [
        StepSizes(arm="checker", seed=0, steps=(1, 2, 3), all_groups=(0.5, 0.25, 1.0), signal_groups=(1.0, None, 1.0)),
        StepSizes(arm="plant", seed=0, steps=(1, 2, 3), all_groups=(1.5, 0.75, 3.0), signal_groups=(3.0, None, 3.0)),
    ]


@pytest.fixture(scope="session")
def differences() -> list[Difference]:
    """Two seeds and their pool."""
    return [
        Difference(label="seed 0", diff_pp=2.5, low_pp=-3.0, high_pp=8.0, num_items=200),
        Difference(label="seed 1", diff_pp=-1.0, low_pp=-6.5, high_pp=4.5, num_items=200),
        Difference(label="pooled", diff_pp=0.75, low_pp=-3.25, high_pp=4.75, num_items=400, pooled=True),
    ]


@pytest.fixture(scope="session")
def page(
    curves: list[Curve], gates: list[GateCurve], step_sizes: list[StepSizes], differences: list[Difference]
) -> Page:
    """A page with a block of every kind and hostile text in every place that takes text."""
    table = Table(
        columns=(Column(heading="Seed"), Column(heading="Gap", unit="pp", align=Align.NUMBER)) * 6,
        rows=((Cell(text="seed 0", order=0.0), "+2.5") * 6, (HOSTILE, "−1.0") * 6),
        totals=(("pooled", Cell(text="+0.8", strong=True)) * 6,),
        caption="Twelve columns.",
        sortable=True,
    )
    attempts = (
        Attempt(text=" 75\n", grade=Grade.RIGHT, reward=1.0, advantage=1.5, stop="stop", answer="75"),
        Attempt(text=" 65\n", grade=Grade.WRONG, reward=0.0, advantage=-0.5, stop="stop", answer="65"),
        Attempt(text=HOSTILE, grade=Grade.UNSCORED, reward=None, advantage=None, stop="cap"),
    )
    transcript = Transcript(title=HOSTILE, prompt=HOSTILE, attempts=attempts, reference=HOSTILE, note=HOSTILE)
    pictures = (
        figure_block(lambda w: learning_curves(curves, width_in=w), label="Learning", caption=HOSTILE),
        figure_block(lambda w: gate_curves(gates, width_in=w), label="Gate", caption="Gate."),
        figure_block(lambda w: denominators(step_sizes, width_in=w), label="Step sizes", caption="Step sizes."),
        figure_block(
            lambda w: difference_against_floor(
                differences, arms=("checker", HOSTILE), catchable_gap_pp=4.0, verdict="not called", width_in=w
            ),
            label=HOSTILE,
            caption="Verdict.",
        ),
    )
    return Page(
        title="addition",
        question=HOSTILE,
        verdict_sentence="Not called: +0.8 pp [−3.2, +4.8], n = 400.",
        verdict_tone=Tone.NOT_CALLED,
        verdict_detail=HOSTILE,
        kicker="Deadheat race report",
        footer=HOSTILE,
        sections=(
            Section(heading="Verdict", lead=HOSTILE, blocks=(table, *pictures)),
            Section(heading="Groups", blocks=(transcript,)),
            Section(
                heading=HOSTILE[:80],
                blocks=(
                    Prose(text=f"One.\n\n{HOSTILE}"),
                    Callout(text=HOSTILE, warning=True),
                    KeyValues(pairs=((HOSTILE, HOSTILE),)),
                ),
            ),
        ),
    )

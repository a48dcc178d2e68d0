"""The sections of report.html about the training: learning, gate, what was drawn, how far the updates went, cost."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import TypeVar

from deadheat.race.config import RaceConfig
from deadheat.race.tables import RunData
from deadheat.race.verdict import RaceVerdict
from deadheat.reports import Section
from deadheat.reports.figures import (
    Bar,
    BarPanel,
    Curve,
    GateCurve,
    StepSizes,
    bars,
    denominators,
    gate_curves,
    learning_curves,
)
from deadheat.reports.formats import format_bytes, format_count, format_quantity, format_seconds, format_share
from deadheat.reports.ink import figure_block
from deadheat.reports.page import Align, Column, Table
from deadheat.reports.verdict_words import level_words
from deadheat.rollouts import AdaptiveOptions, Drawing
from deadheat.train import RolloutConfig

_NUMBER = Align.NUMBER
_NONE = "–"

Number = TypeVar("Number", int, float)


def learning_section(runs: Sequence[RunData], alpha: float) -> Section:
    """Learning curves per arm and seed, with held-out points."""
    curves = [_curve(run, alpha) for run in runs]
    figure = figure_block(
        lambda width: learning_curves(curves, width_in=width, reward_label="mean raw training reward"),
        label="Learning curves per arm and seed, with held-out points",
        caption=(
            f"Held-out share right on {len(runs[0].items)} items with {level_words(1 - alpha)} intervals over items, and "
            "mean raw reward of training rollouts, per arm and seed. Held-out answers and training rollouts are drawn under "
            "different settings."
        ),
    )
    return Section(heading="Learning", blocks=(figure,))


def _curve(run: RunData, alpha: float) -> Curve:
    shares = {step: share for step in run.eval_steps if (share := run.share(step, alpha)) is not None}
    return Curve(
        arm=run.identity.arm,
        seed=run.identity.seed,
        steps=tuple(record.step for record in run.steps),
        train_reward=tuple(record.mean_raw_reward for record in run.steps),
        eval_steps=tuple(shares),
        eval_shares=tuple(shares.values()),
    )


def gate_section(runs: Sequence[RunData]) -> Section:
    """What the groups of each step were, and the step under both denominators."""
    trained = [run for run in runs if run.steps]
    gates = [
        GateCurve(
            arm=run.identity.arm,
            seed=run.identity.seed,
            steps=tuple(r.step for r in run.steps),
            live=tuple(r.num_live for r in run.steps),
            all_right=tuple(r.num_all_right for r in run.steps),
            all_wrong=tuple(r.num_all_wrong for r in run.steps),
            tied_other=tuple(r.num_tied_other + r.num_unscored_groups for r in run.steps),
        )
        for run in trained
    ]
    sizes = [
        StepSizes(
            arm=run.identity.arm,
            seed=run.identity.seed,
            steps=tuple(r.step for r in run.steps),
            all_groups=tuple(r.grad_norm_all_groups if r.units_signal_groups else None for r in run.steps),
            signal_groups=tuple(r.grad_norm_signal_groups if r.units_signal_groups else None for r in run.steps),
        )
        for run in trained
    ]
    gate = figure_block(
        lambda width: gate_curves(gates, width_in=width),
        label="Share of live, all-right and all-wrong groups per step and arm",
        caption=f"What the groups of each step were: {_gate_words(trained)}. A tied group has zero advantage everywhere.",
    )
    size = figure_block(
        lambda width: denominators(sizes, width_in=width),
        label="Gradient norm under both denominators per step and arm",
        caption=(
            "Gradient norm before clipping if the loss is divided by the sequences of every group, and by those of live "
            "groups only. Their ratio is the dilution; steps without a live group have none."
        ),
    )
    return Section(heading="What the groups taught", blocks=(gate, size))


def _gate_words(runs: Sequence[RunData]) -> str:
    words = []
    for arm in dict.fromkeys(run.identity.arm for run in runs):
        records = [r for run in runs if run.identity.arm == arm for r in run.steps]
        groups, live = sum(r.num_groups for r in records), sum(r.num_live for r in records)
        tied = f"{format_share(1 - live / groups)} of {groups:,} groups tied" if groups else "no group was learned from"
        words.append(f"{arm} {tied}")
    return "; ".join(words)


def drawing_section(race: RaceConfig, runs: Sequence[RunData]) -> list[Section]:
    """What was drawn for the groups that were learned from; nothing where every arm draws flat groups."""
    if all(arm.rollouts.drawing.name == Drawing.FLAT for arm in race.arms.values()):
        return []
    columns = (
        Column(heading="arm"),
        Column(heading="drawing"),
        Column(heading="seed", align=_NUMBER),
        Column(heading="never mixed", unit="of problems", align=_NUMBER),
        Column(heading="groups drawn", align=_NUMBER),
        Column(heading="learned from", unit="groups", align=_NUMBER),
        Column(heading="live", unit="groups", align=_NUMBER),
        Column(heading="calls", unit="per step", align=_NUMBER),
        Column(heading="generated", unit="tokens", align=_NUMBER),
        Column(heading="not kept", unit="tokens", align=_NUMBER),
    )
    table = Table(
        columns=columns,
        rows=tuple(_drawing_row(race.arms[run.identity.arm].rollouts, run) for run in runs if run.steps),
        caption=(
            "A problem never mixes when every one of its draws of a step agrees: dynamic drawing drops it, adaptive drawing "
            "gives it up and keeps a tied group. Groups drawn are draws of group_size, learned from or not; calls of "
            "generation of one step follow each other. The gate above is that of the groups learned from."
        ),
        sortable=True,
    )
    return [Section(heading="What was drawn", blocks=(table,))]


def _drawing_row(config: RolloutConfig, run: RunData) -> tuple[str, ...]:
    problems = sum(r.num_problems for r in run.steps)
    options = config.drawing
    drawing = f"adaptive, {options.keep}" if isinstance(options, AdaptiveOptions) else options.name
    return (
        run.identity.arm,
        drawing,
        str(run.identity.seed),
        f"{sum(r.num_never_mixed for r in run.steps):,} of {problems:,}",
        f"{sum(r.num_groups_drawn for r in run.steps):,}",
        f"{sum(r.num_groups for r in run.steps):,}",
        f"{sum(r.num_live for r in run.steps):,}",
        f"{sum(r.num_rounds for r in run.steps) / len(run.steps):.1f}",
        f"{sum(r.tokens_generated for r in run.steps):,}",
        f"{sum(r.tokens_not_kept for r in run.steps):,}",
    )


_DRIFT = (
    Column(heading="arm"),
    Column(heading="seed", align=_NUMBER),
    Column(heading="updates", align=_NUMBER),
    Column(heading="gradient norm", unit="largest", align=_NUMBER),
    Column(heading="shortened", unit="steps", align=_NUMBER),
    Column(heading="KL, drawn", unit="nats, mean", align=_NUMBER),
    Column(heading="KL, drawn", unit="nats, largest", align=_NUMBER),
    Column(heading="KL, reference", unit="nats, mean", align=_NUMBER),
    Column(heading="clipped low", unit="tokens", align=_NUMBER),
    Column(heading="clipped high", unit="tokens", align=_NUMBER),
    Column(heading="dual clip", unit="tokens", align=_NUMBER),
)


def drift_section(runs: Sequence[RunData]) -> list[Section]:
    """How far the updates moved each policy; nothing where none was made."""
    stepped = [run for run in runs if any(record.stepped for record in run.steps)]
    if not stepped:
        return []
    rows = [_drift_row(run) for run in stepped]
    told = [i for i in range(len(_DRIFT)) if any(row[i] != _NONE for row in rows)]
    table = Table(
        columns=tuple(_DRIFT[i] for i in told),
        rows=tuple(tuple(row[i] for i in told) for row in rows),
        caption=(
            "Over steps with an update. KL, drawn: from the policy that drew a batch to the one being updated, zero at the "
            "first update of a batch; KL, reference: to the model without its adapter. Clipped: tokens whose gradient the "
            "bound took out. What no arm's objective has is left out."
        ),
        sortable=True,
    )
    return [Section(heading="How far the updates went", blocks=(table,))]


def _drift_row(run: RunData) -> tuple[str, ...]:
    records = [record for record in run.steps if record.stepped]
    drawn, reference, *clipped = (
        [value for record in records if (value := getattr(record, name)) is not None]
        for name in ("kl_drawn", "kl_reference", "clip_low_frac", "clip_high_frac", "clip_dual_frac")
    )
    return (
        run.identity.arm,
        str(run.identity.seed),
        f"{sum(record.num_updates for record in records):,}",
        f"{max(record.grad_norm for record in records):.3g}",
        f"{sum(record.clipped for record in records):,}",
        f"{fmean(drawn):.2g}" if drawn else _NONE,
        f"{max(drawn):.2g}" if drawn else _NONE,
        f"{fmean(reference):.2g}" if reference else _NONE,
        *(format_share(fmean(shares)) if shares else _NONE for shares in clipped),
    )


def cost_section(verdict: RaceVerdict, runs: Sequence[RunData], seconds: float) -> Section:
    """Tokens, FLOP proxy and seconds of every run."""
    by_run = {run.identity: max(run.seconds.values(), default=0.0) for run in runs}
    rows = []
    for run in runs:
        padded, unshared = sum(r.tokens_padded for r in run.steps), sum(r.tokens_unshared for r in run.steps)
        backward = sum(r.tokens_backward for r in run.steps)
        rows.append(
            (
                run.identity.arm,
                str(run.identity.seed),
                f"{sum(r.tokens_prefilled for r in run.steps):,}",
                f"{sum(r.tokens_generated for r in run.steps):,}",
                f"{backward:,}",
                f"{padded:,}",
                f"{unshared:,}",
                f"{sum(r.flop for r in run.steps) / 1e12:.2f}",
                format_seconds(by_run[run.identity]),
                _NONE if run.peak_bytes is None else format_bytes(run.peak_bytes),
            )
        )
    table = Table(
        columns=(
            Column(heading="arm"),
            Column(heading="seed", align=_NUMBER),
            Column(heading="prefilled", unit="tokens", align=_NUMBER),
            Column(heading="generated", unit="tokens", align=_NUMBER),
            Column(heading="in backward", unit="tokens", align=_NUMBER),
            Column(heading="padding", unit="tokens", align=_NUMBER),
            Column(heading="one by one", unit="tokens", align=_NUMBER),
            Column(heading="FLOP proxy", unit="TFLOP", align=_NUMBER),
            Column(heading="run time", align=_NUMBER),
            Column(heading="peak memory", align=_NUMBER),
        ),
        rows=tuple(rows),
        caption=(
            "Tokens are those of training; run time includes evaluations, and peak memory is that of the process, which "
            "may have had runs before this one. 'One by one' is what backward would have run "
            "without shared prefixes and with tied groups. FLOP proxy: 2·P per token forward, 6·P per token in backward."
        ),
        sortable=True,
    )
    arms = [arm for arm in verdict.arms if arm.runs]
    seconds_of = {arm.arm: sum(s for identity, s in by_run.items() if identity.arm == arm.arm) for arm in arms}
    tokens_of = {arm.arm: sum(run.tokens_generated for run in arm.runs) for arm in arms}
    backward_of = {arm.arm: sum(run.tokens_backward for run in arm.runs) for arm in arms}
    flop_of = {arm.arm: sum(run.flop for run in arm.runs) for arm in arms}
    panel = [
        _cost_panel("generated tokens", tokens_of, format_count),
        _cost_panel("tokens in backward", backward_of, format_count),
        _cost_panel("FLOP (proxy)", flop_of, lambda flop: format_quantity(flop, "FLOP")),
        _cost_panel("run time", seconds_of, format_seconds),
    ]
    figure = figure_block(
        lambda width: bars(panel, width_in=width), label="Cost of each arm", caption="All seeds of an arm together."
    )
    return Section(heading="Cost", lead=f"{format_seconds(seconds)} of run time in all.", blocks=(figure, table))


def _cost_panel(title: str, values: Mapping[str, Number], words: Callable[[Number], str]) -> BarPanel:
    return BarPanel(title=title, bars=tuple(Bar(label=a, value=float(v), text=words(v)) for a, v in values.items()))

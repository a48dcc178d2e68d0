"""A race's verdict as one screen of a terminal."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from deadheat.race.config import RaceConfig
from deadheat.race.skills import pooled
from deadheat.race.verdict import PairVerdict, RaceVerdict
from deadheat.race.words import (
    cost_words,
    difference_words,
    floor_words,
    notes_of,
    pair_sentence,
    pair_tone,
    pooled_share,
    reasons_words,
)
from deadheat.reports import SeedLine, VerdictScreen, verdict_screen
from deadheat.reports.formats import format_pp, format_share_with_interval, format_signed
from deadheat.stats import Interval


def race_screen(
    race: RaceConfig, verdict: RaceVerdict, *, seconds: float, report: Path | None, notes: Sequence[str]
) -> RenderableType:
    """One panel per pair of arms; an arm alone gets its gain in a line."""
    if not verdict.pairs:
        return Text("\n".join(gain_lines(verdict)) or "no run has finished yet", style="bold")
    said = [*gain_lines(verdict), *skill_lines(verdict), *notes_of(verdict, race), *notes]
    screens = []
    for place, pair in enumerate(verdict.pairs):
        last = place == len(verdict.pairs) - 1
        screens.append(_pair_screen(verdict, pair, seconds, report if last else None, said if last else ()))
    return Group(*map(verdict_screen, screens))


def gain_lines(verdict: RaceVerdict) -> list[str]:
    """Each arm's gain over its own step 0."""
    lines = []
    for arm in verdict.arms:
        if arm.gain is not None:
            gain = arm.gain.interval
            low, high = format_signed(100 * gain.low), format_signed(100 * gain.high)
            moved = "learned" if arm.gain.learned else "lost" if gain.high < 0 else "did not clear zero"
            lines.append(
                f"{arm.arm} {moved}: {100 * arm.gain.before:.1f}% → {100 * arm.gain.after:.1f}%, gain "
                f"{format_pp(100 * gain.estimate)} [{low}, {high}]"
            )
    return lines


def skill_lines(verdict: RaceVerdict) -> list[str]:
    """Each arm's sub-skills over all its seeds, right of all, at step 0 and at the end; empty where the task has none."""
    lines = []
    for arm in verdict.arms:
        columns = list(zip(*(run.skills for run in arm.runs), strict=True))
        words = [
            f"{skill.name} {skill.start.num_right} → {skill.end.num_right} of {skill.end.num_all}"
            for skill in map(pooled, columns)
        ]
        if words:
            lines.append(f"{arm.arm}: {', '.join(words)}")
    return lines


def seed_lines(verdict: RaceVerdict, pair: PairVerdict) -> list[SeedLine]:
    """A row per seed both arms finished."""
    shares_a, shares_b = _shares(verdict, pair.arm_a, pair.seeds), _shares(verdict, pair.arm_b, pair.seeds)
    return [
        SeedLine(
            label=f"seed {seed}",
            first=a,
            second=b,
            diff_pp=100 * (a.estimate - b.estimate),
            wins=own.tally.wins,
            losses=own.tally.losses,
            ties=own.tally.ties,
            p_value=own.test.p_value,
        )
        for seed, a, b, own in zip(pair.seeds, shares_a, shares_b, pair.final.verdict.seeds, strict=True)
    ]


def pooled_line(verdict: RaceVerdict, pair: PairVerdict) -> SeedLine:
    """All seeds together: an item's pooled vote is the sign of its sum over seeds."""
    final = pair.final.verdict
    return SeedLine(
        label="pooled",
        first=pooled_share(_shares(verdict, pair.arm_a, pair.seeds)),
        second=pooled_share(_shares(verdict, pair.arm_b, pair.seeds)),
        diff_pp=100 * pair.final.difference.estimate,
        wins=final.pooled.wins,
        losses=final.pooled.losses,
        ties=final.pooled.ties,
        p_value=final.test.p_value,
    )


def _shares(verdict: RaceVerdict, name: str, seeds: Sequence[int]) -> list[Interval]:
    arm = next(arm for arm in verdict.arms if arm.arm == name)
    by_seed = {run.seed: run.share for run in arm.runs}
    return [share for seed in seeds if (share := by_seed[seed]) is not None]


def _pair_screen(
    verdict: RaceVerdict, pair: PairVerdict, seconds: float, report: Path | None, notes: Sequence[str]
) -> VerdictScreen:
    reasons = reasons_words(pair)
    return VerdictScreen(
        question=verdict.question,
        sentence=pair_sentence(pair) + (f" Why: {reasons}." if reasons else ""),
        tone=pair_tone(pair),
        arms=(pair.arm_a, pair.arm_b),
        seeds=tuple(seed_lines(verdict, pair)),
        pooled=pooled_line(verdict, pair) if len(pair.seeds) > 1 else None,
        difference=difference_words(pair.final) + ", crossed bootstrap over seeds and items",
        floor=floor_words(pair),
        cost=cost_words(verdict, seconds),
        notes=tuple(notes),
        report=None if report is None else str(report),
    )


def share_words(share: Interval | None) -> str:
    """A share with interval and n, or that nothing was graded."""
    return "nothing graded" if share is None else format_share_with_interval(share)

"""A race's verdict as one screen of a terminal."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from deadheat.race.config import RaceConfig
from deadheat.race.verdict import PairVerdict, RaceVerdict
from deadheat.race.words import (
    bounds_words,
    cost_words,
    fact_pairs,
    gain_lines,
    notes_of,
    pair_sentence,
    skill_lines,
    warnings_of,
)
from deadheat.reports.formats import format_p, format_signed
from deadheat.reports.sheets import banner, facts, grid, one_line
from deadheat.reports.verdict_words import level_words, tone
from deadheat.stats import Effect, Interval, SignTest, Tally

_ARM_WIDTH = 12  # columns of an arm's name over its shares


def race_screen(
    race: RaceConfig, verdict: RaceVerdict, *, seconds: float, report: Path | None, notes: Sequence[str]
) -> RenderableType:
    """A banner, a table and facts for each contrast, then what is said of the race as a whole."""
    if not verdict.pairs:
        lines = gain_lines(verdict)
        return Text("\n".join([*lines, *warnings_of(verdict)] if lines else ["no run has finished yet"]), style="bold")
    said = [*warnings_of(verdict), *notes_of(verdict, race), *notes]
    whole = [("gains", line) for line in (*gain_lines(verdict), *skill_lines(verdict))]
    whole += [("cost", cost_words(verdict, seconds)), *(("note", note) for note in said)]
    whole += [] if report is None else [("report", str(report))]
    parts: list[RenderableType] = [Text(one_line(verdict.question), style="bold")] if verdict.question else []
    for pair in verdict.pairs:
        beside = fact_pairs(pair, always_smallest=False)
        last = pair is verdict.pairs[-1]
        banner_of_pair = banner(f"{pair.arm_a} against {pair.arm_b}", pair_sentence(pair), tone(pair.verdict))
        parts += [banner_of_pair, seed_table(pair), Text(""), facts(beside + (whole if last else []))]
    return Group(*parts)


def seed_table(pair: PairVerdict) -> RenderableType:
    """A row per seed, all seeds together under a rule."""
    level = level_words(pair.verdict.effect.level)
    arms = [f"{one_line(arm)[:_ARM_WIDTH]}\n% right" for arm in (pair.arm_a, pair.arm_b)]
    headings = ("", *arms, f"difference, pp\n[{level}]", "won–lost–tied\nitems", "p\nexact")
    rows = [
        _row(f"seed {gap.seed}", gap.share_a, gap.share_b, gap.difference, gap.votes.tally, gap.votes.test)
        for gap in pair.seed_gaps
    ]
    votes = pair.verdict.votes
    together = _row("all", pair.share_a, pair.share_b, pair.verdict.effect, votes.pooled, votes.test)
    return grid(headings, rows, totals=together if len(rows) > 1 else ())


def _row(label: str, a: Interval, b: Interval, gap: Effect, tally: Tally, test: SignTest) -> tuple[str, ...]:
    return (
        label,
        f"{100 * a.estimate:.1f}",
        f"{100 * b.estimate:.1f}",
        f"{format_signed(100 * gap.estimate)} {bounds_words(gap)}",
        f"{tally.wins}–{tally.losses}–{tally.ties}",
        format_p(test.p_value, test.log10_p),
    )

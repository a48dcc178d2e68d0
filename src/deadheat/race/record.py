"""What `verdict.json` holds and `--json` prints: schema, a flat summary of the first contrast, then the whole record."""

from dataclasses import dataclass
from typing import Any

from deadheat.archive import plain
from deadheat.race.verdict import PairVerdict, RaceVerdict, named
from deadheat.race.words import Scope, names_of, scope_of
from deadheat.reports.verdict_words import headline

SCHEMA, VERSION = "deadheat.race-verdict", 2


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The first contrast on one level."""

    words: str  # such as "called(checker)"
    sentence: str  # the same in plain English
    winner: str | None  # the arm called, or ahead in these runs only; None: neither
    scope: Scope  # how far the words reach
    arm_a: str
    arm_b: str
    estimate_pp: float  # first arm minus second
    low_pp: float  # plain interval
    high_pp: float
    level: float  # of the plain interval
    p_value: float  # plain
    adjusted_low_pp: float  # interval and p-value that the words rest on, over the family and at this look
    adjusted_high_pp: float
    adjusted_level: float
    adjusted_p_value: float
    alpha: float  # level that the adjusted p-value is held against
    n: int  # items
    seeds: int
    family: int  # contrasts decided together
    look: int  # which look this is
    looks_planned: int
    two_part: str  # the two-part rule's answer
    false_call_frac: float | None  # how often this rule calls a winner at this design and spread with no true gap
    false_call_two_part_frac: float | None  # the two-part rule likewise
    smallest_gap_pp: float | None  # smallest gap called at the power asked for, seeds alike; None: none can be
    smallest_gap_at_spread_pp: float | None  # the same at the seeds' measured spread


def as_record(verdict: RaceVerdict) -> dict[str, Any]:
    """The verdict as plain data."""
    summary = summarise(verdict, verdict.pairs[0]) if verdict.pairs else None
    return {"schema": SCHEMA, "version": VERSION, "summary": plain(summary), **plain(verdict)}


def summarise(race: RaceVerdict, pair: PairVerdict) -> Summary:
    """The summary of one contrast."""
    verdict, decision, effect = pair.verdict, pair.verdict.decision, pair.verdict.effect
    instrument, adjusted = verdict.instrument, pair.verdict.decision.interval
    smallest, at_spread = instrument.smallest, instrument.smallest_at_spread or instrument.smallest
    assert race.looks is not None
    return Summary(
        words=pair.words,
        sentence=headline(pair.verdict, names_of(pair)),
        winner=pair.winner,
        scope=scope_of(pair),
        arm_a=pair.arm_a,
        arm_b=pair.arm_b,
        estimate_pp=100 * effect.estimate,
        low_pp=100 * effect.low,
        high_pp=100 * effect.high,
        level=effect.level,
        p_value=effect.p_value,
        adjusted_low_pp=100 * adjusted.low,
        adjusted_high_pp=100 * adjusted.high,
        adjusted_level=adjusted.level,
        adjusted_p_value=decision.p_value,
        alpha=decision.alpha,
        n=effect.n,
        seeds=effect.num_seeds,
        family=decision.family,
        look=race.looks.number,
        looks_planned=race.looks.planned,
        two_part=named(verdict.votes.words.value, pair.arm_a, pair.arm_b),
        false_call_frac=None if instrument.false_call is None else instrument.false_call.false_call_frac,
        false_call_two_part_frac=(
            None if instrument.false_call_two_part is None else instrument.false_call_two_part.false_call_frac
        ),
        smallest_gap_pp=None if smallest is None or smallest.gap is None else 100 * smallest.gap,
        smallest_gap_at_spread_pp=None if at_spread is None or at_spread.gap is None else 100 * at_spread.gap,
    )

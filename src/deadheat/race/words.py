"""A race's verdict in sentences: what the page and the terminal both say. Every interval comes with its level."""

from collections.abc import Sequence
from enum import StrEnum

from deadheat.race.config import RaceConfig
from deadheat.race.coupling import Coupling
from deadheat.race.looks import Looks
from deadheat.race.verdict import ArmSummary, PairVerdict, RaceVerdict
from deadheat.reports.formats import format_p, format_pp, format_quantity, format_signed
from deadheat.reports.verdict_words import (
    Names,
    false_call_words,
    headline,
    level_words,
    plural,
    smallest_words,
    spread_words,
    vote_words,
)
from deadheat.stats import Effect, Interval, Words
from deadheat.stats.verdict import CALLED, THESE_RUNS


class Scope(StrEnum):
    """How far a verdict's words reach."""

    RECIPES = "these recipes"  # fresh seeds and fresh items
    RUNS = "these runs"  # these very models; another seed may turn it
    NONE = "nothing"  # no winner is named, and no dead heat


def names_of(pair: PairVerdict) -> Names:
    """The arms as sides of a verdict."""
    return Names(a=pair.arm_a, b=pair.arm_b, such="races like this")


def scope_of(pair: PairVerdict) -> Scope:
    """How far the words of a contrast reach."""
    if pair.verdict.words in THESE_RUNS:
        return Scope.RUNS
    return Scope.RECIPES if pair.verdict.words in (*CALLED, Words.DEAD_HEAT) else Scope.NONE


def pair_sentence(pair: PairVerdict) -> str:
    """The verdict of a pair, with the difference and the interval that the words rest on, n and unit."""
    effect, adjusted = pair.verdict.effect, pair.verdict.decision.interval
    interval = f"{interval_words(adjusted)}{_adjustment(pair)}"
    if pair.verdict.words in THESE_RUNS and effect.num_seeds > 1:
        interval = f"{interval_words(pair.over_items)} over these runs' items alone, {interval} over fresh seeds too"
    return (
        f"{headline(pair.verdict, names_of(pair))}. "
        f"{pair.arm_a} − {pair.arm_b} = {format_pp(100 * effect.estimate)}, {interval}, "
        f"n = {effect.n:,} held-out items × {plural(effect.num_seeds, 'seed')}."
    )


def interval_words(interval: Interval | Effect) -> str:
    """An interval of a difference in points, with its level.

    Example:
        >>> from deadheat.stats import Interval
        >>> interval_words(Interval(estimate=0.1, low=-0.02, high=0.22, level=0.95, n=9, left_out=0, method=""))
        '95% interval [−2.0, +22.0]'
    """
    return f"{level_words(interval.level)} interval {bounds_words(interval)}"


def bounds_words(interval: Interval | Effect) -> str:
    """Both ends of an interval of a difference, in points."""
    return f"[{format_signed(100 * interval.low)}, {format_signed(100 * interval.high)}]"


def race_sentence(verdict: RaceVerdict) -> str:
    """The verdict of the whole race: one contrast in full, several by their words."""
    if len(verdict.pairs) == 1:
        return pair_sentence(verdict.pairs[0])
    return " ".join(
        f"{pair.arm_a} against {pair.arm_b}, {format_pp(100 * pair.verdict.effect.estimate)}: "
        f"{headline(pair.verdict, names_of(pair))}."
        for pair in verdict.pairs
    )


def fact_pairs(pair: PairVerdict, *, always_smallest: bool) -> list[tuple[str, str]]:
    """What stands beside the words: p and plain interval, adjustment, the two-part rule, errors, spread, smallest gap."""
    effect, decision = pair.verdict.effect, pair.verdict.decision
    plain = f"{interval_words(effect)}, p = {format_p(effect.p_value)}: {effect.method}"
    facts = [("difference", f"{format_pp(100 * effect.estimate)}, {plain}")]
    if decision.family > 1:
        facts.append(
            (
                "family",
                f"of {decision.family} contrasts, adjusted by Holm: {interval_words(decision.interval)}, "
                f"p = {format_p(decision.p_value)}",
            )
        )
    if (delta := pair.verdict.terms.within) is not None:
        inner = effect.at(2 * pair.verdict.terms.alpha)
        inside = "lies" if pair.verdict.within else "does not lie"
        facts.append(("dead heat", f"the {interval_words(inner)} {inside} within ±{100 * delta:.4g} pp"))
    facts.append(("two-part rule", vote_words(pair.verdict, names_of(pair))))
    facts.append(("false calls", false_call_words(pair.verdict, names_of(pair))))
    if effect.num_seeds > 1:
        over = pair.over_items
        facts.append(("these runs", f"{interval_words(over)} over their items alone, p = {format_p(decision.p_items)}"))
        facts.append(("seeds", spread_words(pair.verdict)))
    if always_smallest or not pair.verdict.called:
        facts.append(("smallest gap", smallest_words(pair.verdict)))
    return facts


def look_words(looks: Looks) -> str:
    """Which look this is, and what it costs; empty for the one look of a race that declares none."""
    if looks.are_too_many:
        declared = f"of {looks.planned} declared" if looks.declared else "where none was declared"
        first = "the first" if looks.planned == 1 else f"the first {looks.planned}"
        return f"look {looks.number} {declared}: the level holds for {first}"
    if looks.planned == 1:
        return ""
    return (
        f"look {looks.number} of {looks.planned} declared, at {looks.share_frac:.0%} of the planned answers: p is held "
        f"against {looks.level:.3g}"
    )


def gain_lines(verdict: RaceVerdict) -> list[str]:
    """Each arm's gain over its own step 0, with what it comes to."""
    return [_gain_line(arm) for arm in verdict.arms if arm.gain is not None]


def _gain_line(arm: ArmSummary) -> str:
    assert arm.gain is not None
    effect = arm.gain.effect
    moved = "learned" if arm.gain.learned else "lost" if arm.gain.lost else "did not clear zero"
    runs = " in this run" if effect.num_seeds == 1 else ""
    return (
        f"{arm.arm} {moved}{runs}: {100 * arm.gain.before:.1f}% → {100 * arm.gain.after:.1f}%, gain "
        f"{format_pp(100 * effect.estimate)}, {interval_words(effect)}"
    )


def skill_lines(verdict: RaceVerdict) -> list[str]:
    """Each arm's sub-skills over all its seeds, right of all, at step 0 and at the end; empty where the task has none."""
    lines = []
    for arm in verdict.arms:
        words = []
        for skill in arm.skills:
            start, end = skill.reading.start, skill.reading.end
            gain = f" ({gain_words(skill.gain.effect)})" if skill.gain else ""
            words.append(f"{start.name} {start.num_right} → {end.num_right} of {end.num_all}{gain}")
        if words:
            lines.append(f"{arm.arm}: {', '.join(words)}")
    return lines


def gain_words(effect: Effect) -> str:
    """A gain with bounds and level, short."""
    return f"{format_pp(100 * effect.estimate)} {bounds_words(effect)} {level_words(effect.level)}"


def cost_words(verdict: RaceVerdict, seconds: float) -> str:
    """Tokens, FLOPs and seconds of the whole race."""
    runs = [run for arm in verdict.arms for run in arm.runs]
    tokens = sum(run.tokens_generated for run in runs)
    flop = sum(run.flop for run in runs)
    from_clock = f", {seconds:.0f} s of run time" if seconds else ""
    return (
        f"{tokens:,} tokens generated, {sum(run.tokens_backward for run in runs):,} in backward, "
        f"{format_quantity(flop, 'FLOP')} (proxy){from_clock}, {len(runs)} runs"
    )


def coupling_words(couplings: Sequence[Coupling]) -> list[str]:
    """How each pair of arms shares its draws, one sentence a pair."""
    sentences = []
    for a, b in dict.fromkeys((c.arm_a, c.arm_b) for c in couplings):
        rows = [c for c in couplings if (c.arm_a, c.arm_b) == (a, b)]
        shared = sum(c.num_shared for c in rows)
        if not rows[0].differing:
            sentences.append(
                f"{a} and {b} are coupled: {shared} step-one rollouts over {plural(len(rows), 'seed')} are token-identical"
            )
        else:
            sentences.append(
                f"{a} and {b} are partly coupled, differing in {', '.join(rows[0].differing)}: {shared} step-one rollouts "
                "with a shared address are identical where settings agree"
            )
    return sentences


def warnings_of(verdict: RaceVerdict) -> list[str]:
    """What takes something away from the verdict: repeated seeds, missing cells, runs, contrasts, undeclared looks."""
    said = [
        f"{pair.arm_a} − {pair.arm_b}: {text.replace('A and B', f'{pair.arm_a} and {pair.arm_b}')}"
        for pair in verdict.pairs
        for text in (*pair.verdict.copies, pair.verdict.effect.note)
        if text
    ]
    if verdict.looks is not None and verdict.looks.are_too_many:
        said.append(look_words(verdict.looks))
    said += [f"{name} diverged and is read at its last evaluation" for name in verdict.diverged]
    said += [f"{name} has no outcome yet and is left out" for name in verdict.missing]
    return said + [
        f"{a} against {b} cannot be judged yet: no seed that both have finished" for a, b in verdict.unjudged
    ]


def notes_of(verdict: RaceVerdict, race: RaceConfig) -> list[str]:
    """What else a reader must know: a declared look, coupling, left-out answers."""
    look = "" if verdict.looks is None or verdict.looks.are_too_many else look_words(verdict.looks)
    notes = [*([look] if look else []), *coupling_words(verdict.couplings)]
    runs = [run for arm in verdict.arms for run in arm.runs]
    unscored, unparsed = sum(r.num_unscored for r in runs), sum(r.num_unparsed for r in runs)
    answers = sum(arm.eval.pool * arm.eval.samples for arm in race.arms.values()) * len(race.seeds)
    if unscored:
        notes.append(
            f"{unscored:,} of {answers:,} final held-out answers are unscored and left out, never counted as wrong"
        )
    if unparsed:
        notes.append(f"{unparsed:,} of {answers:,} final held-out answers had nothing to parse; they count as wrong")
    return notes


def _adjustment(pair: PairVerdict) -> str:
    decision = pair.verdict.decision
    said = [f"for {decision.family} contrasts"] if decision.family > 1 else []
    said += ["for the look"] if decision.alpha != pair.verdict.terms.alpha else []
    return f" (adjusted {' and '.join(said)})" if said else ""

"""A verdict in sentences: what is said, how far it reaches, how often the rule errs, what could have been called."""

import math
from dataclasses import dataclass

from deadheat.reports.formats import format_p, format_signed
from deadheat.reports.tone import Tone
from deadheat.stats.effect import Effect, Spread
from deadheat.stats.power import CatchRate, SmallestGap
from deadheat.stats.rules import VoteReading
from deadheat.stats.verdict import CALLED, THESE_RUNS, Verdict, Words
from deadheat.stats.votes import Rule


@dataclass(frozen=True, kw_only=True)
class Names:
    """What the two sides are called."""

    a: str
    b: str


def headline(verdict: Verdict, names: Names) -> str:
    """The words with their scope."""
    ahead, behind = (names.a, names.b) if verdict.effect.estimate > 0 else (names.b, names.a)
    if verdict.words in CALLED:
        scope = f"against this very {names.a if verdict.terms.fixed == 'A' else names.b}" if verdict.terms.fixed else ""
        said = f"Called: {ahead} beats {behind}, {scope or 'for these recipes'}"
        if verdict.terms.rule is not Rule.SEEDS_AND_ITEMS:
            said = f"Called by the {rule_name(verdict.terms.rule)} rule: {ahead} beats {behind}"
    elif verdict.words in THESE_RUNS:
        said = f"These runs only: {ahead} is ahead of {behind}; another seed may turn it"
    elif verdict.words is Words.DEAD_HEAT:
        return f"Dead heat within ±{_size(verdict, verdict.terms.within or 0.0)}."
    elif verdict.words is Words.NOTHING_TO_RANK:
        return "Nothing learned, nothing to rank: neither side's gain over its step 0 clears zero."
    else:
        return "Not called."
    return (
        f"{said}, and the gap is within ±{_size(verdict, verdict.terms.within or 0.0)}."
        if verdict.within
        else f"{said}."
    )


def tone(verdict: Verdict) -> Tone:
    """The colour of a verdict."""
    if verdict.words is Words.NOTHING_TO_RANK:
        return Tone.NOTHING_LEARNED
    return Tone.CALLED if verdict.called else Tone.NOT_CALLED


def difference(verdict: Verdict, names: Names) -> str:
    """A − B with its interval, level and n.

    Infinite bounds are said in words.
    """
    found = verdict.effect
    unit = "items" if found.num_clusters is None else f"items in {found.num_clusters:,} clusters"
    return f"{names.a} − {names.b} = {interval(verdict, found)}, n = {found.n:,} {unit} × {plural(found.num_seeds, 'seed')}"


def interval(verdict: Verdict, found: Effect) -> str:
    """Estimate, level, bounds; in points for shares."""
    return f"{_signed(verdict, found.estimate)}{' pp' if verdict.is_share else ''}, {bounds(verdict, found)}"


def bounds(verdict: Verdict, found: Effect) -> str:
    """The interval behind its level, such as "95% [−0.5, +6.5]"."""
    if math.isinf(found.high):
        return "no interval"
    return f"{100 * found.level:.4g}% [{_signed(verdict, found.low)}, {_signed(verdict, found.high)}]"


def decided_by(verdict: Verdict) -> str:
    """The p-values the words rest on, adjusted and plain where they differ."""
    found, decision = verdict.effect, verdict.decision
    over = "over items" if found.num_seeds == 1 else "over seeds and items"
    said = f"p = {format_p(found.p_value)} {over}"
    if found.num_seeds > 1:
        said += f", {format_p(found.p_items)} over items alone"
    if decision.family > 1:
        adjusted = f"p = {format_p(decision.p_value)}, {bounds(verdict, decision.interval)}"
        said += f"; Holm over {decision.family} contrasts: {adjusted}"
    if decision.alpha != verdict.terms.alpha:
        said += f"; held against the nominal level {decision.alpha:.3g} of this look"
    return said


def halves(verdict: Verdict) -> str:
    """The three half-widths whose widest is the interval's."""
    found = verdict.effect
    if found.half_both is None or found.half_seeds is None:
        return f"±{_size(verdict, found.half_items)} over items; one seed says nothing of others"
    parts = (("seeds", found.half_seeds), ("items", found.half_items), ("both", found.half_both))
    widest = max(parts, key=lambda part: part[1])[0]
    sizes = ", ".join(f"{name} ±{_size(verdict, half)}" for name, half in parts)
    return f"{sizes}; the widest, over {widest}, decides"


def vote_line(votes: VoteReading) -> str:
    """A vote rule's own answer."""
    t, why = votes.pooled, "; ".join(reason.value for reason in votes.reasons)
    said = f"{votes.words.value}, {t.wins}–{t.losses}–{t.ties} won–lost–tied, exact p = " + format_p(
        votes.test.p_value, votes.test.log10_p
    )
    return said + (f" ({why})" if why else "")


def errors_line(verdict: Verdict) -> str:
    """How often each rule calls a winner where there is none, at this design and at τ̂."""
    found, own, two = verdict.effect, verdict.instrument.false_call, verdict.instrument.false_call_two_part
    if own is None:
        return "nothing differs between the sides, so no error rate can be simulated"
    what = "says these runs only" if own.these_runs_only else "calls a winner"
    said = f"with no true gap{_at_spread(verdict, found.spread)} this rule {what} in {_rate(own)} of such tables"
    if two is None or not found.coupled:
        return said
    return f"{said}, the {rule_name(two.design.rule)} rule in {_rate(two)}"


def smallest_line(verdict: Verdict) -> str:
    """The smallest gap that this design calls at the power asked for, at equal seeds and at τ̂."""
    at_zero, at_tau = verdict.instrument.smallest, verdict.instrument.smallest_at_spread
    if at_zero is None:
        return "nothing differs between the sides, so this table says nothing of the gap it could call"
    what = "shown for these runs" if verdict.effect.num_seeds == 1 else "called"
    said = f"{_gap(verdict, at_zero)} {what} at {at_zero.target_frac:.0%} power"
    if verdict.effect.num_seeds == 1:
        return said
    said += " if seeds are equal"
    if at_tau is not None and verdict.effect.spread is not None:
        said += f", {_gap(verdict, at_tau)} at τ̂"
    return said


def spread_line(verdict: Verdict) -> str:
    """τ̂ with its interval."""
    spread = verdict.effect.spread
    if spread is None:
        return "one seed: their spread is not known"
    low, high = _size(verdict, spread.low, unit=False), _size(verdict, spread.high)
    said = f"spread between seeds τ̂ = {_size(verdict, spread.tau)}, {100 * spread.level:.4g}% [{low}, {high}]"
    return said + ("; 0 never means that seeds agree" if spread.tau == 0 else "")


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    Example:
        >>> plural(1, "seed"), plural(3, "seed")
        ('1 seed', '3 seeds')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def rule_name(rule: Rule) -> str:
    """A rule in words.

    Example:
        >>> rule_name(Rule.TWO_PART)
        'two-part'
    """
    return rule.value.replace("_", "-")


def _at_spread(verdict: Verdict, spread: Spread | None) -> str:
    if spread is None:
        return ""
    return f" and seeds spread by {_size(verdict, spread.tau)}" if spread.tau else " and equal seeds"


def _rate(rate: CatchRate) -> str:
    return f"{100 * rate.false_call_frac:.1f}%"


def _gap(verdict: Verdict, smallest: SmallestGap) -> str:
    if smallest.gap is None:
        most = _size(verdict, smallest.most_gap)
        return f"no gap up to {most}, the most there can be, is"
    return _size(verdict, smallest.gap)


def _size(verdict: Verdict, value: float, *, unit: bool = True) -> str:
    if not verdict.is_share:
        return f"{value:.3g}"
    return f"{100 * value:.1f}" + (" pp" if unit else "")


def _signed(verdict: Verdict, value: float) -> str:
    return format_signed(100 * value) if verdict.is_share else format_signed(value, 3)

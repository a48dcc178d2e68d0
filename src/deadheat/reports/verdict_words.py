"""A verdict in sentences: what is said, how far it reaches, how often the rule errs, what could have been called."""

import math
from dataclasses import dataclass

from deadheat.reports.formats import format_p, format_signed
from deadheat.reports.tone import Tone
from deadheat.stats.effect import Effect
from deadheat.stats.intervals import Interval
from deadheat.stats.power import CatchRate, SmallestGap
from deadheat.stats.verdict import CALLED, THESE_RUNS, Verdict, Words
from deadheat.stats.votes import Rule

_TONES = {
    Words.NOTHING_TO_RANK: Tone.NOTHING_LEARNED,
    Words.CALLED_A: Tone.CALLED,
    Words.CALLED_B: Tone.CALLED,
    Words.DEAD_HEAT: Tone.PLAIN,
}
_NOTHING = 1e-9  # a spread that rounding leaves of none


@dataclass(frozen=True, kw_only=True)
class Names:
    """What the two sides are called, and what a rate is a share of."""

    a: str
    b: str
    such: str = "tables like this"  # "races like this"


def headline(verdict: Verdict, names: Names) -> str:
    """The words with their scope, without a full stop."""
    ahead, behind = (names.a, names.b) if verdict.effect.estimate > 0 else (names.b, names.a)
    within = f", and within ±{size_words(verdict, verdict.terms.within or 0.0)}" if verdict.within else ""
    words, fixed = verdict.words, verdict.terms.fixed
    if words is Words.NOTHING_TO_RANK:
        return "Nothing learned, nothing to rank: neither side's gain over its step 0 clears zero"
    if words in CALLED and verdict.terms.rule is not Rule.SEEDS_AND_ITEMS:
        return f"Called by the {rule_name(verdict.terms.rule)} rule: {ahead} beats {behind}{within}"
    if words in CALLED:
        scope = f"against this very {names.a if fixed == 'A' else names.b}" if fixed else "for these recipes"
        return f"Called: {ahead} beats {behind}, {scope}{within}"
    if words in THESE_RUNS:
        return f"These runs only: {ahead} is ahead{within}; another seed may turn it"
    if words is Words.DEAD_HEAT:
        return f"Dead heat within ±{size_words(verdict, verdict.terms.within or 0.0)}"
    return "Not called"


def tone(verdict: Verdict) -> Tone:
    """The colour of a verdict."""
    return _TONES.get(verdict.words, Tone.NOT_CALLED)


def difference_words(verdict: Verdict, names: Names) -> str:
    """A − B with its interval, level and n."""
    found = verdict.effect
    unit = "items" if found.num_clusters is None else f"items in {found.num_clusters:,} clusters"
    value = f"{estimate_words(verdict, found)}, {interval_words(verdict, found)}"
    return f"{names.a} − {names.b} = {value}, n = {found.n:,} {unit} × {plural(found.num_seeds, 'seed')}"


def estimate_words(verdict: Verdict, found: Effect) -> str:
    """A difference, in points for shares."""
    return f"{signed_words(verdict, found.estimate)}{' pp' if verdict.is_share else ''}"


def interval_words(verdict: Verdict, found: Effect | Interval) -> str:
    """An interval behind its level, such as "95% [−0.5, +6.5]"."""
    if math.isinf(found.high):
        return "no interval"
    return f"{level_words(found.level)} {bounds_words(verdict, found)}"


def bounds_words(verdict: Verdict, found: Effect | Interval) -> str:
    """Both ends of an interval of a difference."""
    return f"[{signed_words(verdict, found.low)}, {signed_words(verdict, found.high)}]"


def level_words(level: float) -> str:
    """A level as a percentage.

    Example:
        >>> level_words(0.95), level_words(1 - 0.05 / 3)
        ('95%', '98.33%')
    """
    return f"{100 * level:.4g}%"


def decided_by(verdict: Verdict) -> str:
    """The p-values the words rest on, adjusted and plain where they differ."""
    found, decision = verdict.effect, verdict.decision
    over = "over items" if found.num_seeds == 1 else "over seeds and items"
    said = f"p = {format_p(found.p_value)} {over}"
    if found.num_seeds > 1:
        said += f", {format_p(found.p_items)} over items alone"
    if decision.family > 1:
        adjusted = f"p = {format_p(decision.p_value)}, {interval_words(verdict, decision.interval)}"
        said += f"; Holm over {decision.family} contrasts: {adjusted}"
    if decision.alpha != verdict.terms.alpha:
        said += f"; held against the nominal level {decision.alpha:.3g} of this look"
    return said


def half_width_words(verdict: Verdict) -> str:
    """The three half-widths whose widest is the interval's."""
    found = verdict.effect
    if found.half_both is None or found.half_seeds is None:
        return f"±{size_words(verdict, found.half_items)} over items; one seed says nothing of others"
    parts = (("seeds", found.half_seeds), ("items", found.half_items), ("both", found.half_both))
    widest = max(parts, key=lambda part: part[1])[0]
    sizes = ", ".join(f"{name} ±{size_words(verdict, half)}" for name, half in parts)
    return f"{sizes}; the widest, over {widest}, decides"


def vote_words(verdict: Verdict, names: Names) -> str:
    """The vote rule's own answer, with the votes it reads."""
    votes, t = verdict.votes, verdict.votes.pooled
    said = votes.words.value.replace("(A)", f"({names.a})").replace("(B)", f"({names.b})")
    why = f" ({'; '.join(reason.value for reason in votes.reasons)})" if votes.reasons else ""
    p = format_p(votes.test.p_value, votes.test.log10_p)
    return f"{said}{why}: pooled votes {t.wins}–{t.losses}, {t.ties} tied, exact p = {p}"


def false_call_words(verdict: Verdict, names: Names) -> str:
    """How often each rule calls a winner where there is none, at this design and the seeds' measured spread."""
    found, own, two = verdict.effect, verdict.instrument.false_call, verdict.instrument.false_call_two_part
    if own is None:
        return "nothing differs between the sides, so there is nothing to simulate"
    rule = f"the {rule_name(two.design.rule)} rule calls a winner in {_rate(two)}" if two and found.coupled else ""
    if own.these_runs_only:
        said = f"between equal models, this rule says 'these runs only' in {_rate(own)} of {names.such}"
        return f"{said}; {rule}" if rule else said
    said = f"with equal recipes and this spread of seeds, this rule calls a winner in {_rate(own)} of {names.such}"
    return f"{said}, {rule.replace(' calls a winner', '')}" if rule else said


def smallest_words(verdict: Verdict) -> str:
    """The smallest gap that this design calls at the power asked for, at equal seeds and at τ̂."""
    at_zero, at_tau, spread = verdict.instrument.smallest, verdict.instrument.smallest_at_spread, verdict.effect.spread
    if at_zero is None:
        return "nothing differs between the sides, so this table says nothing of the gap it could call"
    power = f"at {level_words(at_zero.target_frac)} power"
    if spread is None:
        return f"{_gap(verdict, at_zero)} shows in these runs {power}; one seed calls nothing for the recipes"
    said = f"{_gap(verdict, at_zero)} is called {power} where seeds are alike (τ = 0)"
    if at_tau is None:
        return said
    low, high = size_words(verdict, spread.low, unit=False), size_words(verdict, spread.high, unit=False)
    interval = f"{level_words(spread.level)} [{low}, {high}]"
    return f"{said}; {_gap(verdict, at_tau)} at τ̂ = {size_words(verdict, spread.tau)}, {interval}"


def spread_words(verdict: Verdict) -> str:
    """τ̂ with its interval."""
    spread = verdict.effect.spread
    if spread is None:
        return "one seed: nothing is said of others"
    if spread.high < _NOTHING:
        return "their gaps differ less than item noise alone would have them: τ̂ = 0, which never means that seeds agree"
    low, high = size_words(verdict, spread.low, unit=False), size_words(verdict, spread.high, unit=False)
    tau, level = size_words(verdict, spread.tau), level_words(spread.level)
    said = f"their gaps spread by τ̂ = {tau}, {level} interval [{low}, {high}]"
    return said + ("; 0 never means that seeds agree" if spread.tau < _NOTHING else "")


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


def size_words(verdict: Verdict, value: float, *, unit: bool = True) -> str:
    """A size without sign, in points for shares."""
    if not verdict.is_share:
        return f"{value:.3g}"
    return f"{100 * value:.1f}{' pp' if unit else ''}".replace(".0 pp", " pp")


def signed_words(verdict: Verdict, value: float) -> str:
    """A signed number, in points for shares."""
    return format_signed(100 * value) if verdict.is_share else format_signed(value, 3)


def _rate(rate: CatchRate) -> str:
    return f"{100 * rate.false_call_frac:.1f}%"


def _gap(verdict: Verdict, smallest: SmallestGap) -> str:
    if smallest.gap is None:
        return f"no gap that this table can carry, at most {size_words(verdict, smallest.most_gap)},"
    return f"a gap of {size_words(verdict, smallest.gap)}"

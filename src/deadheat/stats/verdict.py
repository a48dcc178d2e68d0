"""What is said of two sides, and how far it reaches.

    called(A)             the interval over seeds and items leaves 0, S ≥ 2: for these recipes, with fresh seeds and items
    these runs only(A)    the interval over items alone leaves 0: these very models differ, another seed may turn it
    dead heat within ±δ   the interval at 1 − 2α lies inside ±δ, S ≥ 2 (two one-sided tests, Schuirmann 1987)
    not called            none of these; never "no difference"

One seed never says *called*. Beside the words stand the two-part rule's answer under its name, how often each of the
two errs at this design and at the seeds' measured spread τ̂, and the smallest gap that is called four times in five at
τ = 0 and at τ̂. Against one fixed baseline (released weights, step 0) the words are about that very baseline.

Several contrasts of one family are decided by Holm's adjustment of their p-values (`family`), a look before the end
by its nominal level (`looks.py`); the plain interval stays beside the adjusted one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat.errors import StatsError
from deadheat.stats.effect import Effect, paired_effect, uncoupled_effect
from deadheat.stats.gains import NOTHING_TO_RANK, PairedGain, are_grades, nothing_learned
from deadheat.stats.holm import holm, holm_levels
from deadheat.stats.power import CatchRate, SmallestGap, catch_rate, smallest_gap
from deadheat.stats.rules import VoteReading, read_votes
from deadheat.stats.vote_models import Components, Design, SeedEffects, UncoupledComponents
from deadheat.stats.votes import Rule, votes_from_scores

Floats = NDArray[np.float64]


class Words(StrEnum):
    """What a verdict says."""

    CALLED_A = "called(A)"
    CALLED_B = "called(B)"
    THESE_RUNS_A = "these runs only(A)"
    THESE_RUNS_B = "these runs only(B)"
    DEAD_HEAT = "dead heat"
    NOT_CALLED = "not called"
    NOTHING_TO_RANK = NOTHING_TO_RANK  # no arm's gain over its own step 0 clears zero


CALLED = (Words.CALLED_A, Words.CALLED_B)
THESE_RUNS = (Words.THESE_RUNS_A, Words.THESE_RUNS_B)


class Fixed(StrEnum):
    """A side that is one model: it has no seeds, and the words are about it alone."""

    A = "A"
    B = "B"


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How a verdict is reached."""

    alpha: float = 0.05  # two-sided level
    power: float = 0.80  # of the smallest gaps
    rule: Rule = Rule.SEEDS_AND_ITEMS
    within: float | None = None  # δ of a dead heat, in the unit of the scores; None: not asked
    tie_band: float = 0.0  # differences of at most this size are tied votes
    coupled: bool = True  # A's seeds are B's
    fixed: Fixed | None = None  # the side that is one model
    reruns: int = 20_000  # of each simulated rate

    def __post_init__(self) -> None:
        for name, value in (("alpha", self.alpha), ("power", self.power)):
            if not 0 < value < 1:
                raise StatsError(f"{name} is {value}; wanted strictly between 0 and 1, such as 0.05 or 0.80")
        if self.within is not None and not self.within > 0:
            raise StatsError(f"within is {self.within}; wanted a positive difference in the unit of the scores")


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The words with what decided them, after the adjustment of the family and the look."""

    words: Words
    alpha: float  # level that the adjusted p-value is held against: α, or a look's nominal level
    p_value: float  # adjusted over the family; the effect's own where there is one contrast
    p_items: float  # the same over items alone
    interval: Effect  # the effect at the level that the adjustment leaves: it leaves 0 exactly where p_value < alpha
    family: int  # contrasts decided together


@dataclass(frozen=True, kw_only=True)
class Instrument:
    """What a table of this size can show, and how often it errs. Rates are None where nothing is decided."""

    false_call: CatchRate | None  # the rule over seeds and items, no true gap, at τ̂; both sides together
    false_call_two_part: CatchRate | None  # the two-part rule likewise
    smallest: SmallestGap | None  # at equal seeds, τ = 0
    smallest_at_spread: SmallestGap | None  # at τ̂; None: τ̂ is 0, or one seed


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A decision about two sides, with everything it rests on."""

    decision: Decision
    within: bool | None  # the gap lies inside ±terms.within; None: not asked
    effect: Effect  # A − B at 1 − alpha, unadjusted
    votes: VoteReading  # the two-part rule's answer, or that of the vote rule asked for
    instrument: Instrument
    gains: tuple[PairedGain, ...]  # each arm's gain over its own step 0; empty: not given
    copies: tuple[str, ...]  # seeds left out because they repeat another, and equal sides; empty: none
    is_share: bool  # every score lies in [0, 1]: differences are shares, ×100 for points
    terms: Terms
    key: int  # address of the simulation's randomness

    @property
    def words(self) -> Words:
        """What is said."""
        return self.decision.words

    @property
    def called(self) -> bool:
        """True for called(A) or called(B)."""
        return self.words in CALLED

    @property
    def sentence(self) -> str:
        """The words, with the dead heat beside a call where both hold."""
        if self.words is Words.DEAD_HEAT:
            return f"dead heat within ±{self._delta()}"
        base = self.words.value + (f" against this very {self.terms.fixed}" if self.terms.fixed and self.called else "")
        return (
            f"{base}, and within ±{self._delta()}" if self.within and self.words is not Words.NOTHING_TO_RANK else base
        )

    def _delta(self) -> str:
        delta = self.terms.within or 0.0
        return f"{100 * delta:.4g} pp" if self.is_share else f"{delta:.4g}"


def judge(
    a_SN: ArrayLike,
    b_SN: ArrayLike,
    terms: Terms = Terms(),
    *,
    key: int,
    clusters: Sequence[object] | None = None,
    gains: Sequence[PairedGain] = (),
    seeds: Sequence[str] = (),
) -> Verdict:
    """The verdict on two tables of scores, NaN where one is missing.

    Args:
        a_SN: [S, N] scores of A; [1, N] where A is the fixed side.
        b_SN: [S, N] scores of B; other seeds than A's, in any number, where `terms.coupled` is False.
        key: address of the simulated rates' randomness.
        clusters: [N] a label per item; items of one label are drawn together.
        gains: the arms' own gains over step 0; where none clears zero the words are *null against null*.
        seeds: names of the rows, for the note on copies.

    Example:
        >>> a, b = [[1.0] * 40 + [0.0] * 20] * 2, [[1.0] * 10 + [0.0] * 50] * 2
        >>> a[1] = [1.0] * 39 + [0.0] * 21
        >>> verdict = judge(a, b, key=1)
        >>> verdict.sentence, round(verdict.effect.estimate, 3)
        ('called(A)', 0.492)
    """
    a, b = _tables(a_SN, b_SN, terms)
    a, b, copies = _without_copies(a, b, terms, seeds)
    grades = are_grades(a, b)
    if terms.coupled or terms.fixed is not None:
        gap_SN = a - b
        found = paired_effect(gap_SN, alpha=terms.alpha, grades=grades, clusters=clusters)
        votes_SN = votes_from_scores(*np.broadcast_arrays(a, b), tie_band=terms.tie_band)
    else:
        found = uncoupled_effect(a, b, alpha=terms.alpha, grades=grades, clusters=clusters)
        gap_SN = _item_means(a) - _item_means(b)
        votes_SN = votes_from_scores(_item_means(a), _item_means(b), tie_band=terms.tie_band)
    rule = Rule.TWO_PART if terms.rule is Rule.SEEDS_AND_ITEMS else terms.rule
    votes = read_votes(rule, votes_SN, alpha=terms.alpha)
    within = None if terms.within is None else found.within(terms.within)
    verdict = Verdict(
        decision=_decision(found, terms, found.p_value, found.p_items, terms.alpha, terms.alpha, 1, within),
        within=within,
        effect=found,
        votes=votes,
        instrument=_instrument(found, votes, gap_SN, (len(a), len(b)), grades, terms, key),
        gains=tuple(gains),
        copies=copies,
        is_share=grades,
        terms=terms,
        key=key,
    )
    return _reworded(verdict, verdict.decision)


def family(verdicts: Sequence[Verdict], *, alpha: float | None = None) -> tuple[Verdict, ...]:
    """The verdicts of one family of contrasts, decided together by Holm's adjustment.

    Args:
        verdicts: contrasts at the one primary reading.
        alpha: the level of the family; a look's nominal level where it is not the last. None: the verdicts' own.
    """
    if not verdicts:
        return ()
    level = verdicts[0].terms.alpha if alpha is None else alpha
    ps, ps_items = [v.effect.p_value for v in verdicts], [v.effect.p_items for v in verdicts]
    rows = zip(verdicts, holm(ps), holm(ps_items), holm_levels(ps, level), strict=True)
    return tuple(
        _reworded(v, _decision(v.effect, v.terms, p, p_items, level, own, len(verdicts), v.within))
        for v, p, p_items, own in rows
    )


def _reworded(verdict: Verdict, decision: Decision) -> Verdict:
    """A vote rule that was asked for decides itself; where nobody learned there is nothing to rank."""
    words = decision.words
    if verdict.terms.rule is not Rule.SEEDS_AND_ITEMS:
        words = Words(verdict.votes.words.value)
    if nothing_learned(verdict.gains):
        words = Words.NOTHING_TO_RANK
    return replace(verdict, decision=replace(decision, words=words))


def _decision(
    found: Effect,
    terms: Terms,
    p_value: float,
    p_items: float,
    alpha: float,
    own_alpha: float,
    num: int,
    within: bool | None,
) -> Decision:
    ahead = found.estimate > 0
    if found.num_seeds > 1 and p_value < alpha:
        words = Words.CALLED_A if ahead else Words.CALLED_B
    elif p_items < alpha:
        words = Words.THESE_RUNS_A if ahead else Words.THESE_RUNS_B
    else:
        words = Words.DEAD_HEAT if within else Words.NOT_CALLED
    return Decision(
        words=words,
        alpha=alpha,
        p_value=p_value,
        p_items=p_items,
        interval=found.at(own_alpha),
        family=num,
    )


def _instrument(
    found: Effect,
    votes: VoteReading,
    gap_SN: Floats,
    sizes: tuple[int, int],
    grades: bool,
    terms: Terms,
    key: int,
) -> Instrument:
    """Rates at the table's own discordance or components. Votes are simulated as votes, other scores as normal parts."""
    d, tau = votes.discordance_frac, found.spread.tau if found.spread else 0.0
    asked = {"key": key, "reruns": terms.reruns}
    ballots = SeedEffects(discordance_frac=d, tau_frac=votes.homogeneity.tau_frac)
    vote_design = Design(num_items=max(votes.n, 1), num_seeds=votes.num_seeds, rule=votes.rule, alpha=terms.alpha)
    two_part = catch_rate(0.0, ballots, vote_design, **asked) if d else None
    if not found.residual_var + found.item_var > 0:
        return Instrument(false_call=None, false_call_two_part=two_part, smallest=None, smallest_at_spread=None)
    design = Design(num_items=max(round(found.num_units), 1), num_seeds=found.num_seeds, alpha=terms.alpha)
    are_votes = grades and found.num_clusters is None and bool(np.isin(gap_SN[~np.isnan(gap_SN)], (-1, 0, 1)).all())
    two_more = found.num_clusters is None  # clusters get no two more items, and N is their number
    equal_seeds: Components | UncoupledComponents = Components(
        seed_var=0.0,
        item_var=found.item_var,
        residual_var=found.residual_var,
        grades=grades,
        two_more=two_more,
        discordance_frac=d if are_votes else None,
    )
    if not found.coupled and found.num_seeds > 1:
        scale = found.num_seeds * (1 / sizes[0] + 1 / sizes[1])  # v = σ²(1/S_A + 1/S_B) was stated as σ²/S
        equal_seeds = UncoupledComponents(
            seeds_a=sizes[0],
            seeds_b=sizes[1],
            seed_var=0.0,
            item_var=found.item_var,
            residual_var=found.residual_var / scale,
            grades=grades,
            two_more=two_more,
        )
        tau = tau / scale**0.5
        are_votes = False
    spread = replace(equal_seeds, seed_var=tau**2)
    cut = tau > d / 2  # votes cut a seed's gap at ±d, and such seeds are no longer normal
    null = SeedEffects(discordance_frac=d, tau_frac=tau) if are_votes and not cut else spread
    return Instrument(
        false_call=catch_rate(0.0, null, design, **asked),
        false_call_two_part=two_part,
        smallest=smallest_gap(equal_seeds, design, target_frac=terms.power, **asked),
        smallest_at_spread=smallest_gap(spread, design, target_frac=terms.power, **asked) if tau else None,
    )


def _tables(a_SN: ArrayLike, b_SN: ArrayLike, terms: Terms) -> tuple[Floats, Floats]:
    a, b = (np.atleast_2d(np.asarray(side, dtype=np.float64)) for side in (a_SN, b_SN))
    if a.shape[1:] != b.shape[1:] or a.ndim != 2:
        raise StatsError(f"A has shape {a.shape} and B {b.shape}; wanted seeds × items, the same items on both sides")
    if terms.fixed is not None:
        side = a if terms.fixed is Fixed.A else b
        if len(side) != 1:
            raise StatsError(f"{terms.fixed} is fixed and has {len(side)} seeds; wanted the scores of one model")
    elif terms.coupled and len(a) != len(b):
        raise StatsError(
            f"A has {len(a)} seeds and B {len(b)}, and coupled seeds pair one with one; wanted the same seeds, or "
            "uncoupled sides"
        )
    return a, b


def _item_means(table_SN: Floats) -> Floats:
    """[1, N] mean over the seeds that have the item."""
    present = ~np.isnan(table_SN)
    count_N = present.sum(axis=0)
    total_N = np.where(present, table_SN, 0.0).sum(axis=0)
    return np.where(count_N > 0, total_N / np.maximum(count_N, 1), np.nan)[None]


def _without_copies(a: Floats, b: Floats, terms: Terms, seeds: Sequence[str]) -> tuple[Floats, Floats, tuple[str, ...]]:
    """Both sides without seeds that repeat an earlier one, and what was found."""
    notes: list[str] = []
    if a.shape == b.shape and np.array_equal(a, b, equal_nan=True) and len(np.unique(a[~np.isnan(a)])) > 1:
        notes.append("A and B hold the same scores, item by item")
    if terms.coupled and terms.fixed is None:
        kept = _first_of_each(np.concatenate([a, b], axis=1), seeds, "", notes)
        return a[kept], b[kept], tuple(notes)
    kept_a = _first_of_each(a, seeds if len(seeds) == len(a) else (), " of A", notes)
    kept_b = _first_of_each(b, seeds if len(seeds) == len(b) else (), " of B", notes)
    return a[kept_a], b[kept_b], tuple(notes)


def _first_of_each(rows: Floats, seeds: Sequence[str], side: str, notes: list[str]) -> list[int]:
    """Rows that repeat no earlier one; a row of one value may recur by itself and stays."""
    kept: list[int] = []
    for s, row in enumerate(rows):
        same = next((k for k in kept if np.array_equal(row, rows[k], equal_nan=True)), None)
        if same is None or len(np.unique(row[~np.isnan(row)])) <= 1:
            kept.append(s)
        else:
            copy, first = (seeds[s], seeds[same]) if seeds else (str(s + 1), str(same + 1))
            notes.append(f"seed {copy}{side} repeats seed {first} score for score: it is left out, no seed of its own")
    return kept

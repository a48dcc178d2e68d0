"""Calling a winner from votes of seeds and items.

    two-part         an item's pooled vote is the sign of its sum over seeds; called when the exact binomial on pooled
                     votes is significant AND every seed's own net is strictly on the winner's side
    strict majority  the same, an item voting only where more than half of the seeds agree: far fewer items vote
    per-seed         all nets on one side, and more than half of the seeds significant on their own
    pooled           significance alone

The words are called(A), called(B) and not called, never "no difference": beside them stands the smallest gap that
this very table could have called four times out of five, at equal seeds (τ = 0) and at the seeds' measured spread
(τ̂).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat.errors import StatsError
from deadheat.stats.gains import NOTHING_TO_RANK, PairedGain, nothing_learned
from deadheat.stats.intervals import Interval, win_share
from deadheat.stats.power import CatchableGap, smallest_catchable_gap
from deadheat.stats.significance import SignTest, binomial_two_sided
from deadheat.stats.vote_models import Design, IidVotes, SeedEffects
from deadheat.stats.votes import (
    Rule,
    SeedHomogeneity,
    Tally,
    check_votes,
    discordance,
    expected_pooled_decided,
    homogeneity_of_tallies,
    pooled_votes,
    tally,
)


class Words(StrEnum):
    """What a verdict says."""

    CALLED_A = "called(A)"
    CALLED_B = "called(B)"
    NOT_CALLED = "not called"
    NOTHING_TO_RANK = NOTHING_TO_RANK  # no arm's gain over its own step 0 clears zero


class Reason(StrEnum):
    """Why a rule did not call."""

    NO_DECIDED_VOTE = "no item has a decided pooled vote"
    NOT_SIGNIFICANT = "the pooled votes are not significant"
    SEED_DISAGREES = "at least one seed's own net is not on the pooled side"
    SEED_MISSING = "at least one seed has no vote at all"
    TOO_FEW_SEEDS_SIGNIFICANT = "no more than half of the seeds are significant on their own"
    NOTHING_LEARNED = "no arm's gain over its own step 0 clears zero"


@dataclass(frozen=True, kw_only=True)
class SeedVerdict:
    """One seed's own votes."""

    tally: Tally
    test: SignTest


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A decision about votes V[S, N], with everything it rests on."""

    words: Words
    rule_words: Words  # what the rule alone says, whether or not an arm learned
    reasons: tuple[Reason, ...]  # why it is not called; empty when called
    rule: Rule
    method: str
    alpha: float  # two-sided level of the significance half
    level: float  # 1 − alpha
    n: int  # items with at least one vote
    left_out: int  # items without any vote
    num_seeds: int
    pooled: Tally  # pooled votes over items
    test: SignTest  # exact binomial on the pooled votes
    share: Interval | None  # pooled decided win share of A, Wilson; None: nothing decided
    seeds: tuple[SeedVerdict, ...]  # [S]
    homogeneity: SeedHomogeneity
    gap_frac: float  # (wins − losses)/votes cast, all seeds
    win_share_gap_frac: float | None  # the same over decided votes; compares with win_share_floor; None: none decided
    discordance_frac: float  # share of votes cast that are decided
    expected_decided: float  # pooled decided items if votes fell evenly; fewer seen: the noise sits on few items
    catchable: CatchableGap | None  # smallest gap this table calls at 80%, equal seeds; None: nothing decided
    catchable_tau: CatchableGap | None  # the same at the seeds' measured spread τ̂
    gains: tuple[PairedGain, ...]  # each arm's gain over its own step 0; empty: not given
    key: int  # address of the simulation's randomness

    @property
    def called(self) -> bool:
        """True for called(A) or called(B)."""
        return self.words in (Words.CALLED_A, Words.CALLED_B)


def two_part_rule(
    votes_SN: ArrayLike,
    *,
    key: int,
    gains: Sequence[PairedGain] = (),
    alpha: float = 0.05,
    reruns: int = 40_000,
) -> Verdict:
    """Pooled sign votes significant, and every seed's net strictly on the winner's side (a zero net is not agreement).

    `gains` are the arms' own gains over step 0, where known: if none clears zero the words are *null against null*.

    Example:
        Three seeds, six items, all for A: pooled 6–0, p = 2·(1/64) = .03125, every net +6.
        >>> verdict = two_part_rule([[1] * 6] * 3, key=1, reruns=1000)
        >>> verdict.words.value, verdict.test.p_value
        ('called(A)', 0.03125)
    """
    return decide(Rule.TWO_PART, votes_SN, key=key, gains=gains, alpha=alpha, reruns=reruns)


def strict_majority_rule(
    votes_SN: ArrayLike, *, key: int, gains: Sequence[PairedGain] = (), alpha: float = 0.05, reruns: int = 40_000
) -> Verdict:
    """As two-part, an item voting only where more than half of the votes cast on it are on one side."""
    return decide(Rule.STRICT_MAJORITY, votes_SN, key=key, gains=gains, alpha=alpha, reruns=reruns)


def per_seed_rule(
    votes_SN: ArrayLike, *, key: int, gains: Sequence[PairedGain] = (), alpha: float = 0.05, reruns: int = 40_000
) -> Verdict:
    """Every seed's net on one side, and more than half of the seeds significant on their own."""
    return decide(Rule.PER_SEED, votes_SN, key=key, gains=gains, alpha=alpha, reruns=reruns)


def pooled_rule(
    votes_SN: ArrayLike, *, key: int, gains: Sequence[PairedGain] = (), alpha: float = 0.05, reruns: int = 40_000
) -> Verdict:
    """Pooled sign votes significant; seeds are not asked."""
    return decide(Rule.POOLED, votes_SN, key=key, gains=gains, alpha=alpha, reruns=reruns)


def decide(
    rule: Rule,
    votes_SN: ArrayLike,
    *,
    key: int,
    gains: Sequence[PairedGain] = (),
    alpha: float = 0.05,
    reruns: int = 40_000,
) -> Verdict:
    """Apply a rule to votes."""
    votes = check_votes(votes_SN)
    if not 0 < alpha < 1:
        raise StatsError(f"alpha is {alpha}; wanted strictly between 0 and 1, such as 0.05")
    pooled = tally(pooled_votes(votes, strict_majority=rule is Rule.STRICT_MAJORITY))
    test = binomial_two_sided(pooled.wins, pooled.losses, left_out=pooled.ties + pooled.missing)
    seeds = tuple(_seed_verdict(row) for row in votes)
    reasons = _reasons(rule, test, seeds, alpha)
    side = Words.CALLED_A if _leans_to_a(rule, test, seeds) else Words.CALLED_B
    rule_words = Words.NOT_CALLED if reasons else side
    if nothing_learned(gains):
        reasons = (*reasons, Reason.NOTHING_LEARNED)
    design = Design(num_items=max(pooled.cast, 1), num_seeds=len(seeds), rule=rule, alpha=alpha)
    homogeneity = homogeneity_of_tallies([seed.tally for seed in seeds])
    d = discordance(votes)
    gap = float(np.nanmean(votes)) if pooled.cast else 0.0
    return Verdict(
        words=Words.NOTHING_TO_RANK if nothing_learned(gains) else rule_words,
        rule_words=rule_words,
        reasons=reasons,
        rule=rule,
        method=f"{rule.value} rule, exact binomial",
        alpha=alpha,
        level=1 - alpha,
        n=pooled.cast,
        left_out=pooled.missing,
        num_seeds=len(seeds),
        pooled=pooled,
        test=test,
        share=win_share(pooled.wins, pooled.losses, pooled.ties, 1 - alpha) if pooled.decided else None,
        seeds=seeds,
        homogeneity=homogeneity,
        gap_frac=gap,
        win_share_gap_frac=gap / d if d else None,
        discordance_frac=d,
        expected_decided=expected_pooled_decided(pooled.cast, len(seeds), d),
        catchable=smallest_catchable_gap(IidVotes(discordance_frac=d), design, key=key, reruns=reruns) if d else None,
        catchable_tau=_at_measured_spread(d, homogeneity.tau_frac, design, key, reruns),
        gains=tuple(gains),
        key=key,
    )


def _at_measured_spread(d: float, tau: float, design: Design, key: int, reruns: int) -> CatchableGap | None:
    if not d:
        return None
    model = SeedEffects(discordance_frac=d, tau_frac=tau)
    return smallest_catchable_gap(model, design, key=key, reruns=reruns)


def _seed_verdict(votes_N: NDArray[np.float64]) -> SeedVerdict:
    own = tally(votes_N)
    return SeedVerdict(tally=own, test=binomial_two_sided(own.wins, own.losses, left_out=own.ties + own.missing))


def _leans_to_a(rule: Rule, test: SignTest, seeds: Sequence[SeedVerdict]) -> bool:
    if rule is Rule.PER_SEED:
        return all(seed.tally.net > 0 for seed in seeds)
    return test.wins > test.losses


def _reasons(rule: Rule, test: SignTest, seeds: Sequence[SeedVerdict], alpha: float) -> tuple[Reason, ...]:
    """What keeps the rule from calling. A seed without votes cannot agree; it is named apart from one that disagrees."""
    found: list[Reason] = []
    nets_S = [seed.tally.net for seed in seeds if seed.tally.cast]
    if rule is not Rule.POOLED and len(nets_S) < len(seeds):
        found.append(Reason.SEED_MISSING)
    if rule is Rule.PER_SEED:
        if not (all(net > 0 for net in nets_S) or all(net < 0 for net in nets_S)):
            found.append(Reason.SEED_DISAGREES)
        if 2 * sum(seed.test.p_value < alpha for seed in seeds) <= len(seeds):
            found.append(Reason.TOO_FEW_SEEDS_SIGNIFICANT)
        return tuple(found)
    if test.n == 0:
        return (*found, Reason.NO_DECIDED_VOTE)
    if not test.p_value < alpha:
        found.append(Reason.NOT_SIGNIFICANT)
    if rule is not Rule.POOLED and not all(net * (test.wins - test.losses) > 0 for net in nets_S):
        found.append(Reason.SEED_DISAGREES)
    return tuple(found)

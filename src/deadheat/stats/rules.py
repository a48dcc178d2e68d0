"""Rules that call a winner from votes of seeds and items, as the sources defined them.

    two_part         an item's pooled vote is the sign of its sum over seeds; called when the exact binomial on pooled
                     votes is significant AND every seed's own net is strictly on the winner's side
    strict_majority  the same, an item voting only where more than half of the seeds agree: far fewer items vote
    per_seed         all nets on one side, and more than half of the seeds significant on their own
    pooled           significance alone

They hold the seeds fixed: where seeds differ they call a winner between equal recipes more often than α says (19% of
tables of 3 seeds × 200 items spread by 10 points). What Deadheat calls is decided in `verdict.py`; these stand beside
it under their names, with their error rates at the design in hand.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat.errors import StatsError
from deadheat.stats.intervals import Interval, win_share
from deadheat.stats.significance import SignTest, binomial_two_sided
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


class VoteWords(StrEnum):
    """What a rule on votes says."""

    CALLED_A = "called(A)"
    CALLED_B = "called(B)"
    NOT_CALLED = "not called"


class Reason(StrEnum):
    """Why a rule did not call."""

    NO_DECIDED_VOTE = "no item has a decided pooled vote"
    NOT_SIGNIFICANT = "the pooled votes are not significant"
    SEED_DISAGREES = "at least one seed's own net is not on the pooled side"
    SEED_MISSING = "at least one seed has no vote at all"
    TOO_FEW_SEEDS_SIGNIFICANT = "no more than half of the seeds are significant on their own"


@dataclass(frozen=True, kw_only=True)
class SeedVotes:
    """One seed's own votes."""

    tally: Tally
    test: SignTest


@dataclass(frozen=True, kw_only=True)
class VoteReading:
    """What a rule says of votes V[S, N], with everything it rests on."""

    words: VoteWords
    reasons: tuple[Reason, ...]  # why it is not called; empty when called
    rule: Rule
    alpha: float  # two-sided level of the significance half
    n: int  # items with at least one vote
    left_out: int  # items without any vote
    num_seeds: int
    pooled: Tally  # pooled votes over items
    test: SignTest  # exact binomial on the pooled votes
    share: Interval | None  # pooled decided win share of A, Wilson; None: nothing decided
    seeds: tuple[SeedVotes, ...]  # [S]
    homogeneity: SeedHomogeneity
    gap_frac: float  # (wins − losses)/votes cast, all seeds
    win_share_gap_frac: float | None  # the same over decided votes; compares with win_share_floor; None: none decided
    discordance_frac: float  # share of votes cast that are decided
    expected_decided: float  # pooled decided items if votes fell evenly; fewer seen: the noise sits on few items

    @property
    def called(self) -> bool:
        """True for called(A) or called(B)."""
        return self.words is not VoteWords.NOT_CALLED


def two_part_rule(votes_SN: ArrayLike, *, alpha: float = 0.05) -> VoteReading:
    """Pooled sign votes significant, and every seed's net strictly on the winner's side (a zero net is not agreement).

    Example:
        Three seeds, six items, all for A: pooled 6–0, p = 2·(1/64) = .03125, every net +6.
        >>> reading = two_part_rule([[1] * 6] * 3)
        >>> reading.words.value, reading.test.p_value
        ('called(A)', 0.03125)
    """
    return read_votes(Rule.TWO_PART, votes_SN, alpha=alpha)


def per_seed_rule(votes_SN: ArrayLike, *, alpha: float = 0.05) -> VoteReading:
    """Every seed's net on one side, and more than half of the seeds significant on their own."""
    return read_votes(Rule.PER_SEED, votes_SN, alpha=alpha)


def pooled_rule(votes_SN: ArrayLike, *, alpha: float = 0.05) -> VoteReading:
    """Pooled sign votes significant; seeds are not asked."""
    return read_votes(Rule.POOLED, votes_SN, alpha=alpha)


def read_votes(rule: Rule, votes_SN: ArrayLike, *, alpha: float = 0.05) -> VoteReading:
    """Apply a vote rule."""
    votes = check_votes(votes_SN)
    if not 0 < alpha < 1:
        raise StatsError(f"alpha is {alpha}; wanted strictly between 0 and 1, such as 0.05")
    if rule is Rule.SEEDS_AND_ITEMS:
        raise StatsError("the rule over seeds and items reads scores, not votes; wanted a vote rule such as two_part")
    pooled = tally(pooled_votes(votes, strict_majority=rule is Rule.STRICT_MAJORITY))
    test = binomial_two_sided(pooled.wins, pooled.losses, left_out=pooled.ties + pooled.missing)
    seeds = tuple(_seed_votes(row) for row in votes)
    reasons = _reasons(rule, test, seeds, alpha)
    side = VoteWords.CALLED_A if _leans_to_a(rule, test, seeds) else VoteWords.CALLED_B
    d = discordance(votes)
    gap = float(np.nanmean(votes)) if pooled.cast else 0.0
    return VoteReading(
        words=VoteWords.NOT_CALLED if reasons else side,
        reasons=reasons,
        rule=rule,
        alpha=alpha,
        n=pooled.cast,
        left_out=pooled.missing,
        num_seeds=len(seeds),
        pooled=pooled,
        test=test,
        share=win_share(pooled.wins, pooled.losses, pooled.ties, 1 - alpha) if pooled.decided else None,
        seeds=seeds,
        homogeneity=homogeneity_of_tallies([seed.tally for seed in seeds]),
        gap_frac=gap,
        win_share_gap_frac=gap / d if d else None,
        discordance_frac=d,
        expected_decided=expected_pooled_decided(pooled.cast, len(seeds), d),
    )


def _seed_votes(votes_N: NDArray[np.float64]) -> SeedVotes:
    own = tally(votes_N)
    return SeedVotes(tally=own, test=binomial_two_sided(own.wins, own.losses, left_out=own.ties + own.missing))


def _leans_to_a(rule: Rule, test: SignTest, seeds: Sequence[SeedVotes]) -> bool:
    if rule is Rule.PER_SEED:
        return all(seed.tally.net > 0 for seed in seeds)
    return test.wins > test.losses


def _reasons(rule: Rule, test: SignTest, seeds: Sequence[SeedVotes], alpha: float) -> tuple[Reason, ...]:
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

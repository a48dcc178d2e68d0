"""On how many items the noise sits: votes measured on one table, for planning the next.

    P(an item's pooled vote is decided) under S seeds and per-vote discordance d/m on a share m of the items
    = m·(1 − P(sum of S votes = 0 | d/m))

The share m̂ is the one at which this is the observed share of decided items; 1 where the items are as spread as
independent votes would be, and unknown with one seed, where every m gives the same table.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from deadheat.stats.distributions import root
from deadheat.stats.votes import (
    check_votes,
    discordance,
    expected_pooled_decided,
    homogeneity_of_tallies,
    pooled_votes,
    tally,
)


@dataclass(frozen=True, kw_only=True)
class MeasuredVotes:
    """What a table of votes says of its own noise."""

    discordance_frac: float  # d: share of the votes cast that are decided
    tau_frac: float  # τ̂: spread of the seeds' own gaps beyond item noise
    decided: int  # items whose pooled vote is decided
    expected_decided: float  # the same if the votes fell evenly over the items
    share_frac: float | None  # m̂: share of items the votes sit on; None: one seed cannot say
    gap_frac: float  # (wins − losses)/votes cast
    n: int  # items with a vote
    num_seeds: int
    left_out: int  # items without any vote


def measure_votes(votes_SN: ArrayLike) -> MeasuredVotes:
    """Discordance, spread of the seeds and concentration of a table.

    Example:
        Two seeds vote on the same 2 of 4 items, agreeing on one: d = .5 and 1 item decided, where evenly spread votes
        would decide 4·(1 − ¼ − 2/16) = 2.5. With all votes on m = .5 of the items: 4·.5·(1 − 2/4) = 1, as seen.
        >>> measured = measure_votes([[1, 1, 0, 0], [1, -1, 0, 0]])
        >>> measured.decided, measured.expected_decided, measured.share_frac
        (1, 2.5, 0.5)
    """
    votes = check_votes(votes_SN)
    d = discordance(votes)
    pooled = tally(pooled_votes(votes))
    num_seeds = votes.shape[0]
    tallies = [tally(row) for row in votes]
    return MeasuredVotes(
        discordance_frac=d,
        tau_frac=homogeneity_of_tallies(tallies).tau_frac,
        decided=pooled.decided,
        expected_decided=expected_pooled_decided(pooled.cast, num_seeds, d),
        share_frac=_share(pooled.decided, pooled.cast, num_seeds, d),
        gap_frac=float(np.nanmean(votes)) if pooled.cast else 0.0,
        n=pooled.cast,
        num_seeds=num_seeds,
        left_out=pooled.missing,
    )


def _share(decided: int, num_items: int, num_seeds: int, d: float) -> float | None:
    if num_seeds < 2 or not 0 < d < 1 or not num_items:
        return None

    def short(share: float) -> float:
        return expected_pooled_decided(1, num_seeds, d / share) * share - decided / num_items

    if short(1.0) <= 0:
        return 1.0
    return d if short(d) >= 0 else root(short, d, 1.0, tolerance=1e-12)

"""Audit 16, cold odds: how likely the untrained model is to write the exact reference, before anything is learned.

    P = exp(Σ_t log p(reference_t | prompt, reference_<t)), teacher-forced under the model's own distribution

Group-relative learning needs a right answer now and then: at odds P a group of G holds one with chance 1 − (1−P)^G. The
median, the geometric mean and quantiles of P are given (source: 80 draws of its task, median 8.97e-4). A model may be
right in other words than the reference's, so P is a lower bound on being right.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from deadheat.audit.records import AuditOptions, AuditRecord
from deadheat.errors import StatsError

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, kw_only=True)
class ColdOdds(AuditRecord):
    """The odds of the exact reference."""

    median: float  # of P
    geometric_mean: float  # exp(mean log P)
    quantiles: tuple[float, ...]  # of P at 5, 25, 50, 75 and 95%
    group_size: int
    chance_of_one: float  # mean over problems of 1 − (1−P)^G: groups with a right attempt at least once
    n: int  # problems
    left_out: int  # problems without a log-probability

    @property
    def sentence(self) -> str:
        """Median, geometric mean, and what they mean for a group."""
        low, high = self.quantiles[0], self.quantiles[-1]
        return (
            f"the exact reference has median odds {self.median:.3g} (geometric mean {self.geometric_mean:.3g}, 5 to 95% "
            f"of problems {low:.3g} to {high:.3g}, n = {self.n:,}); {100 * self.chance_of_one:.1f}% of groups of "
            f"{self.group_size} would hold it"
        )


def cold(rows: pl.LazyFrame, options: AuditOptions) -> ColdOdds:
    """Cold odds from a column `reference_logprob`, one value per problem."""
    found = rows.group_by("group_id").agg(pl.col("reference_logprob").cast(pl.Float64).first())
    logprobs = found.collect(engine="streaming")["reference_logprob"].fill_null(math.nan).to_numpy()
    return cold_odds(logprobs, group_size=options.group_sizes[0])


def cold_odds(logprobs_N: ArrayLike, *, group_size: int = 8) -> ColdOdds:
    """The odds from N summed log-probabilities of references; NaN is left out.

    Example:
        P of 1/2, 1/4 and 1/8: median 1/4, geometric mean (1/64)^(1/3) = 1/4.
        >>> found = cold_odds(np.log([0.5, 0.25, 0.125]), group_size=1)
        >>> round(found.median, 4), round(found.geometric_mean, 4), round(found.chance_of_one, 4)
        (0.25, 0.25, 0.2917)
    """
    given = np.asarray(logprobs_N, dtype=np.float64)
    known = given[~np.isnan(given)]
    if not known.size or group_size < 1:
        raise StatsError(f"{known.size} log-probabilities for groups of {group_size}; wanted at least one of each")
    if (known > 1e-9).any():
        raise StatsError(f"a log-probability is {known.max():.3g}; wanted natural logarithms, at most 0")
    odds = np.exp(known)
    return ColdOdds(
        median=float(np.exp(np.median(known))),
        geometric_mean=float(np.exp(known.mean())),
        quantiles=tuple(float(x) for x in np.quantile(odds, QUANTILES)),
        group_size=group_size,
        chance_of_one=float(np.mean(-np.expm1(group_size * np.log1p(-np.minimum(odds, 1 - 1e-16))))),
        n=known.size,
        left_out=given.size - known.size,
    )


def sweep(logprobs: Sequence[tuple[str, ArrayLike]], *, group_size: int = 8) -> tuple[tuple[str, ColdOdds], ...]:
    """Cold odds of several sizes of a task, to pick the one a group can start from."""
    return tuple((name, cold_odds(values, group_size=group_size)) for name, values in logprobs)

"""Contrasts of a per-item column between arms, over one pool or several, and interactions.

A column is any number per seed and item: a grade, capped or not, capped and wrong, a vote's grade, a mean over
sampled runs. A contrast is its mean difference; an interaction is a difference of differences; both are bootstrapped
on the seed × item table. A pool carries whether a setting was chosen while looking at it, an evaluation whether it is
the primary one or a re-execution: a reader must be able to tell.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat.errors import StatsError
from deadheat.stats.bootstrap import BootstrapInterval, Level, bootstrap


class PoolStatus(StrEnum):
    """Whether a pool may still confirm anything."""

    INSPECTED = "inspected"  # a setting or checkpoint was chosen while seeing it
    CONFIRMATORY = "confirmatory"  # nothing was chosen on it


class Execution(StrEnum):
    """Which run of the evaluation the numbers come from."""

    PRIMARY = "primary"  # the first, planned one
    RE_EXECUTION = "re-execution"  # run again, for instance at another batch size


@dataclass(frozen=True, kw_only=True)
class Pool:
    """A set of held-out items."""

    name: str
    status: PoolStatus
    execution: Execution = Execution.PRIMARY


@dataclass(frozen=True, kw_only=True)
class MeanSd:
    """Mean ± SD of the seeds, ddof = 1."""

    mean: float
    sd: float  # NaN for a single seed
    n: int  # seeds


@dataclass(frozen=True, kw_only=True)
class Column:
    """One arm's column on one pool."""

    arm: str
    values_SN: NDArray[np.float64]  # [S, N] NaN where missing
    pool: Pool
    column: str = "grade"  # what the numbers are


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """A mean difference with its interval."""

    label: str  # "A − B", or the interaction's four arms
    column: str
    pools: tuple[Pool, ...]  # in item order
    interval: BootstrapInterval
    seed_diffs: tuple[float, ...]  # [S] each seed's own difference
    spread: MeanSd  # of the seeds' differences

    @property
    def confirmatory(self) -> bool:
        """True where no pool was inspected."""
        return all(pool.status is PoolStatus.CONFIRMATORY for pool in self.pools)


def mean_sd(values_S: ArrayLike) -> MeanSd:
    """Mean and sample SD.

    Example:
        44.4, 45.0, 48.8: mean 46.0667; deviations −1.6667, −1.0667, 2.7333; sqrt(11.3867/2) = 2.386.
        >>> result = mean_sd([44.4, 45.0, 48.8])
        >>> round(result.mean, 2), round(result.sd, 2)
        (46.07, 2.39)
    """
    values = np.asarray(values_S, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or np.isnan(values).any():
        raise StatsError(f"got {values.size} values of shape {values.shape}; wanted one finite number per seed")
    sd = float(values.std(ddof=1)) if values.size > 1 else math.nan
    return MeanSd(mean=float(values.mean()), sd=sd, n=values.size)


def contrast(a: Column, b: Column, *, key: int, level: Level | str = Level.CROSSED, resamples: int = 4000) -> Contrast:
    """A − B on one pool."""
    return pooled_contrast([(a, b)], key=key, level=level, resamples=resamples)


def pooled_contrast(
    pairs: Sequence[tuple[Column, Column]], *, key: int, level: Level | str = Level.CROSSED, resamples: int = 4000
) -> Contrast:
    """A − B over the items of several pools laid side by side; every item weighs the same."""
    if not pairs:
        raise StatsError("no pool was given; wanted at least one pair of columns")
    tables = [_difference(a, b) for a, b in pairs]
    if len({(a.arm, b.arm, a.column) for a, b in pairs}) > 1:
        raise StatsError("the pools compare different arms or columns; pool only like with like")
    if len({table.shape[0] for table in tables}) > 1:
        raise StatsError(f"pools have {[t.shape[0] for t in tables]} seeds; wanted the same seeds in every pool")
    a, b = pairs[0]
    pools = tuple(pair[0].pool for pair in pairs)
    return _contrast(f"{a.arm} − {b.arm}", a.column, pools, np.concatenate(tables, axis=1), key, level, resamples)


def interaction(
    first: tuple[Column, Column],
    second: tuple[Column, Column],
    *,
    key: int,
    level: Level | str = Level.CROSSED,
    resamples: int = 4000,
) -> Contrast:
    """(A₁ − B₁) − (A₂ − B₂) on one pool: a difference of differences."""
    tables = [_difference(*first), _difference(*second)]
    if tables[0].shape != tables[1].shape or first[0].pool != second[0].pool:
        raise StatsError(f"shapes {tables[0].shape} and {tables[1].shape}; wanted one pool, the same seeds and items")
    label = f"({first[0].arm} − {first[1].arm}) − ({second[0].arm} − {second[1].arm})"
    return _contrast(label, first[0].column, (first[0].pool,), tables[0] - tables[1], key, level, resamples)


def _difference(a: Column, b: Column) -> NDArray[np.float64]:
    if a.values_SN.shape != b.values_SN.shape or a.values_SN.ndim != 2:
        raise StatsError(
            f"{a.arm} has shape {a.values_SN.shape}, {b.arm} {b.values_SN.shape}; wanted the same seeds × items"
        )
    if a.pool != b.pool or a.column != b.column:
        raise StatsError(
            f"{a.arm} is {a.column} on {a.pool.name}, {b.arm} is {b.column} on {b.pool.name}; "
            "wanted one column of one pool"
        )
    return a.values_SN - b.values_SN


def _contrast(
    label: str,
    column: str,
    pools: tuple[Pool, ...],
    table_SN: NDArray[np.float64],
    key: int,
    level: Level | str,
    resamples: int,
) -> Contrast:
    interval = bootstrap(table_SN, level, key=key, resamples=resamples)
    seed_diffs = np.nanmean(table_SN, axis=1)
    return Contrast(
        label=label,
        column=column,
        pools=pools,
        interval=interval,
        seed_diffs=tuple(seed_diffs.tolist()),
        spread=mean_sd(seed_diffs),
    )

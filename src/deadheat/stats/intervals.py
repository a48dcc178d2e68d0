"""Intervals of a share and of a mean score.

    Wilson            centre (k + z²/2)/(n + z²), half-width z·sqrt(k(n−k)/n + z²/4)/(n + z²)      Wilson 1927
    Clopper–Pearson   Beta(α/2; k, n−k+1) to Beta(1−α/2; k+1, n−k)                               Clopper, Pearson 1934

A share of exactly 0 or 1 still has a Wilson bound; its standard error is never taken as 0. Records that repeat a
question are averaged within the question before anything is counted.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat.errors import StatsError
from deadheat.stats.distributions import beta_quantile, normal_quantile, t_quantile


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An estimate with its interval."""

    estimate: float  # the point estimate, inside [low, high]
    low: float
    high: float
    level: float  # coverage asked for, such as 0.95
    n: int  # items it rests on
    left_out: int  # items given and not used
    method: str  # how it was computed
    note: str = ""  # caveat to print beside it; empty: none


@dataclass(frozen=True, kw_only=True)
class MeanScore:
    """A mean with its standard error, questions as the unit."""

    interval: Interval
    se: float  # sqrt(sum of squared deviations / (n − 1) / n); Wilson width / z where all scores are 0, or all are 1
    num_records: int  # scores given, repeats and missing included


@dataclass(frozen=True, kw_only=True)
class MeanSd:
    """Mean ± SD of the seeds, ddof = 1."""

    mean: float
    sd: float  # NaN for a single seed
    n: int  # seeds


def wilson(k: int, n: int, level: float = 0.95, *, left_out: int = 0) -> Interval:
    """Wilson interval of k successes in n.

    Example:
        >>> interval = wilson(80, 166)
        >>> round(100 * interval.low, 1), round(100 * interval.high, 1)
        (40.7, 55.7)
    """
    _check_counts(k, n, level)
    z = -normal_quantile((1 - level) / 2)
    centre = (k + z * z / 2) / (n + z * z)
    half = z * math.sqrt(k * (n - k) / n + z * z / 4) / (n + z * z)
    low = 0.0 if k == 0 else centre - half
    high = 1.0 if k == n else centre + half
    return Interval(estimate=k / n, low=low, high=high, level=level, n=n, left_out=left_out, method="Wilson")


def clopper_pearson(k: int, n: int, level: float = 0.95, *, left_out: int = 0) -> Interval:
    """Clopper–Pearson interval: never covers less than its level, wider than Wilson.

    Example:
        With k = 0 the upper bound is 1 − (α/2)^(1/n) = 1 − .025^.1 = .3085 at n = 10.
        >>> round(clopper_pearson(0, 10).high, 4)
        0.3085
    """
    _check_counts(k, n, level)
    tail = (1 - level) / 2
    low = 0.0 if k == 0 else beta_quantile(tail, k, n - k + 1)
    high = 1.0 if k == n else beta_quantile(1 - tail, k + 1, n - k)
    return Interval(estimate=k / n, low=low, high=high, level=level, n=n, left_out=left_out, method="Clopper–Pearson")


def win_share(wins: int, losses: int, ties: int = 0, level: float = 0.95) -> Interval:
    """Share of decided votes won, Wilson. Ties are left out and counted, never scored as zeros.

    Example:
        40 wins, 60 losses are behind 33 wins, 33 losses, 34 ties: 40% against 50% of the decided votes.
        >>> win_share(40, 60).estimate, win_share(33, 33, 34).estimate
        (0.4, 0.5)
    """
    if wins + losses == 0:
        raise StatsError(f"no decided vote among {ties} ties; a win share needs at least one win or loss")
    return wilson(wins, wins + losses, level, left_out=ties)


def mean_score(
    scores_N: ArrayLike, *, item_ids: Sequence[str | int | None] | None = None, level: float = 0.95
) -> MeanScore:
    """Mean of scores with questions as the unit; Wilson for right/wrong scores, Student's t otherwise.

    Missing scores (NaN) are left out and counted. Records with one id are averaged first; an id of None is a question
    of its own, never merged with other missing ids.

    Example:
        14 right of 307: sqrt(.0456·.9544/306) = .011926.
        >>> round(mean_score([1.0] * 14 + [0.0] * 293).se, 6)
        0.011926
    """
    given = np.asarray(scores_N, dtype=np.float64)
    if given.ndim != 1:
        raise StatsError(f"scores have shape {given.shape}; wanted one axis, one score per record")
    scores_N_ = _one_per_item(given, item_ids) if item_ids is not None else given
    kept = scores_N_[~np.isnan(scores_N_)]
    n, left_out = kept.size, scores_N_.size - kept.size
    if n == 0:
        raise StatsError(f"all {given.size} scores are missing; wanted at least one")
    right_or_wrong = bool(np.isin(kept, (0.0, 1.0)).all())
    if right_or_wrong:
        interval = wilson(int(kept.sum()), n, level, left_out=left_out)
        z = -normal_quantile((1 - level) / 2)
        constant = interval.estimate in (0.0, 1.0)
        se = (interval.high - interval.low) / z if constant else _se_of_mean(kept)
        return MeanScore(interval=interval, se=se, num_records=given.size)
    if n == 1:
        raise StatsError("one score gives no spread; wanted at least two, or right/wrong grades")
    mean, se = float(kept.mean()), _se_of_mean(kept)
    half = -t_quantile((1 - level) / 2, n - 1) * se if se else math.inf
    note = "" if se else "no interval: all scores are equal"
    interval = Interval(
        estimate=mean,
        low=mean - half,
        high=mean + half,
        level=level,
        n=n,
        left_out=left_out,
        method="Student's t",
        note=note,
    )
    return MeanScore(interval=interval, se=se, num_records=given.size)


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


def _one_per_item(scores: NDArray[np.float64], item_ids: Sequence[str | int | None]) -> NDArray[np.float64]:
    """Mean of the records of each id, missing ones left out; an id of None is an item of its own."""
    if len(item_ids) != scores.size:
        raise StatsError(f"{len(item_ids)} item ids for {scores.size} scores; wanted one id per score")
    labels = [("none", i) if item is None else ("id", item) for i, item in enumerate(item_ids)]
    column = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    place = np.array([column[label] for label in labels], dtype=np.int64)
    present = ~np.isnan(scores)
    count = np.bincount(place, weights=present, minlength=len(column))
    total = np.bincount(place, weights=np.where(present, scores, 0.0), minlength=len(column))
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _se_of_mean(values: NDArray[np.float64]) -> float:
    if values.size < 2 or np.ptp(values) == 0:
        return 0.0
    return float(values.std(ddof=1) / math.sqrt(values.size))


def _check_counts(k: int, n: int, level: float) -> None:
    if n < 1:
        raise StatsError(f"n is {n}; a share of no items has no interval")
    if not 0 <= k <= n:
        raise StatsError(f"k is {k} of n = {n}; wanted 0 to {n}")
    if not 0 < level < 1:
        raise StatsError(f"level is {level}; wanted strictly between 0 and 1, such as 0.95")

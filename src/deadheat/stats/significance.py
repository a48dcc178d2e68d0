"""Tests of a difference: exact binomial, exact McNemar, paired t, keyed permutation.

The exact two-sided binomial at ½ is twice the smaller tail, capped at 1. Its relative error stays small at p ~ 1e-300
because the tail itself is computed, never one minus its complement, and never a sum cut at an absolute tolerance.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from deadheat.errors import StatsError
from deadheat.sampling.keys import generator
from deadheat.stats.distributions import SMALLEST_P, binomial_at_most, t_two_sided


@dataclass(frozen=True, kw_only=True)
class SignTest:
    """Exact two-sided binomial on decided votes."""

    p_value: float  # in (0, 1]; the smallest normal float where the true value is smaller still
    log10_p: float  # base-ten logarithm of the true value, also below 1e-308
    wins: int
    losses: int
    n: int  # decided votes
    left_out: int  # ties and missing votes, dropped
    level: float | None  # None: a p-value carries no level
    method: str
    note: str = ""  # "no information" where nothing was decided


@dataclass(frozen=True, kw_only=True)
class DifferenceTest:
    """A test of a mean difference."""

    p_value: float  # in (0, 1]
    difference: float  # mean of A − B over the items both have
    statistic: float  # t, or the observed difference for a permutation test
    n: int  # items both sides have
    left_out: int  # items missing on either side
    level: float | None  # None: a p-value carries no level
    method: str
    note: str = ""


def binomial_two_sided(wins: int, losses: int, *, left_out: int = 0) -> SignTest:
    """min(1, 2·P(X ≤ min(wins, losses))), X ~ Binomial(wins + losses, ½).

    Example:
        3–0: 2·(1/8) = .25.
        >>> binomial_two_sided(3, 0).p_value, binomial_two_sided(108, 108).p_value
        (0.25, 1.0)
    """
    if wins < 0 or losses < 0:
        raise StatsError(f"{wins} wins and {losses} losses; wanted counts of at least 0")
    n, fewer = wins + losses, min(wins, losses)
    note = "no information: no decided vote" if n == 0 else ""
    if wins == losses:
        p, log10_p = 1.0, 0.0
    else:
        p = min(1.0, 2 * binomial_at_most(fewer, n))
        log10_p = math.log10(p) if p > 1e-290 else _log10_two_tails(fewer, n)
    return SignTest(
        p_value=max(p, SMALLEST_P),
        log10_p=log10_p,
        wins=wins,
        losses=losses,
        n=n,
        left_out=left_out,
        level=None,
        method="exact two-sided binomial, ties dropped",
        note=note,
    )


def mcnemar(a_N: ArrayLike, b_N: ArrayLike) -> SignTest:
    """Exact McNemar: the binomial on items where exactly one side is right.

    Example:
        A alone right on 3, B alone on 0: p = .25; the fourth item, right on both, says nothing.
        >>> mcnemar([1, 1, 1, 1], [0, 0, 0, 1]).p_value
        0.25
    """
    a, b, missing = _paired(a_N, b_N)
    if not np.isin(np.concatenate([a, b]), (0.0, 1.0)).all():
        raise StatsError("McNemar wants grades of 0 and 1; for graded scores use paired_t or permutation_test")
    wins, losses = int((a > b).sum()), int((a < b).sum())
    return binomial_two_sided(wins, losses, left_out=missing + a.size - wins - losses)


def paired_t(a_N: ArrayLike, b_N: ArrayLike) -> DifferenceTest:
    """Student's t on per-item differences, ddof = 1.

    Example:
        Differences 1, 2, 3: mean 2, SD 1, t = 2·sqrt(3) = 3.4641, two-sided p = .0742 on 2 degrees of freedom.
        >>> test = paired_t([1.0, 2.0, 3.0], [0.0, 0.0, 0.0])
        >>> round(test.statistic, 4), round(test.p_value, 4)
        (3.4641, 0.0742)
    """
    a, b, missing = _paired(a_N, b_N)
    if a.size < 2:
        raise StatsError(f"{a.size} items on both sides; a paired t wants at least 2")
    gap = a - b
    se = float(gap.std(ddof=1)) / math.sqrt(gap.size) if np.ptp(gap) > 0 else 0.0
    mean = float(gap.mean())
    if se == 0:
        note = (
            "no information: no item differs" if mean == 0 else "every item differs by the same amount: t is unbounded"
        )
        p, statistic = (1.0, 0.0) if mean == 0 else (SMALLEST_P, math.copysign(math.inf, mean))
    else:
        note, statistic = "", mean / se
        p = max(t_two_sided(statistic, gap.size - 1), SMALLEST_P)
    return DifferenceTest(
        p_value=p,
        difference=mean,
        statistic=statistic,
        n=gap.size,
        left_out=missing,
        level=None,
        method="paired t",
        note=note,
    )


def permutation_test(a_N: ArrayLike, b_N: ArrayLike, *, key: int, resamples: int = 10_000) -> DifferenceTest:
    """Keyed sign-flip permutation of per-item differences: p = (1 + #{|mean*| ≥ |mean|})/(1 + resamples).

    Source: Phipson and Smyth 2010 (a permutation p-value is never 0).
    """
    a, b, missing = _paired(a_N, b_N)
    if a.size == 0 or resamples < 1:
        raise StatsError(f"{a.size} items on both sides and {resamples} resamples; wanted at least one of each")
    gap = a - b
    observed = float(gap.mean())
    return DifferenceTest(
        p_value=_flip_p(np.abs(gap[gap != 0]), abs(float(gap.sum())), resamples, key),
        difference=observed,
        statistic=observed,
        n=gap.size,
        left_out=missing,
        level=None,
        method=f"sign-flip permutation, {resamples} resamples",
        note="no information: no item differs" if not gap.any() else "",
    )


def _paired(a_N: ArrayLike, b_N: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Both sides of the items that both sides have, and how many were left out."""
    a, b = np.asarray(a_N, dtype=np.float64), np.asarray(b_N, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise StatsError(f"shapes {a.shape} and {b.shape}; wanted two equal lists, one entry per shared item")
    both = ~(np.isnan(a) | np.isnan(b))
    return a[both], b[both], int(a.size - both.sum())


def _flip_p(sizes: NDArray[np.float64], observed: float, resamples: int, key: int) -> float:
    """Share of random sign patterns whose sum is at least as far from 0; signs drawn in memory-bounded chunks."""
    if sizes.size == 0:
        return 1.0
    rng, hits, done = generator(key), 0, 0
    rows = max(1, 4_000_000 // sizes.size)
    while done < resamples:
        size = min(rows, resamples - done)
        signs = rng.integers(0, 2, size=(size, sizes.size), dtype=np.int8) * 2.0 - 1.0
        hits += int((np.abs(signs @ sizes) >= observed * (1 - 1e-12)).sum())
        done += size
    return (1 + hits) / (1 + resamples)


def _log10_two_tails(fewer: int, n: int) -> float:
    """log10(2·P(X ≤ fewer)) by summing the tail downwards from its largest term, in logarithms."""
    log_top = gammaln(n + 1) - gammaln(fewer + 1) - gammaln(n - fewer + 1) - n * math.log(2)
    ratios = np.arange(fewer, 0, -1, dtype=np.float64) / (n - np.arange(fewer, 0, -1, dtype=np.float64) + 1)
    tail = 1.0 + float(np.cumprod(ratios).sum()) if fewer else 1.0
    return float((log_top + math.log(tail) + math.log(2)) / math.log(10))

"""How often a group of G would tie, from k right of n attempts at the same problem.

    exact        (C(k, G) + C(n−k, G)) / C(n, G): every way of drawing G of the n, without putting back; wants n > G
    plug-in      p^G + (1−p)^G with p = k/n: biased towards ties it has already seen; shown beside the exact one
    fitted       E[p^G + (1−p)^G] under a beta distribution of p, fitted to (k, n) by maximum likelihood:
                 [B(a+G, b) + B(a, b+G)] / B(a, b); the only one there is where n = G

Attempts must be independent given the problem; siblings of a branched run are not. Where one problem stands in several
groups the interval of an exact rate draws problems together: each problem's sum of rates is kept in units of 2⁻⁴⁰, so
that it adds up over shards to the last digit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import isinf
from operator import mul

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import betaln, gammaln

from deadheat.audit.problems import alike, clusters_of, column
from deadheat.stats.intervals import Interval, mean_score
from deadheat.stats.shares import clustered_average

Array = NDArray[np.float64]
_UNIT = 2.0**40


@dataclass(frozen=True, kw_only=True)
class ExpectedGate:
    """The tie rate to expect at one group size."""

    group_size: int
    method: str  # exact resampling, or beta-binomial fit
    rate: float  # expected share of tied groups
    interval: Interval | None  # over problems; None: a fit, fewer than 6 repeated problems, or rates that do not vary
    plug_in: float  # pⁿ + (1−p)ⁿ at each problem's own share
    n: int  # problems it rests on


def exact_gate(right_P: Array, draws_P: Array, group_size: int) -> Array:
    """[P] chance that G of a problem's draws, taken without putting back, agree.

    Example:
        k = 2 of n = 4, G = 2: (1 + 1)/6.
        >>> exact_gate(np.array([2.0]), np.array([4.0]), 2).round(4).tolist()
        [0.3333]
    """
    wrong_P = draws_P - right_P
    agree = [np.where(side >= group_size, np.exp(_log_choose(side, group_size)), 0.0) for side in (right_P, wrong_P)]
    return np.asarray((agree[0] + agree[1]) / np.exp(_log_choose(draws_P, group_size)))


def plug_in_gate(right_P: Array, draws_P: Array, group_size: int) -> Array:
    """[P] p^G + (1−p)^G at p = k/n.

    Example:
        >>> plug_in_gate(np.array([2.0]), np.array([4.0]), 2).tolist()
        [0.5]
    """
    p_P = right_P / draws_P
    return np.asarray(p_P**group_size + (1 - p_P) ** group_size)


def expected_gates(
    right_H: Array, draws_H: Array, problems_H: NDArray[np.int64], group_sizes: Sequence[int], *, level: float
) -> tuple[ExpectedGate, ...]:
    """The expected tie rate at each size from a histogram: H cells of (k, n), each of so many problems."""
    fit: tuple[float, float] | None = None
    found = []
    for size in group_sizes:
        more = draws_H > size
        if problems_H[more].sum() >= 2:
            found.append(_exact(right_H[more], draws_H[more], problems_H[more], size, level))
        elif problems_H.sum() >= 2:
            fit = fit or fit_beta(right_H, draws_H, problems_H)
            found.append(_fitted(fit, right_H, draws_H, problems_H, size))
    return tuple(found)


def _exact(right_H: Array, draws_H: Array, problems_H: NDArray[np.int64], size: int, level: float) -> ExpectedGate:
    rates = np.repeat(exact_gate(right_H, draws_H, size), problems_H)
    interval = mean_score(rates, level=level).interval
    plug_in = np.average(plug_in_gate(right_H, draws_H, size), weights=problems_H)
    return ExpectedGate(
        group_size=size,
        method="exact resampling",
        rate=float(rates.mean()),
        interval=interval,
        plug_in=float(plug_in),
        n=rates.size,
    )


def expected_sums(group_sizes: Sequence[int], expects: pl.Expr) -> list[pl.Expr]:
    """Sums over groups of the exact rate at each size, and how many groups have one, for `right` of `graded`."""
    found = []
    for size in group_sizes:
        more = expects & (pl.col("graded") > size)
        rate = _agree(pl.col("right"), size) + _agree(pl.col("graded") - pl.col("right"), size)
        units = (pl.when(more).then(rate).otherwise(0.0) * _UNIT).round().cast(pl.Int64)
        found += [units.sum().alias(f"expected{size}"), more.cast(pl.Int32).sum().alias(f"expected{size}.n")]
    return found


def _agree(count: pl.Expr, size: int) -> pl.Expr:
    """C(count, G)/C(n, G) as a product of G ratios."""
    ratios = [(count - i).clip(lower_bound=0).cast(pl.Float64) / (pl.col("graded") - i) for i in range(size)]
    return reduce(mul, ratios)


def clustered_gate(found: ExpectedGate, problems: pl.DataFrame, *, level: float) -> ExpectedGate:
    """The same rate with an interval that draws problems together, where one stands in several groups."""
    rate, size = f"expected{found.group_size}", f"expected{found.group_size}.n"
    if found.interval is None or size not in problems.columns:
        return found
    table = alike(problems, size, [rate])
    clusters = clusters_of(table, size)
    if clusters.single:
        return found
    interval = clustered_average(column(table, rate) / _UNIT, clusters, level=level, what="share of ties expected")
    bounded = replace(interval, low=max(interval.low, 0.0), high=min(interval.high, 1.0))
    return replace(found, interval=None if isinf(interval.high) else bounded)


def _fitted(
    fit: tuple[float, float], right_H: Array, draws_H: Array, problems_H: NDArray[np.int64], size: int
) -> ExpectedGate:
    return ExpectedGate(
        group_size=size,
        method=f"beta-binomial fit, a = {fit[0]:.3g}, b = {fit[1]:.3g}",
        rate=beta_gate(*fit, size),
        interval=None,
        plug_in=float(np.average(plug_in_gate(right_H, draws_H, size), weights=problems_H)),
        n=int(problems_H.sum()),
    )


def beta_gate(a: float, b: float, group_size: int) -> float:
    """E[p^G + (1−p)^G] for p ~ Beta(a, b).

    Example:
        Uniform p: 2/(G + 1).
        >>> round(beta_gate(1.0, 1.0, 3), 6)
        0.5
    """
    return float(np.exp(betaln(a + group_size, b) - betaln(a, b)) + np.exp(betaln(a, b + group_size) - betaln(a, b)))


def fit_beta(right_H: Array, draws_H: Array, problems_H: NDArray[np.int64]) -> tuple[float, float]:
    """Maximum-likelihood (a, b) of a beta-binomial, kept inside [e⁻⁶, e⁶]."""

    def loss(logs: Array) -> float:
        a, b = np.exp(logs)
        return -float(problems_H @ (betaln(right_H + a, draws_H - right_H + b) - betaln(a, b)))

    best = minimize(loss, np.zeros(2), method="L-BFGS-B", bounds=[(-6.0, 6.0)] * 2)
    return float(np.exp(best.x[0])), float(np.exp(best.x[1]))


def _log_choose(n_P: Array, k: int) -> Array:
    safe = np.maximum(n_P, k)
    return np.asarray(gammaln(safe + 1) - gammaln(k + 1) - gammaln(safe - k + 1))

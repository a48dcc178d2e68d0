"""Tails and quantiles from `scipy.special`, whose import costs a third of `scipy.stats`, and one root finder.

A tail is computed as a tail, never as one minus its complement, so that it keeps its relative precision.
"""

import math
from collections.abc import Callable
from typing import overload

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, betainc, betaincinv, chdtrc, gammaincinv, ndtr, ndtri, stdtr, stdtrit

Floats = NDArray[np.float64]
SMALLEST_P = float(np.finfo(np.float64).tiny)  # a p-value is never 0


def normal_quantile(share: float) -> float:
    """z with P(Z ≤ z) = share.

    Example:
        >>> round(normal_quantile(0.975), 6)
        1.959964
    """
    return float(ndtri(share))


def normal_tail(z: float) -> float:
    """P(Z ≥ z).

    Example:
        >>> normal_tail(0.0)
        0.5
    """
    return float(ndtr(-z))


def t_quantile(share: float, df: float) -> float:
    """Student's t with P(T ≤ t) = share.

    Example:
        >>> round(t_quantile(0.975, 2), 3)
        4.303
    """
    return float(ndtri(share)) if math.isinf(df) else float(stdtrit(df, share))


@overload
def t_two_sided(t: float, df: float) -> float: ...
@overload
def t_two_sided(t: Floats, df: Floats | float) -> Floats: ...
def t_two_sided(t: float | Floats, df: Floats | float) -> float | Floats:
    """P(|T| ≥ |t|), elementwise.

    Example:
        >>> round(t_two_sided(4.303, 2), 3)
        0.05
    """
    tails = 2 * stdtr(df, -np.abs(t))
    return tails if isinstance(t, np.ndarray) else float(tails)


def chi2_quantile(share: float, df: float) -> float:
    """χ² with P(X ≤ x) = share.

    Example:
        >>> round(chi2_quantile(0.95, 1), 3)
        3.841
    """
    return 2 * float(gammaincinv(df / 2, share))


def chi2_tail(value: float, df: float) -> float:
    """P(X ≥ value), at least the smallest normal float."""
    return max(float(chdtrc(df, value)), SMALLEST_P)


def beta_quantile(share: float, a: float, b: float) -> float:
    """x with P(X ≤ x) = share for X ~ Beta(a, b)."""
    return float(betaincinv(a, b, share))


def binomial_at_most(count: int, trials: int) -> float:
    """P(X ≤ count) for X ~ Binomial(trials, ½), 0 ≤ count < trials, as I_½(trials − count, count + 1).

    `bdtr` is off by 0.3% at ten million trials; this is not.

    Example:
        >>> binomial_at_most(0, 3)
        0.125
    """
    return float(betainc(trials - count, count + 1, 0.5))


def binomial_at_most_array(count_K: NDArray[np.int64], trials_K: NDArray[np.int64]) -> Floats:
    """`binomial_at_most` of each pair; 0 for a count below 0."""
    return np.where(count_K < 0, 0.0, bdtr(np.maximum(count_K, 0), trials_K, 0.5))


def root(value: Callable[[float], float], low: float, high: float, *, tolerance: float) -> float:
    """Where a monotone function crosses 0 on [low, high], by bisection to the tolerance.

    Example:
        >>> round(root(lambda x: x * x - 2, 0.0, 2.0, tolerance=1e-9), 6)
        1.414214
    """
    rising = value(high) > value(low)
    while high - low > tolerance:
        middle = (low + high) / 2
        if (value(middle) > 0) is rising:
            high = middle
        else:
            low = middle
    return (low + high) / 2

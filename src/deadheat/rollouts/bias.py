"""What a way of drawing does to a group: the exact distribution of k, the right draws among the G that are learned from.

For draws that are right with probability p, independently, and rewards of 0 and 1. With q = 1 − p, R rounds,
b(k) = C(G, k)·p^k·q^(G−k) and h = G//2:

    flat       k ~ b
    dynamic    k ~ b given 0 < k < G; no group with probability (p^G + q^G)^R
    adaptive   b(k) for 0 < k < G: the first round was mixed
               + q^G·(1 − q^((R−1)G)), all wrong and then found: at k = 1 (first_G), at min(m, h) with m ~ b given m ≥ 1
                 (balanced)
               + p^G·(1 − p^((R−1)G)), all right and then found: at k = G − 1, at G − min(m, G − h) with m wrong
               + q^(RG) at 0 and p^(RG) at G: given up

Which draws are kept depends on rewards alone, so with centred advantages a problem's expected update is
E[k(G−k)]/G² times (mean score function of right draws − of wrong draws): its direction is that of flat drawing, and
only its size, `signal`, differs.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb

from deadheat.rollouts.batch import Keep
from deadheat.rollouts.strategies import Drawing

Pmf = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class KeptCounts:
    """The right draws of a group that is learned from."""

    p: float  # probability that a draw is right
    pmf_K: Pmf  # [G+1] probability of k right; sums to 1 − dropped_frac
    dropped_frac: float  # probability that the problem gives no group

    @property
    def share_right(self) -> float:
        """E[k/G] of a group that is learned from; NaN where there never is one."""
        size, kept = len(self.pmf_K) - 1, 1 - self.dropped_frac
        return float(np.dot(np.arange(size + 1), self.pmf_K) / size / kept) if kept > 0 else float("nan")

    @property
    def bias(self) -> float:
        """share_right − p."""
        return self.share_right - self.p

    @property
    def signal(self) -> float:
        """E[k(G−k)]/G² per problem tried, dropped ones counting nothing: the size of its expected update."""
        k_K = np.arange(len(self.pmf_K))
        size = len(self.pmf_K) - 1
        return float(np.dot(k_K * (size - k_K), self.pmf_K) / size**2)


def kept_counts(
    p: float, *, drawing: Drawing, group_size: int, max_rounds: int = 4, keep: Keep = Keep.FIRST_G
) -> KeptCounts:
    """The distribution of k under a way of drawing.

    Example:
        G = 2, p = 1/4, two rounds. First round mixed: 2·3/16 = 6/16, k = 1. Both wrong (9/16), then found with 7/16: 63/256
        at k = 1; both right (1/16), then found with 15/16: 15/256 at k = 1. Given up: 81/256 at 0, 1/256 at 2.
        >>> found = kept_counts(0.25, drawing=Drawing.ADAPTIVE, group_size=2, max_rounds=2)
        >>> (256 * found.pmf_K).round(6).tolist()
        [81.0, 174.0, 1.0]

        E[k/G] = (174/2 + 1)/256 = 88/256; the formula of `adaptive.py`: 1/4 + (63 − 15)/256/2 = 88/256.
        >>> found.share_right == 88 / 256
        True
    """
    right_K = np.arange(group_size + 1)
    binomial_K = np.array(comb(group_size, right_K) * p**right_K * (1 - p) ** (group_size - right_K), dtype=np.float64)
    pmf_K = _PMFS[drawing](binomial_K, max_rounds, keep)
    return KeptCounts(
        p=p, pmf_K=pmf_K, dropped_frac=max(0.0, 1 - float(pmf_K.sum())) if drawing is Drawing.DYNAMIC else 0.0
    )


def _flat(binomial_K: Pmf, max_rounds: int, keep: Keep) -> Pmf:
    return binomial_K


def _dynamic(binomial_K: Pmf, max_rounds: int, keep: Keep) -> Pmf:
    tied = binomial_K[0] + binomial_K[-1]
    mixed_K = _mixed(binomial_K)
    reached: float = sum(float(tied) ** round_ for round_ in range(max_rounds))
    return mixed_K * reached


def _adaptive(binomial_K: Pmf, max_rounds: int, keep: Keep) -> Pmf:
    none, all_ = float(binomial_K[0]), float(binomial_K[-1])
    pmf_K = _mixed(binomial_K)
    pmf_K[0], pmf_K[-1] = none**max_rounds, all_**max_rounds
    size = len(binomial_K) - 1
    for m in range(1, size + 1):  # draws of the new kind in the round that has the first of them
        one = keep is Keep.FIRST_G
        pmf_K[1 if one else min(m, size // 2)] += binomial_K[m] * _reach(none, max_rounds)
        pmf_K[size - (1 if one else min(m, size - size // 2))] += binomial_K[size - m] * _reach(all_, max_rounds)
    return pmf_K


def _reach(tied: float, max_rounds: int) -> float:
    """Σ tied^r over r = 1 … R − 1: that rounds before a later one all agreed."""
    return sum(tied**round_ for round_ in range(1, max_rounds))


def _mixed(binomial_K: Pmf) -> Pmf:
    mixed_K = binomial_K.copy()
    mixed_K[0] = mixed_K[-1] = 0.0
    return mixed_K


_PMFS: dict[Drawing, Callable[[Pmf, int, Keep], Pmf]] = {
    Drawing.FLAT: _flat,
    Drawing.DYNAMIC: _dynamic,
    Drawing.ADAPTIVE: _adaptive,
}

"""Shares, means and their changes where the units come in clusters, from what each cluster adds up to.

A log's groups are not independent: one problem stands in many of them. A cluster c has n_c units of which k_c count,
p = Σk/Σn, and the jackknife of `clusters.py` leaves one cluster out at a time,

    v        = (C−1)/C · Σ_c (p₍₋c₎ − p)²        the same as (C−1)/C · Σ (w_c(p_c − p)/(1 − w_c))²
    1/n*     = (1−λ)·v/(p(1−p)) + λ/C_e          λ = 2/(2 + m), C_e = N²/Σn_c²; n* is at most N
    share    Wilson at n* units with Student's quantile at C_e − 1 degrees of freedom
    mean     mean ± t·√v at √((C_e − 1)·C₄) degrees of freedom, C₄ = (Σa²)²/Σa⁴ with a = w/(1 − w)
    change   of two shares with limits (l, u): d − √((p₁−l₁)² − 2ρ(p₁−l₁)(u₀−p₀) + (u₀−p₀)²), and so upwards

m is the effective number of clusters that hold the rarer outcome. v says nothing where m = 0, a share of 0 or 1: then
n* = C_e, as if the units of a cluster were one. Without λ a rare outcome in clusters of uneven size is covered 86% of
the time in place of 95%; with it 94% or more (6–1,000 clusters, shares of 2–90%, any correlation inside). Fewer than 6
clusters have n* = C_e and the normal quantile. Means are skewed where shares are bounded: C_e − 1 degrees of freedom cover
93% of the time at 30 uneven clusters of lengths, and C₄ counts the clusters that the variance itself rests on.

A change is Zou and Donner's (2008) recovery of variances from the two intervals, ρ the jackknife's correlation of the two
shares, and never narrower than t·√(1/C₀² + 1/C₁²): clusters of which none changed say as much as the rule of three.
Source of the share: Korn and Graubard 1998; Wilson 1927.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat.stats.clusters import FEWEST_CLUSTERS
from deadheat.stats.distributions import normal_quantile, t_quantile
from deadheat.stats.groups import Multiplier, multiplier
from deadheat.stats.intervals import Interval, wilson

UNNAMED = "no problem is named: groups are read as independent"
Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Floats]  # [R, J] sums to [R, K] figures, row by row


@dataclass(frozen=True, kw_only=True)
class Clusters:
    """The sizes of clusters; equal ones stand once."""

    size_C: Floats  # units of a cluster, at least one
    copies_C: Floats  # clusters that are like this one
    name: str = "problems"  # what a cluster is

    @classmethod
    def of(cls, size_C: ArrayLike, copies_C: ArrayLike | None = None, *, name: str = "problems") -> "Clusters":
        """Clusters by size; without copies each stands for itself."""
        size = np.asarray(size_C, dtype=np.float64)
        copies = np.ones_like(size) if copies_C is None else np.asarray(copies_C, dtype=np.float64)
        return cls(size_C=size, copies_C=copies, name=name)

    @property
    def num(self) -> int:
        """C."""
        return int(self.copies_C.sum())

    @property
    def total(self) -> float:
        """N: units of all clusters."""
        return float(self.copies_C @ self.size_C)

    @property
    def effective(self) -> float:
        """C_e: clusters of equal size that would say as much."""
        return self.total**2 / max(float(self.copies_C @ self.size_C**2), 1.0)

    @property
    def df(self) -> float:
        """Degrees of freedom of a mean: √((C_e − 1)·C₄), at most C_e − 1.

        Example:
            >>> round(Clusters.of([2.0] * 6).df, 6), round(Clusters.of([1, 1, 1, 1, 1, 5]).df, 2)
            (5.0, 1.62)
        """
        weight_C = self.size_C / self.total
        square_C = (weight_C / np.maximum(1 - weight_C, 1e-12)) ** 2
        holding = (self.copies_C @ square_C) ** 2 / (self.copies_C @ square_C**2)
        return float(min(self.effective - 1, math.sqrt((self.effective - 1) * holding)))

    @property
    def single(self) -> bool:
        """Whether every unit is a cluster of its own."""
        return bool((self.size_C <= 1).all())


@dataclass(frozen=True, kw_only=True)
class ClusteredShare(Interval):
    """A share whose units come in clusters."""

    num_clusters: int
    clusters: str  # what they are: problems, groups
    effective_n: float  # n*: independent units that would say as much


def jackknife(statistic: Statistic, sums_CJ: Floats, copies_C: Floats) -> Floats:
    """[K, K] covariance of a function of sums, each cluster left out once: (C−1)/C · Σ_c (θ₍₋c₎ − θ)².

    Example:
        Two clusters of one unit, 1 and 0: without one of them the mean is 0 or 1, so ½·(¼ + ¼).
        >>> mean = lambda sums_RJ: sums_RJ[:, :1] / sums_RJ[:, 1:]
        >>> jackknife(mean, np.array([[1.0, 1.0], [0.0, 1.0]]), np.ones(2)).tolist()
        [[0.25]]
    """
    totals, num = copies_C @ sums_CJ, copies_C.sum()
    deviation_CK = statistic(totals - sums_CJ) - statistic(totals[None])
    return np.asarray((num - 1) / num * (deviation_CK * copies_C[:, None]).T @ deviation_CK)


def clustered_share(
    count_C: ArrayLike, clusters: Clusters, *, level: float = 0.95, left_out: int = 0, unit: str = "groups"
) -> Interval:
    """Share of the units that count; Wilson where every unit is its own cluster.

    Example:
        Ten problems of 4 groups each, five of them all tied: as good as 10 groups, not 40.
        >>> found = clustered_share([4.0] * 5 + [0.0] * 5, Clusters.of([4.0] * 10))
        >>> round(found.low, 2), round(found.high, 2), found.num_clusters
        (0.2, 0.8, 10)
    """
    count = np.asarray(count_C, dtype=np.float64)
    k, total = float(clusters.copies_C @ count), clusters.total
    if clusters.single:
        return wilson(round(k), round(total), level, left_out=left_out)
    p, few = min(k / total, 1.0), clusters.num < FEWEST_CLUSTERS
    n = clusters.effective if few else _effective_n(count, clusters, p)
    settled = few or p in (0.0, 1.0)  # no variance was estimated
    z = normal_quantile((1 + level) / 2) if settled else t_quantile((1 + level) / 2, clusters.effective - 1)
    low, high = _wilson_at(p, n, z)
    return ClusteredShare(
        estimate=p,
        low=low,
        high=high,
        level=level,
        n=round(total),
        left_out=left_out,
        method=f"Wilson at {n:,.0f} effective {unit}, jackknife over {clusters.num:,} {clusters.name}",
        note=f"{clusters.num} {clusters.name}, and a variance wants {FEWEST_CLUSTERS}: each counts once" if few else "",
        num_clusters=clusters.num,
        clusters=clusters.name,
        effective_n=n,
    )


def multiplier_of(shut: Interval) -> Multiplier:
    """T with its standard error at the effective number of groups; its bounds are those of the share.

    Example:
        Ten problems of 4 groups, half of them all tied: T = 2, SE √(.25/10)/.25 as of 10 groups.
        >>> t = multiplier_of(clustered_share([4.0] * 5 + [0.0] * 5, Clusters.of([4.0] * 10)))
        >>> t.value, round(t.se, 1), t.n
        (2.0, 0.7, 40)
    """
    found, q = multiplier(shut), shut.estimate
    if found.value is None or not isinstance(shut, ClusteredShare):
        return found
    return replace(found, se=math.sqrt(q * (1 - q) / shut.effective_n) / (1 - q) ** 2)


def _effective_n(count_C: Floats, clusters: Clusters, p: float) -> float:
    if p in (0.0, 1.0):
        return clusters.effective
    sums_CJ = np.stack([count_C, clusters.size_C], axis=1)
    v = float(jackknife(_ratio, sums_CJ, clusters.copies_C)[0, 0])
    holding = min(_mass(count_C, clusters.copies_C), _mass(clusters.size_C - count_C, clusters.copies_C))
    weight = 2 / (2 + holding)
    per_unit = (1 - weight) * v / (p * (1 - p)) + weight / clusters.effective
    return 1 / max(per_unit, 1 / clusters.total)


def _ratio(sums_RJ: Floats) -> Floats:
    return np.asarray(sums_RJ[:, :1] / sums_RJ[:, 1:])


def _mass(count_C: Floats, copies_C: Floats) -> float:
    """m: clusters of equal counts that would hold as much."""
    return float((copies_C @ count_C) ** 2 / (copies_C @ count_C**2))


def _wilson_at(p: float, n: float, z: float) -> tuple[float, float]:
    """Wilson's bounds of a share of n units, n any positive number."""
    shrink = 1 + z * z / n
    centre, half = (p + z * z / (2 * n)) / shrink, z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / shrink
    return (0.0 if p == 0 else max(centre - half, 0.0)), (1.0 if p == 1 else min(centre + half, 1.0))


def clustered_average(
    total_C: ArrayLike, clusters: Clusters, *, level: float = 0.95, what: str = "mean of units"
) -> Interval:
    """Mean of the units of clusters, given each cluster's sum; infinite bounds below 6 clusters, or where none varies.

    Example:
        >>> found = clustered_average([2, 4, 6, 8, 10, 12], Clusters.of([2.0] * 6))
        >>> round(found.estimate, 2), round(found.low, 2), round(found.high, 2), found.n
        (3.5, 1.54, 5.46, 12)
    """
    sums_CJ = np.stack([np.asarray(total_C, dtype=np.float64), clusters.size_C], axis=1)
    mean = float(clusters.copies_C @ sums_CJ[:, 0]) / clusters.total
    enough = clusters.num >= FEWEST_CLUSTERS
    v = float(jackknife(_ratio, sums_CJ, clusters.copies_C)[0, 0]) if enough else 0.0
    few = f"no interval: {clusters.num} {clusters.name}, and it wants {FEWEST_CLUSTERS} or more"
    half = t_quantile((1 + level) / 2, clusters.df) * math.sqrt(v) if v > 0 else math.inf
    return Interval(
        estimate=mean,
        low=mean - half,
        high=mean + half,
        level=level,
        n=round(clusters.total),
        left_out=0,
        method=f"{what}, jackknife over {clusters.num:,} {clusters.name}",
        note="" if v > 0 else few if not enough else "no interval: all values are equal",
    )


def change(first: Interval, last: Interval, *, correlation: float, least: float = 0.0, method: str = "") -> Interval:
    """last − first from the limits of both and their correlation; at least `least` wide to either side.

    Example:
        Two independent ones, .5 ± .3 and .6 ± .4: ±.5.
        >>> half = dict(level=0.95, n=10, left_out=0, method="")
        >>> found = change(Interval(estimate=0.5, low=0.2, high=0.8, **half),
        ...     Interval(estimate=0.6, low=0.2, high=1.0, **half), correlation=0.0)
        >>> round(found.low, 6), round(found.high, 6)
        (-0.4, 0.6)
    """
    moved = last.estimate - first.estimate
    down = _recovered(last.estimate - last.low, first.high - first.estimate, correlation)
    up = _recovered(last.high - last.estimate, first.estimate - first.low, correlation)
    return Interval(
        estimate=moved,
        low=moved - max(down, least),
        high=moved + max(up, least),
        level=first.level,
        n=first.n + last.n,
        left_out=first.left_out + last.left_out,
        method=method,
        note=first.note or last.note,
    )


def _recovered(one: float, other: float, correlation: float) -> float:
    if math.isinf(one) or math.isinf(other):
        return math.inf
    return math.sqrt(max(one * one - 2 * correlation * one * other + other * other, 0.0))


@dataclass(frozen=True, kw_only=True)
class TwoParts:
    """The units of two parts of a log, cluster by cluster; one that a part lacks has no units there."""

    size_C2: Floats  # [C, 2] units, first and last
    copies_C: Floats
    name: str = "problems"

    def part(self, place: int) -> Clusters:
        """The clusters of one part."""
        there = self.size_C2[:, place] > 0
        return Clusters(size_C=self.size_C2[there, place], copies_C=self.copies_C[there], name=self.name)

    @property
    def num_in_both(self) -> int:
        """Clusters that stand in both parts."""
        return int(self.copies_C[(self.size_C2 > 0).all(axis=1)].sum())

    @property
    def df(self) -> float:
        """Degrees of freedom of what compares the parts: the smaller part's."""
        return min(self.part(place).df for place in (0, 1))

    @property
    def enough(self) -> bool:
        """Whether both parts have the clusters that a variance wants."""
        return min(self.part(place).num for place in (0, 1)) >= FEWEST_CLUSTERS

    def shares(self, count_C2: Floats, *, level: float) -> tuple[Interval, Interval]:
        """The share of the first part and of the last."""
        theirs = self.size_C2 > 0
        first, last = (clustered_share(count_C2[theirs[:, i], i], self.part(i), level=level) for i in (0, 1))
        return first, last

    def correlation(self, count_C2: Floats) -> float:
        """ρ of the two shares; 0 below 6 clusters, or where a share does not vary."""
        if not self.enough:
            return 0.0
        covariance = jackknife(_two_ratios, np.concatenate([count_C2, self.size_C2], axis=1), self.copies_C)
        scale = math.sqrt(covariance[0, 0] * covariance[1, 1])
        return float(np.clip(covariance[0, 1] / scale, -1.0, 1.0)) if scale > 0 else 0.0

    def least(self, level: float) -> float:
        """Half-width of a change of shares of which no cluster shows any: t·√(1/C₀² + 1/C₁²)."""
        inverse = math.sqrt(sum(1 / self.part(place).effective ** 2 for place in (0, 1)))
        return min(inverse * t_quantile((1 + level) / 2, max(self.df, 1.0)), 1.0)

    def change_of_share(self, count_C2: Floats, *, level: float) -> Interval:
        """The share of the last part minus that of the first."""
        first, last = self.shares(count_C2, level=level)
        return change(
            first,
            last,
            correlation=self.correlation(count_C2),
            least=self.least(level),
            method=f"share change, {self.num_in_both:,} {self.name} in both parts",
        )


def _two_ratios(sums_RJ: Floats) -> Floats:
    return np.asarray(sums_RJ[:, :2] / sums_RJ[:, 2:])

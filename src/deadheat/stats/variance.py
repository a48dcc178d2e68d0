"""Where a margin's uncertainty comes from, in five named parts.

    Var(mean) = σ²_seed/S + σ²_item/N + (σ²_residual + σ²_judge/J + σ²_jitter/(J·K))/(S·N)

S seeds on the same N items, J judges, K repeated scorings: the two-way layout of `effect.py` with its residual split
further. More seeds never shrink the item part, more items never the seed part. Where every seed has questions of its
own (`Items.OWN`, the sources' layout) the item part falls with the pairs M = S·N too:

    Var(mean) = σ²_seed/S + (σ²_item + σ²_residual + …)/M

Judges who correlate at r count as J/(1 + (J−1)r) independent ones, which is the same as sharing the item and residual
parts and differing by σ²_judge = (1−r)·(their common variance), jitter taken off. Grades, in [0, 1], add 2/N² to the
variance as the interval does, so that a table without any difference is not taken for certainty.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat.errors import StatsError
from deadheat.stats.vote_models import Components

Floats = NDArray[np.float64]


class Items(StrEnum):
    """Whose the questions are."""

    SHARED = "shared"  # the same items under every seed
    OWN = "own"  # every seed draws its own


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """What has been, or could be, bought."""

    num_seeds: int  # S
    num_pairs: float  # M = S·N: seed–item pairs in all
    num_judges: int = 1  # J
    num_repeats: int = 1  # K: scorings per judge and pair

    @property
    def num_items(self) -> float:
        """N: items per seed."""
        return self.num_pairs / self.num_seeds


@dataclass(frozen=True, kw_only=True)
class VarianceSplit:
    """Variance components per single seed, item, pair, judge and scoring."""

    seed_var: float  # between seeds
    item_var: float  # between items, the same under every seed
    residual_var: float  # left in a seed–item pair, shared by the judges
    judge_var: float  # between judges on one pair
    jitter_var: float  # between scorings of one judge on one pair
    allocation: Allocation  # what the split was measured with
    items: Items = Items.SHARED
    grades: bool = False  # the scores lie in [0, 1]
    judge_correlation: float | None  # mean r between judges over pairs; None: one judge
    n: int  # items
    left_out: int  # items with a missing cell, dropped whole
    level: float | None = None  # None: components carry no level
    method: str = "method of moments on the seed × item (× judge × repeat) layout"
    note: str = ""  # what could not be told apart; empty: nothing

    @property
    def effective_judges(self) -> float:
        """J/(1 + (J−1)r)."""
        return effective_judges(self.allocation.num_judges, self.judge_correlation or 0.0)

    @property
    def se(self) -> float:
        """Standard error of the mean as measured."""
        return math.sqrt(variance_at(self, self.allocation))


def effective_judges(num_judges: int, correlation: float) -> float:
    """J/(1 + (J−1)r).

    Example:
        >>> round(effective_judges(2, 0.91), 3)
        1.047
    """
    divisor = 1 + (num_judges - 1) * correlation
    if num_judges < 1 or not divisor > 0 or correlation > 1:
        raise StatsError(f"{num_judges} judges at r = {correlation}; wanted at least one, and r in (−1/(J−1), 1]")
    return num_judges / divisor


def variance_at(split: VarianceSplit, allocation: Allocation) -> float:
    """Variance of the mean under another allocation.

    Example:
        Item SD 10 on 100 shared items: SE 1 at any number of seeds.
        >>> now = Allocation(num_seeds=3, num_pairs=300)
        >>> split = VarianceSplit(
        ...     seed_var=0.0, item_var=100.0, residual_var=0.0, judge_var=0.0, jitter_var=0.0,
        ...     allocation=now, judge_correlation=None, n=100, left_out=0)
        >>> variance_at(split, now), variance_at(split, Allocation(num_seeds=8, num_pairs=800))
        (1.0, 1.0)
    """
    part = components_at(split, allocation)
    if split.items is Items.OWN:
        pooled = (part.item_var + part.residual_var) / allocation.num_pairs
        return part.seed_var / allocation.num_seeds + pooled
    extra = 2 / allocation.num_items**2 if split.grades else 0.0
    return part.variance(allocation.num_seeds, allocation.num_items) + extra


def components_at(split: VarianceSplit, allocation: Allocation) -> Components:
    """The two-way layout that so many judges and scorings leave, for simulated power."""
    if min(allocation.num_seeds, allocation.num_pairs, allocation.num_judges, allocation.num_repeats) < 1:
        raise StatsError(f"allocation is {allocation}; wanted at least one seed, pair, judge and scoring")
    judged = split.judge_var / allocation.num_judges
    jitter = split.jitter_var / (allocation.num_judges * allocation.num_repeats)
    return Components(
        seed_var=split.seed_var,
        item_var=split.item_var,
        residual_var=split.residual_var + judged + jitter,
        grades=split.grades,
    )


def split_from_se(se: float, seed_to_pair_ratio: float, allocation: Allocation) -> VarianceSplit:
    """The split behind a stated standard error and the ratio of its seed term to its pair term, each seed's items its own.

    Example:
        SE 7.25 at 3 seeds × 325 items, seed term 12.4 times the pair term; then one seed with its 325 pairs and 300
        pairs more: 7.25²·(12.4/13.4·3/4 + 1/13.4·975/1600) = 38.87.
        >>> split = split_from_se(7.25, 12.4, Allocation(num_seeds=3, num_pairs=975))
        >>> round(math.sqrt(variance_at(split, Allocation(num_seeds=4, num_pairs=1600))), 3)
        6.235
    """
    if not (se > 0 and seed_to_pair_ratio >= 0):
        raise StatsError(f"se is {se} with ratio {seed_to_pair_ratio}; wanted a positive SE and a ratio of at least 0")
    pair_term = se * se / (1 + seed_to_pair_ratio)
    return VarianceSplit(
        seed_var=seed_to_pair_ratio * pair_term * allocation.num_seeds,
        item_var=0.0,
        residual_var=pair_term * allocation.num_pairs,
        judge_var=0.0,
        jitter_var=0.0,
        allocation=allocation,
        items=Items.OWN,
        judge_correlation=None,
        n=round(allocation.num_items),
        left_out=0,
        method="from a stated SE and ratio",
    )


def variance_split(table: ArrayLike, *, items: Items = Items.SHARED, grades: bool = False) -> VarianceSplit:
    """Components of a table [seed, item], [seed, item, judge] or [seed, item, judge, repeat].

    Items with a missing cell are left out whole. One judge leaves disagreement unseen, one repeat leaves jitter unseen;
    both are then 0 inside the part above them, and the note says so.
    """
    values = np.asarray(table, dtype=np.float64)
    if values.ndim not in (2, 3, 4):
        raise StatsError(f"the table has shape {values.shape}; wanted seeds × items, then judges, then repeats")
    values = values.reshape(values.shape + (1,) * (4 - values.ndim))
    whole_N = ~np.isnan(values).any(axis=(0, 2, 3))
    kept = values[:, whole_N]
    num_seeds, num_items, num_judges, num_repeats = kept.shape
    if num_seeds < 2 or num_items < 2:
        raise StatsError(f"{num_seeds} seeds and {num_items} whole items; a split wants at least 2 of each")
    jitter = float(kept.var(axis=3, ddof=1).mean()) if num_repeats > 1 else 0.0
    by_judge_SNJ = kept.mean(axis=3)
    correlation = _judge_correlation(by_judge_SNJ)
    common = float(by_judge_SNJ.var(axis=1, ddof=1).mean())
    own = jitter / num_repeats
    shared = max(0.0, common - own) if correlation is None else max(0.0, correlation) * common
    seed_var, item_var = _seeds_and_items(by_judge_SNJ.mean(axis=2))
    return VarianceSplit(
        seed_var=seed_var,
        item_var=min(item_var, shared),
        residual_var=max(0.0, shared - item_var),
        judge_var=0.0 if correlation is None else max(0.0, common - shared - own),
        jitter_var=jitter,
        allocation=Allocation(
            num_seeds=num_seeds, num_pairs=num_seeds * num_items, num_judges=num_judges, num_repeats=num_repeats
        ),
        items=items,
        grades=grades,
        judge_correlation=correlation,
        n=num_items,
        left_out=int((~whole_N).sum()),
        note=_note(num_judges, num_repeats),
    )


def _seeds_and_items(table_SN: Floats) -> tuple[float, float]:
    """max(0, var(seed means) − MS_res/N) and max(0, var(item means) − MS_res/S)."""
    num_seeds, num_items = table_SN.shape
    seed_S, item_N = table_SN.mean(axis=1), table_SN.mean(axis=0)
    residual = table_SN - seed_S[:, None] - item_N + table_SN.mean()
    mean_square = float((residual**2).sum()) / ((num_seeds - 1) * (num_items - 1))
    seeds, items = float(seed_S.var(ddof=1)), float(item_N.var(ddof=1))
    return max(0.0, seeds - mean_square / num_items), max(0.0, items - mean_square / num_seeds)


def _judge_correlation(by_judge_SNJ: Floats) -> float | None:
    """Mean Pearson r between judges over pairs, each seed centred; None for one judge or constant scores."""
    num_judges = by_judge_SNJ.shape[2]
    if num_judges < 2:
        return None
    centred = (by_judge_SNJ - by_judge_SNJ.mean(axis=1, keepdims=True)).reshape(-1, num_judges)
    if (centred.std(axis=0) == 0).any():
        return None
    r: Floats = np.corrcoef(centred.T)
    return float(np.mean(r[np.triu_indices(num_judges, 1)]))


def _note(num_judges: int, num_repeats: int) -> str:
    unseen = []
    if num_judges < 2:
        unseen.append("one judge: disagreement is inside the residual part")
    if num_repeats < 2:
        unseen.append("one scoring: jitter is inside the part above it")
    return "; ".join(unseen)

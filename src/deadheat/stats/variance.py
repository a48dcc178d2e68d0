"""Where a margin's uncertainty comes from, in four named parts.

    Var(mean) = σ²_seed/k + (σ²_pair + σ²_judge/J + σ²_jitter/(J·K))/M

k seeds, M seed–item pairs in all, J judges, K repeated scorings. A new seed brings its own N pairs; one more question
at S seeds costs S pairs. Judges who correlate at r count as J/(1 + (J−1)r) independent ones, which is the same as
sharing σ²_pair and differing by σ²_judge = (1−r)·(their common variance), jitter taken off.

The seed part is what is left of the spread of the seed means once item noise is taken off, max(0, var(ȳ_s) −
MS_res/N), with MS_res the residual of the two-way layout: an item's own difficulty is the same under every seed. The
pair part keeps that difficulty, so that Var is the variance over fresh questions too.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat.errors import StatsError

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """What has been, or could be, bought."""

    num_seeds: int  # k
    num_pairs: float  # M: seed–item pairs in all
    num_judges: int = 1  # J
    num_repeats: int = 1  # K: scorings per judge and pair


@dataclass(frozen=True, kw_only=True)
class VarianceSplit:
    """Variance components per single seed, pair, judge and scoring."""

    seed_var: float  # between seeds
    pair_var: float  # between seed–item pairs, shared by the judges
    judge_var: float  # between judges on one pair
    jitter_var: float  # between scorings of one judge on one pair
    allocation: Allocation  # what the split was measured with
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
    """Variance of the mean under another allocation."""
    if allocation.num_seeds < 1 or allocation.num_pairs < 1 or allocation.num_judges < 1 or allocation.num_repeats < 1:
        raise StatsError(f"allocation is {allocation}; wanted at least one seed, pair, judge and scoring")
    judged = split.judge_var / allocation.num_judges
    jitter = split.jitter_var / (allocation.num_judges * allocation.num_repeats)
    return split.seed_var / allocation.num_seeds + (split.pair_var + judged + jitter) / allocation.num_pairs


def split_from_se(se: float, seed_to_pair_ratio: float, allocation: Allocation) -> VarianceSplit:
    """The split behind a stated standard error and the stated ratio of its seed term to its pair term.

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
        pair_var=pair_term * allocation.num_pairs,
        judge_var=0.0,
        jitter_var=0.0,
        allocation=allocation,
        judge_correlation=None,
        n=round(allocation.num_pairs / allocation.num_seeds),
        left_out=0,
        method="from a stated SE and ratio",
    )


def variance_split(table: ArrayLike) -> VarianceSplit:
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
    shared = common if correlation is None else max(0.0, correlation) * common
    pair_var = shared if correlation is not None else max(0.0, common - jitter / num_repeats)
    judge_var = max(0.0, common - shared - jitter / num_repeats) if correlation is not None else 0.0
    return VarianceSplit(
        seed_var=_seed_part(by_judge_SNJ.mean(axis=2)),
        pair_var=pair_var,
        judge_var=judge_var,
        jitter_var=jitter,
        allocation=Allocation(
            num_seeds=num_seeds, num_pairs=num_seeds * num_items, num_judges=num_judges, num_repeats=num_repeats
        ),
        judge_correlation=correlation,
        n=num_items,
        left_out=int((~whole_N).sum()),
        note=_note(num_judges, num_repeats),
    )


def _seed_part(table_SN: Floats) -> float:
    """max(0, var(seed means) − MS_res/N)."""
    num_items = table_SN.shape[1]
    seed_S, item_N = table_SN.mean(axis=1, keepdims=True), table_SN.mean(axis=0, keepdims=True)
    residual = table_SN - seed_S - item_N + table_SN.mean()
    dof = (table_SN.shape[0] - 1) * (num_items - 1)
    noise = float((residual**2).sum() / dof / num_items)
    return max(0.0, float(seed_S.var(ddof=1)) - noise)


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
        unseen.append("one judge: disagreement is inside the pair part")
    if num_repeats < 2:
        unseen.append("one scoring: jitter is inside the part above it")
    return "; ".join(unseen)

"""A mean difference between two sides over seeds and items, with an interval that holds its level.

Seeds and items are both samples. With row means, column means and grand mean D̄ of the differences D[seed, item],

    v_s = Var(row means)/S      v_i = Var(column means)/N      v_r = MS_residual/(S·N)
    v   = max(v_s + v_i − v_r, 0)
    df  = v²/(v_s²/(S−1) + v_i²/(N−1) + v_r²/((S−1)(N−1))), at least S−1

the half-width is the largest of t_df·√v (both), t_{S−1}·√v_s (seeds) and t_{N−1}·√v_i (items), and p the largest of
the three tests' p-values. One seed has the reading over items alone. Satterthwaite's reading by itself errs up to 12%
at a level of 5% with two seeds; the largest of three stays at 6% (docs/statistics/how-often-is-deadheat-wrong.md).

Grades, scores in [0, 1], get two more items, +1 and −1, in v_i, its N and its df (Bonett and Price 2012), and v_i is
multiplied by ((N+2)/N)² because it is centred on D̄: no interval has width zero. Other scores get none; where their
differences do not vary there is no interval.

    missing cells   rows and columns of the least-squares fit D ≈ μ + a_s + b_i in place of plain means,
                    MS_residual = RSS/(cells − S − N + 1)
    clusters        v_i is the weighted jackknife over clusters of items, v_r its counterpart (`clusters.py`)
    uncoupled       A's seeds are not B's: v_s = v_A + v_B with Welch's df, a residual part for each side

Sources: Cornfield and Tukey 1956 (two-way layout), Satterthwaite 1946, Welch 1947, Bonett and Price 2012.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat.errors import StatsError
from deadheat.stats.clusters import FEWEST_CLUSTERS, ItemClusters
from deadheat.stats.distributions import SMALLEST_P, chi2_quantile, t_quantile, t_two_sided
from deadheat.stats.intervals import Interval, wilson

MANY_MISSING = 0.20  # share of missing cells that is said aloud
Floats = NDArray[np.float64]
Number = TypeVar("Number", float, NDArray[np.float64])


@dataclass(frozen=True, kw_only=True)
class Part(Generic[Number]):
    """One part of the variance of the mean, with its degrees of freedom; an array holds many tables at once."""

    variance: Number
    df: Number

    def half_width(self, alpha: float) -> float:
        """t_df·√variance, two-sided at 1 − alpha."""
        return t_quantile(1 - alpha / 2, float(self.df)) * math.sqrt(float(self.variance))

    def p_value(self, estimate: Number) -> Number:
        """Two-sided p of the estimate; 0 where there is no variance: the other readings decide."""
        known = np.asarray(self.variance) > 0
        t = estimate / np.sqrt(np.where(known, self.variance, 1.0))
        p = np.where(known, t_two_sided(np.asarray(t), np.asarray(self.df)), 0.0)
        return p if isinstance(estimate, np.ndarray) else float(p)


@dataclass(frozen=True, kw_only=True)
class Parts(Generic[Number]):
    """The parts of a two-way layout."""

    seeds: Part[Number] | None  # v_s; None: one seed
    items: Part[Number]  # v_i
    noise: tuple[Part[Number], ...]  # v_r, one for each independently drawn side; empty: one seed
    least_df: float  # of the reading over both

    def both(self) -> Part[Number] | None:
        """Seeds and items together: v_s + v_i − v_r with Satterthwaite's degrees of freedom."""
        if self.seeds is None:
            return None
        v = np.maximum(self.seeds.variance + self.items.variance - sum(part.variance for part in self.noise), 0.0)
        parts: tuple[Part[Number], ...] = (self.seeds, self.items) + self.noise  # noqa: RUF005 - mypy loses the type
        squares = sum(part.variance**2 / np.maximum(part.df, 1e-300) for part in parts)
        return Part(variance=v, df=np.maximum(v**2 / np.maximum(squares, 1e-300), self.least_df))

    def readings(self) -> list[Part[Number]]:
        """The readings whose widest decides: both, seeds, items."""
        return [part for part in (self.both(), self.seeds, self.items) if part is not None]

    def p_value(self, estimate: Number) -> Number:
        """The largest p of the readings."""
        p = np.asarray(np.maximum.reduce([part.p_value(estimate) for part in self.readings()]))
        return p if isinstance(estimate, np.ndarray) else float(p)


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How far the seeds' own gaps differ beyond item noise, in the unit of the differences."""

    tau: float  # τ̂, 0 where item noise explains the whole spread
    low: float
    high: float
    level: float


@dataclass(frozen=True, kw_only=True)
class Effect:
    """A mean difference with its interval; infinite bounds where the table supports none, and the note says why."""

    estimate: float  # D̄, in the unit of the scores
    low: float
    high: float
    level: float  # 1 − alpha
    p_value: float  # the largest of the readings' p-values
    half_both: float | None  # half-width with seeds and items as samples; None: one seed
    half_seeds: float | None  # with seeds as the sample; None: one seed
    half_items: float  # with items as the sample: what these very runs show
    p_items: float
    parts: Parts[float]
    spread: Spread | None  # of the seeds; None: one seed
    item_var: float  # σ²_i, between items, cut at 0; 0 with one seed, where it cannot be told from the residual
    residual_var: float  # σ²_r, left in a cell
    n: int  # items
    num_seeds: int  # S: the smaller side's where they are uncoupled
    left_out: int  # items without any value
    missing_cells: int  # seed–item cells without a value, among the items and seeds kept
    num_clusters: int | None  # clusters of items; None: items are their own
    num_units: float  # items, or clusters of equal size that would say as much
    coupled: bool  # A's seeds are B's
    method: str
    note: str = ""  # caveat to print beside it; empty: none

    @property
    def half(self) -> float:
        """The half-width: the widest reading."""
        return self.high - self.estimate

    @property
    def called(self) -> bool:
        """The interval leaves 0, over two seeds or more."""
        return self.num_seeds > 1 and leaves_zero(self.low, self.high)

    @property
    def called_runs(self) -> bool:
        """The interval over items leaves 0: these very runs differ."""
        return leaves_zero(self.estimate - self.half_items, self.estimate + self.half_items)

    def at(self, alpha: float) -> "Effect":
        """The same effect at another level."""
        if not 0 < alpha < 1:
            raise StatsError(f"alpha is {alpha}; wanted strictly between 0 and 1, such as 0.05")
        if math.isinf(self.high):
            return replace(self, level=1 - alpha)
        both = self.parts.both()
        halves = [part.half_width(alpha) for part in self.parts.readings()]
        return replace(
            self,
            low=self.estimate - max(halves),
            high=self.estimate + max(halves),
            level=1 - alpha,
            half_both=None if both is None else both.half_width(alpha),
            half_seeds=None if self.parts.seeds is None else self.parts.seeds.half_width(alpha),
            half_items=self.parts.items.half_width(alpha),
            spread=_spread(self.parts, self.num_seeds, alpha),
        )

    def within(self, delta: float) -> bool:
        """Two one-sided tests: over two seeds or more, the interval at 1 − 2α lies inside ±delta."""
        inner = self.at(min(2 * (1 - self.level), 1 - 1e-12))
        return self.num_seeds > 1 and -delta < inner.low and inner.high < delta


def leaves_zero(low: float, high: float) -> bool:
    """Whether an interval lies on one side of 0."""
    return low > 0 or high < 0


def paired_effect(
    table_SN: ArrayLike,
    *,
    alpha: float = 0.05,
    grades: bool,
    clusters: Sequence[object] | None = None,
) -> Effect:
    """Mean of D[seed, item], NaN where a cell is missing, with its interval.

    Args:
        table_SN: [S, N] paired differences, A − B under one seed on one item.
        alpha: two-sided level.
        grades: both sides' scores lie in [0, 1].
        clusters: [N] a label per item; items of one label are drawn together.

    Raises:
        StatsError: no value, infinite values, or seeds and items in parts that share no cell.

    Example:
        One seed, 5 won and 0 lost of 100: column means plus +1 and −1 have SS 7 − 5²/102 and 101 degrees of freedom;
        v_i = 6.7549/101/102·(102/100)² = .00068218, t = 1.98373.
        >>> found = paired_effect([[1] * 5 + [0] * 95], grades=True)
        >>> round(found.estimate, 2), round(found.half, 4), found.called, found.called_runs
        (0.05, 0.0518, False, False)
    """
    given = np.atleast_2d(np.asarray(table_SN, dtype=np.float64))
    present_N = _present(given)
    fit = _fit(given[:, present_N])
    columns = ItemClusters.of(clusters, present_N)
    seeds, noise = _seeds_part(fit), (_noise_part(fit, columns),)
    parts = Parts(
        seeds=seeds,
        items=_items_part(fit.columns_N, grades, columns),
        noise=noise if seeds else (),
        least_df=_least_df(len(fit.rows_S), columns),
    )
    raw = _items_part(fit.columns_N, False, columns).variance
    found = _effect(parts, raw, fit.mean, len(fit.rows_S), [fit], columns, coupled=True, grades=grades)
    return replace(found, left_out=int((~present_N).sum())).at(alpha)


def uncoupled_effect(
    a_SN: ArrayLike, b_TN: ArrayLike, *, alpha: float = 0.05, grades: bool, clusters: Sequence[object] | None = None
) -> Effect:
    """Mean of A minus mean of B over the same items where A's seeds are not B's: their numbers pair nothing.

    Example:
        >>> found = uncoupled_effect([[1, 1, 1, 0], [1, 1, 0, 1]], [[0, 0, 1, 0], [0, 0, 0, 0]], grades=True)
        >>> found.estimate, found.num_seeds, found.coupled
        (0.625, 2, False)
    """
    a, b = (np.atleast_2d(np.asarray(side, dtype=np.float64)) for side in (a_SN, b_TN))
    if a.shape[1] != b.shape[1]:
        raise StatsError(f"A has {a.shape[1]} items and B {b.shape[1]}; wanted the same items on both sides")
    present_N = _present(a) & _present(b)
    if not present_N.any():
        raise StatsError("no item has a value on both sides; wanted at least one")
    fits = [_fit(side[:, present_N]) for side in (a, b)]
    columns = ItemClusters.of(clusters, present_N)
    sizes = [len(fit.rows_S) for fit in fits]
    smaller, own = min(sizes), [part for fit in fits if (part := _seeds_part(fit)) is not None]
    seeds = welch(own, sizes) if smaller > 1 else None
    columns_N = fits[0].columns_N - fits[1].columns_N
    parts = Parts(
        seeds=seeds,
        items=_items_part(columns_N, grades, columns),
        noise=tuple(_noise_part(fit, columns) for fit in fits) if seeds else (),
        least_df=_least_df(smaller, columns),
    )
    raw, mean = _items_part(columns_N, False, columns).variance, fits[0].mean - fits[1].mean
    found = _effect(parts, raw, mean, smaller, fits, columns, coupled=False, grades=grades)
    return replace(found, left_out=int((~present_N).sum())).at(alpha)


def side_mean(table_SN: ArrayLike, *, alpha: float = 0.05) -> Interval:
    """One side's mean over seeds and items: of right/wrong scores of one seed Wilson's interval, the rule's otherwise.

    Grades are read as 2x − 1, so that the two items they get are one right and one wrong, and keep their bounds.

    Example:
        >>> found = side_mean([[1.0] * 117 + [0.0] * 83])
        >>> round(found.estimate, 3), round(found.low, 3), round(found.high, 3), found.method
        (0.585, 0.516, 0.651, 'Wilson')
    """
    table = np.atleast_2d(np.asarray(table_SN, dtype=np.float64))
    kept = table[~np.isnan(table)]
    if len(table) == 1 and kept.size and np.isin(kept, (0.0, 1.0)).all():
        return wilson(int(kept.sum()), kept.size, 1 - alpha, left_out=table.size - kept.size)
    grades = bool(((kept >= 0) & (kept <= 1)).all())
    found = paired_effect(2 * table - 1 if grades else table, alpha=alpha, grades=grades)
    estimate, low, high = found.estimate, found.low, found.high
    if grades:
        estimate, low, high = (1 + estimate) / 2, max((1 + low) / 2, 0.0), min((1 + high) / 2, 1.0)
    return Interval(
        estimate=estimate,
        low=low,
        high=high,
        level=found.level,
        n=found.n,
        left_out=found.left_out,
        method=found.method,
        note=found.note,
    )


@dataclass(frozen=True, kw_only=True)
class _Fit:
    """D ≈ μ + a_s + b_i by least squares over the cells that are there."""

    rows_S: Floats  # μ + a_s + mean b
    columns_N: Floats  # μ + b_i + mean a
    mean: float  # the mean of the rows
    residuals_SN: Floats  # 0 where missing
    cells: int

    @property
    def residual_df(self) -> int:
        return self.cells - self.rows_S.size - self.columns_N.size + 1


def _fit(table: Floats) -> _Fit:
    """Normal equations with the items eliminated: (diag(n_s) − W diag(1/n_i) Wᵀ) a = W(D − item means)."""
    table = table[~np.isnan(table).all(axis=1)]
    present = ~np.isnan(table)
    if present.all():  # the same solution in closed form, to the last bit of the row and column means
        rows_S, columns_N, mean = table.mean(axis=1), table.mean(axis=0), float(table.mean())
        residuals = table - rows_S[:, None] - columns_N + mean
        return _Fit(rows_S=rows_S, columns_N=columns_N, mean=mean, residuals_SN=residuals, cells=table.size)
    filled, weights = np.where(present, table, 0.0), present.astype(np.float64)
    count_N = weights.sum(axis=0)
    item_N = filled.sum(axis=0) / count_N
    system = np.diag(weights.sum(axis=1)) - (weights / count_N) @ weights.T
    if np.linalg.matrix_rank(system, hermitian=True) < len(table) - 1:
        raise StatsError("seeds and items fall into parts that share no cell; wanted one connected table")
    a_S = np.linalg.pinv(system, hermitian=True) @ (weights * (filled - item_N)).sum(axis=1)
    b_N = item_N - a_S @ weights / count_N
    residuals = np.where(present, table - a_S[:, None] - b_N, 0.0)
    rows_S, columns_N = a_S + b_N.mean(), b_N + a_S.mean()
    return _Fit(
        rows_S=rows_S,
        columns_N=columns_N,
        mean=float(rows_S.mean()),
        residuals_SN=residuals,
        cells=int(present.sum()),
    )


def _seeds_part(fit: _Fit) -> Part[float] | None:
    num = fit.rows_S.size
    return None if num < 2 else Part(variance=float(fit.rows_S.var(ddof=1)) / num, df=float(num - 1))


def items_variance(column_ss: Number, mean: Number, num_items: int, *, grades: bool) -> Number:
    """v_i from Σ(column mean − D̄)²; for grades as if +1 and −1 were two more items, times ((N+2)/N)².

    Appending +1 and −1 to N values of mean m adds 2 + 2m²N/(N+2) to their sum of squares.

    Example:
        Values 1, 0: SS ½ about ½; with +1 and −1 the values 1, 0, 1, −1 have SS 2.75 about ¼, 2.75/3/4·(4/2)² = .9167.
        >>> round(items_variance(0.5, 0.5, 2, grades=True), 4), items_variance(0.5, 0.5, 2, grades=False)
        (0.9167, 0.25)
    """
    num = num_items
    if grades:
        return (column_ss + 2 + 2 * mean**2 * num / (num + 2)) / (num + 1) / (num + 2) * ((num + 2) / num) ** 2
    return column_ss / max(num - 1, 1) / num


def _items_part(columns_N: Floats, grades: bool, columns: ItemClusters) -> Part[float]:
    num = columns_N.size
    if not columns.single:
        extra = 2 / num**2 if grades else 0.0
        return Part(variance=columns.variance(columns_N) + extra, df=max(columns.effective - 1, 0.0))
    mean = float(columns_N.mean())
    variance = items_variance(float(((columns_N - mean) ** 2).sum()), mean, num, grades=grades)
    return Part(variance=variance, df=num + 1.0 if grades else max(num - 1.0, 1e-9))


def _noise_part(fit: _Fit, columns: ItemClusters) -> Part[float]:
    num_seeds = fit.rows_S.size
    if not columns.single:
        variance = columns.noise(fit.residuals_SN) if num_seeds > 1 else 0.0
        return Part(variance=variance, df=float((num_seeds - 1) * (columns.num - 1)))
    df = fit.residual_df
    mean_square = float((fit.residuals_SN**2).sum()) / df if df > 0 else 0.0
    return Part(variance=mean_square / fit.cells, df=float(df))


def welch(seeds: Sequence[Part[Number]], sizes: Sequence[int]) -> Part[Number]:
    """v_A + v_B; Welch's df, at least the smaller side's and at most its value at equal spread."""
    a, b = seeds
    m, n = sizes
    most = (1 / m + 1 / n) ** 2 / (1 / (m**2 * (m - 1)) + 1 / (n**2 * (n - 1)))
    v = a.variance + b.variance
    df = v**2 / np.maximum(a.variance**2 / a.df + b.variance**2 / b.df, 1e-300)
    df = np.minimum(np.maximum(np.where(v > 0, df, most), min(m, n) - 1.0), most)
    return Part(variance=v, df=df if isinstance(v, np.ndarray) else float(df))


def _least_df(num_seeds: int, columns: ItemClusters) -> float:
    return max((num_seeds if columns.single else min(num_seeds, columns.effective)) - 1.0, 1e-9)


def _effect(
    parts: Parts[float],
    raw_items: float,
    mean: float,
    num_seeds: int,
    fits: Sequence[_Fit],
    columns: ItemClusters,
    *,
    coupled: bool,
    grades: bool,
) -> Effect:
    """The effect without a level; `raw_items` is v_i without the two more items that grades get."""
    cells = sum(fit.residuals_SN.size for fit in fits)
    missing = cells - sum(fit.cells for fit in fits)
    refused = _refusal(parts, columns, grades)
    notes = [refused] if refused else []
    if missing > MANY_MISSING * cells:
        notes.append(f"{missing / cells:.0%} of the seed–item cells are missing")
    noise, units = sum(part.variance for part in parts.noise), columns.effective
    return Effect(
        estimate=mean,
        low=-math.inf,
        high=math.inf if refused else mean,
        level=math.nan,
        p_value=1.0 if refused else max(parts.p_value(mean), SMALLEST_P),
        half_both=None,
        half_seeds=None,
        half_items=math.inf,
        p_items=1.0 if refused else max(parts.items.p_value(mean), SMALLEST_P),
        parts=parts,
        spread=None,
        item_var=max(raw_items - noise, 0.0) * units if parts.noise else 0.0,
        residual_var=noise * num_seeds * units if parts.noise else raw_items * units,
        n=fits[0].columns_N.size,
        num_seeds=num_seeds,
        left_out=0,
        missing_cells=missing,
        num_clusters=None if columns.single else columns.num,
        num_units=columns.effective,
        coupled=coupled,
        method=_method(num_seeds, columns, coupled),
        note="; ".join(notes),
    )


def _refusal(parts: Parts[float], columns: ItemClusters, grades: bool) -> str:
    """Why the table supports no interval; empty where it does."""
    if not columns.single and columns.num < FEWEST_CLUSTERS:
        return f"no interval: {columns.num} clusters of items, and it wants {FEWEST_CLUSTERS} or more"
    if not grades and not parts.items.variance > 0:
        return "no interval: the differences do not vary between items"
    return ""


def _method(num_seeds: int, columns: ItemClusters, coupled: bool) -> str:
    units = "items" if columns.single else "clusters of items"
    if num_seeds == 1:
        return f"t over {units}: one seed, nothing is said of others"
    seeds = "seeds" if coupled else "each side's own seeds"
    return f"widest of t over {seeds}, over {units}, over both"


def _spread(parts: Parts[float], num_seeds: int, alpha: float) -> Spread | None:
    """τ² = S·(df·v_s/χ² − v_r), χ² at both quantiles for the interval and at its mean df for τ̂, cut at 0."""
    if parts.seeds is None:
        return None
    v_s, df, v_r = parts.seeds.variance, parts.seeds.df, sum(part.variance for part in parts.noise)

    def tau(chi2: float) -> float:
        return math.sqrt(max(num_seeds * (df * v_s / chi2 - v_r), 0.0))

    high, low = chi2_quantile(alpha / 2, df), chi2_quantile(1 - alpha / 2, df)
    return Spread(tau=tau(df), low=tau(low), high=tau(high), level=1 - alpha)


def _present(table: Floats) -> NDArray[np.bool_]:
    """[N] items with a value under some seed."""
    if table.ndim != 2 or not table.size or np.isnan(table).all():
        raise StatsError(f"the table has shape {table.shape} and no value; wanted seeds × items with at least one")
    if np.isinf(table).any():
        raise StatsError("the table holds infinite values; wanted finite ones, NaN where a value is missing")
    return np.asarray(~np.isnan(table).all(axis=0))

"""From long results to the layout a variance split reads: seeds × items, × judges, × repeated scorings.

With two sides a cell is A − B. Judges are kept apart only where a column names them; repeats only where every cell
holds the same number of scorings, and are averaged otherwise. A cell that one judge or side lacks is missing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deadheat.errors import StatsError

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class JudgedTable:
    """The layout with its labels."""

    values_SNJK: Floats  # [S, N, J, K] NaN where missing
    seeds: tuple[str, ...]
    items: tuple[str, ...]
    judges: tuple[str, ...]  # ("",) where none are named


def judged_table(a: pl.DataFrame, b: pl.DataFrame | None = None, *, judge: str | None = None) -> JudgedTable:
    """Lay out one side's values, or A − B.

    Example:
        >>> rows = {"seed": ["1", "1", "2", "2"], "item": ["x", "y", "x", "y"], "value": [1.0, 0.0, 1.0, 1.0]}
        >>> judged_table(pl.DataFrame(rows)).values_SNJK[:, :, 0, 0].tolist()
        [[1.0, 0.0], [1.0, 1.0]]
    """
    sides = [a] if b is None else [a, b]
    named = [side.with_columns(judge=pl.col(judge) if judge else pl.lit("")) for side in sides]
    labels = [_common(named, column) for column in ("seed", "item", "judge")]
    tables = [_laid_out(side, labels) for side in named]
    if len(tables) == 2:
        tables = [table.mean(axis=3, keepdims=True) for table in tables]
    values = tables[0] if len(tables) == 1 else tables[0] - tables[1]
    seeds, items, judges = (tuple(label) for label in labels)
    return JudgedTable(values_SNJK=values, seeds=seeds, items=items, judges=judges)


def _common(sides: Sequence[pl.DataFrame], column: str) -> list[str]:
    keys = [set(side[column].drop_nulls()) for side in sides]
    shared = set.intersection(*keys)
    if not shared:
        raise StatsError(f"no {column} in common: " + " against ".join(str(sorted(k)[:4]) for k in keys))
    return sorted(shared)


def _laid_out(side: pl.DataFrame, labels: Sequence[Sequence[str]]) -> Floats:
    """[S, N, J, K], K = 1 unless every cell has the same number of scorings."""
    cells: dict[tuple[str, ...], list[float]] = {key: [] for key in product(*labels)}
    for seed, item, judge, value in side.select("seed", "item", "judge", "value").iter_rows():
        if value is not None and (seed, item, judge) in cells:
            cells[seed, item, judge].append(value)
    counts = {len(values) for values in cells.values() if values}
    repeats = counts.pop() if len(counts) == 1 else 1
    rows = [_cell(values, repeats) for values in cells.values()]
    return np.array(rows, dtype=np.float64).reshape(*(len(label) for label in labels), repeats)


def _cell(values: list[float], repeats: int) -> list[float]:
    if not values:
        return [np.nan] * repeats
    return values if len(values) == repeats else [float(np.mean(values))]

"""From long tables of results to seeds × items, both sides aligned.

A long table has one row per seed, item and record. Records of one item under one seed (epochs, repeats) are averaged,
so that three epochs of 500 items are 500 items. Items or seeds that only one side has are listed and left out, never
scored as zero; two sides with nothing in common are an error that shows what each has.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deadheat.errors import StatsError

_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Names of the columns that matter."""

    item: str = "item"
    value: str = "value"
    seed: str | None = "seed"  # None: one seed


@dataclass(frozen=True, kw_only=True)
class AlignedTables:
    """Two sides on the seeds and items that both have."""

    a_SN: NDArray[np.float64]  # [S, N] NaN where a seed lacks an item
    b_SN: NDArray[np.float64]  # [S, N] the same seeds where they are coupled, its own otherwise
    seeds_a: tuple[str, ...]  # [S] as text, in order
    seeds_b: tuple[str, ...]
    items: tuple[str, ...]  # [N] as text, sorted
    only_a: tuple[str, ...]  # items left out because B lacks them
    only_b: tuple[str, ...]  # items left out because A lacks them
    seeds_left_out: tuple[str, ...]  # seeds that one side lacks
    repeats_a: int  # records averaged into another of the same seed and item
    repeats_b: int

    @property
    def left_out(self) -> int:
        """Items left out."""
        return len(self.only_a) + len(self.only_b)


def align(a: pl.DataFrame, b: pl.DataFrame, columns: Columns, *, coupled: bool = True) -> AlignedTables:
    """Both sides as seeds × items over the items they share, and over the seeds they share where those are coupled.

    Example:
        >>> a = pl.DataFrame({"item": ["x", "y"], "value": [1.0, 0.0]})
        >>> b = pl.DataFrame({"item": ["y", "z"], "value": [1.0, 1.0]})
        >>> both = align(a, b, Columns(seed=None))
        >>> both.a_SN.tolist(), both.b_SN.tolist(), both.only_a, both.only_b
        ([[0.0]], [[1.0]], ('x',), ('z',))
    """
    side_a, side_b = _long(a, columns, "A"), _long(b, columns, "B")
    items_a, items_b = set(side_a["item"]), set(side_b["item"])
    seeds_a, seeds_b = set(side_a["seed"]), set(side_b["seed"])
    items = sorted(items_a & items_b)
    shared = seeds_a & seeds_b if coupled else None
    own_a, own_b = (sorted(seeds if shared is None else shared, key=_natural) for seeds in (seeds_a, seeds_b))
    if not items:
        raise StatsError(f"no item in common: A has {_few(items_a)}, B has {_few(items_b)}; wanted the same item keys")
    if not own_a:
        raise StatsError(f"no seed in common: A has {_few(seeds_a)}, B has {_few(seeds_b)}; wanted the same seed keys")
    return AlignedTables(
        a_SN=_wide(side_a, own_a, items),
        b_SN=_wide(side_b, own_b, items),
        seeds_a=tuple(own_a),
        seeds_b=tuple(own_b),
        items=tuple(items),
        only_a=tuple(sorted(items_a - items_b)),
        only_b=tuple(sorted(items_b - items_a)),
        seeds_left_out=tuple(sorted(seeds_a ^ seeds_b, key=_natural)) if coupled else (),
        repeats_a=a.height - side_a.height,
        repeats_b=b.height - side_b.height,
    )


def _long(frame: pl.DataFrame, columns: Columns, side: str) -> pl.DataFrame:
    """seed, item, value as text, text, float; one row per seed and item."""
    wanted = [columns.item, columns.value, *([columns.seed] if columns.seed else [])]
    missing = [name for name in wanted if name not in frame.columns]
    if missing:
        raise StatsError(
            f"side {side} lacks the columns {missing}; it has {frame.columns}. Name them with Columns(...)"
        )
    if not (frame[columns.value].dtype.is_numeric() or frame[columns.value].dtype == pl.Boolean):
        raise StatsError(f"side {side}: {columns.value!r} is {frame[columns.value].dtype}; wanted numbers or booleans")
    if frame[columns.item].null_count():
        raise StatsError(
            f"side {side}: {frame[columns.item].null_count()} rows have no item key; wanted one in every row, "
            "since rows without a key cannot be paired and are not one item"
        )
    seed = pl.col(columns.seed).cast(pl.String) if columns.seed else pl.lit("0")
    value = pl.col(columns.value).cast(pl.Float64).fill_nan(None)
    return (
        frame.select(seed.alias("seed"), pl.col(columns.item).cast(pl.String).alias("item"), value.alias("value"))
        .group_by("seed", "item", maintain_order=True)
        .agg(pl.col("value").mean())
    )


def _wide(long: pl.DataFrame, seeds: Sequence[str], items: Sequence[str]) -> NDArray[np.float64]:
    row = {seed: s for s, seed in enumerate(seeds)}
    column = {item: n for n, item in enumerate(items)}
    table = np.full((len(seeds), len(items)), np.nan)
    for seed, item, value in long.iter_rows():
        if seed in row and item in column and value is not None:
            table[row[seed], column[item]] = value
    return table


def _natural(key: str) -> tuple[int, str]:
    """Numbers in their order: 2 before 10."""
    return len(key), key


def _few(keys: set[str]) -> str:
    shown = sorted(keys)[:_SHOWN]
    more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
    return f"{shown}{more}"

"""Percentile bootstrap of a seed × item table of differences, one function, five levels.

    crossed   draw seeds, draw items once for all drawn seeds      "would other seeds and other questions say so?"
    question  items only                                           "would other questions say so, of these very runs?"
    flat      S·N cells as if independent                          too narrow wherever seeds share items or a mood
    nested    draw seeds, then items anew for each drawn seed      too narrow where seeds share their items
    seed      seeds only                                           refused below 6 seeds

Draws are multinomial weights over *distinct columns*: items with the same values under every seed are
interchangeable, so their joint weight is one multinomial cell, which makes a table of grades cost its few patterns
and not its N. Tables are put in a canonical order first; order and the sign of A − B do not reach the randomness.

Source: Efron and Tibshirani 1993, chapter 13; crossed: Owen 2007 ("pigeonhole bootstrap"). Its bias at few seeds is
known and left uncorrected. Drawn seeds repeat, E Σ w² = 2S − 1, so item noise enters the variance up to (2S − 1)/S
too large: 5/3 at S = 3. The seeds' own variance enters at (S − 1)/S, 2/3 at S = 3. An interval that would miss its
point estimate is widened to it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice, permutations, product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat.errors import StatsError
from deadheat.sampling.keys import derive, generator
from deadheat.stats.intervals import collapse_repeats
from deadheat.stats.votes import check_axes

DOMAIN_BOOTSTRAP = "deadheat/bootstrap/v1"
FEWEST_SEED_CLUSTERS = 6
_CHUNK_CELLS = 65_536  # weights held at once: half a megabyte, inside the cache
_GATHER_CELLS = 24_576  # item draws held at once where they are looked up: an allocation that needs no new pages
_MOST_GATHERED = 262_144  # seed draws × items whose values may be laid out, two megabytes
_MOST_CODED_SEEDS = 15  # a draw of the seeds is one 64-bit number in base S + 1
_MOST_ARRANGEMENTS = 120  # five seeds with equal tallies; beyond that the first arrangements are compared

Floats = NDArray[np.float64]


class Level(StrEnum):
    """What is drawn again."""

    CROSSED = "crossed"  # seeds, and items once for all drawn seeds
    QUESTION = "question"  # items only
    FLAT = "flat"  # seed–item cells as if independent
    NESTED = "nested"  # seeds, then items for each drawn seed
    SEED = "seed"  # seeds only; refused below 6


SENTENCES = {
    Level.CROSSED: "fresh seeds on fresh questions would land here",
    Level.QUESTION: "these very runs on fresh questions would",
    Level.FLAT: "if seed–item cells were independent: too narrow",
    Level.NESTED: "fresh seeds, each on fresh questions: too narrow",
    Level.SEED: "fresh seeds on these very questions would",
}


@dataclass(frozen=True, kw_only=True)
class BootstrapInterval:
    """A mean difference with its percentile interval."""

    estimate: float  # mean over present cells, in the table's unit
    low: float
    high: float
    se: float  # SD of the resampled means, ddof = 1
    level: float  # coverage asked for, such as 0.95
    resampling: Level
    sentence: str  # the sentence this resampling supports
    n: int  # items kept
    num_seeds: int  # seeds kept
    left_out: int  # items with no value under any seed
    missing_cells: int  # seed–item cells without a value among the items kept
    resamples: int  # R
    key: int  # address of the randomness
    method: str
    note: str = ""  # "zero width: all cells equal" and the like; empty: none


def bootstrap(
    table_SN: ArrayLike,
    level: Level | str = Level.CROSSED,
    *,
    key: int,
    resamples: int = 4000,
    coverage: float = 0.95,
    item_ids: Sequence[str | int | None] | None = None,
    axes: Sequence[str] = ("seed", "item"),
) -> BootstrapInterval:
    """Percentile interval of the mean of a seed × item table; NaN cells are left out of numerator and denominator.

    Records that share an item id are averaged first, so that three epochs of one question stay one question.

    Example:
        >>> bootstrap([[1.0, 1.0], [1.0, 1.0]], key=1).note
        'zero width: all cells are equal'
    """
    resampling = Level(level)
    table, left_out = _prepare(check_axes(table_SN, axes), item_ids)
    num_seeds, num_items = table.shape
    _check(resampling, num_seeds, resamples, coverage)
    flip, ordered = _canonical(table)
    rng = generator(derive(DOMAIN_BOOTSTRAP, key, resampling.value))
    means_R = _resample(resampling, ordered, resamples, rng)
    tail = (1 - coverage) / 2
    low, high = (float(q) for q in np.quantile(means_R, [tail, 1 - tail]))
    estimate = float(np.nanmean(table))
    if flip:
        low, high = -high, -low
    return BootstrapInterval(
        estimate=estimate,
        low=min(low, estimate),
        high=max(high, estimate),
        se=float(means_R.std(ddof=1)) if resamples > 1 and np.ptp(means_R) > 0 else 0.0,
        level=coverage,
        resampling=resampling,
        sentence=SENTENCES[resampling],
        n=num_items,
        num_seeds=num_seeds,
        left_out=left_out,
        missing_cells=int(np.isnan(table).sum()),
        resamples=resamples,
        key=key,
        method=f"{resampling.value} percentile bootstrap, {resamples} resamples",
        note=_note(table, resampling),
    )


def _prepare(table: Floats, item_ids: Sequence[str | int | None] | None) -> tuple[Floats, int]:
    """The table without wholly missing items, repeats averaged, and how many items were dropped."""
    if table.size == 0:
        raise StatsError(f"the table has shape {table.shape}; wanted at least one seed and one item")
    if np.isinf(table).any():
        raise StatsError("the table holds infinite values; wanted finite ones, NaN where a value is missing")
    if item_ids is not None:
        table = collapse_repeats(table, item_ids)
    present = ~np.isnan(table)
    if not present.any():
        raise StatsError("every cell is missing; wanted at least one value")
    empty_S = ~present.any(axis=1)
    if empty_S.any():
        raise StatsError(f"seeds {np.flatnonzero(empty_S).tolist()} have no value at all; leave them out of the table")
    kept_N = present.any(axis=0)
    return table[:, kept_N], int((~kept_N).sum())


def _check(resampling: Level, num_seeds: int, resamples: int, coverage: float) -> None:
    if resampling is Level.SEED and num_seeds < FEWEST_SEED_CLUSTERS:
        raise StatsError(
            f"{num_seeds} seeds cannot be the only clusters: they have {math.comb(2 * num_seeds - 1, num_seeds)} "
            f"distinct resamples, and the ends of the interval are single seeds. Wanted {FEWEST_SEED_CLUSTERS} "
            "seeds or more, or level 'crossed' or 'question'"
        )
    if resamples < 1 or not 0 < coverage < 1:
        raise StatsError(f"{resamples} resamples at coverage {coverage}; wanted at least 1, and a coverage in (0, 1)")


def _canonical(table: Floats) -> tuple[bool, Floats]:
    """The table in an order of its own, and whether its sign was turned.

    Rows are ordered by the bytes of their sorted values, columns lexicographically; among rows that tie, and between a
    table and its negative, the arrangement that sorts first is used.
    """
    plus, minus = _sorted_table(table), _sorted_table(-table)
    flip = _sorts_before(minus, plus)
    return flip, minus if flip else plus


def _sorted_table(table: Floats) -> Floats:
    table = np.where(np.isnan(table), np.nan, table + 0.0)  # one NaN, one zero
    best: Floats | None = None
    for order in islice(_row_orders(table), _MOST_ARRANGEMENTS):
        arranged = table[order]
        arranged = arranged[:, np.lexsort(arranged[::-1])]
        if best is None or _sorts_before(arranged, best):
            best = arranged
    return table if best is None else best


def _row_orders(table: Floats) -> Iterator[list[int]]:
    """Orders of the rows by the bytes of their sorted values; rows that tie in every order of their own."""
    tied: dict[bytes, list[int]] = {}
    for row, values in enumerate(np.sort(table, axis=1)):
        tied.setdefault(values.tobytes(), []).append(row)
    for parts in product(*(permutations(tied[key]) for key in sorted(tied))):
        yield [row for part in parts for row in part]


def _sorts_before(first: Floats, second: Floats) -> bool:
    a, b = np.nan_to_num(first, nan=np.inf).ravel(), np.nan_to_num(second, nan=np.inf).ravel()
    differ = np.flatnonzero(a != b)
    return bool(differ.size and a[differ[0]] < b[differ[0]])


def _resample(resampling: Level, table: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """[R] resampled means."""
    num_seeds = table.shape[0]
    if resampling is Level.FLAT:
        cells = table[~np.isnan(table)][None, :]
        return _crossed(np.sort(cells, axis=1), np.ones((resamples, 1)), rng)
    if resampling is Level.QUESTION:
        return _crossed(table, np.ones((resamples, num_seeds)), rng)
    seeds_RS = rng.multinomial(num_seeds, np.full(num_seeds, 1 / num_seeds), size=resamples).astype(np.float64)
    if resampling is Level.SEED:
        present = ~np.isnan(table)
        return _ratio(seeds_RS @ np.nansum(table, axis=1), seeds_RS @ present.sum(axis=1))
    if resampling is Level.NESTED:
        return _nested(table, seeds_RS, rng)
    return _crossed(table, seeds_RS, rng)


def _crossed(table: Floats, seeds_RS: Floats, rng: np.random.Generator) -> Floats:
    """Mean under seed weights and one item draw per resample."""
    columns, counts = _distinct_columns(table)
    values, present = np.nan_to_num(columns), (~np.isnan(columns)).astype(np.float64)
    num_seeds = table.shape[0]
    if num_seeds > _MOST_CODED_SEEDS:
        return _by_resample(values, present, counts, seeds_RS, rng)
    code_R = seeds_RS.astype(np.int64) @ (num_seeds + 1) ** np.arange(num_seeds)
    _, first, which_R = np.unique(code_R, return_index=True, return_inverse=True)
    if 8 * first.size > len(seeds_RS) or 4 * counts.size > table.shape[1]:
        if first.size * table.shape[1] > _MOST_GATHERED:
            return _by_resample(values, present, counts, seeds_RS, rng)
        return _looked_up(table, seeds_RS[first], which_R, rng)
    out = np.empty(len(seeds_RS))
    for d, drawn_S in enumerate(seeds_RS[first]):
        # Under one draw of the seeds, columns with equal weighted sums are one cell.
        sums_2K = np.stack([drawn_S @ values, drawn_S @ present])
        cells_2K, cell_of_K = np.unique(sums_2K, axis=1, return_inverse=True)
        size_K = np.bincount(cell_of_K.ravel(), weights=counts).astype(np.float64)
        rows = np.flatnonzero(which_R == d)
        out[rows] = _multinomial_means(cells_2K, size_K, rows.size, rng)
    return out


def _multinomial_means(cells_2K: Floats, counts_K: Floats, size: int, rng: np.random.Generator) -> Floats:
    """[size] ratio of sums over N item draws; row 0 of the cells is the value, row 1 the weight present."""
    num_items, out = int(counts_K.sum()), np.empty(size)
    rows = max(1, _CHUNK_CELLS // counts_K.size)
    for start in range(0, size, rows):
        part = slice(start, min(start + rows, size))
        weights_RK = rng.multinomial(num_items, counts_K / num_items, size=part.stop - start)
        total_R, weight_R = (weights_RK @ cells_2K.T).T
        out[part] = _ratio(total_R, weight_R)
    return out


def _looked_up(table: Floats, drawn_DS: Floats, which_R: NDArray[np.int64], rng: np.random.Generator) -> Floats:
    """Item draws looked up in the items' sums under each distinct draw of the seeds: the way for real-valued tables."""
    num_items, out = table.shape[1], np.empty(which_R.size)
    sums = (drawn_DS @ np.nan_to_num(table)).ravel()
    missing = np.isnan(table)
    cells = (drawn_DS @ (~missing).astype(np.float64)).ravel() if missing.any() else None
    start_R, full_R = (which_R * num_items)[:, None], drawn_DS.sum(axis=1)[which_R] * num_items
    rows = max(1, _GATHER_CELLS // num_items)
    for start in range(0, out.size, rows):
        part = slice(start, start + rows)
        place = _item_draws(num_items, start_R[part].shape[0], rng).astype(np.intp)
        place += start_R[part]
        total = sums.take(place, mode="wrap").sum(axis=1)  # in range: the mode spares the check
        out[part] = _ratio(total, full_R[part] if cells is None else cells.take(place, mode="wrap").sum(axis=1))
    return out


def _by_resample(
    values: Floats, present: Floats, counts: NDArray[np.int64], seeds_RS: Floats, rng: np.random.Generator
) -> Floats:
    """Item draws counted one by one, in chunks that fit the cache: the way for tables of many distinct columns."""
    out, num_items = np.empty(len(seeds_RS)), int(counts.sum())
    rows = max(1, _CHUNK_CELLS // num_items)
    complete = bool(present.all())
    for start in range(0, len(out), rows):
        seeds = seeds_RS[start : start + rows]
        weights_RK = _item_weights(counts, num_items, len(seeds), rng)
        total = ((weights_RK @ values.T) * seeds).sum(axis=1)
        cells = seeds.sum(axis=1) * num_items if complete else ((weights_RK @ present.T) * seeds).sum(axis=1)
        out[start : start + rows] = _ratio(total, cells)
    return out


def _nested(table: Floats, seeds_RS: Floats, rng: np.random.Generator) -> Floats:
    """A seed drawn c times brings c independent item draws: together one multinomial of c·N."""
    total, cells = np.zeros((2, seeds_RS.shape[0]))
    for s, row in enumerate(table):
        values, counts = _distinct_columns(np.sort(row)[None, :])
        draws_R = (seeds_RS[:, s] * row.size).astype(np.int64)
        rows = max(1, _CHUNK_CELLS // values.shape[1])
        for start in range(0, draws_R.size, rows):
            part = slice(start, start + rows)
            weights_RK = rng.multinomial(draws_R[part], counts / counts.sum())
            total[part] += weights_RK @ np.nan_to_num(values[0])
            cells[part] += weights_RK @ (~np.isnan(values[0])).astype(np.float64)
    return _ratio(total, cells)


def _distinct_columns(table: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Distinct columns of a column-sorted table and how often each occurs."""
    left, right = table[:, :-1], table[:, 1:]
    same = ((left == right) | (np.isnan(left) & np.isnan(right))).all(axis=0)
    starts = np.flatnonzero(np.concatenate([[True], ~same]))
    return table[:, starts], np.diff(np.append(starts, table.shape[1]))


def _item_weights(counts: NDArray[np.int64], num_items: int, size: int, rng: np.random.Generator) -> Floats:
    """[size, K] how often each distinct column is drawn in N draws."""
    num_columns = counts.size
    drawn = _item_draws(num_items, size, rng)
    if num_columns < num_items:
        drawn = np.repeat(np.arange(num_columns), counts)[drawn]
    cells = drawn + np.arange(size)[:, None] * num_columns
    return np.bincount(cells.ravel(), minlength=size * num_columns).reshape(size, num_columns).astype(np.float64)


def _item_draws(num_items: int, size: int, rng: np.random.Generator) -> NDArray[np.integer[Any]]:
    """[size, N] item numbers: the upper half of 16 random bits times N, redrawn where it would be uneven (Lemire 2019)."""
    if num_items >= 2**16:
        return rng.integers(0, num_items, size=(size, num_items))
    num_draws = size * num_items
    bits = np.asarray(rng.bit_generator.random_raw(-(-num_draws // 4)))
    product = bits.view(np.uint16)[:num_draws].astype(np.uint32)
    product *= np.uint32(num_items)
    uneven = (product & np.uint32(0xFFFF)) < 2**16 % num_items
    product >>= np.uint32(16)
    redrawn = np.flatnonzero(uneven)
    product[redrawn] = rng.integers(0, num_items, size=redrawn.size, dtype=np.uint32)
    return product.reshape(size, num_items)


def _ratio(total: Floats, cells: Floats) -> Floats:
    if (cells == 0).any():
        raise StatsError("a resample drew only missing cells; too few values are present for this level")
    return np.asarray(total / cells)


def _note(table: Floats, resampling: Level) -> str:
    if np.nanmin(table) == np.nanmax(table):
        return "zero width: all cells are equal"
    if table.shape[0] == 1 and resampling in (Level.CROSSED, Level.NESTED):
        return "one seed: nothing is said of other seeds"
    return ""

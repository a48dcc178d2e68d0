"""Long tables of results to aligned seeds × items."""

import numpy as np
import polars as pl
import pytest

from deadheat.errors import StatsError
from deadheat.stats.tables import Columns, align


def long(rows: list[tuple[int, str | None, float | None]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"seed": pl.Int64, "item": pl.String, "value": pl.Float64}, orient="row")


def test_items_that_one_side_lacks_are_listed_and_left_out_and_never_zero() -> None:
    a = long([(1, "x", 1.0), (1, "y", 1.0), (2, "x", 0.0), (2, "y", 1.0)])
    b = long([(1, "y", 0.0), (1, "z", 1.0), (2, "y", 1.0), (2, "z", 0.0)])
    both = align(a, b, Columns())
    assert both.items == ("y",)
    assert (both.a_SN.tolist(), both.b_SN.tolist()) == ([[1.0], [1.0]], [[0.0], [1.0]])
    assert (both.only_a, both.only_b, both.left_out) == (("x",), ("z",), 2)


def test_a_cell_that_one_seed_lacks_is_missing_and_not_zero() -> None:
    a = long([(1, "x", 1.0), (2, "x", 1.0), (2, "y", 1.0)])
    both = align(a, long([(1, "x", 1.0), (1, "y", 0.0), (2, "x", 0.0), (2, "y", None)]), Columns())
    assert np.isnan(both.a_SN[0, 1]) and np.isnan(both.b_SN[1, 1])
    assert both.a_SN[1].tolist() == [1.0, 1.0]


def test_epochs_of_one_item_are_averaged_and_counted() -> None:
    a = long([(1, "x", 1.0), (1, "x", 0.0), (1, "x", 1.0), (1, "y", 1.0)])
    both = align(a, long([(1, "x", 0.0), (1, "y", 0.0)]), Columns())
    assert both.a_SN.tolist() == [[pytest.approx(2 / 3), 1.0]]
    assert (both.repeats_a, both.repeats_b) == (2, 0)


def test_nothing_in_common_shows_both_key_sets() -> None:
    with pytest.raises(StatsError, match=r"A has \['x'\], B has \['z'\]"):
        align(long([(1, "x", 1.0)]), long([(1, "z", 1.0)]), Columns())
    with pytest.raises(StatsError, match=r"no seed in common: A has \['1'\], B has \['2'\]"):
        align(long([(1, "x", 1.0)]), long([(2, "x", 1.0)]), Columns())


def test_rows_without_an_item_key_are_refused_and_not_merged() -> None:
    with pytest.raises(StatsError, match="2 rows have no item key"):
        align(long([(1, None, 1.0), (1, None, 0.0)]), long([(1, "x", 1.0)]), Columns())


def test_a_missing_or_textual_column_is_named() -> None:
    with pytest.raises(StatsError, match=r"side B lacks the columns \['seed'\]"):
        align(long([(1, "x", 1.0)]), pl.DataFrame({"item": ["x"], "value": [1.0]}), Columns())
    with pytest.raises(StatsError, match="wanted numbers or booleans"):
        align(
            pl.DataFrame({"item": ["x"], "value": ["C"]}),
            pl.DataFrame({"item": ["x"], "value": [1.0]}),
            Columns(seed=None),
        )


def test_booleans_are_grades() -> None:
    frame = pl.DataFrame({"item": [1, 2], "value": [True, False]})
    assert align(frame, frame, Columns(seed=None)).a_SN.tolist() == [[1.0, 0.0]]

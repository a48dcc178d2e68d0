"""The effect over seeds and items: oracles, a slow twin by full least squares, leave-one-out, and what never happens."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import chi2 as chi2_distribution
from scipy.stats import t as student

from deadheat.errors import StatsError
from deadheat.stats.clusters import clustered_mean
from deadheat.stats.effect import Effect, leaves_zero, paired_effect, side_mean, uncoupled_effect
from deadheat.stats.power import parts_of
from deadheat.stats.vote_models import Layouts

CASES = json.loads((Path(__file__).parents[1] / "golden" / "verdict.json").read_text(encoding="utf-8"))["cases"]
GRADE_TABLES = st.tuples(st.integers(1, 4), st.integers(2, 12)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.sampled_from([-1.0, 0.0, 1.0]))
)


def rng(key: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=key))


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_every_component_of_the_reference_tables(case: dict[str, Any]) -> None:
    found, wanted = paired_effect(case["D"], alpha=case["alpha"], grades=case["grades"]), case["expected"]
    got: dict[str, Any] = {
        "estimate": found.estimate,
        "S": found.num_seeds,
        "N": found.n,
        "v_i": found.parts.items.variance,
        "h_items": found.half_items,
        "h": found.half,
        "low": found.low,
        "high": found.high,
        "called_recipes": found.called,
        "called_runs": found.called_runs,
    }
    both = found.parts.both()
    if both is not None and found.parts.seeds is not None:
        got |= {
            "v_s": found.parts.seeds.variance,
            "v_r": found.parts.noise[0].variance,
            "v": both.variance,
            "df": both.df,
            "h_both": found.half_both,
            "h_seeds": found.half_seeds,
        }
    assert set(wanted) <= set(got) or set(wanted) - set(got) <= {"p", "p_value", "p_items"}
    for name in set(wanted) & set(got):
        assert got[name] == pytest.approx(wanted[name], rel=1e-9, abs=1e-15), name


def test_a_pencil_table_of_three_seeds_and_two_scores() -> None:
    # D = [[1, 3], [2, 2], [3, 7]]: rows 2, 2, 5; columns 2, 4; mean 3. v_s = 3/3 = 1, v_i = 2/2 = 1.
    # Residuals ±0, ∓... rows: (1−2−2+3, 3−2−4+3) = (0, 0); (1, −1); (−1, 1): RSS 4, MS = 4/2 = 2, v_r = 2/6.
    # v = 1 + 1 − 1/3 = 5/3; df = (25/9)/(1/2 + 1/1 + (1/9)/2) = 2.7778/1.5556 = 1.7857 → at least S − 1 = 2.
    found = paired_effect([[1.0, 3.0], [2.0, 2.0], [3.0, 7.0]], grades=False)
    both = found.parts.both()
    assert both is not None and found.parts.seeds is not None
    assert (found.estimate, found.parts.seeds.variance, found.parts.items.variance) == (3.0, 1.0, 1.0)
    assert found.parts.noise[0].variance == pytest.approx(1 / 3)
    assert (both.variance, both.df) == (pytest.approx(5 / 3), 2.0)
    # One item degree of freedom: t₁ = 12.706 is the widest.
    assert found.half == found.half_items == pytest.approx(12.7062, abs=1e-4)


def full_least_squares(table: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Row and column levels and the residual mean square from the whole design matrix."""
    num_seeds, num_items = table.shape
    cells = [(s, i) for s in range(num_seeds) for i in range(num_items) if not np.isnan(table[s, i])]
    design = np.zeros((len(cells), num_seeds + num_items))
    for row, (s, i) in enumerate(cells):
        design[row, s] = design[row, num_seeds + i] = 1.0
    values = np.array([table[cell] for cell in cells])
    beta = np.linalg.lstsq(design, values, rcond=None)[0]
    a, b = beta[:num_seeds], beta[num_seeds:]
    rss = float(((values - design @ beta) ** 2).sum())
    return a + b.mean(), b + a.mean(), rss / (len(cells) - num_seeds - num_items + 1)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3])
def test_missing_cells_are_fitted_as_the_whole_design_matrix_fits_them(share: float) -> None:
    table = rng(5).normal(size=(4, 30)) + rng(6).normal(size=(4, 1))
    table[rng(7).random(table.shape) < share] = np.nan
    rows, columns, mean_square = full_least_squares(table)
    found = paired_effect(table, grades=False)
    assert found.parts.seeds is not None
    assert found.estimate == pytest.approx(rows.mean())
    assert found.parts.seeds.variance == pytest.approx(rows.var(ddof=1) / 4)
    assert found.parts.items.variance == pytest.approx(columns.var(ddof=1) / 30)
    assert found.parts.noise[0].variance == pytest.approx(mean_square / (~np.isnan(table)).sum())
    assert found.missing_cells == int(np.isnan(table).sum())
    assert ("missing" in found.note) is (found.missing_cells > 0.2 * table.size)


def test_empty_rows_and_columns_are_left_out_and_parts_without_a_common_cell_are_refused() -> None:
    table = np.full((3, 6), np.nan)
    table[:2, :4] = [[1, 0, 1, 1], [1, 1, 0, 1]]
    found = paired_effect(table, grades=True)
    assert (found.num_seeds, found.n, found.left_out) == (2, 4, 2)
    split = np.array([[1.0, 0.0, np.nan, np.nan], [np.nan, np.nan, 1.0, 0.0]])
    with pytest.raises(StatsError, match="share no cell"):
        paired_effect(split, grades=True)


def test_the_jackknife_over_clusters_is_leaving_one_cluster_out() -> None:
    values, labels = rng(8).normal(size=60), np.repeat(np.arange(9), [3, 9, 6, 12, 5, 5, 10, 2, 8])
    full = values.mean()
    left = np.array([values[labels != c].mean() for c in range(9)])
    by_hand = 8 / 9 * ((left - full) ** 2).sum()
    effective = 60**2 / (np.bincount(labels) ** 2).sum()
    found = paired_effect(values[None], grades=False, clusters=labels.tolist())
    assert found.parts.items.variance == pytest.approx(by_hand)
    assert found.half == pytest.approx(student.ppf(0.975, effective - 1) * math.sqrt(by_hand))
    assert (found.num_clusters, found.num_units) == (9, pytest.approx(effective))
    other = clustered_mean(values, labels.tolist())
    assert (other.low, other.high) == (pytest.approx(found.low), pytest.approx(found.high))
    graded = paired_effect(values[None], grades=True, clusters=labels.tolist())
    assert graded.parts.items.variance == pytest.approx(by_hand + 2 / 60**2)


def test_clusters_of_one_item_each_are_items() -> None:
    table = rng(9).normal(size=(3, 20)) + rng(10).normal(size=(3, 1))
    plain, single = paired_effect(table, grades=False), paired_effect(table, grades=False, clusters=list(range(20)))
    assert single.parts.items.variance == pytest.approx(plain.parts.items.variance)
    assert single.parts.noise[0].variance == pytest.approx(plain.parts.noise[0].variance)
    assert single.half == pytest.approx(plain.half)


def test_fewer_than_six_clusters_support_no_interval_and_say_so() -> None:
    found = paired_effect(rng(1).normal(size=(3, 50)) + 9, grades=False, clusters=[i % 5 for i in range(50)])
    assert (found.low, found.high, found.p_value, found.called) == (-math.inf, math.inf, 1.0, False)
    assert found.note == "no interval: 5 clusters of items, and it wants 6 or more"


def test_uncoupled_seeds_by_hand() -> None:
    # A: rows 1, 3 (var 2, v_A = 1); B: rows 0, 0, 3 (var 3, v_B = 1). v_s = 2, Welch df = 4/(1/1 + 1/2) = 2.667;
    # at most f = (1/2 + 1/3)²/(1/(4·1) + 1/(9·2)) = .6944/.3056 = 2.2727.
    a = np.array([[0.0, 2.0], [2.0, 4.0]])
    b = np.array([[0.0, 0.0], [1.0, -1.0], [3.0, 3.0]])
    found = uncoupled_effect(a, b, grades=False)
    seeds = found.parts.seeds
    assert seeds is not None
    assert (found.estimate, found.num_seeds, found.coupled) == (1.0, 2, False)
    assert (seeds.variance, seeds.df) == (pytest.approx(2.0), pytest.approx(2.2727, abs=1e-4))
    # Columns of A 1, 3, of B 4/3, 2/3: differences −1/3, 7/3, var 3.5556, v_i = 1.7778.
    assert found.parts.items.variance == pytest.approx(3.5556 / 2, abs=1e-4)
    # A is additive: no residual. B: residuals (−⅓, ⅓), (⅔, −⅔), (−⅓, ⅓): RSS 4/3, MS = ⅔ on 2, over 6 cells.
    assert [part.variance for part in found.parts.noise] == [pytest.approx(0.0), pytest.approx(1 / 9)]


def test_renumbering_the_seeds_of_uncoupled_sides_changes_nothing() -> None:
    a, b = rng(2).random((3, 40)), rng(3).random((5, 40))
    first, second = uncoupled_effect(a, b, grades=True), uncoupled_effect(a[[2, 0, 1]], b[::-1], grades=True)
    assert (first.low, first.high, first.p_value) == pytest.approx((second.low, second.high, second.p_value))


def test_one_seed_on_a_side_leaves_the_reading_over_items() -> None:
    found = uncoupled_effect(rng(2).random((1, 40)), rng(3).random((5, 40)), grades=True)
    assert (found.num_seeds, found.half_seeds, found.half) == (1, None, found.half_items)
    assert not found.called


@given(table=GRADE_TABLES)
@settings(max_examples=60)
def test_no_interval_of_grades_has_width_zero_and_words_and_intervals_agree(table: np.ndarray) -> None:
    found = paired_effect(table, grades=True)
    assert found.high > found.low
    assert found.low <= found.estimate <= found.high
    assert leaves_zero(found.low, found.high) is (found.p_value < 0.05)
    assert found.called_runs is (found.p_items < 0.05)
    assert not found.called or found.called_runs  # the widest of the readings holds the one over items


@given(table=GRADE_TABLES, data=st.data())
@settings(max_examples=40)
def test_order_is_irrelevant_and_swapping_the_sides_flips_the_sign_only(table: np.ndarray, data: st.DataObject) -> None:
    rows = data.draw(st.permutations(range(table.shape[0])))
    columns = data.draw(st.permutations(range(table.shape[1])))
    found = paired_effect(table, grades=True)
    turned, swapped = paired_effect(table[rows][:, columns], grades=True), paired_effect(-table, grades=True)
    assert (turned.low, turned.high) == pytest.approx((found.low, found.high), abs=1e-12)
    assert (swapped.low, swapped.high, swapped.p_value) == pytest.approx((-found.high, -found.low, found.p_value))


def test_scores_that_do_not_vary_have_no_interval_and_identical_files_have_one() -> None:
    found = paired_effect(np.full((2, 5), 0.3), grades=False)
    assert (found.low, found.high, found.note) == (
        -math.inf, math.inf, "no interval: the differences do not vary between items",
    )  # fmt: skip
    same = paired_effect(np.zeros((3, 200)), grades=True)
    assert (same.half, same.p_value) == (pytest.approx(0.01398, abs=5e-6), 1.0)  # ±1.4 points


def test_another_level_is_the_interval_computed_at_that_level() -> None:
    table = rng(4).normal(size=(4, 30))
    assert paired_effect(table, grades=False).at(0.01) == paired_effect(table, alpha=0.01, grades=False)


def test_the_spread_of_the_seeds_has_the_interval_of_its_mean_square() -> None:
    table = rng(11).normal(size=(5, 80)) + 3 * rng(12).normal(size=(5, 1))
    found = paired_effect(table, grades=False)
    rows, _, residual = full_least_squares(table)
    mean_square = 80 * rows.var(ddof=1)

    def tau(chi2: float) -> float:
        return math.sqrt(max((4 * mean_square / chi2 - residual) / 80, 0.0))

    assert found.spread is not None
    assert found.spread.tau == pytest.approx(math.sqrt((mean_square - residual) / 80))
    low, high = chi2_distribution.ppf(0.975, 4), chi2_distribution.ppf(0.025, 4)
    assert (found.spread.low, found.spread.high) == (pytest.approx(tau(low)), pytest.approx(tau(high)))


def test_the_many_tables_of_a_simulation_are_read_as_one_by_one() -> None:
    tables = np.sign(np.round(rng(13).normal(size=(40, 3, 25)) / 1.2))
    mean = tables.mean(axis=(1, 2))
    rows, columns = tables.mean(axis=2), tables.mean(axis=1)
    residual = tables - rows[:, :, None] - columns[:, None, :] + mean[:, None, None]
    layouts = Layouts(
        mean_R=mean,
        row_ss_R=((rows - mean[:, None]) ** 2).sum(axis=1),
        column_ss_R=((columns - mean[:, None]) ** 2).sum(axis=1),
        residual_ss_R=(residual**2).sum(axis=(1, 2)),
        grades=True,
    )
    fast = parts_of(layouts, 3, 25).p_value(mean)
    slow = [paired_effect(table, grades=True).p_value for table in tables]
    np.testing.assert_allclose(fast, slow, rtol=1e-9)


def test_within_is_two_one_sided_tests_and_wants_two_seeds() -> None:
    table = np.sign(np.round(rng(14).normal(size=(5, 400)) / 2.0)) * 1.0
    found = paired_effect(table, grades=True)
    inner = found.at(0.10)
    edge = max(abs(inner.low), abs(inner.high))
    assert found.within(edge + 1e-9) and not found.within(edge - 1e-9)
    assert not paired_effect(table[:1], grades=True).within(0.5)


def test_a_sides_mean_is_the_mean_whose_difference_is_the_effect() -> None:
    a, b = (rng(key).random((3, 40)) < 0.5 for key in (15, 16))
    hole = rng(17).random((3, 40)) < 0.1
    a_SN, b_SN = (np.where(hole, np.nan, side.astype(float)) for side in (a, b))
    found: Effect = paired_effect(a_SN - b_SN, grades=True)
    assert side_mean(a_SN).estimate - side_mean(b_SN).estimate == pytest.approx(found.estimate)
    all_right = side_mean(np.ones((3, 40)))
    assert (all_right.high, all_right.low < 1) == (1.0, True)

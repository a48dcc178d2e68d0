"""The bootstrap of seed × item tables: what each level draws, its variances against closed forms, its invariants."""

import importlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from deadheat.errors import StatsError
from deadheat.sampling.keys import generator
from deadheat.stats.bootstrap import Level, bootstrap

bootstrap_module = importlib.import_module("deadheat.stats.bootstrap")  # the room exports a function of that name

GRADES = st.sampled_from([-1.0, 0.0, 1.0])
TABLES = st.tuples(st.integers(1, 4), st.integers(2, 12)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=GRADES)
)
LEVELS = [Level.CROSSED, Level.QUESTION, Level.FLAT, Level.NESTED]


def generated(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.Generator(np.random.Philox(key=seed)).standard_normal(shape)


@pytest.mark.parametrize("level", LEVELS)
def test_the_same_key_gives_the_same_bytes_and_another_key_others(level: Level) -> None:
    table = generated(1, (3, 40))
    assert bootstrap(table, level, key=7, resamples=200) == bootstrap(table, level, key=7, resamples=200)
    assert bootstrap(table, level, key=7, resamples=200).low != bootstrap(table, level, key=8, resamples=200).low


@pytest.mark.parametrize("level", LEVELS)
@given(table=TABLES, key=st.integers(0, 2**32))
@settings(max_examples=25)
def test_the_point_estimate_lies_in_its_interval(level: Level, table: np.ndarray, key: int) -> None:
    found = bootstrap(table, level, key=key, resamples=50)
    assert found.low <= found.estimate <= found.high
    assert found.estimate == pytest.approx(table.mean())


@pytest.mark.parametrize("level", LEVELS)
@given(table=TABLES, key=st.integers(0, 2**32))
@settings(max_examples=25)
def test_swapping_a_and_b_flips_the_sign_and_nothing_else(level: Level, table: np.ndarray, key: int) -> None:
    ours, theirs = (bootstrap(sign * table, level, key=key, resamples=50) for sign in (1, -1))
    assert ours.estimate == pytest.approx(-theirs.estimate)
    plus, minus = sorted([np.sort(table, axis=None).tolist(), np.sort(-table, axis=None).tolist()])
    if plus != minus:  # a table that mirrors itself has no orientation to keep
        assert (ours.low, ours.high) == pytest.approx((-theirs.high, -theirs.low))


@pytest.mark.parametrize("level", LEVELS)
@given(table=TABLES, key=st.integers(0, 2**32), data=st.data())
@settings(max_examples=25)
def test_the_order_of_seeds_and_items_is_irrelevant(
    level: Level, table: np.ndarray, key: int, data: st.DataObject
) -> None:
    items = data.draw(st.permutations(range(table.shape[1])))
    seeds = data.draw(st.permutations(range(table.shape[0])))
    ours, theirs = (bootstrap(part, level, key=key, resamples=50) for part in (table, table[seeds][:, items]))
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))


@given(table=TABLES, key=st.integers(0, 2**32))
@settings(max_examples=25)
def test_doubling_the_seeds_or_recording_an_item_twice_leaves_the_question_interval(
    table: np.ndarray, key: int
) -> None:
    once = bootstrap(table, Level.QUESTION, key=key, resamples=50)
    seeds = bootstrap(np.concatenate([table, table]), Level.QUESTION, key=key, resamples=50)
    ids = list(range(table.shape[1]))
    twice = bootstrap(
        np.concatenate([table, table[:, :1]], axis=1), Level.QUESTION, key=key, resamples=50, item_ids=[*ids, 0]
    )
    assert (seeds.low, seeds.high) == pytest.approx((once.low, once.high))
    assert (twice.low, twice.high) == pytest.approx((once.low, once.high))
    assert twice.n == once.n


def variances(table: np.ndarray) -> dict[Level, float]:
    """Exact variances of the resampled means.

    With multinomial weights, Var of a mean of m draws is the population variance over m. Crossed: seed draws w and item
    draws v are independent, E w_s w_t = (S(S−1) + S·[s=t])/S² and likewise for items, so
    E m² = Σ E[w w]·E[v v]·D·D / (SN)² over all pairs of cells.
    """
    num_seeds, num_items = table.shape

    def second(m: int) -> np.ndarray:
        return np.asarray((m - 1) / m + np.eye(m))

    crossed = np.einsum("sn,tm,st,nm->", table, table, second(num_seeds), second(num_items)) / table.size**2
    nested = table.mean(axis=1).var() / num_seeds + table.var(axis=1).mean() / (num_seeds * num_items)
    return {
        Level.CROSSED: float(crossed - table.mean() ** 2),
        Level.QUESTION: float(table.mean(axis=0).var() / num_items),
        Level.FLAT: float(table.var() / table.size),
        Level.NESTED: float(nested),
    }


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("rounded", [True, False], ids=["few distinct columns", "all columns distinct"])
def test_each_level_has_its_exact_variance(level: Level, rounded: bool) -> None:
    # 20,000 resamples: the SE of an SD is 0.5%; 4% is eight of them.
    noise = generated(3, (3, 60)) + generated(4, (3, 1))
    table = np.sign(np.round(noise / 1.5)) if rounded else noise
    found = bootstrap(table, level, key=11, resamples=20_000)
    assert found.se == pytest.approx(np.sqrt(variances(table)[level]), rel=0.04)


def test_crossed_item_noise_is_five_thirds_too_large_at_three_seeds() -> None:
    # Independent cells with equal seed means: E var = (2S−1)/S · V/(SN); V = 1, S = 3, N = 4,000: sqrt(5/3/12000).
    table = generated(5, (3, 4000))
    table -= table.mean(axis=1, keepdims=True)
    found = bootstrap(table, Level.CROSSED, key=2, resamples=4000)
    assert found.se == pytest.approx(np.sqrt(5 / 3 / 12_000), rel=0.05)


def test_clustering_by_three_seeds_alone_is_refused_with_the_ten_resamples_they_have() -> None:
    with pytest.raises(StatsError, match="they have 10 distinct resamples"):
        bootstrap(generated(1, (3, 50)), Level.SEED, key=1)


def test_six_seeds_may_be_the_only_clusters() -> None:
    # Six seed means 0..5: variance of a mean of six draws is (35/12)/6.
    table = np.repeat(np.arange(6.0)[:, None], 5, axis=1)
    assert bootstrap(table, Level.SEED, key=1, resamples=20_000).se == pytest.approx(np.sqrt(35 / 72), rel=0.04)


def test_equal_scores_everywhere_give_a_labelled_zero_width_and_not_nan() -> None:
    found = bootstrap(np.full((3, 20), 0.25), key=1)
    assert (found.low, found.estimate, found.high, found.se) == (0.25, 0.25, 0.25, 0.0)
    assert found.note == "zero width: all cells are equal"


def test_a_table_on_its_side_is_refused_when_its_names_say_so() -> None:
    with pytest.raises(StatsError, match="pass the transpose"):
        bootstrap(generated(1, (40, 3)), key=1, axes=("item", "seed"))


def test_three_epochs_of_forty_items_are_forty_items() -> None:
    table = generated(6, (1, 40))
    epochs = np.tile(table, (1, 3))
    ids = [f"q{i}" for i in range(40)] * 3
    once, thrice = bootstrap(table, key=4), bootstrap(epochs, key=4, item_ids=ids)
    assert thrice.n == 40
    assert thrice.se == pytest.approx(once.se)
    # Taken as 120 items, the same data would claim an SE smaller by sqrt(3).
    assert bootstrap(epochs, key=4).se == pytest.approx(once.se / np.sqrt(3), rel=0.06)


def test_missing_item_ids_are_items_of_their_own() -> None:
    assert bootstrap([[0.0, 1.0, 0.0, 1.0]], key=1, item_ids=["a", "a", None, None]).n == 3


def test_missing_cells_leave_numerator_and_denominator() -> None:
    # Present cells: 1, 1, 0, 1 → ¾. The last item is missing under both seeds and is left out.
    found = bootstrap([[1.0, 1.0, np.nan], [0.0, 1.0, np.nan]], Level.QUESTION, key=1, resamples=500)
    assert (found.estimate, found.n, found.left_out, found.missing_cells) == (0.75, 2, 1, 0)
    partial = bootstrap([[1.0, np.nan, 0.0], [0.0, 1.0, 0.0]], Level.QUESTION, key=1, resamples=500)
    assert (partial.estimate, partial.missing_cells) == (0.4, 1)


def test_a_seed_without_any_value_is_refused_by_its_number() -> None:
    with pytest.raises(StatsError, match=r"seeds \[1\] have no value"):
        bootstrap([[1.0, 0.0], [np.nan, np.nan]], key=1)


def test_a_million_items_of_grades_cost_their_patterns_and_not_their_number() -> None:
    table = np.sign(np.round(generated(8, (3, 1_000_000)) / 1.2))
    found = bootstrap(table, key=1, resamples=500)
    assert found.n == 1_000_000
    assert found.se == pytest.approx(np.sqrt(variances_by_parts(table)), rel=0.15)


def variances_by_parts(table: np.ndarray) -> float:
    """Crossed variance without the N × N sum: seed part of the means plus (2S−1)/S of the item part."""
    num_seeds, num_items = table.shape
    within = np.cov(table, ddof=0)
    second = (num_seeds - 1) / num_seeds + np.eye(num_seeds)
    return float(table.mean(axis=1).var() / num_seeds + (within * second).sum() / num_seeds**2 / num_items)


@pytest.mark.parametrize("holes", [False, True])
def test_draws_looked_up_give_the_means_that_draws_counted_give(holes: bool) -> None:
    # One chunk on either side (40 resamples × 60 items), so that both see the same draws.
    rng = np.random.Generator(np.random.Philox(key=9))
    values = rng.standard_normal((3, 60))
    if holes:
        values[0, ::7] = np.nan
    seeds_RS = rng.multinomial(3, [1 / 3] * 3, size=40).astype(float)
    drawn_DS, which_R = np.unique(seeds_RS, axis=0, return_inverse=True)
    present, counts = (~np.isnan(values)).astype(float), np.ones(60, dtype=np.int64)
    looked = bootstrap_module._looked_up(values, drawn_DS, which_R.ravel(), generator(5))
    counted = bootstrap_module._by_resample(np.nan_to_num(values), present, counts, seeds_RS, generator(5))
    np.testing.assert_allclose(looked, counted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("num_items", [3, 500, 40_000, 70_000])
def test_item_draws_are_even_at_sizes_that_do_not_divide_the_random_bits(num_items: int) -> None:
    # χ² of the draws over at most 10 equal-width bins (the last one may be narrower): mean 9, SD 4.2.
    draws = np.concatenate([bootstrap_module._item_draws(num_items, 1, generator(k)).ravel() for k in range(40)])
    assert draws.min() >= 0 and draws.max() < num_items
    width = -(-num_items // 10)
    sizes = np.bincount(np.arange(num_items) // width)
    seen = np.bincount(draws // width, minlength=sizes.size)
    expected = draws.size * sizes / num_items
    assert float(((seen - expected) ** 2 / expected).sum()) < 30

"""Problems that stand in several groups: what is drawn together, what stays as it was, and what is said about it."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deadheat.audit import AuditOptions, clones, contested, dilution, gate
from deadheat.stats.clusters import clustered_mean
from deadheat.stats.distributions import t_quantile
from deadheat.stats.intervals import wilson
from deadheat.stats.shares import (
    UNNAMED,
    ClusteredShare,
    Clusters,
    TwoParts,
    clustered_average,
    clustered_share,
    jackknife,
)

LIVE, RIGHT, WRONG = [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]
OPTIONS = AuditOptions()


def of_problems(rows: pl.LazyFrame, num_problems: int) -> pl.LazyFrame:
    """Group g is of problem g mod P."""
    return rows.with_columns(problem_id=pl.format("p{}", pl.col("group_id").str.slice(1).cast(pl.Int64) % num_problems))


def ten_problems(groups, **shared: object) -> pl.LazyFrame:
    """40 groups of 10 problems: problems 0–4 are live throughout, 5–9 all wrong throughout."""
    return of_problems(groups(*([LIVE] * 5 + [WRONG] * 5) * 4, **shared), 10)


def test_forty_groups_of_ten_problems_are_ten_observations_where_groups_of_one_problem_agree(groups):
    found = gate(ten_problems(groups), OPTIONS)
    # v = 9/10·Σ((p − .5)/9)² = .25/9; 1/n* = (1 − 2/7)/9 + (2/7)/10 with m = 5 problems of each kind; t(.975, 9).
    n = 1 / (5 / 7 / 9 + 2 / 7 / 10)
    assert found.shut_rate.effective_n == pytest.approx(n)
    z2 = t_quantile(0.975, 9) ** 2
    half = (z2 / n * 0.25 + (z2 / n) ** 2 / 4) ** 0.5 / (1 + z2 / n)
    assert (found.shut_rate.low, found.shut_rate.high) == (pytest.approx(0.5 - half), pytest.approx(0.5 + half))
    assert found.shut_rate.method == "Wilson at 9 effective groups, jackknife over 10 problems"
    assert found.multiplier.se == pytest.approx((0.25 / n) ** 0.5 / 0.25)
    assert "of 40 groups of 10 problems agree" in found.sentence


def test_where_every_problem_stands_in_one_group_the_interval_is_wilsons(groups):
    found = gate(groups(*[LIVE] * 5, *[WRONG] * 5), OPTIONS).shut_rate
    assert found == wilson(5, 10)


def test_where_no_problem_is_named_it_is_wilsons_and_says_so(groups):
    found = gate(ten_problems(groups).drop("problem_id"), OPTIONS).shut_rate
    assert (found.low, found.high, found.note) == (wilson(20, 40).low, wilson(20, 40).high, UNNAMED)


def test_a_group_whose_problem_is_missing_is_a_problem_of_its_own(groups):
    rows = ten_problems(groups).with_columns(problem_id=pl.lit(None, pl.String))
    assert gate(rows, OPTIONS).shut_rate == wilson(20, 40)


def test_equal_ids_of_two_tasks_are_two_problems(groups):
    rows = ten_problems(groups, task=["a"] * 20 + ["b"] * 20)
    assert gate(rows, OPTIONS).shut_rate.num_clusters == 20


def test_fewer_than_six_problems_count_once_each_and_the_interval_says_so(groups):
    found = gate(of_problems(groups(*[LIVE, WRONG] * 20), 2), OPTIONS).shut_rate
    assert (found.low, found.high) == (wilson(1, 2).low, wilson(1, 2).high)
    assert found.note == "2 problems, and a variance wants 6: each counts once"


@pytest.mark.parametrize("kind", [LIVE, WRONG])
def test_a_share_of_0_or_1_is_as_wide_as_its_problems_are_few(groups, kind):
    found = gate(of_problems(groups(*[kind] * 40), 10), OPTIONS).shut_rate
    assert (found.low, found.high) == pytest.approx(
        (wilson(10 * (kind is WRONG), 10).low, wilson(10 * (kind is WRONG), 10).high)
    )


def test_arms_and_tasks_have_intervals_of_their_own_problems(groups):
    rows = ten_problems(groups, arm=["a"] * 20 + ["b"] * 20)
    cells = {cell.where["arm"]: cell.shut_rate for cell in gate(rows, OPTIONS).cells}
    assert [(cells[arm].n, cells[arm].num_clusters) for arm in "ab"] == [(20, 10), (20, 10)]


def test_an_expected_rate_draws_problems_together(groups):
    # Groups of 4 at G = 2: 2 of 4 right ties 1/3 of the time, 0 of 4 always. Ten problems, half of each.
    rows = of_problems(groups(*([[1.0, 1.0, 0.0, 0.0]] * 5 + [[0.0] * 4] * 5) * 3), 10)
    (found,) = gate(rows, AuditOptions(group_sizes=(2,))).expected
    same = clustered_mean([1 / 3] * 5 + [1.0] * 5, range(10))
    assert (found.rate, found.interval.low) == (pytest.approx(2 / 3), pytest.approx(same.low))


def test_dilution_contested_and_clones_draw_problems_together(groups):
    rows = ten_problems(groups, step=1, completion="same", answer="5", reference="7")
    pooled = dilution(rows, OPTIONS).pooled
    assert (pooled.n, pooled.num_clusters) == (40, 10)
    found = contested(rows, OPTIONS)
    assert (found.rate.estimate, found.rate.num_clusters) == (0.5, 10)
    whole = clones(rows, OPTIONS)
    assert (whole.rollouts.n, whole.rollouts.num_clusters, whole.groups.num_clusters) == (80, 10, 10)
    assert "of 80 rollouts of 10 problems" in whole.sentence


def test_clones_of_a_log_without_problems_come_by_the_group(groups):
    rows = groups(*[LIVE] * 8).drop("problem_id").with_columns(completion=pl.lit("same"))
    found = clones(rows, OPTIONS)
    assert (found.rollouts.n, found.rollouts.num_clusters, found.rollouts.clusters) == (16, 8, "groups")
    assert found.groups.method == "Wilson"


def test_the_second_verifiers_share_is_of_problems(groups):
    rows = ten_problems(groups, answer="5", reference="7").filter(pl.col("reward") == 0)
    found = contested(rows, AuditOptions(recheck=lambda reference, answer: True)).verifier_misses
    assert (found.estimate, found.num_clusters, found.n) == (1.0, 5, 20)


def test_a_shift_over_the_same_problems_is_surer_than_over_others(groups):
    # 20 problems at both steps, 4 of which stop agreeing: paired, the other 16 say nothing moved.
    before, after = [WRONG] * 10 + [LIVE] * 10, [WRONG] * 6 + [LIVE] * 14
    rows = groups(*before, *after, step=[1] * 20 + [2] * 20)
    same, other = (gate(of_problems(rows, num), OPTIONS).shifts[0] for num in (20, 40))
    assert (same.num_problems, other.num_problems) == ((20, 20, 20), (20, 20, 0))
    assert same.tied_change.estimate == other.tied_change.estimate == pytest.approx(-0.2)
    assert same.tied_change.high - same.tied_change.low < 0.8 * (other.tied_change.high - other.tied_change.low)
    assert same.tied_change_same is None, "all problems are in both parts"


def test_the_problems_in_both_parts_are_read_alone_where_others_are_in_one(groups):
    # Ten problems stand at both steps and stay live; ten all wrong ones at the first only. T falls, theirs does not.
    rows = groups(*[LIVE] * 10, *[WRONG] * 10, *[LIVE] * 10, step=[1] * 20 + [2] * 10)
    (shift,) = gate(of_problems(rows, 20), OPTIONS).shifts
    assert (shift.multiplier_first, shift.multiplier_last) == (2.0, 1.0)
    assert (shift.tied_change.estimate, shift.tied_change_same.estimate) == (-0.5, 0.0)
    assert shift.tied_change_same.low < 0 < shift.tied_change_same.high


def test_a_shift_without_problems_is_of_independent_groups(groups):
    rows = groups(*[LIVE] * 8, *[WRONG] * 8, *[LIVE] * 12, *[WRONG] * 4, step=[1] * 16 + [2] * 16).drop("problem_id")
    (shift,) = gate(rows, OPTIONS).shifts
    # Newcombe's interval of two shares, 8 and 4 of 16, from their Wilson limits.
    first, last = wilson(8, 16), wilson(4, 16)
    low = -0.25 - ((0.25 - last.low) ** 2 + (first.high - 0.5) ** 2) ** 0.5
    assert (shift.tied_change.low, shift.tied_change.note) == (pytest.approx(low), UNNAMED)
    assert shift.num_problems is None


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6)), min_size=6, max_size=12), st.data())
def test_the_jackknife_of_sums_is_that_of_the_units(found, data):
    n_C, k_C = [n for n, _ in found], [min(k, n) for n, k in found]
    units = [float(i < k) for n, k in zip(n_C, k_C, strict=True) for i in range(n)]
    slow = clustered_mean(units, [c for c, n in enumerate(n_C) for _ in range(n)])
    fast = clustered_average(k_C, Clusters.of(n_C))
    assert fast.estimate == pytest.approx(slow.estimate)
    if 0 < sum(k_C) < sum(n_C) and fast.note == "":
        assert fast.high - fast.estimate >= (slow.high - slow.estimate) * (1 - 1e-9)  # never more degrees of freedom


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 5), st.integers(1, 4)), min_size=1, max_size=8))
def test_equal_problems_put_together_give_the_interval_of_each_by_itself(found):
    n, k, copies = ([one[i] for one in found] for i in range(3))
    k = [min(a, b) for a, b in zip(k, n, strict=True)]
    apart = [(a, b) for a, b, m in zip(k, n, copies, strict=True) for _ in range(m)]
    together = clustered_share(k, Clusters.of(n, copies))
    alone = clustered_share([a for a, _ in apart], Clusters.of([b for _, b in apart]))
    assert (together.low, together.high, together.method) == (
        pytest.approx(alone.low),
        pytest.approx(alone.high),
        alone.method,
    )


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6)), min_size=1, max_size=20))
def test_a_share_stays_in_0_to_1_holds_its_estimate_and_is_never_of_width_zero(found):
    n_C, k_C = [n for n, _ in found], [min(k, n) for n, k in found]
    share = clustered_share(k_C, Clusters.of(n_C))
    assert 0 <= share.low <= share.estimate <= share.high <= 1
    assert share.high - share.low > 0.01
    if isinstance(share, ClusteredShare):
        own = wilson(sum(k_C), sum(n_C))
        assert share.high - share.low >= (own.high - own.low) * (1 - 1e-9), "never surer than independent groups"


def test_a_change_that_no_problem_shows_is_as_wide_as_the_rule_of_three():
    import numpy as np

    both = TwoParts(size_C2=np.full((100, 2), 3.0), copies_C=np.ones(100))
    same = np.repeat([[3.0, 3.0], [0.0, 0.0]], 50, axis=0)  # every problem ties as it did
    found = both.change_of_share(same, level=0.95)
    # t(.975, 99)·√(2/100²) = 1.9842·.014142 = .02806, near 3/100
    assert (found.low, found.high) == (pytest.approx(-0.02806, abs=1e-5), pytest.approx(0.02806, abs=1e-5))
    assert both.correlation(same) == pytest.approx(1.0)
    assert jackknife(lambda s: s[:, :1] / s[:, 1:], np.array([[1.0, 1.0], [0.0, 1.0]]), np.ones(2)).item() == 0.25

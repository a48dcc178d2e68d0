"""Groups of attempts, panels of models and channels."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deadheat.errors import StatsError
from deadheat.stats.channel import Parts, channel_decomposition
from deadheat.stats.groups import (
    auroc,
    candidates,
    capture,
    gate_probability,
    pass_at_k,
    strata,
    union,
    within_group_resolution,
)


def test_the_gate_is_u_shaped() -> None:
    # .9⁸ + .1⁸ = .43046722
    assert gate_probability(0.9, 8) == gate_probability(1 - 0.9, 8) == pytest.approx(0.43046722)
    assert gate_probability(0.5, 8) == 2 / 256
    assert gate_probability(0.3, 1) == pytest.approx(1.0)


@given(n=st.integers(1, 12), data=st.data())
def test_pass_at_k_is_the_share_of_subsets_with_a_right_one(n: int, data: st.DataObject) -> None:
    right, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    subsets = list(itertools.combinations([1] * right + [0] * (n - right), k))
    share = sum(any(subset) for subset in subsets) / len(subsets)
    assert pass_at_k([right] * 2, [n] * 2, k).interval.estimate == pytest.approx(share, abs=1e-12)


def test_pass_at_k_does_not_overflow_at_a_hundred_thousand_samples() -> None:
    # 1 − C(n−1, k)/C(n, k) = k/n
    assert pass_at_k([1, 1], [100_000, 100_000], 1000).interval.estimate == pytest.approx(0.01, rel=1e-6)


def test_auroc_by_pairs() -> None:
    # Right .8, .3; wrong .3, .1: 1 + 1 + ½ + 1 = 3.5 of 4.
    assert auroc([0.8, 0.3, 0.3, 0.1], [1, 1, 0, 0]) == 0.875
    with pytest.raises(StatsError, match="at least one of each"):
        auroc([0.1, 0.2], [1, 1])


def test_resolution_means_over_groups_and_over_pairs() -> None:
    # Group a: 1 right above 3 wrong: 1. Group b: right below its wrong: 0. Groups c (all right), d (unscored): nothing.
    scores = [0.9, 0.1, 0.1, 0.1, 0.2, 0.8, 0.5, 0.5, math.nan]
    right = [1, 0, 0, 0, 1, 0, 1, 1, 1]
    found = within_group_resolution(scores, right, list("aaaabbccd"))
    assert (found.over_groups.estimate, found.over_pairs) == (0.5, 0.75)
    assert (found.n, found.left_out, found.num_pairs) == (2, 2, 4)
    assert found == within_group_resolution(scores, right, list("aaaabbccd"))


def test_capture_is_the_share_of_the_way_from_chance_to_perfect() -> None:
    # Three groups of two. Top-scored right in one of two solvable groups: top ⅓, mean ⅓, oracle ⅔ → 0; pairwise 0.
    scores, right = [[0.9, 0.1], [0.9, 0.1], [0.5, 0.4]], [[1, 0], [0, 1], [0, 0]]
    found = capture("set", scores, right)
    assert found.pairwise == 0.0
    assert found.best_of_n == pytest.approx(0.0)
    assert (found.top_accuracy, found.oracle_accuracy) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert capture("set", [[0.5, 0.5]], [[1, 0]]).best_of_n == 0.0  # equal tops share their accuracy
    assert capture("set", [[0.5, 0.4]], [[1, 1]]).best_of_n is None


def test_three_bits_are_eight_candidates() -> None:
    assert candidates(3.0) == 8.0


def test_strata_count_the_panel_and_refuse_a_judged_model_on_it() -> None:
    panel = [[1, 1, 0, np.nan], [1, 0, 0, 1], [1, 1, 0, 1]]
    found = strata(panel, panel=["a", "b", "c"], judged=["x"])
    assert found.solved_by_N == (3, 2, 0, -1)
    assert found.counts == (1, 0, 1, 1)
    assert (found.n, found.left_out) == (3, 1)
    with pytest.raises(StatsError, match=r"\['c'\] are on the panel and judged"):
        strata(panel, panel=["a", "b", "c"], judged=["c"])


def test_a_union_gains_over_every_member() -> None:
    found = union([[1, 1, 0, 0, 0], [0, 1, 1, 0, np.nan]])
    assert (found.union_frac, found.member_frac, found.gain_frac) == (0.75, (0.5, 0.5), (0.25, 0.25))
    assert found.left_out == 1


def test_both_orders_of_a_channel_split_sum_to_the_total() -> None:
    # Boxed 50% → 80%, right inside .8 → .9; outside 0: .40 → .72.
    # Rate first: .3·.8 = .24 and .8·.1 = .08; accuracy first: .3·.9 = .27 and .5·.1 = .05.
    before, after = [1] * 4 + [0] * 6, [1] * 72 + [0] * 28
    labels_before, labels_after = ["box"] * 5 + ["none"] * 5, ["box"] * 80 + ["none"] * 20
    split = channel_decomposition(before, labels_before, after, labels_after)
    assert split.total == pytest.approx(0.32)
    assert split.rate_first == Parts(rate=pytest.approx(0.24), accuracy=pytest.approx(0.08))
    assert split.accuracy_first == Parts(rate=pytest.approx(0.27), accuracy=pytest.approx(0.05))


def test_a_channel_that_was_empty_before_counts_as_rate_alone() -> None:
    split = channel_decomposition([0, 0], ["none", "none"], [1, 0], ["box", "none"])
    assert split.rate_first == Parts(rate=0.5, accuracy=0.0)
    assert split.channels[0].accuracy_before is None

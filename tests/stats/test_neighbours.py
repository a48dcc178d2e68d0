"""Which neighbours of a ranking are told apart, and how often equal models are."""

import numpy as np
import pytest

from deadheat.errors import StatsError
from deadheat.sampling.keys import generator
from deadheat.stats.neighbours import neighbours

NUM_TABLES = 2000
MOST_FRAC = 0.065  # .05 + 3 standard errors of 2,000 tables


def test_neighbours_are_tested_in_the_order_of_their_means_and_adjusted_together():
    # 100 items: strong right on 90, twin on 88 of those, weak on 50 of those. D of strong − twin: 2 won, 0 lost; of
    # twin − weak: 38 won, 0 lost. v_i of w won of N: (w − w²/N + 2 + 2(w/N)²N/(N+2))/(N+1)/(N+2)·((N+2)/N)²
    #   w = 2:  (1.96 + 2.00078)/101/102·1.0404 = .00040000, t = .02/.02 = 1.0000, 101 df, p = .3197
    #   w = 38: (23.56 + 2.28314)/101/102·1.0404 = .0026098, t = .38/.051086 = 7.438, p = 3.3e-11
    strong, twin, weak = ([1.0] * right + [0.0] * (100 - right) for right in (90, 88, 50))
    found = neighbours([weak, strong, twin], ["weak", "strong", "twin"])
    assert (found.names, found.means) == (("strong", "twin", "weak"), (0.9, 0.88, 0.5))
    first, second = found.pairs
    assert (first.separated, second.separated, found.num_separated) == (False, True, 1)
    assert first.p_value == first.p_adjusted == pytest.approx(0.3197, abs=1e-4)  # the last step of Holm is by 1
    assert second.p_adjusted == 2 * second.p_value == pytest.approx(2 * 3.3e-11, rel=0.05)
    # The called one is read at 1 − .05/2, the one that is not at 1 − .05/1.
    assert (second.effect.level, first.effect.level) == (pytest.approx(0.975), pytest.approx(0.95))
    assert second.effect.low > 0 > first.effect.low


def test_equal_models_are_never_separated_and_missing_items_are_counted():
    found = neighbours([[1, 0, 1, np.nan], [1, 0, 1, 1]], ["x", "y"])
    assert (found.names, found.num_separated, found.pairs[0].p_value) == (("x", "y"), 0, 1.0)
    assert (found.n, found.left_out) == (3, 1)


def test_scores_outside_of_0_to_1_get_no_further_items_and_may_support_no_interval():
    # Differences of 1 throughout: real-valued scores that do not vary.
    pair = neighbours([[2.0, 3.0, 4.0], [1.0, 2.0, 3.0]], ["x", "y"]).pairs[0]
    assert (pair.separated, pair.p_value) == (False, 1.0)
    assert "do not vary" in pair.effect.note


@pytest.mark.parametrize(
    ("num_models", "num_items", "scale"), [(2, 60, "grades"), (2, 400, "grades"), (6, 200, "grades"), (6, 60, "heavy")]
)
def test_equal_models_are_separated_in_no_more_than_the_stated_share_of_tables(num_models, num_items, scale):
    rng = generator(20)
    false_calls = 0
    for _ in range(NUM_TABLES):
        if scale == "grades":  # one difficulty to an item, shared by all models
            scores = rng.random((num_models, num_items)) < rng.beta(1.0, 1.0, size=num_items)
        else:
            scores = rng.standard_t(3, size=(num_models, num_items))
        found = neighbours(scores, [str(m) for m in range(num_models)])
        false_calls += found.num_separated > 0
    assert false_calls / NUM_TABLES <= MOST_FRAC


def test_three_pairs_of_equals_far_apart_are_separated_within_a_pair_no_more_often_than_stated():
    # The true steps between the pairs are called first, so that the three null pairs are held against alpha/3, /2, /1.
    rng = generator(21)
    names = ["a0", "a1", "b0", "b1", "c0", "c1"]
    solved = np.repeat([0.8, 0.5, 0.2], 2)[:, None]
    false_calls = true_calls = 0
    for _ in range(NUM_TABLES):
        pairs = neighbours(rng.random((6, 400)) < solved, names).pairs
        within = [pair.separated for pair in pairs if pair.better[0] == pair.worse[0]]
        false_calls += any(within)
        true_calls += len(within) == 3 and sum(pair.separated for pair in pairs) - sum(within) == 2
    assert false_calls / NUM_TABLES <= MOST_FRAC
    assert true_calls == NUM_TABLES


def test_shapes_are_refused_with_what_was_seen():
    with pytest.raises(StatsError, match=r"shape \(1, 2\) for 1 names"):
        neighbours([[1, 0]], ["x"])
    with pytest.raises(StatsError, match="no item is scored under every model"):
        neighbours([[1, np.nan], [np.nan, 1]], ["x", "y"])

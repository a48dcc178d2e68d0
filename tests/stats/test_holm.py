"""Adjusted p-values and the interval levels that agree with them."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deadheat.errors import StatsError
from deadheat.stats.holm import benjamini_hochberg, holm, holm_levels

p_lists = st.lists(st.floats(0, 1), max_size=12)


def test_holm_steps_down_and_never_reorders():
    # Sorted .005, .01, .02, .04: 4·.005 = .02, 3·.01 = .03, 2·.02 = .04, 1·.04 = .04.
    assert holm([0.04, 0.02, 0.01, 0.005]) == pytest.approx([0.04, 0.04, 0.03, 0.02])
    # 2·.6 is cut at 1, and .7 is lifted to it.
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == [] and holm([0.03]) == [0.03]


def test_benjamini_hochberg_steps_up():
    # m = 5, sorted .005, .009, .05, .3, .9: 5/1·.005 = .025 lowered to 5/2·.009 = .0225; 5/3·.05 = .0833; .375; .9.
    assert benjamini_hochberg([0.9, 0.005, 0.05, 0.009, 0.3]) == pytest.approx([0.9, 0.0225, 0.25 / 3, 0.0225, 0.375])


def test_levels_stop_at_the_first_that_is_not_called():
    # .001 < .05/4, .01 < .05/3 are called; .03 ≥ .05/2 is not: it and .04 are read at .025, though .04 < .05/1.
    assert holm_levels([0.04, 0.01, 0.03, 0.001], 0.05) == pytest.approx([0.025, 0.05 / 3, 0.025, 0.0125])
    # All called: .05/3, .05/2, .05/1.
    assert holm_levels([0.04, 0.001, 0.002], 0.05) == pytest.approx([0.05, 0.05 / 3, 0.025])


@given(p_lists, st.floats(0.001, 0.5))
@example([0.05 / 3, 0.5, 0.5], 0.05)  # 3·(.05/3) rounds to .05: at equality nothing is called
@example([0.07 / 3] * 3, 0.07)
def test_an_adjusted_p_is_below_alpha_exactly_where_p_is_below_its_level(p_values, alpha):
    levels = holm_levels(p_values, alpha)
    assert [p < alpha for p in holm(p_values)] == [p < level for p, level in zip(p_values, levels, strict=True)]
    # Never stricter than Bonferroni, but for the last bit of a p that lies on it.
    assert all(alpha / len(p_values) * (1 - 1e-12) <= level <= alpha * (1 + 1e-12) for level in levels)


@given(p_lists)
def test_adjusting_keeps_the_order_and_lies_between_p_and_bonferroni(p_values):
    order = np.argsort(p_values, kind="stable")
    for adjusted in (holm(p_values), benjamini_hochberg(p_values)):
        assert (np.diff(np.array(adjusted)[order]) >= 0).all()
        assert all(p * (1 - 1e-12) <= q <= min(1, len(p_values) * p) for p, q in zip(p_values, adjusted, strict=True))


def test_a_number_that_is_no_p_value_is_refused():
    with pytest.raises(StatsError, match="within 0 to 1"):
        holm([0.2, float("nan")])
    with pytest.raises(StatsError, match="alpha is 1"):
        holm_levels([0.2], 1.0)

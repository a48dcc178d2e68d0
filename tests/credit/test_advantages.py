"""Advantages against numbers worked out by hand and by the source oracles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deadheat.credit import (
    Estimator,
    GroupKind,
    advantages,
    denominators,
    group_kind,
    is_tied,
    passes_marker_gate,
    signed_token_mass,
)
from deadheat.credit.accounting import Denominator


def of(rewards, estimator, **constants):
    return advantages([np.array(rewards, dtype=float)], estimator=estimator, **constants)[0]


def test_eight_evenly_spread_rewards_standardise_to_the_published_vector():
    # rewards 0.1·rank/7: mean .05, population SD .032733; (0−.05)/(.032733+1e-4) = −1.52287 (oracle tb.vector)
    got = of([0.1 * rank / 7 for rank in range(8)], Estimator.STANDARDISED)
    assert got == pytest.approx(
        [-1.5228728, -1.0877663, -0.6526598, -0.2175533, 0.2175533, 0.6526598, 1.0877663, 1.5228728]
    )


def test_sample_sd_of_seven_right_one_wrong_gives_the_published_prefix_advantage():
    # SD with ddof 1 of seven ones and a zero is .353553; (0−.875)/(.353553+1e-4) = −2.474170
    got = of([1, 1, 1, 1, 1, 1, 1, 0], Estimator.STANDARDISED, ddof=1)
    assert got[-1] == pytest.approx(-0.875 / (0.35355339 + 1e-4))


def test_leave_one_out_sums_to_zero_with_one_success_of_sixteen():
    # success: 1 − 0 = 1; each failure: 0 − 1/15. Sum 1 − 15/15 = 0 (a public trainer's sums to −2.873)
    got = of([1] + [0] * 15, Estimator.LEAVE_ONE_OUT)
    assert got[0] == pytest.approx(1.0)
    assert got[1] == pytest.approx(-1 / 15)
    assert got.sum() == pytest.approx(0.0, abs=1e-12)


def test_unscored_members_take_no_part_and_learn_nothing():
    # scored 1, 0 → mean .5; the unscored third gets 0, not −.5
    assert of([1, np.nan, 0], Estimator.CENTRED).tolist() == [0.5, 0.0, -0.5]


def test_a_tied_group_is_exactly_zero_even_where_the_mean_rounds():
    assert of([0.1] * 7, Estimator.STANDARDISED).tolist() == [0.0] * 7


def test_batch_relative_gives_tied_groups_signal():
    # batch 1,1,0,0: mean .5, SD .5 → ±.5/(.5+.5) with eps .5
    got = advantages([np.ones(2), np.zeros(2)], estimator=Estimator.BATCH_RELATIVE, eps=0.5)
    assert [g.tolist() for g in got] == [[0.5, 0.5], [-0.5, -0.5]]


@pytest.mark.parametrize(
    ("rewards", "correct", "kind"),
    [
        ([1, 1], [True, True], GroupKind.ALL_RIGHT),
        ([0, 0], [False, False], GroupKind.ALL_WRONG),
        ([0.5, 0.5], [False, True], GroupKind.TIED_OTHER),
        ([0, 1], [False, True], GroupKind.LIVE),
        ([np.nan, np.nan], [None, None], GroupKind.UNSCORED),
        ([np.nan, 1], [None, True], GroupKind.ALL_RIGHT),
    ],
)
def test_a_group_says_what_kind_it_is(rewards, correct, kind):
    assert group_kind(np.array(rewards, dtype=float), correct) is kind


def test_a_batch_with_thirteen_tied_of_sixty_four_takes_51_of_64_of_its_step():
    both = denominators([8] * 64, [True] * 51 + [False] * 13)
    assert both.dilution == 51 / 64
    assert (both.chosen(Denominator.ALL_GROUPS), both.chosen(Denominator.SIGNAL_GROUPS)) == (512, 408)


def test_a_batch_without_signal_divides_by_one_not_zero():
    assert denominators([8], [False]).chosen(Denominator.SIGNAL_GROUPS) == 1


def test_the_marker_gate_counts_characters_before_the_last_marker():
    assert passes_marker_gate("x" * 30 + r"\boxed{1}", marker=r"\boxed", min_chars=30)
    assert not passes_marker_gate("x" * 29 + r"\boxed{1}", marker=r"\boxed", min_chars=30)
    assert not passes_marker_gate("no marker at all, however long the text may be", marker=r"\boxed", min_chars=0)


def test_signed_token_mass_is_negative_when_the_losers_are_longer():
    # (1·10 − 1·30)/2 = −10
    assert signed_token_mass(np.array([1.0, -1.0]), [10, 30]) == -10.0


@given(
    st.lists(st.sampled_from([0.0, 0.25, 1.0, float("nan")]), min_size=1, max_size=16), st.sampled_from(list(Estimator))
)
def test_scored_advantages_sum_to_zero_and_follow_the_order_of_rewards(rewards, estimator):
    rewards_G = np.array(rewards)
    got = of(rewards, estimator)
    assert got.sum() == pytest.approx(0.0, abs=1e-9)
    scored = ~np.isnan(rewards_G)
    assert (got[~scored] == 0).all()
    if not is_tied(rewards_G):
        best, worst = np.nanargmax(rewards_G), np.nanargmin(rewards_G)
        assert got[best] > 0 > got[worst]

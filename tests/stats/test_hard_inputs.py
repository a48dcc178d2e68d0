"""Inputs seen to break other tools, each with what goes wrong there and what is right."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deadheat.errors import StatsError
from deadheat.stats.floors import (
    Zone,
    averaged_floor,
    detection_floor,
    items_needed,
    paired_floor,
    read_margin,
    repeated_items_floor,
    two_standard_errors,
    win_share_floor,
)
from deadheat.stats.groups import pass_at_k
from deadheat.stats.intervals import clopper_pearson, mean_score, mean_sd, wilson, win_share
from deadheat.stats.significance import binomial_two_sided, mcnemar, paired_t, permutation_test


def test_a_dead_heat_is_p_exactly_one() -> None:
    # Doubling a tail that holds the centre gives 1.05; capped, and for equal counts exact.
    assert binomial_two_sided(108, 108).p_value == 1.0


def test_eleven_hundred_discordant_pairs_do_not_overflow() -> None:
    # Binomial coefficients of 1,100 exceed the largest float.
    assert binomial_two_sided(600, 500).p_value == pytest.approx(0.0028195449914, rel=1e-9)


@pytest.mark.parametrize(("wins", "losses", "p"), [(143, 21, 1.66889706784e-23), (200, 36, 9.440890782807e-29)])
def test_overwhelming_votes_are_neither_zero_nor_floored_at_the_rounding_error(
    wins: int, losses: int, p: float
) -> None:
    assert binomial_two_sided(wins, losses).p_value == pytest.approx(p, rel=1e-9)


def test_thirty_to_nothing_is_overwhelming_evidence_and_not_no_information() -> None:
    # Tools that need both discordant cells filled return p = 1. 2·2⁻³⁰ = 1.8626e-9.
    assert binomial_two_sided(30, 0).p_value == pytest.approx(2.0**-29)


def test_no_discordant_pair_is_p_one_and_says_no_information() -> None:
    test = mcnemar([1, 1, 0], [1, 1, 0])
    assert (test.p_value, test.n, test.left_out) == (1.0, 0, 3)
    assert test.note == "no information: no decided vote"


def test_a_p_below_the_smallest_float_stays_positive_and_keeps_its_logarithm() -> None:
    # 2,000–0: 2·2⁻²⁰⁰⁰, log10 = −1999·log10 2 = −601.759.
    test = binomial_two_sided(2000, 0)
    assert 0 < test.p_value < 1e-300
    assert test.log10_p == pytest.approx(-1999 * math.log10(2), rel=1e-12)


def test_a_million_votes_are_exact() -> None:
    # 500,500–499,500: z with continuity correction (999/1000) → .3178; the exact value agrees to 1e-5.
    assert binomial_two_sided(500_500, 499_500).p_value == pytest.approx(0.31780, abs=2e-5)


@given(wins=st.integers(0, 3000), losses=st.integers(0, 3000))
def test_p_lies_in_zero_to_one_and_forgets_the_side(wins: int, losses: int) -> None:
    test = binomial_two_sided(wins, losses)
    assert 0 < test.p_value <= 1
    assert test.p_value == binomial_two_sided(losses, wins).p_value
    assert test.log10_p <= 0


@pytest.mark.parametrize(("n", "right", "se"), [(307, 14, 0.011926), (123, 2, 0.011450)])
def test_few_right_answers_have_a_standard_error(n: int, right: int, se: float) -> None:
    # sqrt(p(1−p)/(n−1)); tools that bootstrap a tiny count print 0.
    assert mean_score([1.0] * right + [0.0] * (n - right)).se == pytest.approx(se, abs=5e-7)


@pytest.mark.parametrize(("n", "bound"), [(307, 0.0123583), (123, 0.0302855), (1324, 0.0028930), (250, 0.0151333)])
def test_all_wrong_gets_a_wilson_bound_and_never_se_zero(n: int, bound: float) -> None:
    # z²/(n + z²) = 3.8415/(n + 3.8415).
    score = mean_score([0.0] * n)
    assert (score.interval.low, score.interval.estimate) == (0.0, 0.0)
    assert score.interval.high == pytest.approx(bound, abs=5e-8)
    assert score.se > 0
    assert mean_score([1.0] * n).interval.low == pytest.approx(1 - bound, abs=5e-8)


def test_wins_and_losses_rank_by_decided_share() -> None:
    # Scoring ties as half a win puts both at .40 against .50; scoring them as zeros puts 40 wins ahead of 33.
    clear, tied = win_share(40, 60), win_share(33, 33, 34)
    assert (clear.estimate, tied.estimate) == (0.4, 0.5)
    assert (tied.n, tied.left_out) == (66, 34)


def test_draws_are_not_zeros() -> None:
    # 10 wins, 0 losses, 90 ties is 10 of 10 decided and not 10 of 100.
    assert win_share(10, 0, 90).estimate == 1.0
    with pytest.raises(StatsError, match="no decided vote among 7 ties"):
        win_share(0, 0, 7)


def test_pass_at_ten_from_one_sample_is_refused() -> None:
    with pytest.raises(StatsError, match="wanted at least 10 samples per problem"):
        pass_at_k([1, 0, 1], [1, 1, 1], 10)


def test_missing_cluster_ids_are_never_merged() -> None:
    # Three records without an id are three items; merged they would be one.
    assert mean_score([1.0, 0.0, 1.0, 0.0], item_ids=[None, None, None, "a"]).interval.n == 4


def test_three_epochs_of_five_hundred_items_are_not_fifteen_hundred_items() -> None:
    scores = [1.0] * 200 + [0.0] * 300
    epochs = mean_score(scores * 3, item_ids=[*range(500)] * 3)
    assert (epochs.interval.n, epochs.num_records) == (500, 1500)
    assert epochs.se == pytest.approx(mean_score(scores).se)


def test_a_score_missing_in_one_epoch_is_averaged_over_the_others() -> None:
    # Item a: 1 in the one epoch that has it; item b: 0. Mean ½ of two items.
    found = mean_score([1.0, np.nan, 0.0], item_ids=["a", "a", "b"]).interval
    assert (found.estimate, found.n) == (0.5, 2)


def test_graded_scores_use_student_and_equal_ones_say_so() -> None:
    # .2, .4, .6: mean .4, SE .2/sqrt(3) = .11547, t(.975, 2) = 4.30265.
    graded = mean_score([0.2, 0.4, 0.6]).interval
    assert graded.high - graded.estimate == pytest.approx(4.30265 * 0.2 / math.sqrt(3), rel=1e-5)
    flat = mean_score([0.3, 0.3]).interval
    assert (flat.low, flat.high, flat.note) == (-math.inf, math.inf, "no interval: all scores are equal")


@given(n=st.integers(1, 2000), data=st.data())
def test_a_share_lies_inside_both_of_its_intervals_and_the_exact_one_is_wider(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n))
    narrow, exact = wilson(k, n), clopper_pearson(k, n)
    for interval in (narrow, exact):
        assert 0 <= interval.low <= k / n <= interval.high <= 1
        mirrored = (wilson if interval is narrow else clopper_pearson)(n - k, n)
        assert (mirrored.low, mirrored.high) == pytest.approx((1 - interval.high, 1 - interval.low), abs=1e-9)


def test_averaging_over_attempts_does_not_divide_the_item_variance() -> None:
    # GVPO's row: p = .1479 at 30 items, avg@32. Everything over k: 25.7/sqrt(32) = 4.5 points.
    plain = averaged_floor(30, 0.1479, 32)
    assert plain.floor_pp == pytest.approx(25.68, abs=0.01)
    assert plain.note == "upper bound for avg@32: item variance not given"
    # With v = .10: .10 + (.12603 − .10)/32 = .100813; z·sqrt(2·.100813/30) = 22.97 points.
    assert averaged_floor(30, 0.1479, 32, 0.10).floor_pp == pytest.approx(22.97, abs=0.01)
    assert averaged_floor(30, 0.1479, 1, 0.10).floor_pp == pytest.approx(plain.floor_pp)
    with pytest.raises(StatsError, match="cannot exceed that of single attempts"):
        averaged_floor(30, 0.1479, 32, 0.2)


def test_six_hundred_records_of_two_hundred_questions_have_three_readings() -> None:
    # Margin 15.73 from 73.17: ratio 2.19 as claimed, 1.27 at 200, N_eff 402 and 1.80 at icc .246.
    floors = repeated_items_floor(600, 200, 0.246, 0.7317)
    ratios = [read_margin(0.1573, floor).ratio for floor in (floors.as_claimed, floors.distinct_only, floors.effective)]
    assert ratios == pytest.approx([2.195, 1.267, 1.797], abs=0.001)
    assert floors.n_effective == pytest.approx(402.1, abs=0.1)


def test_two_standard_errors_are_not_the_floor() -> None:
    assert 100 * two_standard_errors(500, 0.5) == pytest.approx(6.32, abs=0.005)
    assert detection_floor(500, 0.5).floor_pp == pytest.approx(8.86, abs=0.005)


def test_zones_meet_at_the_significance_bar_and_at_the_floor() -> None:
    floor = detection_floor(30, 0.4)
    assert floor.significance_bar_frac / floor.floor_frac == pytest.approx(1.959964 / 2.801585, rel=1e-6)
    inside = {0.60: Zone.BELOW, 0.75: Zone.SIGNIFICANT_NOT_REPEATABLE, 1.0: Zone.CLEAR, -1.2: Zone.CLEAR}
    assert {share: read_margin(share * floor.floor_frac, floor).zone for share in inside} == inside


def test_two_sides_of_different_sizes_are_unpooled() -> None:
    # sqrt(.24/30 + .25/500) = .092195; ·2.801585 = 25.83 points.
    assert detection_floor(30, 0.4, n_b=500, p_b=0.5).floor_pp == pytest.approx(25.83, abs=0.005)


def test_an_accuracy_of_one_has_a_floor_above_zero() -> None:
    # Wilson upper bound of 0 of 30: 3.8415/33.8415 = .11351; z·sqrt(2·.11351·.88649/30) = 22.95 points.
    floor = detection_floor(30, 1.0)
    assert floor.floor_pp == pytest.approx(22.95, abs=0.01)
    assert "Wilson" in floor.note
    assert win_share_floor(12, 0).floor.floor_frac > 0


def test_the_margin_of_two_questions_needs_840_of_them() -> None:
    assert items_needed(0.067, 0.4) == 840
    assert detection_floor(840, 0.4).floor_frac <= 0.067 < detection_floor(839, 0.4).floor_frac


def test_percentages_for_shares_are_refused_with_the_form_wanted() -> None:
    with pytest.raises(StatsError, match=r"0\.40, not 40"):
        detection_floor(30, 40)
    with pytest.raises(StatsError, match="no information"):
        read_margin(0.1, paired_floor(100, 0.0))


def test_paired_t_of_equal_differences_is_not_nan() -> None:
    same = paired_t([1.0, 2.0], [0.0, 1.0])
    assert math.isinf(same.statistic) and 0 < same.p_value < 1e-300
    assert paired_t([1.0, 2.0], [1.0, 2.0]).note == "no information: no item differs"


def test_missing_on_either_side_is_left_out_of_paired_tests() -> None:
    assert paired_t([1.0, np.nan, 3.0, 5.0], [0.0, 1.0, np.nan, 1.0]).left_out == 2
    assert mcnemar([1, np.nan, 1], [0, 1, 1]).n == 1


def test_the_permutation_p_counts_the_observed_order_and_is_keyed() -> None:
    # Five equal differences: 2 of 32 sign patterns reach the sum, p → 1/16.
    a, b = [1.0] * 5, [0.0] * 5
    found = permutation_test(a, b, key=3, resamples=20_000)
    assert found.p_value == pytest.approx(1 / 16, abs=0.006)  # SE .0017
    assert found == permutation_test(a, b, key=3, resamples=20_000)
    assert found.p_value != permutation_test(a, b, key=4, resamples=20_000).p_value
    assert permutation_test([1.0] * 60, [0.0] * 60, key=1, resamples=100).p_value == pytest.approx(1 / 101)
    assert permutation_test(a, a, key=1).note == "no information: no item differs"


def test_mean_and_sd_use_the_sample_form() -> None:
    # 1, 2, 3: SD 1 with n − 1, .8165 with n.
    assert mean_sd([1.0, 2.0, 3.0]).sd == 1.0
    assert math.isnan(mean_sd([1.0]).sd)

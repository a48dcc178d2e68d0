"""The gate: shut rates, composition, T, labels, expected rates and shifts, on groups counted by hand."""

import math

import polars as pl
import pytest

from deadheat.audit import AuditOptions, as_json, gate
from deadheat.audit.expected import exact_gate, fit_beta
from deadheat.audit.gate import Label

LIVE, RIGHT, WRONG = [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]


def test_shut_rate_composition_and_T_are_those_of_the_groups(groups):
    # 10 groups: 5 live, 2 all right, 3 all wrong. Shut 5/10; T = 1/(1 − .5) = 2; SE = sqrt(.25/10)/.25 = .6325.
    found = gate(groups(*[LIVE] * 5, *[RIGHT] * 2, *[WRONG] * 3), AuditOptions())
    assert (found.shut_rate.estimate, found.shut_rate.n) == (0.5, 10)
    assert (found.all_right.estimate, found.all_wrong.estimate, found.tied_other.estimate) == (0.2, 0.3, 0.0)
    assert found.multiplier.value == 2.0
    assert found.multiplier.se == pytest.approx(math.sqrt(0.25 / 10) / 0.25)


def test_json_of_a_share_is_value_low_high_n_and_how(groups):
    share = as_json(gate(groups(LIVE, RIGHT), AuditOptions()))["shut_rate"]
    assert set(share) == {"value", "low", "high", "n", "method"}
    assert (share["value"], share["n"], share["method"]) == (0.5, 2, "Wilson")


def test_T_is_without_end_where_every_group_agrees(groups):
    found = gate(groups(RIGHT, WRONG), AuditOptions())
    assert found.multiplier.value is None
    assert "without end" in found.sentence


def test_unscored_rollouts_are_left_out_and_a_group_without_a_score_is_no_tie(groups):
    # g0: one scored member, a tie. g1: nothing scored, left out. g2: live. Shut = 1/2.
    found = gate(groups([1.0, None], [None, None], LIVE), AuditOptions())
    assert (found.shut_rate.estimate, found.shut_rate.n, found.shut_rate.left_out) == (0.5, 2, 1)


def test_nan_rewards_are_unscored(groups):
    rows = groups([1.0, math.nan, 1.0]).with_columns(correct=pl.lit(None, pl.Boolean))
    assert gate(rows, AuditOptions()).shut_rate.estimate == 1.0


def test_a_single_draw_is_counted_and_is_no_group(groups):
    found = gate(groups([1.0], [0.0], LIVE), AuditOptions())
    assert found.shut_rate.n == 1
    assert found.readings[0].num_single == 2


def test_ties_at_another_value_are_neither_right_nor_wrong(groups):
    rows = groups([0.5, 0.5], [0.5, 0.5]).with_columns(correct=pl.lit(None, pl.Boolean))
    found = gate(rows, AuditOptions())
    assert (found.tied_other.estimate, found.all_right.estimate) == (1.0, 0.0)


def test_rewards_that_tie_over_different_grades_are_tied_otherwise(groups):
    # A gated or planted reward may be equal where the grades are not.
    rows = groups([0.0, 0.0]).with_columns(correct=pl.Series([True, False]))
    found = {r.column: r for r in gate(rows, AuditOptions()).readings}
    assert found["reward"].tied_other.estimate == 1.0
    assert found["correct"].shut_rate.estimate == 0.0


def test_continuous_rewards_are_read_exactly_and_within_the_noise_floor(groups):
    # Ranges 0, .03 and .2: one exact tie, two within a floor of .05.
    found = gate(groups([0.3, 0.3], [0.30, 0.33], [0.1, 0.3]), AuditOptions(noise_floor=0.05))
    assert found.shut_rate.estimate == pytest.approx(1 / 3)
    assert next(r for r in found.readings if r.column == "reward").in_floor.estimate == pytest.approx(2 / 3)


def test_readings_are_labelled_by_what_the_rollouts_were_to_training(groups):
    rows = pl.concat([groups(LIVE, purpose="train"), groups(WRONG, WRONG, purpose="sample")])
    found = gate(rows.with_columns(group_id=pl.col("group_id") + pl.col("purpose")), AuditOptions())
    labels = {(r.column, r.label): r.shut_rate.estimate for r in found.readings}
    assert labels[("reward", Label.LIVE)] == 0.0
    assert labels[("correct", Label.RECOMPUTED)] == 0.0
    assert labels[("reward", Label.UNTRAINED)] == 1.0
    assert (found.label, found.shut_rate.n) == (Label.LIVE, 1)  # the headline is never the two pooled


def test_top_ups_and_evaluations_are_no_sample_of_the_gate(groups):
    rows = pl.concat(
        [groups(LIVE, purpose="sample"), groups(WRONG, WRONG, purpose="top-up"), groups(RIGHT, purpose="eval")]
    )
    found = gate(rows.with_columns(group_id=pl.col("group_id") + pl.col("purpose")), AuditOptions())
    own = {r.label: (r.shut_rate.estimate, r.shut_rate.n) for r in found.readings if r.column == "reward"}
    assert own == {Label.UNTRAINED: (0.0, 1), Label.TOP_UP: (1.0, 2), Label.HELD_OUT: (1.0, 1)}
    assert found.label is Label.UNTRAINED  # the headline is the sample, though there are more top-ups


def test_every_score_column_is_read_by_its_name(groups):
    rows = groups(LIVE, RIGHT).with_columns(pl.Series("part:style", [0.1, 0.1, 0.2, 0.9]))
    found = {r.column: r.shut_rate.estimate for r in gate(rows, AuditOptions()).readings}
    assert found == {"reward": 0.5, "correct": 0.5, "part:style": 0.5}


def test_temperatures_and_tasks_get_cells_of_their_own(groups):
    rows = groups(LIVE, RIGHT, RIGHT, temperature=[0.6, 0.6, 1.0])
    cells = {cell.where["temperature"]: cell.shut_rate.estimate for cell in gate(rows, AuditOptions()).cells}
    assert cells == {"0.6": 0.5, "1": 1.0}


def test_the_expected_rate_is_the_exact_one_where_there_are_more_draws(groups):
    # k = 2 of 4, G = 2: C(2,2) + C(2,2) over C(4,2) = 2/6; plug-in .5² + .5² = 1/2.
    found = gate(groups(*[[1.0, 1.0, 0.0, 0.0]] * 3), AuditOptions(group_sizes=(2,))).expected[0]
    assert found.method == "exact resampling"
    assert (found.rate, found.plug_in) == (pytest.approx(1 / 3), pytest.approx(0.5))


def test_the_expected_rate_at_the_drawn_size_is_a_labelled_fit(groups):
    found = gate(groups(LIVE, RIGHT, WRONG), AuditOptions(group_sizes=(2,))).expected[0]
    assert found.method.startswith("beta-binomial fit")
    assert found.interval is None


def test_arms_that_chose_their_groups_by_outcome_are_left_out_of_what_is_expected(groups):
    rows = groups(
        LIVE, RIGHT, LIVE, WRONG, arm=["flat", "flat", "dynamic", "dynamic"], purpose=["train"] * 3 + ["not-kept"]
    )
    found = gate(rows, AuditOptions(group_sizes=(2,)))
    flat = gate(rows.filter(pl.col("arm") == "flat"), AuditOptions(group_sizes=(2,)))
    assert (found.chosen_arms, flat.chosen_arms) == (("dynamic",), ())
    assert found.expected == flat.expected
    assert found.expected[0].n == 2


def test_branched_groups_have_no_expected_rate(groups):
    rows = groups([1.0, 1.0, 0.0, 0.0]).with_columns(branch=pl.lit("0"))
    assert gate(rows, AuditOptions(group_sizes=(2,))).expected == ()


def test_exact_gate_sums_to_one_over_the_three_outcomes_by_counting_all_draws():
    from itertools import combinations

    draws = [1, 1, 1, 0, 0]
    all_draws = list(combinations(draws, 3))
    tied = sum(len(set(draw)) == 1 for draw in all_draws) / len(all_draws)  # only 1,1,1: 1 of 10
    assert tied == 0.1
    import numpy as np

    assert exact_gate(np.array([3.0]), np.array([5.0]), 3)[0] == pytest.approx(tied)


def test_the_beta_fit_finds_a_uniform_distribution():
    import numpy as np

    # Beta(1, 1): every k of 0 … 4 is equally likely.
    a, b = fit_beta(np.arange(5.0), np.full(5, 4.0), np.full(5, 1000))
    assert (a, b) == (pytest.approx(1.0, abs=1e-3), pytest.approx(1.0, abs=1e-3))


def test_the_change_of_T_is_split_exactly_by_kind_of_tie(groups):
    # Step 1: 4 live. Step 2: 2 live, 2 all right. T 1 → 2; q 0 → .5, all of it all-right: part = 1·2·.5 = 1.
    rows = groups(*[LIVE] * 6, *[RIGHT] * 2, step=[1, 1, 1, 1, 2, 2, 2, 2])
    (shift,) = gate(rows, AuditOptions()).shifts
    assert (shift.multiplier_first, shift.multiplier_last) == (1.0, 2.0)
    assert (shift.all_right_part, shift.all_wrong_part, shift.explains) == (1.0, 0.0, "all_right")
    assert shift.all_right_masses == (0.0, 0.5)


def test_the_parts_of_a_shift_add_up_to_it(archive):
    for seed in range(5):
        for shift in gate(archive(seed, num_groups=60).lazy(), AuditOptions()).shifts:
            parts = shift.all_right_part + shift.all_wrong_part + shift.tied_other_part
            assert parts == pytest.approx(shift.multiplier_last - shift.multiplier_first)


def test_the_curve_counts_the_groups_of_every_step(groups):
    curve = gate(groups(LIVE, RIGHT, WRONG, step=[1, 1, 2]), AuditOptions()).curve
    assert [(p.step, p.live, p.all_right, p.all_wrong) for p in curve] == [(1, 1, 1, 0), (2, 0, 0, 1)]


def test_group_summaries_stand_in_for_rollouts():
    # Of 8: 0, 8 and 3 right: one all wrong, one all right, one live; a mean of .3 is no multiple of 1/8: unscored.
    rows = pl.LazyFrame({"group_id": list("abcd"), "mean_reward": [0.0, 1.0, 0.375, 0.3], "group_size": [8] * 4})
    found = gate(rows, AuditOptions())
    assert (found.shut_rate.estimate, found.shut_rate.n, found.shut_rate.left_out) == (pytest.approx(2 / 3), 3, 1)
    assert (found.all_right.estimate, found.all_wrong.estimate) == (pytest.approx(1 / 3), pytest.approx(1 / 3))


def test_rollouts_that_were_read_twice_are_reported(groups):
    rows = groups([1.0, 0.0, 1.0])
    assert gate(rows, AuditOptions()).num_repeated == 0
    # Three samples 0, 1, 2 read twice: six rows where the numbers span three.
    assert gate(pl.concat([rows, rows]), AuditOptions()).num_repeated == 3
    assert "read twice" in gate(pl.concat([rows, rows]), AuditOptions()).sentence


def test_an_empty_table_is_an_answer_and_no_crash(groups):
    assert (
        gate(groups(LIVE).filter(pl.lit(False)), AuditOptions()).sentence == "no group of two or more scored rollouts"
    )


def test_rewards_of_0_and_1_are_grades_where_nothing_else_is(groups):
    rows = groups([1.0, 1.0, 0.0, 0.0], [0.0] * 4, [0.5] * 4).drop("correct")
    found = gate(rows, AuditOptions(group_sizes=(2,)))
    assert (found.all_wrong.estimate, found.tied_other.estimate) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    # Two graded groups: 2 of 4 ties 1/3 of the time at G = 2, 0 of 4 always.
    assert (found.expected[0].n, found.expected[0].rate) == (2, pytest.approx(2 / 3))

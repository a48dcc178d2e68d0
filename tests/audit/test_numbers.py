"""Dilution, stuck, drift, re-score, lengths, opening, siblings, accounting, cold odds: numbers worked by hand."""

import json
import math

import numpy as np
import polars as pl
import pytest

from deadheat.audit import (
    AuditOptions,
    LossDivisor,
    Missing,
    accounting,
    cold,
    cold_odds,
    dilution,
    drift,
    lengths,
    opening,
    rescored,
    siblings,
    stuck,
)
from deadheat.audit.dilution import with_divisor
from deadheat.audit.drift import DriftWord
from deadheat.audit.siblings import equations
from deadheat.errors import StatsError

LIVE, TIED = [1.0, 0.0], [0.0, 0.0]


# Dilution


def test_64_groups_of_which_13_tie_take_51_of_64_of_the_step(groups):
    found = dilution(groups(*[LIVE] * 51, *[TIED] * 13, step=1), AuditOptions())
    assert (found.mean, found.pooled.estimate, found.pooled.n) == (51 / 64, 51 / 64, 64)
    assert found.batches[0].dilution == 51 / 64


def test_a_batch_without_a_live_group_is_a_dead_step(groups):
    found = dilution(groups(LIVE, LIVE, TIED, step=[1, 2, 3]), AuditOptions())
    assert (found.num_dead, found.num_batches, found.smallest) == (1, 3, 0.0)


def test_only_training_batches_are_diluted(groups):
    found = dilution(groups(LIVE, TIED, step=[1, 1], purpose=["train", "eval"]), AuditOptions())
    assert found.pooled.n == 1


def test_tokens_of_live_groups_are_a_share_of_all_tokens(groups):
    rows = groups(LIVE, TIED, step=1).with_columns(length=pl.Series([10, 20, 30, 40]))
    assert dilution(rows, AuditOptions()).token_frac == 0.3


def test_a_loss_is_spoken_of_only_where_its_divisor_is_stated(groups):
    rows = groups(*[LIVE] * 51, *[TIED] * 13, step=1).with_columns(length=pl.lit(2))
    silent = dilution(rows, AuditOptions()).sentence
    assert "justif" not in silent and "state --loss-divisor" in silent
    said = {divisor: dilution(rows, AuditOptions(loss_divisor=divisor)).sentence for divisor in LossDivisor}
    whole = "took 79.7% of what live groups justify: the loss is divided by all {} (--loss-divisor)"
    assert said[LossDivisor.ALL_GROUPS].startswith("the average step " + whole.format("groups"))
    assert said[LossDivisor.ALL_TOKENS].startswith("all steps together " + whole.format("tokens"))
    assert said[LossDivisor.LIVE].startswith("no step was diluted: the loss is divided by live groups (--loss-divisor)")


@pytest.mark.parametrize(
    ("arms", "divisor"),
    [
        ([("all_groups", "sequence_sum", None)] * 2, LossDivisor.ALL_GROUPS),
        ([("all_groups", "token_mean", None)], LossDivisor.ALL_TOKENS),
        ([("signal_groups", "sequence_sum", None)], LossDivisor.LIVE),
        ([("all_groups", "sequence_sum", None), ("signal_groups", "sequence_sum", None)], None),  # arms differ
        ([("all_groups", "sequence_sum", "task")], None),  # every part of a batch has its own
    ],
)
def test_a_run_folders_config_states_the_divisor(groups, tmp_path, arms, divisor):
    named = {
        f"arm{i}": {"credit": {"denominator": which, "normalise_by": by}, "update": {"loss": loss}}
        for i, (which, loss, by) in enumerate(arms)
    }
    (tmp_path / "resolved.json").write_text(json.dumps({"arms": named}), encoding="utf-8")
    found = dilution(groups(LIVE, TIED, step=1), AuditOptions())
    assert with_divisor(found, tmp_path).divisor is divisor
    asked = dilution(groups(LIVE, TIED, step=1), AuditOptions(loss_divisor=LossDivisor.ALL_TOKENS))
    assert with_divisor(asked, tmp_path).divisor_from == "--loss-divisor"


# Stuck


def test_stuck_is_of_problems_whose_first_draws_were_all_wrong(groups):
    # First 2 draws: p0 all wrong and stuck; p1 all wrong, one of its 3 fresh draws right; p2 right at once.
    rows = groups([0.0] * 5, [0.0, 0.0, 0.0, 1.0, 0.0], [1.0] + [0.0] * 4)
    found = stuck(rows, AuditOptions(first_draws=2))
    assert (found.stuck.estimate, found.stuck.n) == (0.5, 2)
    assert (found.fresh_right.estimate, found.fresh_right.n) == (pytest.approx(1 / 6), 6)
    assert found.all_wrong.estimate == pytest.approx(2 / 3)
    assert found.readings[0].rules_out == pytest.approx(1 - 0.05**0.2)  # five draws


def test_top_ups_tell_themselves(groups):
    first, more = groups([0.0, 0.0], LIVE, purpose="sample"), groups([0.0] * 3, purpose="top-up")
    found = stuck(pl.concat([first, more.with_columns(pl.col("sample") + 2)]), AuditOptions())
    assert (found.stuck.estimate, found.readings[0].first, found.readings[0].fresh) == (1.0, 2, 3)


def test_without_fresh_draws_the_audit_asks_for_them(groups):
    found = stuck(groups([0.0, 0.0]), AuditOptions())
    assert isinstance(found, Missing) and "`--first-draws`" in found.sentence


# Drift


def _evaluated(scores: list[list[float]], right: list[list[bool]], arm: str = "rm") -> pl.LazyFrame:
    rows = [
        {
            "arm": arm,
            "seed": 1,
            "purpose": "eval",
            "step": 10 * s,
            "problem_id": f"p{p}",
            "group_id": f"{s}/{p}",
            "sample": 0,
        }
        | {"part:rm": scores[s][p], "correct": right[s][p], "reward": float(right[s][p])}
        for s in range(len(scores))
        for p in range(len(scores[s]))
    ]
    return pl.LazyFrame(rows)


def test_a_score_that_climbs_where_nothing_improves_raises_the_alarm():
    # Every score up by .3 to .5 on four problems, floor .1: drift 4 floors; grades as they were.
    rows = _evaluated([[0.1, 0.2, 0.3, 0.4], [0.4, 0.6, 0.7, 0.9]], [[False, False, True, True]] * 2)
    found = drift(rows, AuditOptions(noise_floor=0.1, scorer="part:rm"))
    by_stratum = {r.stratum: r for r in found.readings}
    assert by_stratum["all"].drift.estimate == pytest.approx(4.0)
    assert by_stratum["wrong at both ends"].drift.estimate == pytest.approx(3.5)
    assert by_stratum["right at both ends"].drift.estimate == pytest.approx(4.5)
    # Student's t: sd of 3, 4, 4, 5 is .8165, t(.975, 3) = 3.182: 4 ± 1.299.
    assert by_stratum["all"].drift.low == pytest.approx(4 - 3.182446 * 0.8164966 / 2, abs=1e-5)
    assert by_stratum["all"].alarm


def test_a_score_that_climbs_while_answers_improve_is_no_alarm():
    before, after = [False] * 8, [True] * 8
    rows = _evaluated([[0.1] * 8, [0.5, 0.6] * 4], [before, after])
    assert not any(r.alarm for r in drift(rows, AuditOptions(noise_floor=0.1, scorer="part:rm")).readings)


def test_without_grades_a_drift_cannot_be_told_from_progress():
    scores = [[0.1, 0.2, 0.3, 0.4], [0.4, 0.6, 0.7, 0.9]]
    rows = _evaluated(scores, [[True] * 4] * 2)
    for ungraded in (rows.drop("correct"), rows.with_columns(correct=pl.lit(None, pl.Boolean))):
        found = drift(ungraded.drop("reward"), AuditOptions(noise_floor=0.1, scorer="part:rm"))
        assert {r.word for r in found.readings} == {DriftWord.CANNOT_SAY}
        assert found.sentence.endswith("n = 4: cannot say, no grades")
    steady = _evaluated([scores[0]] * 2, [[True] * 4] * 2).drop("correct")
    found = drift(steady, AuditOptions(noise_floor=0.1, scorer="part:rm"))
    assert found.sentence.endswith("+0.00 floors no interval: all changes equal, n = 4: cannot say, no grades")


def test_a_gain_of_grades_that_did_not_move_has_a_width():
    # 4 problems, no change: with +1 and −1, √(2/5)·(6/4)/√6 = .3873; t(.975, 5) = 2.5706: 0 ± .9956.
    rows = _evaluated([[0.1, 0.2, 0.3, 0.4], [0.4, 0.6, 0.7, 0.9]], [[False, False, True, True]] * 2)
    found = {r.stratum: r for r in drift(rows, AuditOptions(noise_floor=0.1, scorer="part:rm")).readings}
    assert found["all"].gain.high == pytest.approx(2.570582 * math.sqrt(0.4) * 1.5 / math.sqrt(6), abs=1e-5)


def test_a_control_arm_is_read_the_same_way():
    grades = [[False, False, True, True]] * 2
    rm = _evaluated([[0.1, 0.2, 0.3, 0.4], [0.4, 0.6, 0.7, 0.9]], grades)
    control = _evaluated([[0.1, 0.2, 0.3, 0.4], [0.12, 0.19, 0.3, 0.41]], grades, arm="checker")
    found = drift(pl.concat([rm, control]), AuditOptions(noise_floor=0.1, scorer="part:rm", control_arm="checker"))
    assert {r.arm: r.alarm for r in found.readings if r.stratum == "all"} == {"rm": True, "checker": False}
    assert "checker (control)" in found.sentence


# Re-score


def test_another_score_breaks_ties_and_its_resolution_says_which_way(groups):
    # g0 mixed: right at .9 and .2, wrong at .5: 1 of 2 pairs. g1, g2 tied by grade; g1 still tied by score.
    rows = groups([1.0, 1.0, 0.0], [0.0, 0.0], [1.0, 1.0]).with_columns(
        pl.Series("part:rm", [0.9, 0.2, 0.5, 0.3, 0.3, 0.6, 0.7])
    )
    (found,) = rescored(rows, AuditOptions(usd_per_rollout=0.01)).readings
    assert (found.ties_before.estimate, found.ties_after.estimate) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert (found.resolution, found.num_pairs, found.broken.estimate) == (0.5, 2, 0.5)
    # All right (.9, .2, .6, .7) against all wrong (.5, .3, .3): 3 + 0 + 3 + 3 of 12 pairs.
    assert found.auroc == pytest.approx(9 / 12)
    assert (found.usd, found.usd_per_broken_tie) == (pytest.approx(0.07), pytest.approx(0.07))


def test_with_one_score_there_is_nothing_to_compare(groups):
    assert isinstance(rescored(groups(LIVE), AuditOptions()), Missing)


# Lengths


def test_lengths_by_outcome_and_stop_reason(groups):
    rows = groups([1.0, 0.0, 0.0]).with_columns(length=pl.Series([10, 20, 40]), stop=pl.Series(["stop", "stop", "cap"]))
    found = {(r.outcome, r.stop): r for r in lengths(rows, AuditOptions()).readings}
    assert found["wrong", "any"].mean_tokens.estimate == 30.0
    assert found["wrong", "any"].mean_tokens.note == "no interval: 1 problems, and it wants 6 or more"
    assert (found["wrong", "cap"].median, found["right", "any"].num_rollouts) == (40, 1)


def test_the_interval_of_a_mean_length_draws_problems_together(groups):
    # Six problems of two rollouts each, means 10, 20, …, 60. Without problem c the mean moves by (35 − m)/5:
    # v = 5/6·Σ ((m − 35)/5)² = 5/6·1750/25 = 58.33; t(.975, 5) = 2.5706: 35 ± 19.63. By rollouts it would be ± 9.86.
    rows = groups(*[[1.0, 1.0]] * 6).with_columns(
        length=pl.Series([x for m in range(10, 61, 10) for x in (m - 1, m + 1)])
    )
    (found,) = lengths(rows, AuditOptions()).readings
    half = 2.570582 * math.sqrt(5 / 6 * 1750 / 25)
    assert (found.mean_tokens.low, found.mean_tokens.high) == (pytest.approx(35 - half), pytest.approx(35 + half))
    without = lengths(rows.drop("problem_id"), AuditOptions()).readings[0]  # groups stand in
    assert without.mean_tokens.high == pytest.approx(35 + half)
    assert without.mean_tokens.method == "mean of rollouts, jackknife over 6 groups"


def test_rollouts_without_a_group_keep_the_normal_interval():
    rows = pl.LazyFrame({"length": [20, 40]})
    # sd of 20 and 40 with n − 1 is 14.142; 1.96·14.142/√2 = 19.6.
    assert lengths(rows, AuditOptions()).readings[0].mean_tokens.high == pytest.approx(30 + 19.59964, abs=1e-4)


def test_lengths_that_are_all_equal_have_no_interval(groups):
    rows = groups(*[[0.0, 0.0]] * 8).with_columns(length=pl.lit(6))
    found = lengths(rows, AuditOptions())
    assert "wrong 6.0 no interval: all values are equal, n = 16" in found.sentence


def test_an_accuracy_change_carries_its_interval_with_problems_paired(groups):
    # 8 problems at both steps, 2 of 4 right at first and 3 of 4 at last, all parsed. No problem moves otherwise:
    # ρ = 0 and the change is never surer than t(.975, 7)·√(1/8² + 1/8²) = .418.
    rewards = [[1.0, 1.0, 0.0, 0.0]] * 8 + [[1.0, 1.0, 1.0, 0.0]] * 8
    rows = groups(*rewards, step=[1] * 8 + [2] * 8).with_columns(
        problem_id=pl.format("p{}", pl.col("group_id").str.slice(1).cast(pl.Int64) % 8),
        length=pl.lit(5),
        parsed=pl.lit(True),
    )
    (shift,) = lengths(rows, AuditOptions()).shifts
    assert (shift.change.estimate, shift.change.method) == (0.25, "share change, 8 problems in both parts")
    assert (shift.change.low, shift.change.high) == pytest.approx((0.25 - 0.41804, 0.25 + 0.41804), abs=1e-4)


def test_an_accuracy_change_is_split_between_the_channels_rate_and_the_accuracy_inside(groups):
    # Step 1: 2 of 4 parsed, both right. Step 2: 4 of 4 parsed, 3 right. +.25 = +.5 by rate − .25 inside, rate first.
    rows = groups([1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0], step=[1, 2]).with_columns(
        length=pl.lit(5), parsed=pl.Series([True, True, False, False] + [True] * 4)
    )
    (shift,) = lengths(rows, AuditOptions()).shifts
    assert shift.split.total == 0.25
    assert (shift.split.rate_first.rate, shift.split.rate_first.accuracy) == (0.5, -0.25)


def test_quantiles_are_those_of_the_histogram(groups):
    rows = groups([0.0] * 100).with_columns(length=pl.Series(range(1, 101)))
    (found,) = lengths(rows, AuditOptions()).readings
    assert (found.p10, found.median, found.p90, found.p99, found.longest) == (10, 50, 90, 99, 100)


# Opening


def test_openings_tell_short_answers_first_tokens_and_reasoning_before_the_marker(groups):
    rows = groups([1.0, 1.0, 0.0, 1.0]).with_columns(
        length=pl.Series([5, 40, 29, 30]),
        completion=pl.Series(["\\boxed{1}", "x" * 30 + "\\boxed{1}", "no", "x" * 29 + "\\boxed{1}"]),
        token_ids=pl.Series([[7], [7], [7], [8]]),
    )
    found = opening(rows, AuditOptions())
    whole = found.readings[0]
    assert whole.short.estimate == 0.5  # 5 and 29 are under 30, 30 is not
    assert (whole.short_right.estimate, whole.long_right.estimate) == (0.5, 1.0)
    assert (whole.reasoned.estimate, whole.reasoned.n) == (pytest.approx(1 / 3), 3)
    assert [(f.token, f.responses.estimate) for f in found.first] == [("7", 0.75), ("8", 0.25)]


def test_the_last_marker_counts_as_str_rfind_does(groups):
    texts = ["\\boxed{1} " + "x" * 40 + "\\boxed{2}", "ü" * 30 + "\\boxed{1}"]
    rows = groups([1.0, 1.0]).with_columns(completion=pl.Series(texts), length=pl.lit(50))
    assert all(text.rfind("\\boxed") >= 30 for text in texts)
    assert opening(rows, AuditOptions()).readings[0].reasoned.estimate == 1.0


# Siblings


def test_failed_rollouts_are_compared_with_their_closest_passing_sibling(groups):
    rows = groups([1.0, 1.0, 0.0, 0.0], [0.0, 0.0]).with_columns(
        token_ids=pl.Series([[1, 2, 3], [1, 9], [1, 2, 8], [5], [1], [1]])
    )
    found = siblings(rows, AuditOptions())
    # [1,2,8] shares 2 with [1,2,3] and 1 with [1,9]; [5] shares none. The tied group is not looked at.
    assert (found.num_failed, found.num_groups, found.longest_prefix) == (2, 1, 2)
    assert found.prefix.estimate == 1.0


def test_shared_equations_are_a_share_of_the_failed(groups):
    rows = groups([1.0, 0.0, 0.0]).with_columns(
        completion=pl.Series(["so 3 + 4 = 7.", "now 3+4=7, then 7*3=21", "5 * 2 = 10"])
    )
    assert siblings(rows, AuditOptions()).shared_equation.estimate == 0.5


def test_an_equation_after_the_head_does_not_count(groups):
    rows = groups([1.0, 0.0]).with_columns(
        completion=pl.Series(["3+4=7", "word " * 100 + "3+4=7"]), length=pl.Series([1, 101])
    )
    assert siblings(rows, AuditOptions(head_tokens=10)).shared_equation.estimate == 0.0
    assert siblings(rows, AuditOptions(head_tokens=160)).shared_equation.estimate == 1.0


def test_branched_siblings_are_left_out(groups):
    rows = groups([1.0, 0.0]).with_columns(token_ids=pl.Series([[1], [2]]), pair=pl.lit("0"))
    assert siblings(rows, AuditOptions()).num_branched == 1


def test_equations_are_a_surface_pattern():
    assert equations("1,000 / 4 = 250 and x = 5") == {"1,000/4=250"}


# Accounting


def test_a_shared_prefix_is_executed_once_and_stands_twice_in_the_unshared_equivalent(groups):
    # Prompt 10. Pair a: prefix 4, lengths 6 and 9. A lone rollout of 5. Executed: 10 + 4 + 2 + 5 + 5 = 26.
    rows = groups([1.0, 0.0, 1.0], step=1).with_columns(
        pair=pl.Series(["a", "a", None]),
        prefix_length=pl.Series([4, 4, 0]),
        length=pl.Series([6, 9, 5]),
        prompt_length=pl.lit(10),
    )
    total = accounting(rows, AuditOptions(num_parameters=1)).total
    assert (total.prefill_executed, total.generated_executed) == (10, 16)
    assert (total.prefill_unshared, total.generated_unshared) == (30, 20)
    assert (total.backward_live, total.backward_all) == (50, 50)
    assert total.padded == 3 * 9 - 20
    assert total.flop_executed == 2 * 26 + 6 * 50


def test_tied_groups_carry_no_live_backward_tokens(groups):
    rows = groups(LIVE, TIED, step=1).with_columns(length=pl.lit(3), prompt_length=pl.lit(2))
    total = accounting(rows, AuditOptions()).total
    assert (total.backward_live, total.backward_all) == (10, 20)


def test_rows_that_do_not_add_up_are_listed(groups):
    rows = groups([1.0, 0.0, 0.0, 0.0]).with_columns(
        length=pl.Series([3, 2, 3, 3]),
        token_ids=pl.Series([[1, 2, 3], [1], [1, 2, 3], [9, 9, 3]]),
        pair=pl.Series([None, None, "a", "a"]),
        prefix_length=pl.Series([0, 5, 2, 2]),
    )
    found = accounting(rows, AuditOptions())
    assert {v.rule: v.num_rows for v in found.violations} == {
        "0 ≤ prefix length ≤ length": 1,
        "as many token ids as tokens": 1,
        "branches of a pair agree on their prefix": 1,
    }
    assert found.violations[0].examples == ("g0 #1",)
    assert "3 rows do not add up" in found.sentence


# Cold odds


def test_cold_odds_of_80_draws_keep_their_median_and_geometric_mean():
    odds = np.exp(np.linspace(-9.0, -5.0, 81))
    found = cold_odds(np.log(odds), group_size=8)
    assert found.median == pytest.approx(math.exp(-7))
    assert found.geometric_mean == pytest.approx(math.exp(-7))
    assert found.chance_of_one == pytest.approx(np.mean(1 - (1 - odds) ** 8))


def test_cold_odds_leave_out_what_is_not_known_and_refuse_what_is_no_log_probability(groups):
    assert cold_odds([math.log(0.5), math.nan]).left_out == 1
    with pytest.raises(StatsError, match="natural logarithms"):
        cold_odds([0.5])
    with pytest.raises(StatsError, match="at least one"):
        cold_odds([math.nan])
    rows = groups(LIVE, LIVE).with_columns(reference_logprob=pl.lit(math.log(0.25)))
    assert (cold(rows, AuditOptions()).median, cold(rows, AuditOptions()).n) == (pytest.approx(0.25), 2)

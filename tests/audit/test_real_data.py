"""Known answers on real public logs, through the readers."""

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from deadheat.archive import read
from deadheat.audit import AuditOptions, audit, compare, dilution, gate, rescored, stuck
from deadheat.stats.shares import UNNAMED


def test_humaneval_has_121_mixed_problems_of_164_and_pass_at_1_of_22_1_percent(needs):
    rows = read(needs("rollouts_codet", "HumanEval_codegen16B_T0.8_n100_grades.jsonl.gz")).rows
    found = gate(rows, AuditOptions())
    assert (found.shut_rate.n, round(found.shut_rate.n * (1 - found.shut_rate.estimate))) == (164, 121)
    assert rows.select(pl.col("correct").mean()).collect().item() == pytest.approx(0.221, abs=5e-4)
    # Never solved: 43, all of them all wrong; none solved by all 100.
    assert found.all_wrong.estimate == pytest.approx(43 / 164)
    assert found.all_right.estimate == 0.0


def test_humaneval_gate_rates_at_4_8_and_16_are_exact_and_the_plug_in_reads_higher(needs):
    found = gate(read(needs("rollouts_codet", "HumanEval_codegen16B_T0.8_n100_grades.jsonl.gz")).rows, AuditOptions())
    lines = needs("rollouts_codet", "HumanEval_codegen16B_T0.8_n100_grades.jsonl.gz")
    passes = [row["n_pass"] for row in _rows(lines)]
    for expected, size in zip(found.expected, (4, 8, 16), strict=True):
        assert (expected.group_size, expected.method, expected.n) == (size, "exact resampling", 164)
        # By its own product formula: Π (k−i)/(100−i) + Π (100−k−i)/(100−i), i < G.
        assert expected.rate == pytest.approx(sum(_agree(k, size) for k in passes) / 164)
        assert expected.plug_in == pytest.approx(sum((k / 100) ** size + (1 - k / 100) ** size for k in passes) / 164)
        assert expected.plug_in > expected.rate
    assert [round(e.rate, 3) for e in found.expected] == [0.684, 0.566, 0.459]


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]


def _agree(k: int, size: int) -> float:
    right = wrong = 1.0
    for i in range(size):
        right *= max(k - i, 0) / (100 - i)
        wrong *= max(100 - k - i, 0) / (100 - i)
    return right + wrong


def test_humaneval_problems_whose_first_8_fail_are_read_again_in_their_other_92(needs):
    path = needs("rollouts_codet", "HumanEval_codegen16B_T0.8_n100_grades.jsonl.gz")
    found = stuck(read(path).rows, AuditOptions(first_draws=8))
    grades = [row["grades"] for row in _rows(path)]
    selected = [g for g in grades if not any(g[:8])]
    assert (found.stuck.n, round(found.stuck.n * found.stuck.estimate)) == (
        len(selected),
        sum(not any(g) for g in selected),
    )
    assert found.fresh_right.n == 92 * len(selected)
    assert found.readings[0].rules_out == pytest.approx(1 - 0.05 ** (1 / 100))


def test_game_of_24_has_49_mixed_groups_of_100(needs):
    found = gate(
        read(needs("rollouts_tot", "game24_gpt-4_0.7_naive_cot_sample_100_start900_end1000.json.gz")).rows,
        AuditOptions(),
    )
    assert found.shut_rate.n == 100
    assert round(100 * (1 - found.shut_rate.estimate)) == 49


def test_the_run_of_1209_problems_ties_in_49_percent_of_its_groups(needs):
    archive = read(needs("training_logs", "oneshot_rlvr_acc_step_500.json.gz"))
    found = gate(archive.summaries, AuditOptions())
    assert found.shut_rate.n == 64_000
    assert found.shut_rate.estimate == pytest.approx(0.490, abs=5e-4)
    # 1,209 problems are drawn together: 49.0% [46.9, 51.0] and T ± .04; the groups by themselves say [48.6, 49.4].
    assert (round(found.shut_rate.low, 3), round(found.shut_rate.high, 3)) == (0.469, 0.510)
    assert (round(found.multiplier.value, 2), round(found.multiplier.se, 2)) == (1.96, 0.04)
    alone = gate(archive.summaries.drop("problem_id"), AuditOptions()).shut_rate
    assert (round(alone.low, 3), round(alone.high, 3), alone.note) == (0.486, 0.494, UNNAMED)
    (shift,) = found.shifts
    assert shift.num_problems == (1209, 747, 747)
    assert [round(x, 2) for x in (shift.change.estimate, shift.change.low, shift.change.high)] == [0.30, 0.17, 0.45]
    # Each epoch's share of tied groups, by counting the means that are 0 or 1.
    history = json.loads(gzip.decompress(needs("training_logs", "oneshot_rlvr_acc_step_500.json.gz").read_bytes()))
    for point in found.curve:
        means = [epochs[point.step] for epochs in history.values() if len(epochs) > point.step]
        assert (point.live, point.all_right + point.all_wrong) == (
            sum(0 < m < 1 for m in means),
            sum(m in (0.0, 1.0) for m in means),
        )


@pytest.mark.parametrize(
    ("name", "tied", "loss"),
    [
        ("rasbt_ch06_rlvr_grpo_original_no_kl_metrics.csv", 269, "zero"),
        ("rasbt_7_5_plus_kl_metrics.csv", 464, "kl_alone"),
    ],
)
def test_steps_of_one_tied_group_have_no_loss_but_the_kl_terms(needs, name, tied, loss):
    found = gate(read(needs("training_logs", name)).summaries, AuditOptions())
    assert (found.shut_rate.n, round(500 * found.shut_rate.estimate)) == (500, tied)
    assert getattr(found.tied_loss, loss).estimate == 1.0
    assert getattr(found.tied_loss, loss).n == tied


def test_a_step_of_one_tied_group_is_a_dead_step(needs):
    found = dilution(read(needs("training_logs", "rasbt_7_5_plus_kl_metrics.csv")).summaries, AuditOptions())
    assert (found.num_batches, found.num_dead) == (500, 464)


def test_a_log_of_group_summaries_answers_two_audits_and_says_what_the_others_need(needs):
    report = audit(read(needs("training_logs", "rasbt_7_5_plus_kl_metrics.csv")))
    assert list(report.answered) == ["gate", "dilution"]
    assert "`token_ids` or `completion`" in report.missing["clones"].sentence


def test_qwen_math_has_10_mixed_groups_and_a_reward_model_of_resolution_0_89(needs):
    rows = read(needs("rollouts_qwen25math", "math_cot_100_rm_maj8.jsonl.gz")).rows
    found = gate(rows, AuditOptions())
    assert (round(100 * found.all_right.estimate), round(100 * found.all_wrong.estimate)) == (86, 4)
    (other,) = rescored(rows, AuditOptions()).readings
    assert (other.num_mixed, other.num_pairs) == (10, 128)
    assert other.resolution_pairs == pytest.approx(0.89, abs=5e-3)
    assert (other.ties_before.estimate, other.ties_after.estimate) == (0.9, 0.0)


def test_math_500_shares_one_near_twin_and_no_problem_with_its_4500_training_problems(needs):
    held_out = json.loads(needs("math", "math500_test.json").read_text(encoding="utf-8"))
    trained = _rows(needs("math", "math_train4500.jsonl.gz"))
    found = compare(
        [row["problem"] for row in trained],
        [row["problem"] for row in held_out],
        [str(row["idx"]) for row in trained],
        [row["unique_id"] for row in held_out],
    )
    assert (found.contaminated.n, found.num_trained, found.num_same_content) == (500, 4500, 0)
    # "the last nonzero digit … of 137/500" and "… of 141/400": another question of the same mould. 13 words in common
    # before the fraction make 11 shared 8-grams of 13.
    (case,) = found.cases
    assert (case.held_out_id, case.trained_id) == ("test/number_theory/255.json", "3454")
    assert case.jaccard == pytest.approx(11 / 13)
    assert "137}{500}" in case.held_out and "141}{400}" in case.trained

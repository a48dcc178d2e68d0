"""Real logs of other tools, with the counts that their keepers state."""

from pathlib import Path

import polars as pl
import pytest

from deadheat.archive import Archive, LogFormat, ReadOptions, read
from deadheat.errors import ArchiveError

DATA = Path(__file__).parents[2] / ".." / "shared" / "data"

# file, format, rows, groups, group sizes
FILES = [
    ("rollouts_verifiers/wordle_gpt-4.1-mini_5x3.jsonl.gz", "verifiers", 15, 5, {3: 5}),
    ("rollouts_verifiers/math_python_gpt-4.1-mini.jsonl.gz", "verifiers", 15, 5, {3: 5}),
    ("rollouts_verifiers/wiki_search_qwen3-4b-base_100.jsonl.gz", "verifiers", 100, 100, {1: 100}),
    ("rollouts_verifiers/wiki_search_qwen3-4b-RLtuned_100.jsonl.gz", "verifiers", 100, 100, {1: 100}),
    ("fixtures_rolloutscope/verifiers_eval_run__results.jsonl", "verifiers", 5, 2, {2: 1, 3: 1}),
    ("fixtures_rolloutscope/prime_rl_run__step_0__train_rollouts.jsonl", "verifiers", 3, 2, {1: 1, 2: 1}),
    ("fixtures_rolloutscope/multi_turn_rollout.jsonl", "verifiers", 1, 1, {1: 1}),
    ("fixtures_rolloutscope", "verifiers", 104, 70, {1: 52, 2: 2, 3: 16}),
    ("rollouts_inspect/popularity_claude-sonnet-4_10x5.eval", "inspect", 50, 10, {5: 10}),
    ("rollouts_inspect/popularity_llama3.1-405b_epochs2_MAIN.eval", "inspect", 4, 2, {2: 2}),
    ("rollouts_inspect/popularity_gpt-4o-mini_10_MAIN.eval", "inspect", 10, 10, {1: 10}),
    ("rollouts_inspect/popularity_gpt-4o-mini_3.json", "inspect", 3, 3, {1: 3}),
    ("rollouts_lm_eval/samples_asdiv_cot_Meta-Llama-3-8B-Instruct.jsonl.gz", "lm-eval", 50, 50, {1: 50}),
    ("rollouts_reasoning_gym/rl_trained_qwen3b_algebra.json.gz", "reasoning-gym", 300, 100, {3: 100}),
    ("rollouts_reasoning_gym/rl_trained_qwen3b_arithmetic.json.gz", "reasoning-gym", 300, 100, {3: 100}),
    ("rollouts_reasoning_gym/matheval_gsm8k_base.jsonl.gz", "packed", 1319, 1319, {1: 1319}),
    ("rollouts_reasoning_gym/matheval_gsm8k_rlft.jsonl.gz", "packed", 1319, 1319, {1: 1319}),
    ("rollouts_codet", "packed", 16_400, 164, {100: 164}),
    ("rollouts_qwen25math/math_cot_100_rm_maj8.jsonl.gz", "packed", 800, 100, {8: 100}),
    ("rollouts_tot/game24_gpt-4_0.7_naive_cot_sample_100_start900_end1000.json.gz", "packed", 10_000, 100, {100: 100}),
    ("rollouts_tot/text_gpt-4_1.0_naive_cot_sample_10_start0_end100.json.gz", "packed", 1_000, 100, {10: 100}),
    ("gsm8k/example_model_solutions.jsonl", "packed", 5_276, 1_319, {4: 1_319}),
]


def load(name: str, **options) -> Archive:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"the public data file {name} is not on this machine")
    return read(path, options=ReadOptions(**options))


def right_counts(archive: Archive) -> pl.Series:
    """Right answers in each group."""
    return archive.rows.group_by("group_id").agg(k=pl.col("reward").sum()).collect()["k"]


@pytest.mark.parametrize(("name", "format", "rows", "groups", "sizes"), FILES, ids=[row[0] for row in FILES])
def test_a_real_file_is_read_whole(name, format, rows, groups, sizes):
    archive = load(name)
    report = archive.report
    assert (report.format.value, report.num_rows, report.num_groups) == (format, rows, groups)
    assert report.group_sizes == sizes
    assert (report.recovered, report.num_refused) == ({"explicit": groups}, 0)
    assert archive.rows.collect()["reward"].null_count() == 0


def test_code_generations_are_121_mixed_groups_of_164_at_22_percent():
    archive = load("rollouts_codet/HumanEval_codegen16B_T0.8_n100_grades.jsonl.gz")
    k = right_counts(archive)
    assert ((k > 0) & (k < 100)).sum() == 121
    assert (k == 0).sum() == 43
    assert archive.rows.select(pl.col("reward").mean()).collect().item() == pytest.approx(0.221, abs=5e-4)
    assert set(archive.rows.collect()["category"]) == {"pass", "fail", "error", "syntax", "timeout"}


def test_game_of_24_is_49_mixed_groups_of_100():
    k = right_counts(load("rollouts_tot/game24_gpt-4_0.7_naive_cot_sample_100_start900_end1000.json.gz"))
    assert ((k > 0) & (k < 100)).sum() == 49
    assert k.sum() / 10_000 == pytest.approx(0.040, abs=5e-4)


def test_repeated_judgements_of_one_text_are_parts_whose_mean_is_the_reward():
    rows = load("rollouts_tot/text_gpt-4_1.0_naive_cot_sample_10_start0_end100.json.gz").rows.collect()
    judges = rows.select(pl.col(f"part:judge_{n}") for n in range(5))
    assert (judges.mean_horizontal() - rows["reward"]).abs().max() < 1e-9


def test_mathematics_has_10_mixed_groups_and_a_reward_models_scores():
    archive = load("rollouts_qwen25math/math_cot_100_rm_maj8.jsonl.gz")
    k = right_counts(archive)
    assert [((k > 0) & (k < 8)).sum(), (k == 0).sum(), (k == 8).sum()] == [10, 4, 86]
    assert archive.rows.collect()["part:reward_model"].null_count() == 0


def test_four_models_solve_gsm8k_as_often_as_its_keepers_say():
    rows = (
        load("gsm8k/example_model_solutions.jsonl").rows.group_by("checkpoint").agg(pl.col("reward").mean()).collect()
    )
    assert {model: round(100 * share, 1) for model, share in rows.iter_rows()} == {
        "6b_finetuning": 21.7, "6b_verification": 39.0, "175b_finetuning": 34.7, "175b_verification": 56.3,
    }  # fmt: skip


def test_verifiers_rewards_before_and_after_training():
    for name, share in (("base", 0.55), ("RLtuned", 0.89)):
        archive = load(f"rollouts_verifiers/wiki_search_qwen3-4b-{name}_100.jsonl.gz")
        assert archive.rows.select(pl.col("reward").mean()).collect().item() == pytest.approx(share)
    rows = load("rollouts_verifiers/wordle_gpt-4.1-mini_5x3.jsonl.gz").rows.collect()
    parts = [name for name in rows.columns if name.startswith("part:")]
    assert sorted(parts) == [
        "part:check_answer_reward_func", "part:count_turns_reward_func", "part:format_reward_func",
        "part:partial_credit_reward_func",
    ]  # fmt: skip


def test_inspect_epochs_are_attempts_at_one_sample():
    archive = load("rollouts_inspect/popularity_claude-sonnet-4_10x5.eval")
    rows = archive.rows.collect()
    assert (archive.report.format, archive.report.declared_size) == (LogFormat.INSPECT, 5)
    assert sorted(rows["sample"].unique()) == [0, 1, 2, 3, 4]
    assert set(rows["task"]) == {"popularity"} and set(rows["stop"]) == {"stop"}


def test_of_twelve_metrics_one_is_named():
    rows = load("rollouts_lm_eval/samples_truthfulqa_gen.jsonl.gz", map={"reward": "bleu_acc"}).rows.collect()
    assert rows.height == 817
    assert set(rows["reward"]) == {0.0, 1.0}
    assert sum(name.startswith("part:") for name in rows.columns) == 12


def test_a_history_of_means_is_summaries_whose_size_is_found():
    archive = load("training_logs/oneshot_rlvr_acc_step_500.json.gz")
    assert archive.summaries is not None
    groups = archive.summaries.collect()
    assert archive.report.format is LogFormat.SUMMARY
    assert groups["problem_id"].n_unique() == 1209
    assert set(groups["group_size"]) == {8}
    assert groups["k"].is_in([0, 8]).mean() == pytest.approx(0.49, abs=5e-3)  # half of all groups are tied
    assert "8 is the smallest of which all 64,000 means are multiples" in archive.report.warnings[0]


def test_steps_of_one_group_each_are_summaries_with_their_loss():
    for name, tied in (("ch06_rlvr_grpo_original_no_kl", 269), ("7_5_plus_kl", 464)):
        archive = load(f"training_logs/rasbt_{name}_metrics.csv")
        assert archive.summaries is not None
        groups = archive.summaries.collect()
        assert groups.height == 500
        assert groups["k"].is_in([0, 8]).sum() == tied
        assert groups["loss"].null_count() == 0
        assert archive.report.group_sizes == {8: 500}
    assert groups["kl"].null_count() == 0


def test_a_folder_with_several_tools_wants_one_named():
    with pytest.raises(ArchiveError, match=r"logs of several tools .* Name one with --format"):
        load("rollouts_reasoning_gym")

"""Whole small runs: how they end, what they refuse, what they record, and that they touch no global generator."""

import random  # noqa: TID251  the generator that must stay untouched
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from pydantic import ValidationError

from deadheat.archive import read_table, write_table
from deadheat.errors import ArchiveError, ConfigError, PromptTooLongError, TaskError
from deadheat.train import (
    EVALS,
    ROLLOUTS,
    Ending,
    Outcome,
    RunConfig,
    RunIdentity,
    read_clock,
    read_peaks,
    read_steps,
    step_file,
    train_run,
)

ME = RunIdentity(race="small", arm="checker", seed=1)


def run(config: RunConfig, folder: Path, identity: RunIdentity = ME) -> Outcome:
    return train_run(config, identity, folder, observe=lambda progress: None)


def evaluated(folder: Path) -> list[int]:
    return [int(path.stem.removeprefix("step-")) for path in sorted((folder / ME.folder / EVALS).iterdir())]


def test_a_run_draws_its_problems_records_every_attempt_and_touches_no_global_generator(
    tmp_path: Path, run_config, addition
) -> None:
    torch_state, numpy_state, python_state = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002
    outcome = run(run_config(), tmp_path)
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert all(np.array_equal(a, b) for a, b in zip(np.random.get_state(), numpy_state, strict=True))  # noqa: NPY002
    assert random.getstate() == python_state

    assert (outcome.ending, outcome.step, outcome.pool) == (Ending.STEPS, 2, 8)
    assert evaluated(tmp_path) == [0, 2], "step 0 is always evaluated"
    held_out = read_table(step_file(tmp_path / ME.folder, EVALS, 0))
    assert held_out["problem_id"].to_list() == [problem.problem_id for problem in addition.held_out[:8]]
    rows = read_table(step_file(tmp_path / ME.folder, ROLLOUTS, 1))
    # 3 questions × 4 attempts, sample by sample.
    assert rows["sample"].to_list() == [0, 1, 2, 3] * 3
    assert rows["group_id"].n_unique() == 3
    assert set(rows["problem_id"]) <= {problem.problem_id for problem in addition.training}
    # The ledger adds up to the rows.
    first = read_steps(tmp_path / ME.folder)[0]
    assert first.num_groups == 3 and first.num_rollouts == first.num_scored == 12
    assert first.num_correct == rows["correct"].sum()
    assert first.tokens_generated == rows["length"].sum()
    assert first.mean_length == pytest.approx(first.tokens_generated / 12)
    assert first.mean_raw_reward == pytest.approx(rows["raw_reward"].sum() / 12)
    # Each distinct prompt is prefilled once, not once per attempt, and what all three have in common once: the 66
    # characters of worked examples.
    assert first.tokens_prefilled == rows.unique("problem_id")["prompt_length"].sum() - 2 * 66


def test_the_same_seed_is_the_same_run_and_another_seed_another(tmp_path: Path, run_config) -> None:
    config = run_config(stop={"steps": 1})
    rows = {}
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        identity = RunIdentity(race="small", arm="checker", seed=seed)
        run(config, tmp_path / name, identity)
        rows[name] = step_file(tmp_path / name / identity.folder, ROLLOUTS, 1).read_bytes()
    assert rows["a"] == rows["b"] != rows["c"]


def test_a_run_ends_at_its_active_updates_and_is_evaluated_there(tmp_path: Path, run_config) -> None:
    outcome = run(run_config(stop={"steps": 50, "active_updates": 2}, eval={"every": 50}), tmp_path)
    assert (outcome.ending, outcome.num_active) == (Ending.ACTIVE_UPDATES, 2)
    live = [record.num_live > 0 for record in read_steps(tmp_path / ME.folder)]
    assert sum(live) == 2 and live[-1], "it ends on the batch that was the second to carry signal"
    assert evaluated(tmp_path) == [0, outcome.step]


def test_a_run_ends_when_its_patience_runs_out(tmp_path: Path, run_config) -> None:
    # No gain can exceed 100 points: the second evaluation after step 0 ends it, and step 0 is the converged checkpoint.
    outcome = run(run_config(stop={"steps": 9, "patience": 2, "tolerance_pp": 100.0}, eval={"every": 1}), tmp_path)
    assert (outcome.ending, outcome.step, outcome.converged_step) == (Ending.CONVERGED, 2, 0)
    assert evaluated(tmp_path) == [0, 1, 2]


@pytest.mark.parametrize("every", [1, 5])
def test_a_run_whose_weights_break_ends_as_diverged_with_its_records(tmp_path: Path, run_config, every: int) -> None:
    # The first step at rate 1e30 makes weights of order 1e30, whose products are not finite: the next draw or evaluation
    # is the first to see it.
    config = run_config(update={"learning_rate": 1e30}, stop={"steps": 6}, eval={"every": every})
    outcome = run(config, tmp_path)
    assert outcome.ending is Ending.DIVERGED
    assert outcome.message is not None and "learning" in outcome.message
    assert outcome.step == 1
    assert evaluated(tmp_path) == [0]
    assert [record.step for record in read_steps(tmp_path / ME.folder)] == [1]
    assert read_table(step_file(tmp_path / ME.folder, ROLLOUTS, 1)).height == 12


def test_a_run_that_breaks_on_its_very_last_step_is_not_called_finished(tmp_path: Path, run_config) -> None:
    outcome = run(run_config(update={"learning_rate": 1e30}, stop={"steps": 1}), tmp_path)
    assert outcome.ending is Ending.DIVERGED


def test_a_prompt_longer_than_the_context_is_refused_before_the_first_draw(tmp_path: Path, run_config) -> None:
    # The tiny policy's context is 1,024 tokens; a prompt has about 60.
    with pytest.raises(PromptTooLongError, match=r"max_new_tokens 1000 that exceeds the model's context of 1024"):
        run(run_config(sampling={"max_new_tokens": 1000}), tmp_path)
    assert not (tmp_path / ME.folder / EVALS).exists()


def test_a_pool_larger_than_what_the_task_holds_out_is_refused(tmp_path: Path, run_config) -> None:
    with pytest.raises(TaskError, match=r"pool is 101 but task 'addition' holds out 100; lower pool or raise held_out"):
        run(run_config(eval={"pool": 101}), tmp_path)


def test_a_group_of_one_is_refused_by_the_config(run_config) -> None:
    with pytest.raises(ValidationError, match=r"group_size\n.*greater than or equal to 2"):
        run_config(rollouts={"group_size": 1})


def test_greedy_answers_are_asked_for_once(run_config) -> None:
    with pytest.raises(ValidationError, match=r"samples is 4 with draw = 'greedy'; wanted 1, or draw = 'gumbel_max'"):
        run_config(eval={"samples": 4})


def test_the_marker_gate_shapes_training_only_and_both_rewards_are_on_record(tmp_path: Path, run_config) -> None:
    # Marker "1" at character 2 or later: a right "21" (" 21": the 1 is character 2) passes, a right "15" (character 1)
    # does not.
    config = run_config(
        scorer={"marker": "1", "gate_chars": 2},
        rollouts={"questions_per_step": 12, "group_size": 8},
        eval={"pool": 50, "samples": 4, "draw": "gumbel_max", "every": 2},
    )
    run(config, tmp_path)
    folder = tmp_path / ME.folder
    rows = pl.concat([read_table(step_file(folder, ROLLOUTS, step)) for step in (1, 2)])
    passed = [text.rfind("1") >= 2 for text in rows["completion"]]
    raw = rows["raw_reward"].to_list()
    assert rows["reward"].to_list() == [reward if ok else 0.0 for reward, ok in zip(raw, passed, strict=True)]
    gated = sum(reward == 1.0 and not ok for reward, ok in zip(raw, passed, strict=True))
    assert gated > 0, "some right answers were refused a training reward"
    assert rows["correct"].sum() == sum(raw), "the grade itself is not gated"
    ledger = read_steps(folder)
    assert sum(record.num_rollouts * (record.mean_raw_reward - record.mean_reward) for record in ledger) == (
        pytest.approx(gated)
    )
    answers = read_table(step_file(folder, EVALS, 2))
    assert answers["reward"].equals(answers["raw_reward"])
    assert any(
        right and text.rfind("1") < 2 for right, text in zip(answers["correct"], answers["completion"], strict=True)
    ), "evaluation counts right answers that the gate would refuse"


def test_a_gate_without_a_marker_is_refused(tmp_path: Path, run_config) -> None:
    with pytest.raises(ConfigError, match=r"gate_chars is 30 but task 'addition' has no marker; wanted scorer.marker"):
        run(run_config(scorer={"gate_chars": 30}), tmp_path)


MOODY = """
from dataclasses import replace
from deadheat.tasks.addition import AdditionConfig, build_addition, check_sum

def check(problem, text):
    if "2" in text:
        raise ValueError("I do not like twos")
    return check_sum(problem, text)

def build(options):
    return replace(build_addition(AdditionConfig(limit=20, held_out=100)), name="moody", check=check)
"""


def test_attempts_a_checker_fails_on_are_left_out_everywhere_and_the_run_goes_on(tmp_path: Path, run_config) -> None:
    (tmp_path / "moody.py").write_text(MOODY)
    config = run_config(eval={"pool": 20}).model_dump(mode="json")
    config["task"] = {"name": f"file:{tmp_path / 'moody.py'}"}
    outcome = run(RunConfig.model_validate(config), tmp_path)
    assert (outcome.ending, outcome.step) == (Ending.STEPS, 2)
    folder = tmp_path / ME.folder
    for path in (step_file(folder, ROLLOUTS, 1), step_file(folder, EVALS, 0)):
        rows = read_table(path)
        twos = rows.filter(pl.col("completion").str.contains("2"))
        others = rows.filter(~pl.col("completion").str.contains("2"))
        assert twos.height > 0 and others.height > 0
        assert set(twos["unscored"]) == {"checker raised ValueError: I do not like twos"}
        assert twos["raw_reward"].null_count() == twos["reward"].null_count() == twos["correct"].null_count()
        assert twos["correct"].null_count() == twos.height
        assert others["raw_reward"].null_count() == 0 and others["unscored"].null_count() == others.height
    rows = read_table(step_file(folder, ROLLOUTS, 1))
    first = read_steps(folder)[0]
    assert first.num_scored == 12 - rows["unscored"].count() < 12
    assert set(rows.filter(pl.col("unscored").is_not_null())["advantage"]) == {0.0}


def test_the_ledger_keeps_what_moved_and_where_every_token_went(tmp_path: Path, run_config) -> None:
    config = run_config(
        update={
            "importance": "token",
            "updates_per_batch": 2,
            "kl_coef": 0.05,
            "dual_clip": 3.0,
            "learning_rate": 5e-3,
        },
        credit={"zero_signal": "backward"},
        scorer={"overlong_buffer": 2},
    )
    run(config, tmp_path)
    folder = tmp_path / ME.folder
    first, second = read_steps(folder)
    assert (first.num_updates, second.num_updates) == (2, 2)
    for record in (first, second):
        rows = read_table(step_file(folder, ROLLOUTS, record.step))
        assert record.tokens_delivered == rows.filter(pl.col("advantage") != 0)["length"].sum()
        surprise = -rows["plain_logprobs"].explode().cast(pl.Float64).sum() / rows["length"].sum()
        assert record.mean_surprise == pytest.approx(surprise, rel=1e-5)
        assert record.kl_drawn > 0, "the second update of a batch is off its policy"
        assert record.kl_reference > 0 and record.clip_dual_frac >= 0
        assert 0 <= record.clip_low_frac + record.clip_high_frac <= 1
        # The reference scores every group once, forward and backward run twice; tied groups have passes of their own, which
    # run the worked examples' 66 characters again.
    assert 2 * record.tokens_reference <= record.tokens_backward <= 2 * (record.tokens_reference + 66)


def test_without_ratio_and_kl_the_ledger_says_none_and_the_ratio_that_was_seen(tmp_path: Path, run_config) -> None:
    run(run_config(), tmp_path)
    records = read_steps(tmp_path / ME.folder)
    assert any(record.num_live for record in records)
    for record in records:
        assert record.kl_reference is record.clip_low_frac is record.clip_high_frac is record.clip_dual_frac is None
        assert record.tokens_reference == 0
        if record.tokens_backward:
            assert record.mean_ratio == pytest.approx(1.0, abs=1e-4)
        else:
            assert record.mean_ratio is None


def test_the_clock_keeps_seconds_and_peaks_apart(tmp_path: Path, run_config) -> None:
    run(run_config(), tmp_path)
    folder = tmp_path / ME.folder
    seconds, peaks = read_clock(folder), read_peaks(folder)
    assert set(seconds) == set(peaks) == {0, 1, 2}
    assert all(name.endswith("_s") for phases in seconds.values() for name in phases)
    assert {"draw_s", "score_s", "update_s"} <= set(seconds[1])
    # A process that has loaded torch holds more than 100 MB and less than this machine has; a high-water mark never falls.
    marks = [peaks[step]["resident_bytes"] for step in range(3)]
    assert marks == sorted(marks) and 1e8 < marks[0] <= marks[-1] < 1e12
    assert set(peaks[1]) == {"resident_bytes"}, "no CUDA figure on a CPU"


def test_the_length_of_an_answer_costs_training_reward_and_not_its_grade(tmp_path: Path, run_config) -> None:
    config = run_config(scorer={"length_cost": 0.5, "length_cost_of": "all"}, sampling={"max_new_tokens": 8})
    run(config, tmp_path)
    rows = read_table(step_file(tmp_path / ME.folder, ROLLOUTS, 1))
    for raw, reward, length in rows.select("raw_reward", "reward", "length").iter_rows():
        assert reward == pytest.approx(raw - 0.5 * length / 8)
    answers = read_table(step_file(tmp_path / ME.folder, EVALS, 0))
    assert answers["reward"].equals(answers["raw_reward"])


def test_a_part_that_problems_do_not_have_is_refused(tmp_path: Path, run_config) -> None:
    with pytest.raises(ConfigError, match=r"normalise_by is 'subject' but problem .* of task 'addition' has no such"):
        run(run_config(credit={"normalise_by": "subject"}), tmp_path)
    assert not (tmp_path / ME.folder).exists()


def test_a_ledger_of_another_version_is_refused_by_name(tmp_path: Path, run_config) -> None:
    run(run_config(stop={"steps": 1}), tmp_path)
    path = tmp_path / ME.folder / "steps.parquet"
    write_table(path, read_table(path).drop("mean_ratio"))
    with pytest.raises(ArchiveError, match=r"other columns than this version writes: mean_ratio"):
        read_steps(tmp_path / ME.folder)

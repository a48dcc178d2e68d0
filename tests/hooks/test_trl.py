"""The hook on the real trainers of TRL: its share of tied groups is what TRL logs, where TRL can tell.

pip install trl
"""

import json
import math
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import ClassVar

import polars as pl
import pytest

pytest.importorskip("trl", reason="trl is not installed: its trainers cannot run")

from deadheat.archive import read
from deadheat.audit import AuditOptions, gate
from deadheat.errors import ConfigError
from deadheat.hooks import GroupMonitor, MonitorConfig
from deadheat.hooks.trl import GroupCallback, watch

from .tiny_trl import brevity, model_config, odd, often_silent, quarter, settings, tokenizer, trainer_of

pytestmark = pytest.mark.filterwarnings("ignore")  # transformers' own
SHUT, ZERO = "deadheat/shut_frac", "frac_reward_zero_std"


def ran(out, reward_funcs, *, grade=None, resume=False, train=None, more=None, **changes):
    """A run of a tiny model under the hook: what its trainer logged at every update, and its rollouts."""
    from trl import GRPOConfig

    trainer = trainer_of(GRPOConfig(**settings(out, **changes)), reward_funcs, **(more or {}))
    callback = watch(trainer, MonitorConfig(archive=out / "groups", every=0, resume=resume), grade=grade)
    trainer.train(**(train or {}))
    logged = [entry for entry in trainer.state.log_history if "loss" in entry]
    return logged, read(out / "groups").rows.collect(), callback


def rewards_of(rows):
    return rows.group_by("step", "group_id", maintain_order=True).agg("reward")["reward"].to_list()


def test_the_share_of_tied_groups_is_the_one_that_trl_logs(tmp_path):
    logged, rows, callback = ran(tmp_path, [odd], max_steps=12)
    assert [entry[SHUT] for entry in logged] == [entry[ZERO] for entry in logged]
    assert len({entry[SHUT] for entry in logged}) > 1  # some steps of both kinds: 2 groups, so 0, ½ or 1
    tied = [len(set(rewards)) == 1 for rewards in rewards_of(rows)]
    assert callback.monitor.reading().shut_rate.estimate == sum(tied) / 24
    assert gate(rows.lazy(), AuditOptions()).shut_rate == callback.monitor.reading().shut_rate
    assert sum(entry[ZERO] for entry in logged) / 12 == pytest.approx(sum(tied) / 24)


def test_the_metrics_stand_beside_trls_own_for_every_logger_after_the_hook(tmp_path):
    from transformers import TrainerCallback
    from trl import GRPOConfig

    class Logger(TrainerCallback):
        seen: ClassVar[list] = []

        def on_log(self, args, state, control, logs=None, **_):
            self.seen.append(dict(logs))

    trainer = trainer_of(GRPOConfig(**settings(tmp_path, max_steps=2)), [odd], callbacks=[Logger()])
    watch(trainer, MonitorConfig(every=0))
    trainer.train()
    assert [SHUT in entry and ZERO in entry for entry in Logger.seen] == [True, True, False]  # the last is a summary


def test_weighted_sums_with_scores_left_out_are_what_trl_learned_from(tmp_path):
    logged, rows, _ = ran(tmp_path, [odd, brevity], reward_weights=[1.0, 0.5], max_steps=6)
    assert [entry[SHUT] for entry in logged] == [entry[ZERO] for entry in logged]
    by_step = rows.group_by("step", maintain_order=True).agg(pl.col("reward").mean())["reward"].to_list()
    assert by_step == pytest.approx([entry["reward"] for entry in logged], abs=1e-6)
    silent = rows.filter(pl.col("part:brevity").is_null())
    assert silent.height > 0 and silent["completion"].str.contains("2").all()
    assert silent["reward"].to_list() == silent["part:odd"].to_list()
    both = rows.drop_nulls("part:brevity")
    summed = both["part:odd"] + 0.5 * both["part:brevity"]
    assert (summed - both["reward"]).abs().max() < 1e-6


def test_a_weight_of_zero_does_not_break_a_tie(tmp_path):
    logged, rows, _ = ran(tmp_path, [odd, brevity], reward_weights=[1.0, 0.0], max_steps=6)
    assert [entry[SHUT] for entry in logged] == [entry[ZERO] for entry in logged]
    assert rows["reward"].to_list() == rows["part:odd"].to_list()


def test_a_rollout_that_no_function_scored_is_unscored(tmp_path):
    logged, rows, _ = ran(tmp_path, [often_silent], max_steps=6, max_completion_length=3, temperature=2.0)
    unscored = rows["reward"].is_null()
    assert 0 < unscored.sum() < rows.height
    assert (unscored == rows["part:often_silent"].is_null()).all()
    assert set(rows.filter(unscored)["unscored"]) == {"there is no reward"}
    # TRL has no deviation of fewer than two scores and calls such a group untied; with no score it is no group here
    for entry, rewards in zip(
        logged, rows.group_by("step", maintain_order=True).agg("group_id", "reward").iter_rows(), strict=True
    ):
        groups = {}
        for group, reward in zip(rewards[1], rewards[2], strict=True):
            groups.setdefault(group, []).append(reward)
        known = [[r for r in group if r is not None] for group in groups.values()]
        several = [group for group in known if len(group) > 1]
        assert entry[ZERO] == pytest.approx(sum(len(set(g)) == 1 for g in several) / len(known))
        scored = [group for group in known if group]
        wanted = sum(len(set(g)) == 1 for g in scored) / len(scored) if scored else None
        assert entry.get(SHUT) == wanted


def test_a_generation_that_serves_several_updates_is_counted_once(tmp_path):
    logged, rows, callback = ran(
        tmp_path, [odd], num_iterations=2, gradient_accumulation_steps=2, per_device_train_batch_size=4, max_steps=6
    )
    # 4 × 2 accumulated = 8 rollouts a generation, each for 2 updates: 3 generations, at the updates 1, 3 and 5
    assert Counter(rows["step"]) == {1: 8, 3: 8, 5: 8}
    assert [SHUT in entry for entry in logged] == [True, False] * 3
    assert [entry[SHUT] for entry in logged[::2]] == [entry[ZERO] for entry in logged[::2]]
    assert callback.monitor.reading().num_steps == 3


def test_several_generations_of_one_update_are_one_step(tmp_path):
    logged, rows, callback = ran(tmp_path, [odd], gradient_accumulation_steps=2, steps_per_generation=1, max_steps=3)
    assert Counter(rows["step"]) == {1: 16, 2: 16, 3: 16}
    assert rows["group_id"].n_unique() == 12
    assert [(entry[SHUT], entry["deadheat/groups"]) for entry in logged] == [(entry[ZERO], 4) for entry in logged]
    assert callback.monitor.reading().num_steps == 3


def test_figures_between_two_logs_are_pooled_as_trls_are(tmp_path):
    logged, _, _ = ran(tmp_path, [odd], logging_steps=3, max_steps=6)
    assert [entry["deadheat/groups"] for entry in logged] == [6, 6]
    assert [entry[SHUT] for entry in logged] == pytest.approx([entry[ZERO] for entry in logged])


def test_ties_stay_visible_where_rewards_are_scaled_by_the_batch(tmp_path):
    logged, rows, _ = ran(tmp_path, [odd], scale_rewards="batch", max_steps=12)
    tied = [len(set(rewards)) == 1 for rewards in rewards_of(rows)]
    assert [entry[SHUT] for entry in logged] == [sum(tied[2 * n : 2 * n + 2]) / 2 for n in range(12)]
    # TRL compares the whole batch's deviation with zero: a step counts only if every reward in it is the same
    assert {entry[ZERO] for entry in logged} <= {0.0, 1.0}
    assert any(entry[SHUT] > entry[ZERO] for entry in logged)


def test_rewards_that_are_normalised_before_they_are_summed_tie_only_if_every_function_does(tmp_path):
    _, rows, _ = ran(
        tmp_path,
        [odd, quarter],
        multi_objective_aggregation="normalize_then_sum",
        reward_weights=[1.0, 1.0],
        max_steps=8,
    )
    groups = rows.group_by("group_id", maintain_order=True).agg("part:odd", "part:quarter", "kind", "reward")
    for _, first, second, kinds, rewards in groups.iter_rows():
        assert (kinds[0] != "live") == (len(set(first)) == 1 and len(set(second)) == 1)
        assert math.fsum(rewards) == pytest.approx(0, abs=1e-9)
    assert "live" in rows["kind"]


def test_a_grade_names_right_and_wrong_where_rewards_are_sums(tmp_path):
    _, rows, callback = ran(tmp_path, [odd, quarter], grade="odd", reward_weights=[1.0, 0.0], max_steps=12)
    assert (rows["correct"] == (rows["part:odd"] == 1)).all()
    seen = callback.monitor.reading()
    assert seen.all_right.estimate + seen.all_wrong.estimate == pytest.approx(seen.shut_rate.estimate)
    assert seen.all_right.estimate > 0


def test_a_reward_model_is_seen_like_a_function(tmp_path):
    from transformers import LlamaForSequenceClassification

    judge = LlamaForSequenceClassification(model_config(num_labels=1))
    more = {"reward_processing_classes": [tokenizer(), None]}
    logged, rows, _ = ran(tmp_path, [judge, odd], max_steps=2, more=more)
    (name,) = {column for column in rows.columns if column.startswith("part:")} - {"part:odd"}
    assert rows[name].null_count() == 0 and rows[name].n_unique() > 8
    assert [entry[SHUT] for entry in logged] == [entry[ZERO] for entry in logged] == [0, 0]


def test_capped_and_lengths_are_trls(tmp_path):
    logged, rows, _ = ran(tmp_path, [odd], max_steps=4, temperature=3.0)
    by_step = rows.group_by("step", maintain_order=True).agg(
        clipped=(pl.col("stop") == "cap").mean(), length=pl.col("length").mean(), longest=pl.col("length").max()
    )
    assert by_step["clipped"].to_list() == pytest.approx([entry["completions/clipped_ratio"] for entry in logged])
    assert by_step["length"].to_list() == pytest.approx([entry["completions/mean_length"] for entry in logged])
    assert by_step["longest"].to_list() == [entry["completions/max_length"] for entry in logged]
    assert 0 < (rows["stop"] == "cap").mean() < 1


def test_an_evaluation_goes_into_the_archive_and_not_into_the_window(tmp_path):
    logged, rows, callback = ran(tmp_path, [odd], max_steps=2, eval_strategy="steps", eval_steps=1)
    assert Counter(rows.select("purpose", "step").iter_rows()) == {
        ("train", 1): 8, ("train", 2): 8, ("eval", 1): 4, ("eval", 2): 4,
    }  # fmt: skip
    assert set(rows.filter(pl.col("purpose") == "eval")["prompt"]) == {"8+1="}
    assert callback.monitor.reading().shut_rate.n == 4
    assert [entry["deadheat/groups"] for entry in logged] == [2, 2]


def test_a_run_resumed_from_a_checkpoint_counts_its_steps_once(tmp_path):
    ran(tmp_path, [odd], max_steps=4, save_strategy="steps", save_steps=2)
    _, rows, _ = ran(
        tmp_path, [odd], max_steps=6, resume=True, train={"resume_from_checkpoint": str(tmp_path / "checkpoint-2")}
    )
    assert Counter(rows["step"]) == dict.fromkeys(range(1, 7), 8)
    assert len(list((tmp_path / "groups" / ".superseded").iterdir())) == 2  # steps 3 and 4 of the first session


def test_leave_one_out_runs_are_watched_alike(tmp_path):
    from trl import RLOOConfig

    trainer = trainer_of(RLOOConfig(**settings(tmp_path, max_steps=6, beta=0.0)), [odd, brevity])
    watch(trainer, MonitorConfig(archive=tmp_path / "groups", every=0))
    trainer.train()
    logged = [entry for entry in trainer.state.log_history if "loss" in entry]
    assert [entry[SHUT] for entry in logged] == [entry[ZERO] for entry in logged]


def test_two_processes_are_one_archive_with_the_groups_of_both(tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    offline = {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    script = str(Path(__file__).with_name("tiny_trl.py"))
    done = subprocess.run(
        [*command, script, str(tmp_path)], capture_output=True, text=True, env={**os.environ, **offline}, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = read(tmp_path / "groups").rows.collect()
    # 2 processes × 6 rollouts in groups of 4: 3 groups a step, the second half here and half there
    assert Counter(rows["step"]) == dict.fromkeys((1, 2, 3), 12)
    assert rows.group_by("group_id").agg(pl.col("prompt").n_unique(), pl.len()).select(
        "prompt", "len"
    ).unique().rows() == [(1, 4)]
    for text, reward in rows.select("completion", "part:odd").iter_rows():
        assert reward == odd([text])[0]  # texts stand beside their own scores
    logged = [entry for entry in json.loads((tmp_path / "log.json").read_text()) if "loss" in entry]
    assert [entry[SHUT] for entry in logged] == pytest.approx([entry[ZERO] for entry in logged])


def test_equal_rewards_whose_deviation_rounds_are_tied_here_and_not_in_trl():
    import torch
    from trl.trainer.utils import nanstd

    from deadheat.hooks import GroupBatch

    # eight times 0.2 in single precision: the mean rounds, and TRL's deviation is 1.6e-8, over the 1e-8 it allows
    rewards = torch.full((1, 8), 0.2)
    deviation = nanstd(rewards, dim=1)
    assert not torch.isclose(deviation, torch.zeros_like(deviation)).any()
    found = GroupMonitor(MonitorConfig(every=0)).observe(GroupBatch(step=1, rewards=rewards))
    assert found[SHUT] == 1


def test_a_trainer_that_cannot_be_watched_is_refused_before_it_runs(tmp_path):
    from trl import GRPOConfig

    trainer = trainer_of(GRPOConfig(**settings(tmp_path)), [odd])
    with pytest.raises(ConfigError, match="grade is 'correct'; wanted one of odd"):
        watch(trainer, grade="correct")
    assert isinstance(watch(trainer), GroupCallback)
    with pytest.raises(ConfigError, match="this GRPOTrainer is watched already"):
        watch(trainer)
    other = trainer_of(GRPOConfig(**settings(tmp_path)), [odd])
    other._calculate_rewards = lambda prompts, completions: None
    with pytest.raises(ConfigError, match=r"GRPOTrainer has _calculate_rewards\(prompts, completions\); wanted"):
        watch(other)

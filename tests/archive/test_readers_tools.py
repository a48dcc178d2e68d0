"""Each trainer's and tool's layout, as its own writer lays it out."""

import json

import polars as pl
import pytest

from deadheat.archive import LogFormat, ReadOptions, read
from deadheat.errors import ArchiveError

from .logs import rewards_by_group, write_lines, write_trl


def test_trl_groups_are_runs_of_equal_prompts(tmp_path):
    chat = [[{"role": "user", "content": text}] for text in ("a", "a", "b", "b")]
    answers = [[{"role": "assistant", "content": f"o{n}"}] for n in range(4)]
    folder = tmp_path / "completions"
    folder.mkdir()
    pl.DataFrame(
        {
            "mode": ["train"] * 4,
            "step": ["7"] * 4,  # older versions write it as text
            "prompt": chat,
            "completion": answers,
            "accuracy_reward": [1.0, 0.0, 0.0, 0.0],
            "advantage": [0.7, -0.7, 0.0, 0.0],
        }
    ).write_parquet(folder / "completions_00007.parquet")
    archive = read(tmp_path)
    rows = archive.rows.collect()
    assert archive.report.format is LogFormat.TRL
    assert archive.report.recovered == {"consecutive": 2}
    assert rows["step"].to_list() == [7] * 4
    assert rows["purpose"].to_list() == ["train"] * 4
    assert rows["prompt"].to_list() == ["user: a", "user: a", "user: b", "user: b"]
    assert rows["completion"].to_list() == ["o0", "o1", "o2", "o3"]
    assert rows["advantage"].to_list() == [0.7, -0.7, 0.0, 0.0]
    assert "stop" not in rows.columns and "token_ids" not in rows.columns


def test_trl_writes_over_a_step_of_evaluation_and_the_report_says_so(tmp_path):
    write_trl(tmp_path, 1, ["a"] * 2, {"r": [1.0, 0.0]})
    assert any("over those of the same training step" in line for line in read(tmp_path).report.warnings)


def test_verl_names_its_groups_by_uid(tmp_path):
    # The part before the last two underscores; the group's own name may hold underscores.
    records = [
        {
            "input": "same",
            "output": f"o{n}",
            "gts": "2",
            "score": n % 2,
            "step": 5,
            "uid": f"p_{group}_0_{n}",
            "acc": n % 2,
        }
        for group in ("x", "y")
        for n in range(2)
    ]
    archive = read(write_lines(tmp_path / "rollouts" / "5.jsonl", records))
    rows = archive.rows.collect()
    assert archive.report.format is LogFormat.VERL
    assert rows["group_id"].to_list() == ["5/p_x", "5/p_x", "5/p_y", "5/p_y"]
    assert rows["recovered"].unique().to_list() == ["explicit"]
    assert rows["correct"].to_list() == [False, True, False, True]
    assert rows["part:acc"].to_list() == [0.0, 1.0, 0.0, 1.0]


def test_verl_steps_are_files_and_equal_prompts_of_two_steps_are_two_groups(tmp_path):
    for step in (9, 10):
        write_lines(
            tmp_path / f"{step}.jsonl",
            [{"input": "a", "output": "o", "score": score, "step": step} for score in (1, 0)],
        )
    archive = read(tmp_path)
    assert archive.report.num_groups == 2
    assert archive.rows.collect()["step"].to_list() == [9, 9, 10, 10]


def node(role, content, parent=None, tokens=(), drawn=False, **extra):
    return {
        "parent": parent,
        "message": {"role": role, "content": content},
        "sampled": drawn,
        "token_ids": list(tokens),
        "mask": [drawn] * len(tokens),
        **extra,
    }


def episode(nodes, rewards, group="g1", **extra):
    return {
        "id": "e",
        "ok": True,
        "env": {"id": "math", "name": "math"},
        "group": {"id": group},
        "run": {"type": "train", "id": "r", "name": "run", "work": {"step": 4, "policy": {"start": 3, "end": 4}}},
        "traces": [
            {"id": "t", "agent": {"name": "solver", "trainable": True}, "nodes": nodes, "rewards": rewards, **extra}
        ],
    }


def two_turns(answer="4", **extra):
    return [
        node("user", "2+2?", None, (10, 11)),
        node("assistant", "let me see", 0, (20, 21), drawn=True, advantages=[0.5, 0.5]),
        node("tool", "ok", 1, (30,)),
        node("assistant", answer, 2, (40,), drawn=True, advantages=[0.5], **extra),
    ]


def test_prime_rl_reward_is_the_weighted_sum_and_the_token_path_is_root_to_leaf(tmp_path):
    rewards = {"right": {"score": 1.0, "weight": 2.0}, "short": {"score": 0.5, "weight": -1.0}}
    path = tmp_path / "rollouts/step_4/train/all/traces.jsonl"
    archive = read(write_lines(path, [episode(two_turns(finish_reason="length"), rewards)]))
    (row,) = archive.rows.collect().to_dicts()
    assert archive.report.format is LogFormat.PRIME_RL
    assert row["reward"] == 1.0 * 2 + 0.5 * -1
    assert (row["part:right"], row["part:short"]) == (1.0, 0.5)
    assert row["prompt"] == "user: 2+2?"
    assert (row["prompt_length"], row["token_ids"], row["length"]) == (2, [20, 21, 30, 40], 3)  # 30 is the tool's
    assert (row["step"], row["policy_version"], row["purpose"], row["stop"]) == (4, 3, "train", "cap")
    assert (row["group_id"], row["advantage"]) == ("train/4/math/g1", 0.5)


def test_a_branching_tree_is_one_rollout_along_its_last_leaf(tmp_path):
    nodes = [*two_turns(), node("assistant", "5", 2, (50,), drawn=True)]
    rewards = {"right": {"score": 0.0, "weight": 1.0}}
    archive = read(write_lines(tmp_path / "traces.jsonl", [episode(nodes, rewards)]))
    (row,) = archive.rows.collect().to_dicts()
    assert row["token_ids"] == [20, 21, 30, 50]
    assert "some traces branch" in archive.report.warnings[0]


def test_a_tree_whose_parents_do_not_come_first_is_refused_and_walks_no_circle(tmp_path):
    looped = [node("user", "a", 1), node("assistant", "b", 0)]
    good = episode(two_turns(), {"right": {"score": 1.0}})
    late = episode(
        [node("user", "a", 1), node("assistant", "b", None), node("tool", "c", 0)], {"right": {"score": 1.0}}
    )
    report = read(
        write_lines(tmp_path / "traces.jsonl", [episode(looped, {"right": {"score": 1.0}}), good, late])
    ).report
    assert report.num_rows == 2  # a tree without a leaf keeps its reward and has no text
    assert "wanted an earlier node" in report.refused[0].reason


def test_prime_rl_keeps_unscored_apart_and_leaves_other_agents_out(tmp_path):
    first = episode(two_turns(), {"right": None, "short": {"score": 1.0}})
    judge = {"agent": {"name": "judge", "trainable": False}, "nodes": [], "rewards": {}}
    first["traces"].append(judge)
    archive = read(write_lines(tmp_path / "traces.jsonl", [first]))
    (row,) = archive.rows.collect().to_dicts()
    assert (row["reward"], row["unscored"]) == (None, "not scored: right")
    assert "agents that are not trained are left out" in archive.report.warnings[0]


def test_of_all_and_effective_episodes_all_are_read(tmp_path):
    episodes = [
        episode(two_turns(), {"right": {"score": score}}, group=g) for g in ("g1", "g2") for score in (0.0, 1.0)
    ]
    write_lines(tmp_path / "step_4/train/all/traces.jsonl", episodes)
    write_lines(tmp_path / "step_4/train/effective/traces.jsonl", episodes[:2])
    assert read(tmp_path).report.num_rows == 4
    assert read(tmp_path / "step_4/train/effective").report.num_rows == 2


def test_verifiers_components_are_read_once_and_metadata_declares_the_size(tmp_path):
    records = [
        {
            "example_id": example,
            "prompt": [{"role": "user", "content": "q"}],
            "completion": [{"role": "assistant", "content": f"a{n}"}],
            "reward": float(n),
            "answer": "4",
            "metrics": {"exact": float(n)},
            "exact": float(n),  # repeated flat
            "is_truncated": n == 1,
        }
        for example in (0, 1)
        for n in range(2)
    ]
    write_lines(tmp_path / "results.jsonl", records)
    (tmp_path / "metadata.json").write_text(
        json.dumps({"env_id": "sums", "model": "m", "rollouts_per_example": 2, "sampling_args": {"temperature": 0.5}})
    )
    for place in (tmp_path, tmp_path / "results.jsonl"):
        archive = read(place)
        rows = archive.rows.collect()
        assert archive.report.format is LogFormat.VERIFIERS
        assert (archive.report.declared_size, archive.report.group_sizes) == (2, {2: 2})
        assert rows["part:exact"].to_list() == [0.0, 1.0, 0.0, 1.0]
        assert rows["completion"].to_list() == ["a0", "a1", "a0", "a1"]
        assert rows["stop"].to_list() == ["stop", "cap", "stop", "cap"]
        assert set(rows["task"]) == {"sums"} and set(rows["temperature"]) == {0.5}


def test_openrlhf_records_group_by_input(tmp_path):
    records = [{"input": prompt, "output": "o", "reward": r} for prompt, r in (("a", 1), ("b", 0), ("a", 0), ("b", 0))]
    archive = read(write_lines(tmp_path / "samples.jsonl", records))
    assert archive.report.format is LogFormat.OPENRLHF
    assert sorted(rewards_by_group(archive.rows).values()) == [[0.0, 0.0], [1.0, 0.0]]


def nemo(prompt, drawn, reward, width=8):
    """A sample as it is logged: padded to the batch's width, each field a list of one."""
    size = len(prompt) + len(drawn)
    return {
        "content": ["".join(map(str, [*prompt, *drawn]))],
        "rewards": [reward],
        "input_lengths": [size],
        "token_ids": [[*prompt, *drawn] + [0] * (width - size)],
        "token_loss_mask": [
            [0] * len(prompt) + [1] * len(drawn) + [1] * (width - size)
        ],  # padding is not always masked
        "generation_logprobs": [[0.0] * len(prompt) + [-0.5] * len(drawn) + [0.0] * (width - size)],
        "advantages": [[0.0] * len(prompt) + [0.25] * len(drawn) + [0.0] * (width - size)],
    }


def test_nemo_rl_padding_is_cut_and_groups_are_equal_prompt_tokens(tmp_path):
    samples = [
        nemo((1, 2), (3,), 1.0),
        nemo((1, 2), (4, 5, 6), 0.0),
        nemo((1, 2, 9), (3,), 0.0),
        nemo((1, 2, 9), (3,), 0.0),
    ]
    records = [sample | {"idx": index} for index, sample in enumerate(samples)]
    archive = read(write_lines(tmp_path / "train_data_step12.jsonl", records))
    rows = archive.rows.collect()
    assert archive.report.format is LogFormat.NEMO_RL
    assert rows["token_ids"].to_list() == [[3], [4, 5, 6], [3], [3]]
    assert rows["logprobs"].to_list() == [[-0.5], [-0.5] * 3, [-0.5], [-0.5]]
    assert rows["length"].to_list() == [1, 3, 1, 1]
    assert rows["advantage"].to_list() == [0.25] * 4
    assert list(rewards_by_group(archive.rows).values()) == [[1.0, 0.0], [0.0, 0.0]]
    assert set(rows["step"]) == {12} and set(rows["purpose"]) == {"train"}


def test_nemo_rl_without_tokens_wants_the_group_size(tmp_path):
    records = [
        {"content": ["q and a"], "rewards": [r], "input_lengths": [5], "idx": n} for n, r in enumerate((1, 0, 0, 0))
    ]
    path = write_lines(tmp_path / "train_data_step1.jsonl", records)
    with pytest.raises(ArchiveError, match="num_generations_per_prompt with --group-size"):
        read(path)
    archive = read(path, options=ReadOptions(group_size=2))
    assert list(rewards_by_group(archive.rows).values()) == [[1.0, 0.0], [0.0, 0.0]]


def test_skyrl_tells_problems_of_one_prompt_by_their_extras(tmp_path):
    records = [
        {
            "input_prompt": "same", "output_response": "o", "score": score, "stop_reason": stop,
            "env_extras": {"answer": answer}, "data_source": "gsm8k",
        }
        for answer in ("1", "2")
        for score, stop in ((1, "stop"), (0, "length"))
    ]  # fmt: skip
    folder = tmp_path / "dumped_evals" / "global_step_20_evals"
    write_lines(folder / "gsm8k.jsonl", records)
    write_lines(folder / "aggregated_results.jsonl", [{"eval/all/avg_score": 0.5}])
    archive = read(tmp_path)
    rows = archive.rows.collect()
    assert archive.report.format is LogFormat.SKYRL
    assert (archive.report.num_files, archive.report.num_groups) == (1, 2)
    assert rows["stop"].to_list() == ["stop", "cap", "stop", "cap"]
    assert set(rows["step"]) == {20} and set(rows["purpose"]) == {"eval"}


def test_slime_files_load_with_weights_only(tmp_path):
    torch = pytest.importorskip("torch")
    samples = [
        {
            "group_index": group, "index": n, "prompt": "q", "tokens": [1, 2, 7, 8], "response": "r", "response_length": 2,
            "label": "4", "reward": reward, "status": status, "rollout_log_probs": [-0.5, -1.0],
        }
        for group, (n, reward, status) in ((0, (0, 1.0, "completed")), (0, (1, {"score": 0.0, "format": 1.0}, "truncated")))
    ]  # fmt: skip
    path = tmp_path / "rollout_data" / "3.pt"
    path.parent.mkdir()
    torch.save({"rollout_id": 3, "samples": samples}, path)
    archive = read(tmp_path)
    rows = archive.rows.collect()
    assert archive.report.format is LogFormat.SLIME
    assert rows["reward"].to_list() == [1.0, 0.0]
    assert rows["part:format"].to_list() == [None, 1.0]
    assert rows["token_ids"].to_list() == [[7, 8], [7, 8]]
    assert rows["stop"].to_list() == ["stop", "cap"]
    assert (rows["step"][0], rows["prompt_length"][0], archive.report.num_groups) == (3, 2, 1)


def test_areal_groups_are_task_ids_and_a_rollout_may_span_versions(tmp_path):
    for version, task in ((5, 42), (6, 43)):
        records = [
            {
                "task_id": task, "sample_idx": n, "seqlen": 30, "prompt_len": 10, "head_version": version,
                "tail_version": version + n, "reward": float(n), "prompt": "q", "completion": "a",
            }
            for n in range(2)
        ]  # fmt: skip
        write_lines(tmp_path / "rollout" / str(version) / f"{task}.jsonl", records)
    archive = read(tmp_path)
    rows = archive.rows.sort("group_id", "sample").collect()
    assert archive.report.format is LogFormat.AREAL
    assert rows["group_id"].to_list() == ["rollout/42"] * 2 + ["rollout/43"] * 2
    assert rows["step"].to_list() == [5, 5, 6, 6]
    assert rows["policy_version"].to_list() == [5, 6, 6, 7]
    assert set(rows["length"]) == {20}
    assert "span several versions" in archive.report.warnings[0]


def test_open_instruct_groups_are_step_and_prompt_index(tmp_path):
    records = [
        {
            "step": step, "sample_idx": n, "prompt_idx": n // 2, "prompt_tokens": [1, n // 2],
            "response_tokens": [5] * (n + 1),
            "reward": float(n % 2), "advantage": 0.5, "finish_reason": "length" if n == 3 else "stop", "dataset": ["math"],
            "ground_truth": ["4"], "logprobs": None,
        }
        for step in (1, 2)
        for n in range(4)
    ]  # fmt: skip
    archive = read(write_lines(tmp_path / "run_rollouts_000000.jsonl", records))
    rows = archive.rows.collect()
    assert archive.report.format is LogFormat.OPEN_INSTRUCT
    assert rows["group_id"].unique(maintain_order=True).to_list() == ["1/0", "1/1", "2/0", "2/1"]
    assert rows["length"].to_list() == [1, 2, 3, 4] * 2
    assert rows["stop"].to_list() == ["stop", "stop", "stop", "cap"] * 2
    assert set(rows["task"]) == {"math"}


def test_ms_swift_lines_hold_a_step_or_a_sample(tmp_path):
    columns = {
        "step": ["3"] * 4, "prompt": ["a", "a", "b", "b"], "completion": ["w", "x", "y", "z"],
        "accuracy": [1.0, 0.0, 0.0, 0.0], "format": [1.0, 1.0, 0.0, 0.0], "advantages": [0.5, -0.5, 0.0, 0.0],
    }  # fmt: skip
    whole = read(write_lines(tmp_path / "whole" / "completions.jsonl", [columns])).rows.collect()
    single = [{name: values[n] for name, values in columns.items()} for n in range(4)]
    parts = read(write_lines(tmp_path / "single" / "completions.jsonl", single))
    assert parts.report.format is LogFormat.MS_SWIFT
    rows = parts.rows.collect()
    for frame in (whole, rows):
        assert frame["reward"].to_list() == [2.0, 1.0, 0.0, 0.0]
        assert frame["part:accuracy"].to_list() == [1.0, 0.0, 0.0, 0.0]
        assert set(frame["step"]) == {3}
        assert frame["group_id"].n_unique() == 2


def harness(doc, filters=("strict", "flexible"), **extra):
    return [
        {
            "doc_id": doc, "doc": {}, "target": "4", "arguments": {"gen_args_0": {"arg_0": "q", "arg_1": {}}},
            "resps": [["a"]], "filtered_resps": ["a"], "filter": name, "metrics": ["exact_match"],
            "doc_hash": f"{doc}" * 16, "exact_match": float(name == "flexible"), **extra,
        }
        for name in filters
    ]  # fmt: skip


def test_an_lm_eval_log_of_two_filters_wants_one_chosen(tmp_path):
    path = write_lines(tmp_path / "samples_gsm8k_2025-01-02T03-04-05.000001.jsonl", harness(0) + harness(1))
    with pytest.raises(ArchiveError, match=r"holds the filters flexible, strict: .* Choose one with --filter"):
        read(path)
    archive = read(path, options=ReadOptions(filter="flexible"))
    rows = archive.rows.collect()
    assert archive.report.format is LogFormat.LM_EVAL
    assert rows["reward"].to_list() == [1.0, 1.0]
    assert rows["problem_id"].to_list() == ["0-000000000000", "1-111111111111"]
    assert set(rows["task"]) == {"gsm8k"}
    with pytest.raises(ArchiveError, match="has no filter 'loose'; it has flexible, strict"):
        read(path, options=ReadOptions(filter="loose"))


def test_repeats_inside_an_lm_eval_document_are_one_group(tmp_path):
    path = tmp_path / "samples_t.jsonl"
    listed = harness(0, ("none",), resps=[["a", "b"]], filtered_resps=["a", "b"], exact_match=[1.0, 0.0])
    assert list(rewards_by_group(read(write_lines(path, listed)).rows).values()) == [[1.0, 0.0]]
    # One figure for the document says nothing of its repeats.
    single = harness(0, ("none",), resps=[["a", "b"]], filtered_resps=["a", "b"], exact_match=0.5)
    archive = read(write_lines(path, single))
    rows = archive.rows.collect()
    assert rows["completion"].to_list() == ["a", "b"]
    assert rows["unscored"].to_list() == ["the log grades the document, not this repeat"] * 2
    assert "read without rewards" in archive.report.warnings[0]


def test_several_metrics_want_one_named(tmp_path):
    records = harness(0, ("none",), metrics=["bleu", "rouge"], bleu=0.25, rouge=0.5)
    path = write_lines(tmp_path / "samples_t.jsonl", records)
    with pytest.raises(ArchiveError, match=r"has the metrics bleu, rouge\. Name one with --map reward=METRIC"):
        read(path)
    (row,) = read(path, options=ReadOptions(map={"reward": "rouge"})).rows.collect().to_dicts()
    assert (row["reward"], row["part:bleu"]) == (0.5, 0.25)


def test_trl_advantages_betray_weights_that_the_file_does_not_hold(tmp_path):
    # Weights (1, -2): rewards 1 - 2·0 = 1 and 2 - 2·1 = 0, whose plain sums are 1 and 3. The first earned the advantage.
    folder = tmp_path / "completions"
    folder.mkdir()
    columns = {
        "step": [1, 1], "prompt": ["a", "a"], "completion": ["x", "y"], "right": [1.0, 2.0], "long": [0.0, 1.0],
        "advantage": [0.7, -0.7],
    }  # fmt: skip
    pl.DataFrame(columns).write_parquet(folder / "completions_00001.parquet")
    warnings = read(tmp_path).report.warnings
    assert any("in 1 of 1 groups the advantages do not rise with the reward" in line for line in warnings)
    told = read(tmp_path, options=ReadOptions(map={"reward": "right"})).report.warnings
    assert any("do not rise" in line for line in told)  # 1 < 2, and the advantages fall

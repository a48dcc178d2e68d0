"""The archive of a watched run: read back by reader and audits, whole after a crash, no step twice after a resume."""

import os
import signal
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deadheat.archive import LogFormat, read, read_table
from deadheat.audit import AuditOptions, clones, dilution, gate
from deadheat.errors import RunFolderError
from deadheat.hooks import GroupBatch, GroupMonitor, MonitorConfig
from deadheat.sampling.keys import Purpose


def watched(folder, batches, **changes):
    with GroupMonitor(MonitorConfig(archive=folder, every=0, **changes)) as monitor:
        for batch in batches:
            monitor.record(batch)
        return monitor.reading()


def steps_of(folder):
    """Rewards by step, as the reader finds them."""
    rows = read(folder).rows.sort("step", "group_id", "sample").group_by("step", maintain_order=True).agg("reward")
    return dict(rows.collect().iter_rows())


def test_every_column_that_was_given_comes_back(tmp_path):
    batch = GroupBatch(
        step=3,
        rewards=[0.5, 1.0, None, 0.0],
        groups=["q1", "q2", "q1", "q2"],
        correct=[False, True, None, False],
        capped=[False, False, True, None],
        token_ids=[[1, 2], [3], [4, 5, 6], [7]],
        completions=["a", "b", "c", "d"],
        prompts=["one", "two", "one", "two"],
        parts={"right": [0, 1, None, 0], "style": [0.5, 0, 0, 0]},
        advantages=[0.0, 0.7, 0.0, -0.7],
    )
    watched(tmp_path / "groups", [batch], run="mine", arm="a", seed=4)
    archive = read(tmp_path / "groups")
    rows = archive.rows.collect().to_dict(as_series=False)
    assert (archive.report.format, archive.report.num_groups, archive.report.recovered) == (
        LogFormat.OWN,
        2,
        {"explicit": 2},
    )
    assert rows["group_id"] == ["train-000003-000/q1"] * 2 + ["train-000003-000/q2"] * 2
    assert rows["sample"] == [0, 1, 0, 1]
    assert rows["reward"] == [0.5, None, 1.0, 0.0]
    assert rows["unscored"] == [None, "there is no reward", None, None]
    assert rows["kind"] == ["all_wrong"] * 2 + ["live"] * 2
    assert rows["correct"] == [False, None, True, False]
    assert rows["stop"] == ["stop", "cap", "stop", None]
    assert (rows["length"], rows["token_ids"]) == ([2, 3, 1, 1], [[1, 2], [4, 5, 6], [3], [7]])
    assert (rows["prompt"], rows["completion"]) == (["one", "one", "two", "two"], ["a", "c", "b", "d"])
    assert (rows["part:right"], rows["part:style"]) == ([0, None, 1, 0], [0.5, 0, 0, 0])
    assert rows["advantage"] == [0.0, 0.0, 0.7, -0.7]
    assert {rows[name][0] for name in ("run", "arm")} | {rows["seed"][0], rows["step"][0]} == {"mine", "a", 4, 3}
    assert rows["problem_id"] == [digest[:16] for digest in rows["problem_digest"]]


def test_one_prompt_for_a_nested_group_is_the_prompt_of_all_its_rollouts(tmp_path):
    watched(tmp_path, [GroupBatch(step=1, rewards=[[1, 0], [1, 1, 0]], prompts=["one", "two"])])
    assert read(tmp_path).rows.collect()["prompt"].to_list() == ["one"] * 2 + ["two"] * 3


def test_columns_that_were_not_given_are_absent(tmp_path):
    watched(tmp_path, [GroupBatch(step=1, rewards=[[1, 0]])])
    assert not {"arm", "correct", "length", "stop", "completion", "prompt", "advantage"} & set(read(tmp_path).columns)
    assert read_table(tmp_path / "train-000001-000.parquet")["run"].to_list() == [tmp_path.name] * 2


@settings(max_examples=8)
@given(
    st.lists(
        st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0, None]), min_size=2, max_size=4), min_size=1, max_size=4),
        min_size=1,
        max_size=3,
    ),
    st.booleans(),
)
def test_the_audits_of_the_archive_say_what_the_monitor_said(tmp_path_factory, steps, unnamed):
    folder = tmp_path_factory.mktemp("groups")
    prompts = ["one", "two", "three", "four"]
    texts = [[[str(reward) for reward in group] for group in rewards] for rewards in steps]
    batches = [
        GroupBatch(step=step, rewards=rewards, completions=said, prompts=None if unnamed else prompts[: len(rewards)])
        for step, (rewards, said) in enumerate(zip(steps, texts, strict=True), start=1)
    ]
    live = watched(folder, batches)
    rows, options = read(folder).rows, AuditOptions()
    audited = gate(rows, options)
    for name in ("shut_rate", "all_right", "all_wrong", "tied_other"):
        assert getattr(audited, name) == getattr(live, name)
    assert audited.multiplier == live.multiplier
    assert dilution(rows, options).mean == pytest.approx(live.dilution)
    found = dilution(rows, options)
    assert (found.num_dead / found.num_batches, found.num_batches) == (live.dead_steps.estimate, live.dead_steps.n)
    assert clones(rows, options).rollouts == live.clones
    assert clones(rows, options).whole_groups == live.whole_clones


def test_a_run_that_is_killed_leaves_every_batch_it_recorded(tmp_path):
    code = (
        "import os, signal\n"
        "from pathlib import Path\n"
        "from deadheat.hooks import GroupBatch, GroupMonitor, MonitorConfig\n"
        f"monitor = GroupMonitor(MonitorConfig(archive=Path({str(tmp_path / 'groups')!r}), every=0))\n"
        "for step in range(1, 6):\n"
        "    monitor.record(GroupBatch(step=step, rewards=[[1, 0], [step, step]]))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL
    assert steps_of(tmp_path / "groups") == {step: [1, 0, step, step] for step in range(1, 6)}


def test_a_torn_write_is_swept_and_the_rest_is_read(tmp_path):
    watched(tmp_path, [GroupBatch(step=1, rewards=[[1, 0]])])
    (tmp_path / "train-000002-000.parquet.partial").write_bytes(b"PAR1")
    assert steps_of(tmp_path) == {1: [1, 0]}
    watched(tmp_path, [GroupBatch(step=2, rewards=[[1, 1]])], resume=True)
    assert steps_of(tmp_path) == {1: [1, 0], 2: [1, 1]}
    assert not list(tmp_path.glob("*.partial"))


def test_a_resumed_run_replaces_the_steps_it_draws_again_and_keeps_their_files(tmp_path):
    batch, test = (lambda step, a: GroupBatch(step=step, rewards=[[a, a]])), Purpose.EVAL
    first = [batch(1, 1), batch(2, 1), GroupBatch(step=2, rewards=[[9, 9]], purpose=test), batch(3, 1), batch(3, 2)]
    watched(tmp_path, [*first, GroupBatch(step=3, rewards=[[9, 9]], purpose=test)])
    # the checkpoint was of step 2: its evaluation stands, step 3 and the evaluation after it are done again
    watched(tmp_path, [batch(3, 5), batch(4, 5)], resume=True)
    assert steps_of(tmp_path) == {1: [1, 1], 2: [9, 9, 1, 1], 3: [5, 5], 4: [5, 5]}
    aside = sorted(path.name for path in (tmp_path / ".superseded").iterdir())
    assert aside == ["eval-000003-000.0.parquet", "train-000003-000.0.parquet", "train-000003-001.0.parquet"]
    # an evaluation first: it is of the policy after step 3
    watched(tmp_path, [GroupBatch(step=3, rewards=[[7, 7]], purpose=test), batch(4, 6)], resume=True)
    assert steps_of(tmp_path) == {1: [1, 1], 2: [9, 9, 1, 1], 3: [7, 7, 5, 5], 4: [6, 6]}


def test_a_folder_of_another_run_is_refused(tmp_path):
    watched(tmp_path / "used", [GroupBatch(step=1, rewards=[[1, 0]])])
    with pytest.raises(RunFolderError, match=r"already holds the groups of a run\. Pass resume=True"):
        watched(tmp_path / "used", [])
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(RunFolderError, match=r"holds notes\.txt, which no monitor wrote"):
        watched(tmp_path / "other", [], resume=True)


def test_two_monitors_cannot_write_one_folder(tmp_path):
    config = MonitorConfig(archive=tmp_path, every=0)
    with GroupMonitor(config), pytest.raises(RunFolderError, match="being written by another process"):
        GroupMonitor(config)
    GroupMonitor(config).close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_made_is_refused_at_once(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(RunFolderError, match="no permission to write here"):
        GroupMonitor(MonitorConfig(archive=tmp_path / "groups"))


def test_a_disk_that_refuses_ends_the_archive_and_not_the_run(tmp_path):
    import resource

    said = []
    small = GroupBatch(step=1, rewards=[[1, 0]])
    noise = np.random.Generator(np.random.Philox(key=1)).integers(0, 2**31, size=200_000).tolist()
    large = GroupBatch(step=2, rewards=[[1, 1]], token_ids=[[noise, noise[::-1]]])
    monitor = GroupMonitor(MonitorConfig(archive=tmp_path, every=0), say=said.append)
    monitor.record(small)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
        monitor.record(large)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    monitor.record(GroupBatch(step=3, rewards=[[0, 0]]))
    assert len(said) == 1
    assert said[0].startswith("step 2: the archive ends here, counting goes on. cannot write")
    assert (monitor.reading().num_steps, monitor.reading().shut_rate.estimate) == (3, 2 / 3)
    assert steps_of(tmp_path) == {1: [1, 0]}
    GroupMonitor(MonitorConfig(archive=tmp_path, resume=True)).close()  # the folder was let go


def test_steps_of_different_columns_are_read_together(tmp_path):
    watched(
        tmp_path, [GroupBatch(step=1, rewards=[[1, 0]]), GroupBatch(step=2, rewards=[[1, 0]], completions=[["a", "b"]])]
    )
    rows = read(tmp_path).rows.sort("step", "sample").collect()
    assert rows["completion"].to_list() == [None, None, "a", "b"]
    assert rows.schema["reward"] == pl.Float64

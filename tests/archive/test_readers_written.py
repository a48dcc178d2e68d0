"""Logs written here by the real tools, where they are installed: each writer runs in a process of its own.

pip install trl inspect-ai lm-eval verifiers; pip install --no-deps verl
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deadheat.archive import Archive, LogFormat, ReadOptions, read
from deadheat.errors import ArchiveError

from .logs import rewards_by_group

WRITERS = Path(__file__).parent / "written"
ATTEMPTS = Path(__file__).parents[3] / "shared/data/rollouts_qwen25math/math_cot_100_rm_maj8.jsonl.gz"


def write_with(tool: str, module: str, out: Path, *words: object) -> None:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed: its writer cannot run")
    out.mkdir(exist_ok=True)
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(WRITERS / f"with_{tool}.py"), str(out), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **offline}, cwd=out)
    assert done.returncode == 0, done.stderr[-2000:]


def test_trl_writes_runs_of_num_generations(tmp_path):
    write_with("trl", "trl", tmp_path / "run", 1)
    archive = read(tmp_path / "run")
    rows = archive.rows.collect()
    # 4 steps × 8 rows in groups of 4.
    assert (archive.report.format, archive.report.num_rows) == (LogFormat.TRL, 32)
    assert archive.report.group_sizes == {4: 8}
    assert (archive.report.inferred_size, archive.report.num_refused) == (4, 0)
    said = rows["part:accuracy"] + rows["part:brevity"].fill_null(0.0)
    assert (said - rows["reward"]).abs().max() < 1e-12
    silent = rows["completion"].str.contains("2")
    assert rows["part:brevity"].is_null().to_list() == silent.to_list()
    assert not any("do not rise" in line for line in archive.report.warnings)  # the weights were all 1


def test_trl_writes_a_generation_again_for_its_second_update(tmp_path):
    write_with("trl", "trl", tmp_path / "run", 2)
    report = read(tmp_path / "run").report
    assert (report.num_files, report.num_rows, report.num_refused) == (2, 16, 2)


@pytest.mark.parametrize(("form", "how"), [("ray", "prompt text"), ("v1", "explicit")])
def test_verl_writes_a_step_whose_groups_come_back_whole(tmp_path, form, how):
    if not ATTEMPTS.exists():
        pytest.skip("../shared/data/rollouts_qwen25math is not here")
    write_with("verl", "verl", tmp_path / "rollouts", form, ATTEMPTS)
    archive = read(tmp_path / "rollouts")
    assert (archive.report.format, archive.report.recovered) == (LogFormat.VERL, {how: 100})
    assert (archive.report.group_sizes, archive.report.num_refused) == ({8: 100}, 0)
    # of 100 problems 86 are all right, 4 all wrong and 10 mixed
    means = [sum(rewards) / 8 for rewards in rewards_by_group(archive.rows).values()]
    assert (means.count(1.0), means.count(0.0), sum(0 < mean < 1 for mean in means)) == (86, 4, 10)
    assert ("part:rm" in archive.columns) == (form == "ray")


@pytest.mark.parametrize("form", ["eval", "json"])
def test_inspect_writes_epochs(tmp_path, form):
    write_with("inspect", "inspect_ai", tmp_path / "logs", form)
    archive = read(tmp_path / "logs")
    assert (archive.report.format, archive.report.declared_size) == (LogFormat.INSPECT, 2)
    assert list(rewards_by_group(archive.rows).values()) == [[1.0, 1.0], [0.0, 0.0], [1.0, 0.0]]


def harness_log(folder: Path, repeats: int) -> tuple[Archive, Path]:
    write_with("lm_eval", "lm_eval", folder, repeats)
    return read(folder / "log", options=ReadOptions(filter="digits")), folder / "log"


def test_lm_eval_writes_a_row_per_document_and_filter(tmp_path):
    archive, log = harness_log(tmp_path / "one", 1)
    rows = archive.rows.sort("source_row").collect()
    assert archive.report.format is LogFormat.LM_EVAL
    assert rows["reward"].to_list() == [1.0, 0.0, 0.0, 0.0]  # "so 1" holds 1, and only 0+1 is 1
    assert rows["completion"].to_list() == ["so 1", "1", "so 1", "1"]
    assert rows["answer"].to_list() == ["1"] * 4
    assert set(rows["task"]) == {"sums"}
    with pytest.raises(ArchiveError, match="holds the filters digits, strict"):
        read(log)


def test_lm_eval_repeats_stand_inside_a_document(tmp_path):
    archive, _ = harness_log(tmp_path / "two", 2)
    assert archive.report.group_sizes == {2: 4}
    assert archive.rows.collect()["reward"].null_count() == 8


def test_verifiers_writes_episodes(tmp_path):
    write_with("verifiers", "verifiers", tmp_path / "run")
    archive = read(tmp_path / "run")
    rows = archive.rows.collect()
    assert archive.report.group_sizes == {2: 1}
    assert rows["reward"].to_list() == [2.0, None]  # 1 × 2; the judge of the other did not answer
    assert rows["token_ids"].to_list() == [[5], [5]]
    assert rows["reference"].to_list() == ["4", "4"]

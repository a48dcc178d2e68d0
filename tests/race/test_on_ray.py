"""Arms × seeds as Ray tasks: the bytes of one process, and no arm lost to another's trouble."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deadheat.archive.folder import LOCK
from deadheat.cluster import Executor
from deadheat.errors import ClusterError
from deadheat.policy import PolicyConfig
from deadheat.race import RaceConfig, RaceResult, parse_race, run_race, verify_race
from deadheat.race.executors import FAILURE, jobs_of
from deadheat.race.on_ray import Site, require_site, resources_of
from deadheat.train import Progress

RAY = Executor.RAY


LONG = '\n[[arm]]\nname = "long"\nsampling.max_new_tokens = 1000\n'


def test_a_lost_worker_and_a_broken_arm_cost_their_own_runs_only(
    tmp_path: Path, small_text: str, finished: RaceResult, lasting_bytes, ray_cluster: None
) -> None:
    text = small_text.replace("seeds = 2", "seeds = [2]") + LONG
    race, folder = parse_race(text, source="x"), tmp_path / "small"
    seen: list[Progress] = []

    def kill_one(progress: Progress) -> None:
        if not seen:
            os.kill(_worker_of("run_here"), signal.SIGKILL)
        seen.append(progress)

    result = run_race(race, text, folder, executor=RAY, observe=kill_one)
    told = {failure.identity.arm: failure.message for failure in result.failures}
    assert told.pop("long").startswith("PromptTooLongError: ")
    assert "PromptTooLongError" in (folder / "long" / "seed-2" / FAILURE).read_text()
    ((lost, message),) = told.items()
    assert message.startswith("the Ray worker was lost (WorkerCrashedError: ")
    (kept,) = {"checker", "plant"} - {lost}
    assert {progress.identity.arm for progress in seen} >= {kept}
    here, there = (lasting_bytes(run / kept / "seed-2") for run in (finished.folder, folder))
    assert here == there, "a run has the bytes in a Ray task that it has in this process"
    assert not (folder / "manifest.json").exists()


def _worker_of(function: str) -> int:
    """A process that runs a Ray task of this name; Ray writes it into the process's title."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            title = (place / "cmdline").read_bytes().decode(errors="replace")
        except OSError:  # it has ended meanwhile
            continue
        if title.startswith("ray::") and function in title:
            return int(place.name)
    raise AssertionError(f"no process runs ray::{function}")


def test_a_race_that_is_killed_leaves_no_task_behind_and_is_resumed_to_the_same_bytes(
    tmp_path: Path, small: RaceConfig, small_text: str, finished: RaceResult, lasting_bytes, ray_cluster: None
) -> None:
    folder = tmp_path / "small"
    (tmp_path / "small.toml").write_text(small_text)
    verb = "from deadheat.cli import main; main()"
    command = [sys.executable, "-c", verb, "race", str(tmp_path / "small.toml"), "--out", str(folder)]
    local = {**os.environ, "RAY_ADDRESS": "local"}
    with subprocess.Popen(
        [*command, "--executor", "ray"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=local
    ) as running:
        while running.poll() is None and not list(folder.glob("*/seed-*/rollouts/step-00002.parquet")):
            time.sleep(0.05)
        running.kill()
        _, errors = running.communicate()
    assert running.returncode == -signal.SIGKILL, errors
    assert (folder / LOCK).read_text() != "", "the mark of the race that was killed"
    before = _settled(folder)
    time.sleep(2)
    assert _settled(folder) == before, "a task of a dead race must not go on writing"

    seen: list[Progress] = []
    resumed = run_race(small, small_text, folder, executor=RAY, resume=True, observe=seen.append)
    assert resumed.failures == ()
    assert {progress.identity for progress in seen} == set(jobs_of(small))
    here, there = lasting_bytes(finished.folder), lasting_bytes(folder)
    assert here.keys() == there.keys()
    assert [name for name in here if here[name] != there[name]] == []
    assert verify_race(folder, observe=lambda part: None).holds


def _settled(folder: Path) -> dict[str, int]:
    """Files and their sizes once nothing has changed for a second."""
    seen: dict[str, int] = {}
    while True:
        now = {str(path): path.stat().st_size for path in folder.rglob("*") if path.is_file()}
        if now == seen:
            return now
        seen = now
        time.sleep(1)


def test_a_node_that_sees_another_folder_or_has_other_versions_is_refused(tmp_path: Path) -> None:
    site = Site(folder=tmp_path / "run", home=tmp_path, mark="node-1 17 99", versions={"deadheat": "0.0.9"})
    with pytest.raises(
        ClusterError, match=r"cannot see .*/run; put the run folder \(--out\) on storage that every node"
    ):
        require_site(site)
    site.folder.mkdir()
    with pytest.raises(ClusterError, match=r"sees another folder at .*/run; put the run folder"):
        require_site(site)
    (site.folder / LOCK).write_text("node-1 17 98")
    with pytest.raises(ClusterError, match="sees another folder"):
        require_site(site)
    (site.folder / LOCK).write_text("node-1 17 99")
    with pytest.raises(ClusterError, match=r"has deadheat 0\.1\.0 in place of 0\.0\.9.*install the same versions"):
        require_site(site)


def test_a_run_that_no_node_can_hold_is_refused_before_it_trains(
    tmp_path: Path, small_text: str, ray_cluster: None
) -> None:
    text = small_text.replace("threads = 1", "threads = 64")
    with pytest.raises(ClusterError, match="no node of the Ray cluster has 64 cores"):
        run_race(parse_race(text, source="x"), text, tmp_path / "small", executor=RAY, observe=lambda progress: None)
    assert not list((tmp_path / "small").glob("*/seed-*"))


@pytest.mark.parametrize(
    ("device", "has_gpus", "gpus"), [("cpu", True, 0), ("cuda", False, 1), ("auto", True, 1), ("auto", False, 0)]
)
def test_a_run_asks_for_a_gpu_where_its_device_is_one(device: str, has_gpus: bool, gpus: int) -> None:
    policy = PolicyConfig.model_validate({"device": device})
    asked = resources_of(policy, 3, has_gpus=has_gpus)
    assert (asked.num_cpus, asked.num_gpus) == (3, gpus)

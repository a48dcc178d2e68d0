"""A race killed again and again at keyed moments and resumed each time leaves the bytes of a race left in peace."""

import multiprocessing as mp
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from deadheat.archive import check_manifest
from deadheat.race import RaceConfig, RaceResult, run_race, verify_race
from deadheat.sampling.keys import stream_key, uniforms

DEADHEAT = [sys.executable, "-c", "from deadheat.cli import main; main()"]
NUM_KILLS = 7  # the first one hits the command, the others processes that call the same function


def num_files(folder: Path) -> int:
    """Counted while a race writes: `os.walk` passes over a folder that was renamed meanwhile."""
    return sum(len(names) for _, _, names in os.walk(folder))


def wait_for(folder: Path, files: int, delay_s: float, *, alive: Callable[[], bool]) -> None:
    """Until the folder holds that many files, and a moment longer."""
    while alive() and num_files(folder) < files:
        time.sleep(0.02)
    time.sleep(delay_s)


def test_a_race_killed_at_any_moment_and_resumed_ends_with_the_same_bytes(
    tmp_path: Path, finished: RaceResult, small: RaceConfig, small_text: str, lasting_bytes
) -> None:
    folder = tmp_path / "runs" / "small"
    (tmp_path / "small.toml").write_text(small_text)
    command = [*DEADHEAT, "race", str(tmp_path / "small.toml"), "--out", str(folder)]
    draws = uniforms(stream_key(0, "kill-moments"), 2 * NUM_KILLS)
    # Later each time, from the first files to the last ones; then up to 60 ms more, to fall inside a step.
    moments = sorted(4 + int(share * (num_files(finished.folder) - 8)) for share in draws[:NUM_KILLS])
    delays_s = (0.06 * draws[NUM_KILLS:]).tolist()

    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as running:
        wait_for(folder, moments[0], delays_s[0], alive=lambda: running.poll() is None)
        running.kill()
        _, errors = running.communicate()
    assert running.returncode == -signal.SIGKILL, errors

    context = mp.get_context("forkserver")  # a clean process that has imported everything, and forks the next attempt
    context.set_forkserver_preload(["deadheat.race.run"])
    for files, delay_s in zip(moments[1:], delays_s[1:], strict=True):
        attempt = context.Process(
            target=run_race, args=(small, small_text, folder), kwargs={"resume": True, "observe": repr}
        )
        attempt.start()
        wait_for(folder, files, delay_s, alive=attempt.is_alive)
        attempt.kill()
        attempt.join()
        assert attempt.exitcode == -signal.SIGKILL, "the race was over before it could be killed"
        assert not (folder / "manifest.json").exists()

    done = subprocess.run([*command, "--resume"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    here, there = lasting_bytes(finished.folder), lasting_bytes(folder)
    assert here.keys() == there.keys()
    assert [name for name in here if here[name] != there[name]] == []
    for needed in ("adapter.safetensors", "optimizer.safetensors"):
        assert f"plant/seed-2/checkpoints/step-00004/{needed}" in there
    assert check_manifest(folder) == []
    assert verify_race(folder, observe=lambda part: None).holds

"""In this process, in worker processes, with a worker killed or an arm broken: the same bytes, and no other arm lost."""

from pathlib import Path
from typing import Any

import pytest

from deadheat.archive import check_manifest, plain, read_json, write_text
from deadheat.errors import RunFolderError
from deadheat.race import RaceConfig, RaceResult, parse_race, run_race, verify_race
from deadheat.race.executors import FAILURE, _Crew, jobs_of
from deadheat.train import Progress, RunIdentity


def quiet(progress: Progress) -> None:
    """Nobody watches."""


def test_jobs_go_seed_by_seed_and_within_a_seed_in_file_order(small: RaceConfig) -> None:
    assert [str(job.folder) for job in jobs_of(small)] == [
        "checker/seed-1",
        "plant/seed-1",
        "checker/seed-2",
        "plant/seed-2",
    ]


def test_a_killed_worker_costs_its_own_run_only_and_the_resumed_race_has_the_bytes_of_an_uninterrupted_one(
    tmp_path: Path,
    small: RaceConfig,
    small_text: str,
    finished: RaceResult,
    lasting_bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crews: list[_Crew] = []
    seen: list[Progress] = []

    class Watched(_Crew):
        def __init__(self, *fields: Any) -> None:
            super().__init__(*fields)
            crews.append(self)

    def kill_one(progress: Progress) -> None:
        if progress.step == 1 and all(told.step < 1 for told in seen):
            (worker,) = [worker for worker in crews[0]._workers if worker.job == progress.identity]
            worker.process.kill()  # in the middle of the run it has just told of
        seen.append(progress)

    monkeypatch.setattr("deadheat.race.executors._Crew", Watched)
    folder = tmp_path / "small"
    result = run_race(small, small_text, folder, workers=2, observe=kill_one)
    (failure,) = result.failures
    assert failure.message == "its process was killed by signal 9; out of memory is the usual cause"
    done = {job for job in jobs_of(small) if (folder / job.folder / "outcome.json").exists()}
    assert done == set(jobs_of(small)) - {failure.identity}
    for job in done:
        assert lasting_bytes(folder / job.folder) == lasting_bytes(finished.folder / job.folder), (
            "a run has the bytes in a worker that it has in this process"
        )
    assert {progress.identity for progress in seen} == set(jobs_of(small))
    assert result.verdict.missing == (str(failure.identity.folder),)
    assert not (folder / "manifest.json").exists(), "an unfinished race is not sealed"

    with pytest.raises(RunFolderError, match=r"already holds a run. Pass --resume"):
        run_race(small, small_text, folder, observe=quiet)
    resumed = run_race(small, small_text, folder, resume=True, observe=quiet)
    assert resumed.failures == ()
    here, there = lasting_bytes(finished.folder), lasting_bytes(folder)
    assert here.keys() == there.keys()
    # The verdict on the other three runs was a look, and the one on all four is the second.
    assert [name for name in here if here[name] != there[name]] == ["looks.json", "verdict.json"]
    assert resumed.verdict.looks is not None and resumed.verdict.looks.number == 2
    assert plain(resumed.verdict.pairs) == plain(finished.verdict.pairs)
    assert verify_race(folder, observe=lambda part: None).holds


def test_a_worker_that_died_before_it_took_its_job_costs_that_job_only(tmp_path: Path, small: RaceConfig) -> None:
    crew = _Crew(small, tmp_path, jobs_of(small)[:2], 1)
    (worker,) = crew._workers
    worker.process.kill()
    worker.process.join()
    (failure,) = crew.work(quiet)
    crew.dismiss()
    assert failure.identity == jobs_of(small)[0]
    assert failure.message.startswith("its process was killed by signal 9")
    assert (tmp_path / jobs_of(small)[1].folder / "outcome.json").exists()


BROKEN_ARMS = """
[[arm]]
name = "checker"

[[arm]]
name = "long"
sampling.max_new_tokens = 1000

[[arm]]
name = "wild"
update.learning_rate = 1e30
"""


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory, small_text: str) -> tuple[RaceResult, str]:
    """One seed of three arms: one runs, one cannot start, one diverges."""
    head = small_text[: small_text.index("[[arm]]")]
    text = head.replace("seeds = 2", "seeds = [2]") + BROKEN_ARMS
    folder = tmp_path_factory.mktemp("troubled") / "small"
    return run_race(parse_race(text, source="x"), text, folder, observe=quiet), text


def test_an_arm_that_cannot_run_is_recorded_and_the_others_are_judged(
    troubled: tuple[RaceResult, str], finished: RaceResult
) -> None:
    result, _ = troubled
    (failure,) = result.failures
    assert failure.identity == RunIdentity(race="small", arm="long", seed=2)
    assert failure.message.startswith("PromptTooLongError: problem ")
    assert "Lower max_new_tokens" in failure.message
    record = (result.folder / "long" / "seed-2" / FAILURE).read_text()
    assert record.startswith("Traceback") and "PromptTooLongError" in record
    assert result.verdict.missing == ("long/seed-2",)
    assert [(pair.arm_a, pair.arm_b) for pair in result.verdict.pairs] == [("checker", "wild")]
    for name in ("rollouts/step-00004.parquet", "evals/step-00004.parquet", "steps.parquet"):
        ours, theirs = (folder / "checker" / "seed-2" / name for folder in (result.folder, finished.folder))
        assert ours.read_bytes() == theirs.read_bytes(), "the honest arm's records are those of a race without trouble"


def test_a_diverged_arm_is_an_outcome_and_not_a_failure(troubled: tuple[RaceResult, str]) -> None:
    result, _ = troubled
    outcome = read_json(result.folder / "wild" / "seed-2" / "outcome.json")
    assert (outcome["ending"], outcome["step"]) == ("diverged", 1)
    assert result.verdict.diverged == ("wild/seed-2",)
    assert result.verdict.pairs[0].contrasts[0].steps_b == (0,)
    assert "wild/seed-2 diverged and is read at its last evaluation" in (result.folder / "report.html").read_text()


def test_the_failure_of_a_run_is_forgotten_once_it_has_run(
    troubled: tuple[RaceResult, str], finished: RaceResult, tmp_path: Path, small: RaceConfig, small_text: str
) -> None:
    import shutil

    folder = Path(shutil.copytree(finished.folder, tmp_path / "small"))
    write_text(folder / "plant" / "seed-2" / FAILURE, "Traceback: the machine was out of memory")
    assert run_race(small, small_text, folder, resume=True, observe=quiet).failures == ()
    assert not (folder / "plant" / "seed-2" / FAILURE).exists()
    assert check_manifest(folder) == []

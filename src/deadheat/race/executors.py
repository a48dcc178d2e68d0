"""Where the runs of a race happen: in this process, or in N local processes, with equal bytes. Ray: `on_ray`.

A job is one arm under one seed. What fails in a job is recorded and leaves the other jobs alone; a process that dies is
replaced and its job counts as failed. Only an uncoupled race stops everything.
"""

import multiprocessing as mp
import os
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

from deadheat.archive import write_text
from deadheat.errors import RunFolderError, UncoupledError
from deadheat.race.config import RaceConfig
from deadheat.race.coupling import check_step_one
from deadheat.train import Observer, Progress, RunIdentity, train_run

FAILURE = "failure.txt"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A run that ended in an error or a killed process."""

    identity: RunIdentity
    message: str
    uncoupled: bool = False  # the arms do not share their draws: the race is refused


def jobs_of(race: RaceConfig) -> list[RunIdentity]:
    """Seeds in order, and within a seed the arms in file order."""
    return [RunIdentity(race=race.name, arm=arm, seed=seed) for seed in race.seeds for arm in race.arms]


def run_job(race: RaceConfig, identity: RunIdentity, folder: Path, observe: Observer) -> Failure | None:
    """One run; checks the coupling of its seed as soon as step one is on disk. Errors come back as a `Failure`."""

    def watch(progress: Progress) -> None:
        if progress.step == 1 or progress.finished:
            check_step_one(folder, race.name, race.arms, identity.seed)
        observe(progress)

    try:
        train_run(race.arms[identity.arm], identity, folder, observe=watch)
    except UncoupledError as error:
        return Failure(identity=identity, message=str(error), uncoupled=True)
    except Exception as error:  # noqa: BLE001  the boundary: one arm's fault, whatever it is, must not lose another's records
        with suppress(RunFolderError):  # where the fault is a full disk, the message below has to do
            write_text(folder / identity.folder / FAILURE, traceback.format_exc())
        return Failure(identity=identity, message=f"{type(error).__name__}: {error}")
    (folder / identity.folder / FAILURE).unlink(missing_ok=True)
    return None


def run_in_process(race: RaceConfig, folder: Path, observe: Observer) -> list[Failure]:
    """Every job after the other."""
    failures = []
    for identity in jobs_of(race):
        failure = run_job(race, identity, folder, observe)
        if failure is not None:
            failures.append(failure)
            if failure.uncoupled:
                break
    return failures


def run_in_workers(race: RaceConfig, folder: Path, observe: Observer, *, workers: int) -> list[Failure]:
    """Jobs over `workers` local processes, each loading its own model."""
    crew = _Crew(race, folder, jobs_of(race), workers)
    try:
        return crew.work(observe)
    finally:
        crew.dismiss()


@dataclass(kw_only=True)
class _Worker:
    process: SpawnProcess
    pipe: Connection
    job: RunIdentity | None


class _Crew:
    """Worker processes, and which job each one has."""

    def __init__(self, race: RaceConfig, folder: Path, jobs: Sequence[RunIdentity], size: int) -> None:
        self._race, self._folder, self._waiting = race, folder, list(jobs)
        self._context = mp.get_context("spawn")
        self._workers = [self._hire() for _ in range(min(size, len(jobs)))]

    def work(self, observe: Observer) -> list[Failure]:
        failures: list[Failure] = []
        for worker in self._workers:
            self._give(worker)
        while busy := [worker for worker in self._workers if worker.job is not None]:
            ready = wait([worker.pipe for worker in busy])
            for worker in [worker for worker in busy if worker.pipe in ready]:
                failure = self._hear(worker, observe)
                if failure is not None:
                    failures.append(failure)
                    if failure.uncoupled:
                        return failures
        return failures

    def dismiss(self) -> None:
        """Workers without a job were told to leave and may finish doing so; the others are stopped."""
        for worker in self._workers:
            if worker.job is None:
                worker.process.join(timeout=30)
            worker.process.terminate()
            worker.process.join()
            worker.pipe.close()

    def _hear(self, worker: _Worker, observe: Observer) -> Failure | None:
        job = worker.job
        assert job is not None
        try:
            message = worker.pipe.recv()
        except (EOFError, ConnectionResetError):  # the second where it died before it had taken its job
            worker.process.join()
            code = worker.process.exitcode
            self._replace(worker)
            cause = f"killed by signal {-code}" if code is not None and code < 0 else f"exited with code {code}"
            return Failure(identity=job, message=f"its process was {cause}; out of memory is the usual cause")
        if isinstance(message, Progress):
            observe(message)
            return None
        self._give(worker)
        return message if isinstance(message, Failure) else None

    def _replace(self, worker: _Worker) -> None:
        worker.pipe.close()
        self._workers.remove(worker)
        if self._waiting:
            self._workers.append(self._hire())
            self._give(self._workers[-1])

    def _hire(self) -> _Worker:
        here, there = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(there, self._race, self._folder, os.getpid()), daemon=True)
        process.start()
        there.close()
        return _Worker(process=process, pipe=here, job=None)

    def _give(self, worker: _Worker) -> None:
        worker.job = self._waiting.pop(0) if self._waiting else None
        with suppress(BrokenPipeError):  # a worker that is no more is heard of at the next `_hear`
            worker.pipe.send(worker.job)


def _serve(pipe: Connection, race: RaceConfig, folder: Path, parent: int) -> None:
    threading.Thread(target=_die_with, args=(parent,), daemon=True).start()
    while (identity := pipe.recv()) is not None:
        pipe.send(run_job(race, identity, folder, pipe.send))


def _die_with(parent: int) -> None:
    """A worker whose race was killed must not go on writing into a folder that is being resumed."""
    while os.getppid() == parent:
        time.sleep(0.1)
    os._exit(1)

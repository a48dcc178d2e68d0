"""A race from file to verdict: claim the folder, run every arm under every seed, check the coupling, judge, seal."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from deadheat.archive import claim_folder, plain, read_json, refuse_used, seal, write_json, write_text
from deadheat.cluster import Executor
from deadheat.errors import UncoupledError
from deadheat.policy import fetch_model
from deadheat.race.config import RaceConfig
from deadheat.race.environment import environment
from deadheat.race.executors import Failure, run_in_process, run_in_workers
from deadheat.race.forecast import lock_in_folder
from deadheat.race.looks import looks_held, write_looks
from deadheat.race.on_ray import run_on_ray
from deadheat.race.page import write_report
from deadheat.race.record import as_record
from deadheat.race.verdict import ByClock, RaceVerdict, equal_seconds, judge
from deadheat.tasks import load_task, validate_checker
from deadheat.tasks.timed import open_checker
from deadheat.train import Observer

ENVIRONMENT = "environment.json"
REPORT = "report.html"
TIMING = "timing.json"
TOML = "race.toml"
VERDICT = "verdict.json"


@dataclass(frozen=True, kw_only=True)
class RaceResult:
    """What a race left behind."""

    folder: Path
    verdict: RaceVerdict
    failures: tuple[Failure, ...]  # runs to be tried again with --resume; empty: the race is complete and sealed
    notes: tuple[str, ...]  # what a reader should know: a resumed run, files a crash had half written


def run_race(
    race: RaceConfig,
    text: str,
    folder: Path,
    *,
    workers: int = 1,
    executor: Executor = Executor.LOCAL,
    resume: bool = False,
    observe: Observer,
) -> RaceResult:
    """Runs what is not yet finished and judges what is; `text` is the race file, kept beside its resolution.

    `workers` runs share a machine's cores: as local processes, or as Ray tasks on nodes of that many cores.
    """
    race = _with_threads(race, folder, workers=workers, resume=resume)
    check_tasks(race)
    for model in dict.fromkeys(arm.policy.model for arm in race.arms.values()):
        fetch_model(model)
    with claim_folder(folder, race.resolved(), resume=resume) as claim:
        notes = [
            f"{path.relative_to(folder)} was half written when the race stopped; it is rebuilt" for path in claim.swept
        ]
        notes += _record_environment(folder)
        lock_in_folder(folder, text)
        write_text(folder / TOML, text)
        failures = tuple(_runner(executor, workers)(race, folder, observe))
        refused = [failure for failure in failures if failure.uncoupled]
        if refused:
            raise UncoupledError(refused[0].message)
        with looks_held(folder):
            verdict = judge(folder, race)
            _write_verdict(folder, race, verdict)
            if not failures:
                seal(folder)
    return RaceResult(folder=folder, verdict=verdict, failures=failures, notes=tuple(notes))


def refuse_used_folder(race: RaceConfig, folder: Path, *, workers: int = 1, resume: bool = False) -> None:
    """A `RunFolderError` where `run_race` would refuse what the folder holds: to be told before any work is shown."""
    refuse_used(folder, _with_threads(race, folder, workers=workers, resume=resume).resolved(), resume=resume)


def check_tasks(race: RaceConfig, *, progress: Callable[[int, int], None] | None = None) -> None:
    """Every distinct task of the race grades all its own gold answers right, or a `TaskError` says which it does not."""
    for config in {arm.task.model_dump_json(): arm.task for arm in race.arms.values()}.values():
        task = load_task(config)
        with open_checker(task) as check:
            validate_checker(task, check, progress=progress)


def _with_threads(race: RaceConfig, folder: Path, *, workers: int, resume: bool) -> RaceConfig:
    """Threads decide bytes, so a resumed race keeps the number it began with."""
    threads = max(1, (os.cpu_count() or 1) // workers)
    held = folder / "resolved.json"
    if resume and held.exists():
        threads = next(arm.threads or threads for arm in RaceConfig.from_resolved(read_json(held)).arms.values())
    return race.with_threads(threads)


def _runner(executor: Executor, workers: int) -> Callable[[RaceConfig, Path, Observer], list[Failure]]:
    if executor is Executor.RAY:
        return run_on_ray
    if workers == 1:
        return run_in_process
    return lambda race, folder, observe: run_in_workers(race, folder, observe, workers=workers)


def _write_verdict(folder: Path, race: RaceConfig, verdict: RaceVerdict) -> None:
    """Everything that says what the race says; the look first, so that nobody reads a verdict that was not counted."""
    if verdict.looks is not None:
        write_looks(folder, verdict.looks)
    write_json(folder / VERDICT, as_record(verdict))
    by_clock = equal_seconds(folder, race)
    write_json(folder / TIMING, _timing(by_clock))
    write_report(folder / REPORT, folder, race, verdict, by_clock=by_clock)


def _record_environment(folder: Path) -> list[str]:
    path, now = folder / ENVIRONMENT, environment()
    if not path.exists():
        write_json(path, now)
        return []
    before = read_json(path)
    changed = sorted(name for name in now if now[name] != before.get(name))
    return (
        [f"resumed under another {', '.join(changed)}: bytes may differ from an uninterrupted race"] if changed else []
    )


def _timing(by_clock: ByClock) -> dict[str, object]:
    return {"equal_seconds": [{"arm_a": a, "arm_b": b, **plain(reading)} for (a, b), reading in by_clock.items()]}

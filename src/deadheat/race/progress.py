"""Live progress of a race: steps done of all steps, with an ETA, and the last word of whichever run spoke."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deadheat.race.config import RaceConfig
from deadheat.race.executors import jobs_of
from deadheat.reports import track
from deadheat.train import Observer, Progress, RunIdentity, read_outcome
from deadheat.train.checkpoint import latest_step


@contextmanager
def race_progress(race: RaceConfig, folder: Path) -> Iterator[Observer]:
    """An observer that shows a bar; steps that an earlier attempt finished do not make this one look faster."""
    limits = {identity: race.arms[identity.arm].stop.steps for identity in jobs_of(race)}
    done = {identity: _done_before(folder / identity.folder, limit) for identity, limit in limits.items()}
    with track(f"race {race.name}", total=sum(limits.values()), done=sum(done.values())) as tracker:

        def observe(progress: Progress) -> None:
            identity = progress.identity
            reached = limits[identity] if progress.finished else progress.step
            moved = max(0, reached - done[identity])
            done[identity] += moved
            tracker.advance(moved, note=_words(identity, progress))

        yield observe


def _words(identity: RunIdentity, progress: Progress) -> str:
    return f"{identity.arm}/{identity.seed} {progress.note}"


def _done_before(run_folder: Path, limit: int) -> int:
    return limit if read_outcome(run_folder) is not None else (latest_step(run_folder) or 0)

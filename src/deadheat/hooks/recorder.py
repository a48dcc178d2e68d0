"""The archive of a watched run: a Parquet file per batch in our schema, each whole or absent, nothing held back.

    <folder>/train-000012-000.parquet      step 12, its first batch; `deadheat audit FOLDER` reads them all
    <folder>/.superseded/                  files of steps that a resumed run drew again: kept, and not read

One process writes a folder at a time. A run that goes on from a checkpoint draws the steps after it again: with the first
batch of a session, files of that step and later ones are set aside, so that no step is counted twice.
"""

import fcntl
import os
import re
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import polars as pl

from deadheat.archive.files import PARTIAL, disk_errors, sweep_partials
from deadheat.archive.readers.record import ARCHIVE_SCHEMA, PART
from deadheat.archive.readers.source import text_digest
from deadheat.archive.rollouts import write_table
from deadheat.credit import GroupKind
from deadheat.errors import RunFolderError
from deadheat.hooks.batch import Rollouts
from deadheat.sampling.keys import Purpose

_LOCK = ".lock"
_ASIDE = ".superseded"
_FILE = re.compile(r"(\w[\w-]*)-(\d+)-(\d+)\.parquet")


class Recorder:
    """Writes the batches of one run."""

    def __init__(self, folder: Path, *, run: str, arm: str, seed: int, resume: bool) -> None:
        self._folder, self._begun = folder, not resume
        self._labels: dict[str, str | int] = {"run": run, "seed": seed}
        if arm:
            self._labels["arm"] = arm
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._lock: int | None = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _hold(self._lock, folder)
            _refuse_used(folder, resume=resume)
            sweep_partials(folder)
        except RunFolderError:
            self.close()
            raise

    def write(self, rows: Rollouts, kinds: Sequence[GroupKind]) -> Path:
        """One batch as a file of its own; returns its path."""
        if not self._begun:
            _set_aside(self._folder, rows)
            self._begun = True
        stem = f"{rows.purpose.value}-{rows.step:06d}"
        names = (f"{stem}-{batch:03d}" for batch in count())
        place = next(name for name in names if not (self._folder / f"{name}.parquet").exists())
        path = self._folder / f"{place}.parquet"
        write_table(path, rollout_rows(rows, kinds, place=place, labels=self._labels))
        return path

    def close(self) -> None:
        """Let go of the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def rollout_rows(
    rows: Rollouts, kinds: Sequence[GroupKind], *, place: str, labels: dict[str, str | int]
) -> pl.DataFrame:
    """The batch in the archive's columns, group by group; what was not given has no column."""
    order = [row for members in rows.members for row in members]
    sizes = [len(members) for members in rows.members]
    rewards = [None if reward != reward else reward for reward in rows.rewards_B.tolist()]
    columns: dict[str, Sequence[object]] = {
        "group_id": [f"{place}/{name}" for name, size in zip(rows.names, sizes, strict=True) for _ in range(size)],
        "sample": [sample for size in sizes for sample in range(size)],
        "reward": [rewards[row] for row in order],
        "unscored": ["there is no reward" if rewards[row] is None else None for row in order],
        "kind": [kind.value for kind, size in zip(kinds, sizes, strict=True) for _ in range(size)],
    }
    given: dict[str, Sequence[object] | None] = {
        "correct": rows.correct,
        "length": rows.lengths,
        "stop": None if rows.capped is None else [_STOPS[flag] for flag in rows.capped],
        "completion": rows.completions,
        "token_ids": rows.token_ids,
        "prompt": rows.prompts,
        "problem_digest": None if rows.prompts is None else [text_digest(prompt) for prompt in rows.prompts],
        "advantage": rows.advantages,
    }
    columns |= {name: [values[row] for row in order] for name, values in given.items() if values is not None}
    if "problem_digest" in columns:
        columns["problem_id"] = [str(digest)[:16] for digest in columns["problem_digest"]]
    frame = pl.DataFrame({n: pl.Series(n, list(v), dtype=ARCHIVE_SCHEMA[n]) for n, v in columns.items()})
    shared = {**labels, "purpose": rows.purpose.value, "step": rows.step, "recovered": "explicit"}
    parts = [pl.Series(f"{PART}{n}", [v[row] for row in order], dtype=pl.Float64) for n, v in rows.parts.items()]
    return frame.with_columns(
        *(pl.lit(value, dtype=ARCHIVE_SCHEMA[name]).alias(name) for name, value in shared.items()), *parts
    )


_STOPS = {True: "cap", False: "stop", None: None}


def _hold(lock: int, folder: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise RunFolderError(
            f"{folder} is being written by another process. Wanted one writer: gather the groups and watch them in one "
            "process, or give each process a folder of its own."
        ) from error


def _refuse_used(folder: Path, *, resume: bool) -> None:
    held = [path.name for path in folder.iterdir() if not path.name.startswith(".") and PARTIAL not in path.name]
    foreign = sorted(name for name in held if not _FILE.fullmatch(name))
    if foreign:
        raise RunFolderError(f"{folder} holds {foreign[0]}, which no monitor wrote. Choose an empty or new folder.")
    if held and not resume:
        raise RunFolderError(
            f"{folder} already holds the groups of a run. Pass resume=True to go on with it, or choose another folder."
        )


def _set_aside(folder: Path, rows: Rollouts) -> None:
    """Move the files of what the resumed run will draw again out of the readers' sight."""
    first = _moment(rows.purpose.value, rows.step)
    for path in sorted(folder.glob("*.parquet")):
        named = _FILE.fullmatch(path.name)
        if named is None or _moment(named[1], int(named[2])) < first:
            continue
        with disk_errors(path):
            aside = folder / _ASIDE
            aside.mkdir(exist_ok=True)
            copies = sum(1 for _ in aside.glob(f"{path.stem}.*"))
            path.replace(aside / f"{path.stem}.{copies}.parquet")


def _moment(purpose: str, step: int) -> tuple[int, bool]:
    """A step's training draws come before the evaluation that follows it."""
    return step, purpose != Purpose.TRAIN.value

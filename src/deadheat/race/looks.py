"""How often a race has been looked at, and the level that leaves: `looks.json` in the run folder.

A look is a verdict on a folder with graded final answers that no look before had; drawing the same page again is none. A
race that declares `[verdict] looks = L` holds its p-values against the nominal levels of `stats/looks.py` at

    t = graded final answers / (arms × seeds × items planned),  1 once every run has ended, and at the L-th look

so that all L together call a winner between equal recipes at most as often as alpha. Without a declaration one look is
planned. Looks beyond those planned are counted and named: the level holds for the first L.

Every look is on record with its runs and a digest of their grades, so that `deadheat verify` can take it again. What
lies outside the folder, a copy that was judged elsewhere, no file can know.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from deadheat.archive import plain, read_json, write_json
from deadheat.race.config import RaceConfig
from deadheat.race.tables import RunData
from deadheat.stats.looks import nominal_levels

LOOKS = "looks.json"

Runs = Mapping[str, Sequence[RunData]]  # finished runs of every arm, in seed order


@dataclass(frozen=True, kw_only=True)
class Look:
    """What had been graded when a verdict was made."""

    runs: tuple[str, ...]  # finished runs with a graded final answer, as "checker/seed-1"
    num_cells: int  # their graded final answers, an item counted once
    share_frac: float  # t: of all planned cells, in (0, 1]; 1 once every run has ended
    digest: str  # SHA-256 of run, item and grade of every cell


@dataclass(frozen=True, kw_only=True)
class Looks:
    """Every look so far."""

    declared: int | None  # `[verdict] looks`; None: not declared, and one is planned
    taken: tuple[Look, ...]  # this one last
    level: float  # that the adjusted p-values of this look are held against

    @property
    def planned(self) -> int:
        """Looks among which the level is shared out."""
        return self.declared or 1

    @property
    def number(self) -> int:
        """Which look this is, from 1."""
        return len(self.taken)

    @property
    def are_too_many(self) -> bool:
        """More than were planned: the level holds for those alone."""
        return self.number > self.planned

    @property
    def share_frac(self) -> float:
        """Share of the planned cells that this look sees."""
        return self.taken[-1].share_frac


def looks_with_this(folder: Path, race: RaceConfig, runs: Runs) -> Looks:
    """The looks on record, and this one where it sees cells that they had not; writes nothing."""
    before, now = read_looks(folder), look_at(race, runs)
    known = {run for look in before for run in look.runs}
    taken = before if before and known.issuperset(now.runs) else (*before, now)
    shares = [look.share_frac for look in taken]
    return Looks(
        declared=race.verdict.looks,
        taken=taken,
        level=level_of(shares, declared=race.verdict.looks or 1, alpha=race.verdict.alpha),
    )


def look_at(race: RaceConfig, runs: Runs, *, only: Sequence[str] | None = None) -> Look:
    """What there is to see in the finished runs, or in some of them by name."""
    finals = {
        str(run.identity.folder): {
            item: float(grade) for item, grade in zip(run.items, run.grades_EN[-1], strict=True) if not np.isnan(grade)
        }
        for arm in runs.values()
        for run in arm
    }
    seen = {name: cells for name, cells in finals.items() if cells and (only is None or name in only)}
    num_cells = sum(map(len, seen.values()))
    num_planned = len(race.seeds) * sum(arm.eval.pool for arm in race.arms.values())
    ended = len(seen) == len(race.seeds) * len(race.arms)
    return Look(
        runs=tuple(seen),
        num_cells=num_cells,
        share_frac=1.0 if ended else num_cells / num_planned,
        digest=hashlib.sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest(),
    )


def level_of(shares: Sequence[float], *, declared: int, alpha: float) -> float:
    """The nominal level of the latest look; beyond the declared ones that of the last declared.

    Example:
        Two looks declared: at half of the cells 2 − 2Φ(1.96/√½) = .0056; one look alone has all of alpha.
        >>> round(level_of([0.5], declared=2, alpha=0.05), 4), level_of([0.5], declared=1, alpha=0.05)
        (0.0056, 0.05)
    """
    planned = list(shares[:declared])
    if len(planned) == declared:
        planned[-1] = 1.0
    return alpha if planned == [1.0] else nominal_levels(planned, alpha)[-1]


def read_looks(folder: Path) -> tuple[Look, ...]:
    """The looks on record, first one first."""
    path = folder / LOOKS
    if not path.exists():
        return ()
    return tuple(Look(**{**held, "runs": tuple(held["runs"])}) for held in read_json(path)["taken"])


def write_looks(folder: Path, looks: Looks) -> None:
    """Put the looks on record."""
    write_json(folder / LOOKS, {"schema": "deadheat.looks", "version": 1, **plain(looks)})


@contextmanager
def looks_held(folder: Path) -> Iterator[None]:
    """Nobody else takes a look meanwhile: a race that ends, and somebody who looks in, would overwrite each other's.

    The folder itself is locked, beside the race's own `.lock`, for as long as a verdict takes. Some network file systems
    lock no folders; there a look at the very second a race ends may be lost.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)

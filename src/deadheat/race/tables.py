"""From the evaluations on disk to the table a verdict is made of: grades by seed and item, at a named reading.

A *reading* says which checkpoint of each run is read: `final` (its last evaluation), `converged` and `peak` (chosen on
this very pool), `step-00025`, or the last evaluation within an equal budget. Unscored answers are missing, never zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deadheat.archive import read_table
from deadheat.errors import StatsError
from deadheat.stats import Interval, wilson
from deadheat.train import (
    EVALS,
    Outcome,
    RunIdentity,
    StepRecord,
    read_clock,
    read_outcome,
    read_peaks,
    read_steps,
    step_file,
)


@dataclass(frozen=True, kw_only=True)
class RunData:
    """One finished run, as far as a verdict reads it."""

    identity: RunIdentity
    outcome: Outcome
    steps: tuple[StepRecord, ...]
    eval_steps: tuple[int, ...]  # [E] ascending, 0 first
    grades_EN: NDArray[np.float64]  # share of an item's graded samples that are right; NaN: none graded
    items: tuple[str, ...]  # [N] problem ids in pool order
    num_unscored_E: tuple[int, ...]  # answers without a score, per evaluation
    num_unparsed_E: tuple[int, ...]  # answers from which nothing could be extracted, per evaluation
    seconds: dict[int, float]  # cumulative wall-clock seconds by step
    peak_bytes: int | None  # most resident memory its process had held by its end; None: not recorded

    def row(self, step: int) -> NDArray[np.float64]:
        """[N] the grades of one evaluation."""
        row: NDArray[np.float64] = self.grades_EN[self.eval_steps.index(step)]
        return row

    def share(self, step: int) -> Interval | None:
        """Share right at one evaluation, Wilson; None: nothing was graded."""
        row = self.row(step)
        graded = row[~np.isnan(row)]
        if not graded.size:
            return None
        return wilson(round(float(graded.sum())), graded.size, left_out=row.size - graded.size)

    @property
    def is_graded(self) -> bool:
        """Whether its first and last evaluations have any grade at all."""
        return not (np.isnan(self.grades_EN[0]).all() or np.isnan(self.grades_EN[-1]).all())

    def on(self, items: Sequence[str]) -> Self:
        """The run restricted to some items, in their order."""
        if tuple(items) == self.items:
            return self
        columns = [self.items.index(item) for item in items]
        return replace(self, items=tuple(items), grades_EN=self.grades_EN[:, columns])

    def tokens_generated(self, step: int) -> int:
        """Training tokens generated up to a step."""
        return sum(record.tokens_generated for record in self.steps if record.step <= step)


def read_run(race_folder: Path, identity: RunIdentity) -> RunData | None:
    """A finished run; None while it has no outcome."""
    folder = race_folder / identity.folder
    outcome = read_outcome(folder)
    if outcome is None:
        return None
    files = sorted((folder / EVALS).glob("step-*.parquet"))
    eval_steps = tuple(int(path.stem.removeprefix("step-")) for path in files)
    tables = [_grades(read_table(step_file(folder, EVALS, step))) for step in eval_steps]
    return RunData(
        identity=identity,
        outcome=outcome,
        steps=tuple(read_steps(folder)),
        eval_steps=eval_steps,
        grades_EN=np.array([table["grade"].to_numpy() for table in tables], dtype=np.float64),
        items=tuple(tables[0]["problem_id"]),
        num_unscored_E=tuple(int(table["unscored"].sum()) for table in tables),
        num_unparsed_E=tuple(int(table["unparsed"].sum()) for table in tables),
        seconds=_cumulative_seconds(folder),
        peak_bytes=max((int(peak["resident_bytes"]) for peak in read_peaks(folder).values() if peak), default=None),
    )


def _grades(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.group_by("problem_id", maintain_order=True).agg(
        grade=pl.col("correct").cast(pl.Float64).mean().fill_null(float("nan")),
        unscored=pl.col("unscored").is_not_null().sum(),
        unparsed=(~pl.col("parsed")).sum(),
    )


def _cumulative_seconds(run_folder: Path) -> dict[int, float]:
    total = 0.0
    seconds = {}
    for step, phases in sorted(read_clock(run_folder).items()):
        total += sum(phases.values())
        seconds[step] = total
    return seconds


def common_items(runs: Sequence[RunData]) -> tuple[str, ...]:
    """Items that every run was read on, in the first run's order; nothing in common is an error."""
    if not runs:
        return ()
    shared = set.intersection(*(set(run.items) for run in runs))
    if not shared:
        first, other = runs[0], next(run for run in runs if not set(run.items) & set(runs[0].items))
        raise StatsError(
            f"{first.identity.folder} was read on {first.items[0]}, … and {other.identity.folder} on {other.items[0]}, "
            "…: no item in common. Wanted the same held-out pool in both arms."
        )
    return tuple(item for item in runs[0].items if item in shared)


def named_step(run: RunData, reading: str) -> int | None:
    """The evaluated step a reading names; None where the run has no such checkpoint."""
    if reading == "final":
        return run.eval_steps[-1]
    if reading == "peak":
        return run.outcome.peak_step
    if reading == "converged":
        return run.outcome.converged_step
    step = int(reading.removeprefix("step-"))
    return step if step in run.eval_steps else None


def last_within_tokens(run: RunData, budget: int) -> int:
    """The last evaluated step whose generated tokens stay within a budget."""
    return max(step for step in run.eval_steps if run.tokens_generated(step) <= budget or step == 0)


def last_within_seconds(run: RunData, budget_s: float) -> int:
    """The last evaluated step whose wall-clock seconds stay within a budget."""
    return max(step for step in run.eval_steps if run.seconds.get(step, 0.0) <= budget_s or step == 0)


def stack(runs: Sequence[RunData], steps_S: Sequence[int]) -> NDArray[np.float64]:
    """[S, N] the grades of one evaluation of each run."""
    return np.stack([run.row(step) for run, step in zip(runs, steps_S, strict=True)])

"""From the evaluations on disk to the table a verdict is made of: grades by seed and item, at a named reading.

A *reading* says which checkpoint of each run is read: `final` (its last evaluation), `converged` and `peak` (chosen on
this very pool), `step-00025`, or the last evaluation within an equal budget. Unscored answers are missing, never zero.

A share of right answers, of one run or of several, has the interval of a mean over seeds and items (`stats/effect.py`), cut
to [0, 1]: with one seed it is about items alone, and where all answers are alike it still has a width.
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
from deadheat.race.config import RaceConfig
from deadheat.stats import Interval, paired_effect
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

    def share(self, step: int, alpha: float) -> Interval | None:
        """Share right at one evaluation, over its items; None: nothing was graded."""
        return share_of(self.row(step), alpha)

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

    @property
    def total_s(self) -> float:
        """Wall-clock seconds of the whole run."""
        return max(self.seconds.values(), default=0.0)

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


@dataclass(frozen=True, kw_only=True)
class Matched:
    """Two arms under the seeds that both have finished, on the items that both were read on."""

    runs_a: tuple[RunData, ...]  # [S]
    runs_b: tuple[RunData, ...]  # [S]

    @property
    def seeds(self) -> tuple[int, ...]:
        """[S]."""
        return tuple(run.identity.seed for run in self.runs_a)

    @property
    def items(self) -> tuple[str, ...]:
        """[N] in pool order."""
        return self.runs_a[0].items


def read_runs(race_folder: Path, race: RaceConfig) -> dict[str, list[RunData]]:
    """The finished runs of every arm, in seed order."""
    identities = {arm: [RunIdentity(race=race.name, arm=arm, seed=seed) for seed in race.seeds] for arm in race.arms}
    return {
        arm: [run for identity in row if (run := read_run(race_folder, identity)) is not None]
        for arm, row in identities.items()
    }


def match(runs_a: Sequence[RunData], runs_b: Sequence[RunData]) -> Matched | None:
    """Seed by seed, the runs that can be compared; None where there is no such seed."""
    by_seed = {run.identity.seed: run for run in runs_b if run.is_graded}
    pairs = [(run, by_seed[run.identity.seed]) for run in runs_a if run.is_graded and run.identity.seed in by_seed]
    items = common_items([run for pair in pairs for run in pair])
    pairs = [(a.on(items), b.on(items)) for a, b in pairs]
    pairs = [(a, b) for a, b in pairs if not np.isnan(a.grades_EN[-1] - b.grades_EN[-1]).all()]
    return Matched(runs_a=tuple(a for a, _ in pairs), runs_b=tuple(b for _, b in pairs)) if pairs else None


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


def share_of(grades_SN: NDArray[np.float64], alpha: float) -> Interval | None:
    """Mean grade over seeds and items; None: nothing was graded.

    Example:
        All 20 right: +1 and −1 beside them have SS 2 + 2·20/22, /21/22·(22/20)² = .01; t₂₁·.1 = .208 below 1.
        >>> share = share_of(np.ones(20), 0.05)
        >>> share.estimate, round(share.low, 3), share.high
        (1.0, 0.792, 1.0)
    """
    if np.isnan(grades_SN).all():
        return None
    mean = paired_effect(grades_SN, alpha=alpha, grades=True)
    return Interval(
        estimate=mean.estimate,
        low=max(mean.low, 0.0),
        high=min(mean.high, 1.0),
        level=mean.level,
        n=mean.n,
        left_out=mean.left_out,
        method=f"{mean.method}, cut to [0, 1]",
    )

"""The held-out evaluations of one arm of a run folder, as one long table: seed, step, item, value.

What a run folder says of its own checkpoints (its peak, its converged one) stands in each seed's `outcome.json`. An
answer without a grade is missing, never zero; several answers to one item are averaged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from deadheat.archive.files import read_json
from deadheat.archive.rollouts import read_table
from deadheat.errors import ArchiveError

START = "start"  # step 0, before the first update


@dataclass(frozen=True, kw_only=True)
class ArmEvaluations:
    """Every evaluation of an arm's finished seeds."""

    run: str  # run folder
    arm: str
    frame: pl.DataFrame  # seed and item as text, step, value (null: no graded answer)
    peak_step: Mapping[str, int | None]  # by seed: highest held-out accuracy, earliest among equals
    converged_step: Mapping[str, int | None]  # by seed; None: no rule of convergence fired
    unfinished: tuple[str, ...]  # seeds without an outcome, left out

    @property
    def seeds(self) -> tuple[str, ...]:
        """Finished seeds, in order."""
        return tuple(self.peak_step)

    def steps_of(self, seed: str) -> list[int]:
        """Evaluated steps of a seed, ascending."""
        return sorted(self.frame.filter(pl.col("seed") == seed)["step"].unique().to_list())

    def at(self, which: str, step: int | None = None) -> pl.DataFrame:
        """seed, item, value at `start`, `final`, `peak`, `converged`, or at a `step` that every seed has."""
        chosen = {seed: self._step(seed, which, step) for seed in self.seeds}
        wanted = pl.DataFrame({"seed": list(chosen), "step": list(chosen.values())})
        return self.frame.join(wanted, on=["seed", "step"], maintain_order="left").select("seed", "item", "value")

    def _step(self, seed: str, which: str, step: int | None) -> int:
        steps = self.steps_of(seed)
        named = {
            START: 0,
            "final": steps[-1],
            "peak": self.peak_step[seed],
            "converged": self.converged_step[seed],
            "step": step,
        }[which]
        if named not in steps:
            seen = f"step {named}" if named is not None else f"{which} checkpoint"
            raise ArchiveError(
                f"{self.run}, arm {self.arm}, seed {seed} has no {seen}; it was evaluated at {steps}. "
                "Name a step that every seed has, or @final"
            )
        return int(named)


def is_run_folder(path: Path) -> bool:
    """Whether a path holds the records of a race."""
    return (path / "resolved.json").is_file()


def steps_run(run: Path) -> int:
    """The furthest training step of any run below a folder; 0 before the first, and where there is no folder."""
    files = run.glob("*/seed-*/rollouts/step-*.parquet")
    return max((int(path.stem.removeprefix("step-")) for path in files), default=0)


def arms_of(run: Path) -> list[str]:
    """Arms with at least one seed folder, in the order of the race file."""
    if not is_run_folder(run):
        raise ArchiveError(f"{run} is no run folder: it has no resolved.json. Wanted what `deadheat race` wrote")
    there = {path.parent.name for path in run.glob("*/seed-*")}
    named = [str(arm) for arm in read_json(run / "resolved.json").get("arms", {})]
    return [arm for arm in named if arm in there]


def read_arm(run: Path, arm: str) -> ArmEvaluations:
    """The evaluations of one arm."""
    known = arms_of(run)
    if arm not in known:
        raise ArchiveError(f"{run} has no arm {arm!r}; it has {', '.join(known) or 'none yet'}")
    folders = sorted((run / arm).glob("seed-*"), key=lambda path: int(path.name.removeprefix("seed-")))
    finished = [folder for folder in folders if (folder / "outcome.json").is_file()]
    if not finished:
        raise ArchiveError(f"{run}, arm {arm}: no seed has finished; go on with deadheat race --resume")
    outcomes = {_seed(folder): read_json(folder / "outcome.json") for folder in finished}
    return ArmEvaluations(
        run=str(run),
        arm=arm,
        frame=pl.concat([_evaluations(folder) for folder in finished]),
        peak_step={seed: outcome["peak_step"] for seed, outcome in outcomes.items()},
        converged_step={seed: outcome["converged_step"] for seed, outcome in outcomes.items()},
        unfinished=tuple(_seed(folder) for folder in folders if folder not in finished),
    )


def _seed(folder: Path) -> str:
    return folder.name.removeprefix("seed-")


def _evaluations(folder: Path) -> pl.DataFrame:
    files: Sequence[Path] = sorted((folder / "evals").glob("step-*.parquet"))
    if not files:
        raise ArchiveError(f"{folder} has no evaluation; wanted evals/step-00000.parquet and later ones")
    return pl.concat(
        [
            read_table(path)
            .group_by("problem_id", maintain_order=True)
            .agg(value=pl.col("correct").cast(pl.Float64).mean())
            .select(
                seed=pl.lit(_seed(folder)),
                step=pl.lit(int(path.stem.removeprefix("step-"))),
                item=pl.col("problem_id"),
                value=pl.col("value"),
            )
            for path in files
        ]
    )

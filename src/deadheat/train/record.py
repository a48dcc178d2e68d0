"""A run's own folder: where its files are, and how a batch or an evaluation becomes one."""

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from deadheat.archive import (
    Credited,
    RolloutSource,
    append_line,
    read_table,
    rollout_frame,
    write_table,
)
from deadheat.evals import Evaluation
from deadheat.train.batch import Entry, TrainBatch, is_flat
from deadheat.train.convergence import Reading

ROLLOUTS = "rollouts"
EVALS = "evals"
TRAIN = "train"
NOT_KEPT = "not-kept"  # the purpose of rows that were drawn for a step and not learned from
CLOCK = "clock.jsonl"
OUTCOME = "outcome.json"


@dataclass(frozen=True, kw_only=True)
class RunIdentity:
    """Which run of which race."""

    race: str
    arm: str
    seed: int

    @property
    def folder(self) -> Path:
        """Where it lies below the race's folder."""
        return Path(self.arm) / f"seed-{self.seed}"


def step_file(run_folder: Path, kind: str, step: int) -> Path:
    """The Parquet file of one step's rollouts or one evaluation."""
    return run_folder / kind / f"step-{step:05d}.parquet"


def write_batch(
    run_folder: Path,
    identity: RunIdentity,
    batch: TrainBatch,
    discarded: Sequence[Entry],
    *,
    temperature: float,
) -> None:
    """One row per rollout of a batch; discarded rollouts follow, without advantages."""
    learned = [row for entry in batch.entries for row in _rows(entry)]
    left = [row for entry in discarded for row in _rows(entry, apart=f"from-{entry.group.rollouts[0].sample}")]
    frames = [
        rollout_frame(_source(identity, TRAIN, batch.step, temperature), learned),
        rollout_frame(_source(identity, NOT_KEPT, batch.step, temperature), left),
    ]
    write_table(step_file(run_folder, ROLLOUTS, batch.step), pl.concat(frames))


def _rows(entry: Entry, *, apart: str = "") -> list[Credited]:
    columns = zip(
        entry.group.rollouts,
        entry.rewards_G.tolist(),
        entry.advantages_G,
        entry.mean_advantages_G.tolist(),
        strict=True,
    )
    return [
        Credited(
            rollout=rollout,
            prompt_length=entry.group.prompt_length,
            prompt_tokens=entry.group.prompt_tokens,
            reward=None if math.isnan(reward) else reward,
            advantage=None if entry.skip is not None else mean,
            token_advantages=None if entry.skip is not None or is_flat(tokens) else tuple(tokens.tolist()),
            kind=entry.kind.value,
            apart=apart,
        )
        for rollout, reward, tokens, mean in columns
    ]


def write_evaluation(
    run_folder: Path, identity: RunIdentity, evaluation: Evaluation, *, step: int, temperature: float
) -> None:
    """One evaluation, one row per answer; `step` counts the updates made before it."""
    rows = [
        Credited(
            rollout=rollout,
            prompt_length=group.prompt_length,
            prompt_tokens=group.prompt_tokens,
            reward=rollout.score.value,
            advantage=None,
            kind="",
        )
        for group in evaluation.groups
        for rollout in group.rollouts
    ]
    source = _source(identity, "eval", step, temperature)
    write_table(step_file(run_folder, EVALS, step), rollout_frame(source, rows))


def _source(identity: RunIdentity, purpose: str, step: int, temperature: float) -> RolloutSource:
    return RolloutSource(
        run=identity.race, arm=identity.arm, seed=identity.seed, purpose=purpose, step=step, temperature=temperature
    )


def forget_after(run_folder: Path, step: int | None) -> None:
    """Delete the batches and evaluations after a checkpoint (None: all): they are drawn again, to the same bytes."""
    for kind in (ROLLOUTS, EVALS):
        for path in (run_folder / kind).glob("step-*.parquet"):
            if step is None or int(path.stem.removeprefix("step-")) > step:
                path.unlink()


def read_readings(run_folder: Path) -> list[Reading]:
    """The accuracy of every evaluation on disk, in step order."""
    readings = []
    for path in sorted((run_folder / EVALS).glob("step-*.parquet")):
        accuracy = read_table(path).select(pl.col("correct").cast(pl.Float64).mean()).item()
        readings.append(Reading(step=int(path.stem.removeprefix("step-")), accuracy=accuracy))
    return readings


class Clock:
    """Wall-clock seconds by phase and peak memory, in a file of their own: the only records a crash may change."""

    def __init__(self, run_folder: Path) -> None:
        self._path = run_folder / CLOCK
        self._phases: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, phase: str) -> None:
        """Charge the time since the last call to `phase`."""
        now = time.perf_counter()
        self._phases[phase] = self._phases.get(phase, 0.0) + now - self._last
        self._last = now

    def write(self, step: int, peaks: Mapping[str, int]) -> None:
        """Append this step's seconds, and the peaks of memory in bytes."""
        seconds = {f"{phase}_s": round(value, 4) for phase, value in self._phases.items()}
        append_line(self._path, json.dumps({"step": step, **seconds, **{f"{k}_bytes": v for k, v in peaks.items()}}))
        self._phases = {}


def read_clock(run_folder: Path) -> dict[int, dict[str, float]]:
    """Seconds by phase of every step; where a step was done twice the last one counts, and a torn line is skipped."""
    return {step: _ending_in("_s", entry) for step, entry in _clock_lines(run_folder)}


def read_peaks(run_folder: Path) -> dict[int, dict[str, float]]:
    """Peaks of memory at every step, in bytes: `resident_bytes`, and `cuda_bytes` where the model is on one."""
    return {step: _ending_in("_bytes", entry) for step, entry in _clock_lines(run_folder)}


def _clock_lines(run_folder: Path) -> Iterator[tuple[int, dict[str, float]]]:
    path = run_folder / CLOCK
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue
        yield int(entry["step"]), entry


def _ending_in(suffix: str, entry: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in entry.items() if name.endswith(suffix)}

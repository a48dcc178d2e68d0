"""The section of report.html that shows groups in text."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from deadheat.archive import read_table
from deadheat.race.tables import RunData
from deadheat.reports import (
    Section,
)
from deadheat.reports.page import Attempt, Grade, Transcript
from deadheat.train import NOT_KEPT, ROLLOUTS, step_file


def examples_section(race_folder: Path, runs: Sequence[RunData]) -> list[Section]:
    """Three groups in text, of the first run."""
    shown = [t for run in runs[:1] for t in _examples(race_folder, run)]
    if not shown:
        return []
    return [
        Section(
            heading="Three groups in text",
            lead="One that teaches, one that agrees on right, one that agrees on wrong, where the run has them.",
            blocks=tuple(shown),
        )
    ]


def _examples(race_folder: Path, run: RunData) -> list[Transcript]:
    found: dict[str, Transcript] = {}
    for record in run.steps:
        wanted = [k for k, n in _kinds(record).items() if n and k not in found]
        if wanted:
            rows = read_table(step_file(race_folder / run.identity.folder, ROLLOUTS, record.step))
            for kind in wanted:
                group = rows.filter((pl.col("kind") == kind) & (pl.col("purpose") != NOT_KEPT))
                first = group.filter(pl.col("group_id") == group["group_id"][0])
                found[kind] = _transcript(run, record.step, kind, first)
    return [found[kind] for kind in ("live", "all_right", "all_wrong", "tied_other") if kind in found][:3]


def _kinds(record: object) -> dict[str, int]:
    return {kind: getattr(record, f"num_{kind}") for kind in ("live", "all_right", "all_wrong", "tied_other")}


def _transcript(run: RunData, step: int, kind: str, rows: pl.DataFrame) -> Transcript:
    attempts = tuple(
        Attempt(
            text=row["completion"],
            grade=_grade(row),
            reward=row["reward"],
            advantage=row["advantage"],
            stop=row["stop"],
            answer=row["answer"],
        )
        for row in rows.iter_rows(named=True)
    )
    return Transcript(
        title=f"{kind.replace('_', ' ')}: {run.identity.arm}, seed {run.identity.seed}, step {step}",
        prompt=rows["prompt"][0],
        attempts=attempts,
        reference=rows["reference"][0],
        note=None,
    )


def _grade(row: dict[str, object]) -> Grade:
    if row["unscored"] is not None:
        return Grade.UNSCORED
    if not row["parsed"]:
        return Grade.UNPARSED
    return Grade.RIGHT if row["correct"] else Grade.WRONG

"""Running a verb in this process, and small results on disk."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner, Result

from deadheat.archive import ROLLOUT_SCHEMA, write_json, write_table
from deadheat.cli.app import app

DATA = Path(__file__).parents[2] / ".." / "shared" / "data"
Grades = Mapping[str, Mapping[int, Mapping[int, Sequence[int | None]]]]  # arm, seed, step: a grade per item


@pytest.fixture
def run() -> Callable[..., Result]:
    """Run `deadheat` with these words; an error the package raises on purpose is raised."""

    def invoke(*words: object, code: int = 0) -> Result:
        result = CliRunner().invoke(app, [str(word) for word in words])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    return invoke


@pytest.fixture
def data() -> Callable[[str], Path]:
    """A file of the public data folder, or a skip that says why."""

    def find(name: str) -> Path:
        path = DATA / name
        if not path.exists():
            pytest.skip(f"the public data file {name} is not on this machine")
        return path

    return find


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., Path]:
    """Write a CSV of results: one row per seed and item, values in item order; None leaves the row out."""

    def write(name: str, seeds: Sequence[Sequence[float | None]], *, prefix: str = "q") -> Path:
        path = tmp_path / name
        rows = [
            f"{s},{prefix}{n},{value}"
            for s, values in enumerate(seeds, start=1)
            for n, value in enumerate(values)
            if value is not None
        ]
        path.write_text("\n".join(["seed,item,score", *rows]) + "\n", encoding="utf-8")
        return path

    return write


@pytest.fixture
def run_folder(tmp_path: Path) -> Callable[..., Path]:
    """Write the evaluations of a run folder as `deadheat race` lays them out."""

    def write(grades: Grades, *, peak: int | None = None, converged: int | None = None) -> Path:
        folder = tmp_path / "run"
        write_json(folder / "resolved.json", {"arms": {arm: {} for arm in grades}})
        for arm, seeds in grades.items():
            for seed, steps in seeds.items():
                own = folder / arm / f"seed-{seed}"
                for step, values in steps.items():
                    write_table(own / "evals" / f"step-{step:05d}.parquet", _evaluation(values))
                last = max(steps)
                outcome = {"peak_step": last if peak is None else peak, "converged_step": converged}
                write_json(own / "outcome.json", outcome)
        return folder

    return write


def _evaluation(grades: Sequence[int | None]) -> pl.DataFrame:
    rows = {
        "problem_id": [f"p{n}" for n in range(len(grades))],
        "correct": [None if grade is None else bool(grade) for grade in grades],
    }
    blank = {name: [None] * len(grades) for name in ROLLOUT_SCHEMA if name not in rows}
    return pl.DataFrame(rows | blank, schema=ROLLOUT_SCHEMA)


@pytest.fixture
def parsed(run: Callable[..., Result]) -> Callable[..., dict]:
    """Run a verb with --json and parse what it prints."""

    def invoke(*words: object) -> dict:
        return json.loads(run(*words, "--json").stdout)

    return invoke


@pytest.fixture
def process() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `deadheat` in a process of its own, with the messages a user would see."""

    def invoke(*words: object) -> subprocess.CompletedProcess[str]:
        code = "from deadheat.cli import main; main()"
        command = [sys.executable, "-c", code, *(str(word) for word in words)]
        source = str(Path(__file__).parents[2] / "src")
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": source})

    return invoke

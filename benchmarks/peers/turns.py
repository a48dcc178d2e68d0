"""Two sides on one job: started, compared, warmed up, then timed in turn."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from peers.job import Shape
from peers.link import Side
from peers.rows import Measured

BENCHMARKS = Path(__file__).parents[1]


@dataclass(frozen=True, kw_only=True)
class Program:
    """What a side runs."""

    python: Path  # the interpreter of its environment
    module: str  # deadheat_side, trl_side, transformers_side
    work: str  # what the module is asked to do

    @property
    def name(self) -> str:
        """The package and the work."""
        return f"{self.module.removesuffix('_side')} {self.work}"

    def command(self, folder: Path) -> list[str]:
        """The command line, for the job in a folder."""
        return [str(self.python), "-m", f"peers.{self.module}", str(folder), self.work]


@dataclass(frozen=True, kw_only=True)
class Turned:
    """Both sides, measured."""

    ours: Measured
    theirs: Measured
    same: str  # how close they were before they were timed


def take_turns(shape: Shape, ours: Program, theirs: Program, same: Callable[[Path], str], *, threads: int) -> Turned:
    """Compare the sides with `same`, which ends the program where they differ; then time them, the sides alternating."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        prepare = [sys.executable, "-m", "peers.keyed", scratch, json.dumps(asdict(shape))]
        subprocess.run(prepare, cwd=BENCHMARKS, check=True)
        first, second = (
            Side(program.name, program.command(folder), log=folder / f"{program.module}-{i}.log", threads=threads)
            for i, program in enumerate((ours, theirs))
        )
        with first, second:
            started = [first.turn(), second.turn()]
            verdict = same(folder)
            turns = [[first.turn(), second.turn()] for _ in range(shape.num_turns + 1)]
    return Turned(
        ours=measured(first.name, started[0], [turn[0] for turn in turns]),
        theirs=measured(second.name, started[1], [turn[1] for turn in turns]),
        same=verdict,
    )


def measured(name: str, started: dict[str, Any], turns: Sequence[dict[str, Any]]) -> Measured:
    """A side's figures; its first turn warmed up and is left out."""
    timed = turns[1:]
    return Measured(
        name=name,
        versions=f"{started['versions']}, {started['threads']} threads",
        seconds=[turn["seconds"] for turn in timed],
        peak_gib=turns[-1]["peak_gib"],
        rollout_s=[turn["rollout_s"] for turn in timed] if "rollout_s" in turns[0] else None,
    )

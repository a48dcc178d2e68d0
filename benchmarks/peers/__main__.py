"""Deadheat against the packages people use, on SmolLM2-135M with LoRA rank 16: seconds, tokens/s, memory, ratios in one run.

    step        one GRPO step, rollout and update, 4 prompts × 8: trl.GRPOTrainer on CPU
    rollouts    8 prompts × 8 completions of 4 to 128 tokens: transformers' generate and its continuous batching
    update      one optimiser step on given completions: whole sequences in batches, by transformers and peft
    invariant   the same rollouts in the engine's invariant mode and in its ordinary one
    race        six runs by two workers and by one

Each side is a process of its own, ours in this environment, theirs in one with the peers; the sides take turns. Before
anything is timed both put the same inputs through and must agree: log-probabilities within 1e-4, gradients within 1e-3
of the largest, greedy tokens up to near ties, files byte for byte.

    make bench-peers [ARGS="--smoke --only step --json FILE"]
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from deadheat.policy import PolicyConfig
from peers.job import Shape
from peers.link import Side
from peers.race import race_row
from peers.rows import Measured, Row, Target
from peers.same import same_rollouts, same_updates

BENCHMARKS = Path(__file__).parents[1]
SHORT = Shape(num_prompts=4, num_samples=8, prompt_tokens=60, answer_tokens=8, micro_rows=32, num_turns=5)
LONG = Shape(  # the other side was killed for memory at 24 GiB with 32 rows at once
    num_prompts=4, num_samples=8, prompt_tokens=256, answer_tokens=128, micro_rows=8, num_turns=2
)
UNEQUAL = Shape(
    num_prompts=8,
    num_samples=8,
    prompt_tokens=60,
    answer_tokens=128,
    shortest_answer=4,
    micro_rows=64,
    num_turns=3,
)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """How to run."""

    peers: Path  # the interpreter that has the peers
    threads: int  # of each side
    smoke: bool  # smallest sizes, one turn

    def shapes(self, *full: Shape) -> tuple[Shape, ...]:
        """The sizes a row runs at."""
        if not self.smoke:
            return full
        small = replace(
            full[0], num_prompts=2, num_samples=2, prompt_tokens=12, answer_tokens=4, micro_rows=2, num_turns=1
        )
        return (small if small.shortest_answer is None else replace(small, shortest_answer=2),)


def turns(setting: Setting, shape: Shape, ours: str, theirs: tuple[str, str], same: Callable[[Path], str]) -> "Turned":
    """Both sides on the same job: compare, warm up, take turns. `theirs` is a module and its work."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        subprocess.run(
            [sys.executable, "-m", "peers.keyed", scratch, json.dumps(asdict(shape))], cwd=BENCHMARKS, check=True
        )
        module, work = theirs
        python = sys.executable if module == "deadheat_side" else str(setting.peers)
        commands = {
            "deadheat": [sys.executable, "-m", "peers.deadheat_side", scratch, ours],
            f"{module.removesuffix('_side')} {work}": [python, "-m", f"peers.{module}", scratch, work],
        }
        sides = [
            Side(name, command, log=folder / f"side-{i}.log", threads=setting.threads)
            for i, (name, command) in enumerate(commands.items())
        ]
        with sides[0], sides[1]:
            started = [side.turn() for side in sides]
            verdict = same(folder)
            answers = [[side.turn() for side in sides] for _ in range(shape.num_turns + 1)]
        measured = [
            Measured(
                name=side.name,
                versions=f"{start['versions']}, {start['threads']} threads",
                seconds=[answer["seconds"] for answer in column[1:]],
                peak_gib=column[-1]["peak_gib"],
            )
            for side, start, column in zip(sides, started, zip(*answers, strict=True), strict=True)
        ]
        return Turned(ours=measured[0], theirs=measured[1], same=verdict)


@dataclass(frozen=True, kw_only=True)
class Turned:
    """Both sides, measured."""

    ours: Measured
    theirs: Measured
    same: str


def row(name: str, turned: Turned, *, num_tokens: int | None, target: Target | None) -> Row:
    """A line of the table."""
    return Row(
        name=name, ours=turned.ours, theirs=turned.theirs, num_tokens=num_tokens, target=target, same=turned.same
    )


def step_rows(setting: Setting) -> Iterator[Row]:
    """Rollout and update."""
    for shape, at_least in zip(setting.shapes(SHORT, LONG), (5.0, 3.5), strict=False):
        yield row(
            f"step {shape.name}: one GRPO step against TRL, {shape.micro_rows} × {shape.num_rows // shape.micro_rows} rows "
            "there, all at once here",
            turns(setting, shape, "step", ("trl_side", "step"), same_updates),
            num_tokens=sum(shape.lengths_B),
            target=Target(of="seconds", at_least=at_least),
        )


def rollout_rows(setting: Setting) -> Iterator[Row]:
    """Completions of unequal lengths."""
    (shape,) = setting.shapes(UNEQUAL)
    for work in ("generate", "continuous"):
        yield row(
            f"rollouts {shape.name} against transformers, {work}",
            turns(setting, shape, "rollouts", ("transformers_side", work), lambda f: same_rollouts(f, shape.lengths_B)),
            num_tokens=sum(shape.lengths_B),
            target=Target(of="seconds", at_least=3.0),
        )


def update_rows(setting: Setting) -> Iterator[Row]:
    """One optimiser step on given completions."""
    for shape in setting.shapes(SHORT, LONG):
        yield row(
            f"update {shape.name} against whole sequences in batches of {shape.micro_rows}",
            turns(setting, shape, "update", ("transformers_side", "update"), same_updates),
            num_tokens=sum(shape.lengths_B),
            target=Target(of="peak_gib", at_most=0.5),
        )


def invariant_rows(setting: Setting) -> Iterator[Row]:
    """Two modes of one engine."""
    if "invariant" not in PolicyConfig.model_fields:
        print("invariant: not run, this version's PolicyConfig has no field `invariant`", flush=True)
        return
    (shape,) = setting.shapes(UNEQUAL)
    yield row(
        f"invariant: rollouts {shape.name}, the invariant mode against the ordinary one",
        turns(
            setting,
            shape,
            "rollouts-invariant",
            ("deadheat_side", "rollouts-ordinary"),
            lambda f: same_rollouts(f, shape.lengths_B),
        ),
        num_tokens=sum(shape.lengths_B),
        target=Target(of="seconds", at_most=1.15),
    )


def race_rows(setting: Setting) -> Iterator[Row]:
    """One worker and two."""
    with tempfile.TemporaryDirectory() as scratch:
        yield race_row(Path(scratch), smoke=setting.smoke, num_turns=1 if setting.smoke else 2)


ROWS: dict[str, Callable[[Setting], Iterator[Row]]] = {
    "step": step_rows,
    "rollouts": rollout_rows,
    "update": update_rows,
    "invariant": invariant_rows,
    "race": race_rows,
}


def machine(threads: int) -> str:
    """What the figures are taken on."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    name = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.processor())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{name}, {os.cpu_count()} cores ({threads} threads a side), {memory:.0f} GiB, {platform.platform()}, "
        f"Python {platform.python_version()}"
    )


def main() -> None:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(
        prog="make bench-peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=list(ROWS), action="append", help="this row; may be given more than once")
    parser.add_argument("--smoke", action="store_true", help="smallest sizes, one turn: does it run?")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures there too")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of each side (default: every core)")
    default = BENCHMARKS.parent / ".venv-peers" / "bin" / "python"
    parser.add_argument("--peers", type=Path, default=default, metavar="PYTHON", help="interpreter that has the peers")
    asked = parser.parse_args()
    if not asked.peers.exists():
        raise SystemExit(
            f"no interpreter at {asked.peers}; `make bench-peers` makes it, or name one with --peers PYTHON"
        )
    setting = Setting(peers=asked.peers.absolute(), threads=asked.threads, smoke=asked.smoke)
    facts, rows = machine(asked.threads), []
    print(facts + ("; a smoke run: its figures mean nothing" if asked.smoke else ""), flush=True)
    for name in asked.only or ROWS:
        for measured in ROWS[name](setting):
            line = replace(measured, target=None) if asked.smoke else measured
            rows.append(line)
            print("\n".join(line.lines()), flush=True)
            if asked.json is not None:
                kept = {"machine": facts, "smoke": asked.smoke, "rows": [r.record() for r in rows]}
                asked.json.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

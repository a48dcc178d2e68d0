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
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from peers.job import Shape
from peers.race import race_row
from peers.rows import Row, Target
from peers.same import same_rollouts, same_updates
from peers.turns import BENCHMARKS, Program, take_turns

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

    def ours(self, work: str) -> Program:
        """A side in this environment."""
        return Program(python=Path(sys.executable), module="deadheat_side", work=work)

    def theirs(self, module: str, work: str) -> Program:
        """A side in the peers' environment."""
        return Program(python=self.peers, module=module, work=work)

    def row(self, name: str, shape: Shape, ours: Program, theirs: Program, *, target: Target) -> Row:
        """Both sides in turn, as a line of the table."""

        def same(folder: Path) -> str:
            return same_rollouts(folder, shape.lengths_B) if "rollouts" in ours.work else same_updates(folder)

        turned = take_turns(shape, ours, theirs, same, threads=self.threads)
        return Row(
            name=name,
            ours=turned.ours,
            theirs=turned.theirs,
            num_tokens=sum(shape.lengths_B),
            target=None if self.smoke else target,
            same=turned.same,
        )


def step_rows(setting: Setting) -> Iterator[Row]:
    """Rollout and update."""
    for shape, at_least in zip(setting.shapes(SHORT, LONG), (5.0, 3.5), strict=False):
        yield setting.row(
            f"step {shape.name}: one GRPO step of {shape.num_rows} completions against TRL, {shape.micro_rows} a pass there",
            shape,
            setting.ours("step"),
            setting.theirs("trl_side", "step"),
            target=Target(of="seconds", at_least=at_least),
        )


def rollout_rows(setting: Setting) -> Iterator[Row]:
    """Completions of unequal lengths."""
    (shape,) = setting.shapes(UNEQUAL)
    for work in ("generate", "continuous"):
        yield setting.row(
            f"rollouts {shape.name}: {shape.num_rows} completions against transformers, {work}",
            shape,
            setting.ours("rollouts"),
            setting.theirs("transformers_side", work),
            target=Target(of="seconds", at_least=3.0),
        )


def update_rows(setting: Setting) -> Iterator[Row]:
    """One optimiser step on given completions."""
    for shape in setting.shapes(SHORT, LONG):
        yield setting.row(
            f"update {shape.name}: {shape.num_rows} completions against whole sequences, {shape.micro_rows} a pass there",
            shape,
            setting.ours("update"),
            setting.theirs("transformers_side", "update"),
            target=Target(of="peak_gib", at_most=0.5),
        )


def invariant_rows(setting: Setting) -> Iterator[Row]:
    """Two modes of one engine."""
    (shape,) = setting.shapes(UNEQUAL)
    yield setting.row(
        f"invariant {shape.name}: {shape.num_rows} rollouts in the invariant mode against the ordinary one",
        shape,
        setting.ours("rollouts-invariant"),
        setting.ours("rollouts-ordinary"),
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
        for line in ROWS[name](setting):
            rows.append(line)
            print("\n".join(line.lines()), flush=True)
            if asked.json is not None:
                kept = {"machine": facts, "smoke": asked.smoke, "rows": [r.record() for r in rows]}
                asked.json.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Two arms read at other checkpoints and budgets than the verdict's: `converged`, `peak`, equal tokens, equal seconds.

Each reading is a difference with its plain interval (`stats/effect.py`), the one rule of the whole race. None of them is
ever *called*: there are many, and the verdict is the family of contrasts at the one primary reading, `final`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deadheat.race.tables import (
    Matched,
    RunData,
    last_within_seconds,
    last_within_tokens,
    named_step,
    stack,
)
from deadheat.stats import Effect, paired_effect

FINAL = "final"
EQUAL_TOKENS = "equal tokens"
EQUAL_SECONDS = "equal seconds"
_SELECTED = ("converged", "peak")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Two arms at one reading."""

    reading: str
    selected_on: str | None  # the pool the checkpoints were chosen on; None: nothing was selected
    steps_a: tuple[int, ...]  # [S] step each run of the first arm is read at
    steps_b: tuple[int, ...]  # [S]
    difference: Effect  # first arm minus second, plain


def read_all(pair: Matched, alpha: float) -> tuple[Reading, ...]:
    """`final` first, then `converged` and `peak` where every run has them, then equal generated tokens."""
    named = [
        _read(name, pair, steps_a, steps_b, alpha)
        for name in (FINAL, *_SELECTED)
        if (steps_a := steps_of(pair.runs_a, name)) and (steps_b := steps_of(pair.runs_b, name))
    ]
    spent = [
        min(run.tokens_generated(run.outcome.step) for run in both)
        for both in zip(pair.runs_a, pair.runs_b, strict=True)
    ]
    steps_a, steps_b = (
        [last_within_tokens(run, budget) for run, budget in zip(runs, spent, strict=True)]
        for runs in (pair.runs_a, pair.runs_b)
    )
    return tuple(reading for reading in (*named, _read(EQUAL_TOKENS, pair, steps_a, steps_b, alpha)) if reading)


def read_at_equal_seconds(pair: Matched, alpha: float) -> Reading | None:
    """Each run's last evaluation within the wall-clock seconds of the shorter run of its seed."""
    budgets = [min(a.total_s, b.total_s) for a, b in zip(pair.runs_a, pair.runs_b, strict=True)]
    steps_a, steps_b = (
        [last_within_seconds(run, budget_s) for run, budget_s in zip(runs, budgets, strict=True)]
        for runs in (pair.runs_a, pair.runs_b)
    )
    return _read(EQUAL_SECONDS, pair, steps_a, steps_b, alpha)


def read_checkpoints(pair: Matched, alpha: float) -> tuple[Reading, ...]:
    """Every step that all runs of both arms were evaluated at."""
    common = set.intersection(*(set(run.eval_steps) for run in (*pair.runs_a, *pair.runs_b)))
    steps = [[step] * len(pair.seeds) for step in sorted(common)]
    return tuple(
        reading for steps_S in steps if (reading := _read(f"step {steps_S[0]}", pair, steps_S, steps_S, alpha))
    )


def steps_of(runs: Sequence[RunData], reading: str) -> list[int]:
    """[S] the step a reading names in each run; empty where a run has none."""
    steps = [step for run in runs if (step := named_step(run, reading)) is not None]
    return steps if len(steps) == len(runs) else []


def _read(name: str, pair: Matched, steps_a: Sequence[int], steps_b: Sequence[int], alpha: float) -> Reading | None:
    gap_SN = stack(pair.runs_a, steps_a) - stack(pair.runs_b, steps_b)
    if np.isnan(gap_SN).all():
        return None
    return Reading(
        reading=name,
        selected_on=f"the {len(pair.items)} items it is read on" if name in _SELECTED else None,
        steps_a=tuple(steps_a),
        steps_b=tuple(steps_b),
        difference=paired_effect(gap_SN, alpha=alpha, grades=True),
    )

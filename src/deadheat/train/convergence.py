"""When a run ends, and which checkpoint is the peak and which the converged one: pure functions of the evaluations.

A *gain* is an accuracy more than `tolerance` above the best so far. With `patience` p, the run has converged at the
first evaluation that closes p evaluations in a row without a gain; the converged checkpoint is the last one that gained.
The peak is the highest accuracy, the earliest among equals. Both are chosen on the pool they were evaluated on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from deadheat.train.config import StopConfig


class Ending(StrEnum):
    """How a run ended."""

    STEPS = "steps"  # the step limit was reached
    ACTIVE_UPDATES = "active_updates"  # enough batches carried signal
    CONVERGED = "converged"  # the patience ran out
    DIVERGED = "diverged"  # a loss or gradient was not finite; the records up to there stand
    FAILED = "failed"  # an error or a killed process ended it; resumable


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One evaluation: the step it was made after and its accuracy."""

    step: int
    accuracy: float | None  # None: nothing was graded


@dataclass(frozen=True, kw_only=True)
class Landmarks:
    """The checkpoints with a name; None while no evaluation has a grade."""

    peak_step: int | None  # highest accuracy, earliest among equals
    last_gain_step: int | None  # last one more than the tolerance above all before it
    converged: bool  # the patience ran out: last_gain_step is the converged checkpoint

    @property
    def converged_step(self) -> int | None:
        """The converged checkpoint; None: no patience was set, or it has not run out."""
        return self.last_gain_step if self.converged else None


def landmarks(readings: Sequence[Reading], stop: StopConfig) -> Landmarks:
    """Peak, last gain and convergence of the readings so far.

    Example:
        >>> readings = [Reading(step=s, accuracy=a) for s, a in [(0, 0.1), (10, 0.5), (20, 0.5), (30, 0.502)]]
        >>> landmarks(readings, StopConfig(patience=2, tolerance_pp=0.5))
        Landmarks(peak_step=30, last_gain_step=10, converged=True)
    """
    graded = [(reading.step, reading.accuracy) for reading in readings if reading.accuracy is not None]
    if not graded:
        return Landmarks(peak_step=None, last_gain_step=None, converged=False)
    gain_step, best = graded[0]
    silent = 0
    for step, accuracy in graded[1:]:
        if accuracy > best + stop.tolerance_pp / 100:
            gain_step, best, silent = step, accuracy, 0
        else:
            silent += 1
        if stop.patience is not None and silent >= stop.patience:
            break
    return Landmarks(
        peak_step=max(graded, key=lambda pair: (pair[1], -pair[0]))[0],
        last_gain_step=gain_step,
        converged=stop.patience is not None and silent >= stop.patience,
    )


def ending(step: int, num_active: int, readings: Sequence[Reading], stop: StopConfig) -> Ending | None:
    """Whether the run ends after `step`, and why; None: it goes on."""
    if landmarks(readings, stop).converged:
        return Ending.CONVERGED
    if stop.active_updates is not None and num_active >= stop.active_updates:
        return Ending.ACTIVE_UPDATES
    return Ending.STEPS if step >= stop.steps else None

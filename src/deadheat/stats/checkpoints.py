"""Naming a checkpoint of a run: `RUN:arm@peak`, `@final`, `@converged`, `@step-75`.

One arm may meet itself: `RUN:arm@peak` against `RUN:arm@final` asks whether training past the peak cost anything. A
peak is selected on the pool it is read on unless a selection pool is named, and is marked so.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from deadheat.errors import StatsError

_REFERENCE = re.compile(r"^(?P<run>.+):(?P<arm>[^:@]+)@(?P<which>peak|final|converged|step-(?P<step>\d+))$")


class Which(StrEnum):
    """Which checkpoint of an arm."""

    PEAK = "peak"  # each seed's best on the selection pool
    FINAL = "final"  # the last, unselected
    CONVERGED = "converged"  # each seed's own converged one
    STEP = "step"  # all seeds at one step


@dataclass(frozen=True, kw_only=True)
class CheckpointReference:
    """A checkpoint by name."""

    run: str  # run folder
    arm: str
    which: Which
    step: int | None  # for Which.STEP; None otherwise


def parse_reference(text: str) -> CheckpointReference:
    """Read `RUN:arm@which`.

    Example:
        >>> parse_reference("runs/add:checker@step-75")
        CheckpointReference(run='runs/add', arm='checker', which=<Which.STEP: 'step'>, step=75)
    """
    match = _REFERENCE.match(text)
    if match is None:
        raise StatsError(f"{text!r} is no checkpoint; wanted RUN:arm@peak, @final, @converged or @step-75")
    step = match["step"]
    which = Which.STEP if step is not None else Which(match["which"])
    return CheckpointReference(
        run=match["run"], arm=match["arm"], which=which, step=None if step is None else int(step)
    )

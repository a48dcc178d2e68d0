"""A trajectory from long tables: every pair along training, the summaries scored, the first pair read four ways."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deadheat.errors import StatsError
from deadheat.stats.curves import ArmTable, Curves, curves_of
from deadheat.stats.trajectory import FourReadings, TrajectoryReading, four_readings, read_trajectory


@dataclass(frozen=True, kw_only=True)
class TrajectoryReport:
    """What training looked like to somebody who stopped to look."""

    reading: TrajectoryReading
    four: FourReadings | None  # first pair; None: fewer than two items or two checkpoints to select among
    shared_step: int  # mid-training checkpoint of the four readings
    num_selection: int  # items of the selection pool, the first ones
    seeds: tuple[str, ...]
    n: int  # items
    notes: tuple[str, ...]


def trajectory_report(
    tables: Sequence[ArmTable],
    *,
    selection_frac: float = 0.5,
    shared_step: int | None = None,
    window: int = 3,
    alpha: float = 0.05,
) -> TrajectoryReport:
    """Lay the arms side by side and read them."""
    if not 0 < selection_frac < 1:
        raise StatsError(
            f"the selection pool is {selection_frac} of the items; wanted a share strictly between 0 and 1"
        )
    curves = curves_of(tables)
    steps = curves.arms[0].steps
    reading = read_trajectory(curves.arms, alpha=alpha, window=window)
    num_selection = min(max(1, round(selection_frac * len(curves.items))), len(curves.items) - 1)
    middle = shared_step if shared_step is not None else steps[len(steps) // 2]
    return TrajectoryReport(
        reading=reading,
        four=_four(curves, num_selection, middle, alpha) if num_selection and len(steps) > 1 else None,
        shared_step=middle,
        num_selection=num_selection,
        seeds=curves.seeds,
        n=len(curves.items),
        notes=(*curves.notes, "* its checkpoint was selected on the selection pool, never on the fresh one"),
    )


def _four(curves: Curves, num_selection: int, shared_step: int, alpha: float) -> FourReadings:
    selection_N = np.arange(len(curves.items)) < num_selection
    a, b = curves.arms[:2]
    return four_readings(a, b, selection_N=selection_N, shared_step=shared_step, alpha=alpha)

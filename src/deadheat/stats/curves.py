"""Curves of arms from long tables of evaluations: seed, step, item, value.

Arms are laid on the union of their steps. A run that ended early is its last checkpoint from then on, so its last
grades stand at later steps; a step before the end at which it was not evaluated is left out for all. Where no rule of
convergence fired, the last reading stands in for the converged one. Both are said in the notes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from deadheat.errors import StatsError
from deadheat.stats.trajectory import ArmCurve, FourReadings, TrajectoryReading, four_readings, read_trajectory


@dataclass(frozen=True, kw_only=True)
class ArmTable:
    """One arm's evaluations."""

    arm: str
    frame: pl.DataFrame  # seed, step, item, value
    converged_step: Mapping[str, int | None]  # by seed; None or absent: the last step stands in


@dataclass(frozen=True, kw_only=True)
class Curves:
    """Arms on the same seeds, steps and items."""

    arms: tuple[ArmCurve, ...]
    seeds: tuple[str, ...]
    items: tuple[str, ...]  # in order of first appearance
    notes: tuple[str, ...]


def curves_of(tables: Sequence[ArmTable]) -> Curves:
    """Lay the arms side by side on what all of them have.

    Example:
        >>> rows = {"seed": ["1"] * 2, "step": [0, 10], "item": ["x", "x"], "value": [0.0, 1.0]}
        >>> one = ArmTable(arm="a", frame=pl.DataFrame(rows), converged_step={})
        >>> curves_of([one]).arms[0].grades_CSN.tolist()
        [[[0.0]], [[1.0]]]
    """
    if not tables:
        raise StatsError("no arm was given; wanted at least one")
    seeds = _common([set(table.frame["seed"]) for table in tables], "seed")
    items = _common([set(table.frame["item"]) for table in tables], "item")
    order = list(dict.fromkeys(tables[0].frame["item"]))
    items = [item for item in order if item in set(items)]
    steps_of = {
        (table.arm, seed): sorted(set(table.frame.filter(pl.col("seed") == seed)["step"]))
        for table in tables
        for seed in seeds
    }
    steps = [
        step
        for step in sorted(set().union(*steps_of.values()))
        if all(step in own or step > own[-1] for own in steps_of.values())
    ]
    if not steps:
        raise StatsError("no step at which every arm and seed was evaluated; wanted the same evaluation interval")
    notes = [
        f"{arm}, seed {seed}: the run ended at step {own[-1]}; its last reading stands from there"
        for (arm, seed), own in steps_of.items()
        if own[-1] < steps[-1]
    ]
    arms = tuple(_curve(table, seeds, items, steps, notes) for table in tables)
    return Curves(arms=arms, seeds=tuple(seeds), items=tuple(items), notes=tuple(notes))


def _curve(
    table: ArmTable, seeds: Sequence[str], items: Sequence[str], steps: Sequence[int], notes: list[str]
) -> ArmCurve:
    places = {"seed": {s: i for i, s in enumerate(seeds)}, "item": {n: i for i, n in enumerate(items)}}
    column = {step: c for c, step in enumerate(steps)}
    grades = np.full((len(steps), len(seeds), len(items)), np.nan)
    means = table.frame.group_by("seed", "step", "item").agg(pl.col("value").mean())
    for seed, step, item, value in means.iter_rows():
        if seed in places["seed"] and item in places["item"] and step in column and value is not None:
            grades[column[step], places["seed"][seed], places["item"][item]] = value
    converged, unruled = [], []
    for s, seed in enumerate(seeds):
        own = sorted(set(table.frame.filter(pl.col("seed") == seed)["step"]))
        for c, step in enumerate(steps):
            if step > own[-1]:
                grades[c, s] = grades[c - 1, s]
        at = table.converged_step.get(seed)
        if at is None:
            unruled.append(seed)
        converged.append(column.get(own[-1] if at is None else at, len(steps) - 1))
    if unruled:
        notes.append(
            f"{table.arm}: no rule of convergence fired in seeds {', '.join(unruled)}; the last reading stands in"
        )
    return ArmCurve(arm=table.arm, steps=tuple(steps), grades_CSN=grades, converged=tuple(converged))


def _common(sets: Sequence[set[str]], what: str) -> list[str]:
    shared = set.intersection(*sets)
    if not shared:
        seen = "; ".join(f"{sorted(keys)[:4]}" for keys in sets)
        raise StatsError(f"no {what} in common among the arms: {seen}; wanted the same {what} keys in every arm")
    return sorted(shared, key=lambda key: (len(key), key))


def arm_tables(frame: pl.DataFrame, *, arm: str, step: str, prefix: str = "") -> list[ArmTable]:
    """The arms of one long table, whose `arm` and `step` columns are text; no rule of convergence is known."""
    steps = frame[step].cast(pl.Float64, strict=False)
    if steps.null_count() or bool((steps != steps.round()).any()):
        bad = frame[step].filter(steps.is_null() | (steps != steps.round()))[0]
        raise StatsError(f"column {step!r} holds {bad!r}; wanted whole training steps")
    if frame[arm].null_count():
        raise StatsError(f"column {arm!r} is empty in {frame[arm].null_count()} rows; wanted an arm in every row")
    long = frame.with_columns(steps.cast(pl.Int64).alias(step)).rename({step: "step"})
    return [
        ArmTable(arm=prefix + name, frame=long.filter(pl.col(arm) == name), converged_step={})
        for name in long[arm].unique(maintain_order=True)
    ]


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


def trajectory_of(
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

"""The course of the gate: what the groups of each step were, which kind of tie moved T, what tied steps cost.

shift       T₁ − T₀ = T₀·T₁·(q₁ − q₀), so each kind of tie has its exact part of the change: T₀·T₁·Δmass
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from deadheat.audit.records import AuditOptions, share
from deadheat.audit.table import columns_of, is_summary
from deadheat.stats.intervals import Interval

KINDS = ("live", "all_right", "all_wrong", "tied_other")
SUMS = (*KINDS, "unscored", "single", "repeated", "in_floor")


@dataclass(frozen=True, kw_only=True)
class GatePoint:
    """What the groups of one step were."""

    arm: str  # "" where the source has no arms
    step: int
    live: int
    all_right: int
    all_wrong: int
    tied_other: int  # unscored groups included


@dataclass(frozen=True, kw_only=True)
class GateShift:
    """The change of T between the first and the last tenth of the steps (or two checkpoints), by kind of tie."""

    where: str  # the arm; "" where there is none
    first: str  # which steps or checkpoint
    last: str
    multiplier_first: float  # T
    multiplier_last: float
    all_right_part: float  # of T_last − T_first: T_first·T_last·Δmass
    all_wrong_part: float
    tied_other_part: float
    all_right_masses: tuple[float, float]  # share of groups with k = G, first and last
    all_wrong_masses: tuple[float, float]  # share with k = 0
    explains: str  # the kind with the largest part; "none": T did not move
    num_groups: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class TiedLoss:
    """Steps of one tied group in a log that keeps their loss: what a step without signal still does."""

    tied: Interval  # steps whose group agrees, of all
    zero: Interval  # of them, steps whose loss is exactly 0
    kl_alone: Interval | None  # of them, steps whose loss is exactly the logged KL term; None: none is logged


def gate_curve(own: pl.DataFrame) -> tuple[GatePoint, ...]:
    """What the groups of each step were, by arm; empty: fewer than two steps."""
    if "step" not in own.columns or own["step"].n_unique() < 2:
        return ()
    arm = pl.col("arm").fill_null("") if "arm" in own.columns else pl.lit("")
    table = own.drop_nulls("step").group_by(arm.alias("arm"), "step").agg(pl.col(SUMS).sum()).sort("arm", "step")
    return tuple(
        GatePoint(
            arm=row["arm"],
            step=row["step"],
            live=row["live"],
            all_right=row["all_right"],
            all_wrong=row["all_wrong"],
            tied_other=row["tied_other"] + row["unscored"],
        )
        for row in table.iter_rows(named=True)
    )


def gate_shifts(own: pl.DataFrame) -> tuple[GateShift, ...]:
    """First against last, per arm: checkpoints where there are several, else tenths of the steps."""
    axis = next((name for name in ("checkpoint", "step") if name in own.columns and own[name].n_unique() > 1), None)
    if axis is None:
        return ()
    arms = own["arm"].unique().sort().to_list() if "arm" in own.columns else [None]
    found = [_shift(own if arm is None else own.filter(pl.col("arm") == arm), axis, arm or "") for arm in arms]
    return tuple(shift for shift in found if shift is not None)


def _shift(own: pl.DataFrame, axis: str, arm: str) -> GateShift | None:
    marks = own[axis].drop_nulls().unique().sort().to_list()
    if len(marks) < 2:
        return None
    tenth = max(1, len(marks) // 10) if axis == "step" else 1
    ends = (marks[:tenth], marks[-tenth:])
    sums = [own.filter(pl.col(axis).is_in(end)).select(pl.col(KINDS).sum()).row(0, named=True) for end in ends]
    groups = [sum(row.values()) for row in sums]
    if not all(groups) or not all(row["live"] for row in sums):
        return None
    masses = [{kind: row[kind] / n for kind in KINDS} for row, n in zip(sums, groups, strict=True)]
    t_0, t_1 = (1 / mass["live"] for mass in masses)
    parts = {kind: t_0 * t_1 * (masses[1][kind] - masses[0][kind]) for kind in KINDS[1:]}
    change = t_1 - t_0
    with_it = {kind: part * np.sign(change) for kind, part in parts.items()}
    first, last = (f"{axis} {end[0]}" + (f" to {end[-1]}" if len(end) > 1 else "") for end in ends)
    return GateShift(
        where=arm,
        first=first,
        last=last,
        multiplier_first=t_0,
        multiplier_last=t_1,
        all_right_part=parts["all_right"],
        all_wrong_part=parts["all_wrong"],
        tied_other_part=parts["tied_other"],
        all_right_masses=(masses[0]["all_right"], masses[1]["all_right"]),
        all_wrong_masses=(masses[0]["all_wrong"], masses[1]["all_wrong"]),
        explains="none" if change == 0 else max(with_it, key=lambda kind: with_it[kind]),
        num_groups=(groups[0], groups[1]),
    )


def tied_loss_of(rows: pl.LazyFrame, options: AuditOptions) -> TiedLoss | None:
    """What steps of one tied group cost; None: no log of one group a step that keeps its loss."""
    names = columns_of(rows)
    if not is_summary(names) or not {"loss", "step", "group_size"} <= set(names):
        return None
    kept = ["step", "loss", *(name for name in ("kl", "k", "mean_reward", "group_size") if name in names)]
    table = rows.select(kept).drop_nulls("loss").collect(engine="streaming")
    if not table.height or table["step"].n_unique() < table.height:
        return None
    right = pl.col("k") if "k" in names else (pl.col("mean_reward") * pl.col("group_size")).round()
    tied = table.filter((right == 0) | (right == pl.col("group_size")))
    agree = share(tied.height, table.height, level=options.level)
    zero = share((tied["loss"] == 0).sum(), tied.height, level=options.level)
    kl = share((tied["loss"] == tied["kl"]).sum(), tied.height, level=options.level) if "kl" in names else None
    return None if agree is None or zero is None else TiedLoss(tied=agree, zero=zero, kl_alone=kl)

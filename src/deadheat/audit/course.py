"""The course of the gate: what the groups of each step were, which kind of tie moved T, what tied steps cost.

shift       T₁ − T₀ = T₀·T₁·(q₁ − q₀), so each kind of tie has its exact part of the change: T₀·T₁·Δmass
its bounds  the limits of both ends with the correlation that the jackknife finds over problems in both (`stats.shares`);
            of a kind's part, the jackknife's or T₀·T₁ times those of Δmass, the wider: the first is too narrow where few
            groups are live (92% at 40 problems), the second knows nothing of T
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deadheat.audit.labels import label_of
from deadheat.audit.problems import COPIES, column, noted
from deadheat.audit.records import AuditOptions, share
from deadheat.audit.table import PROBLEM, columns_of, is_summary
from deadheat.stats.clusters import FEWEST_CLUSTERS
from deadheat.stats.distributions import t_quantile
from deadheat.stats.groups import Multiplier
from deadheat.stats.intervals import Interval
from deadheat.stats.shares import UNNAMED, TwoParts, change, jackknife, multiplier_of

KINDS = ("live", "all_right", "all_wrong", "tied_other")
SUMS = (*KINDS, "unscored", "single", "repeated", "in_floor")
END = "_end"  # 0 in the first part of the course, 1 in the last, null between
Floats = NDArray[np.float64]


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
    change: Interval  # of T; an infinite bound where the interval of T has one
    tied_change: Interval  # of the share of tied groups
    tied_change_same: Interval | None  # over the problems in both parts alone; None: not told, fewer than 6, or all are
    all_right_part: float  # of T_last − T_first: T_first·T_last·Δmass
    all_wrong_part: float
    tied_other_part: float
    part_intervals: Mapping[str, Interval]  # by kind; a kind that no group moved, or too few problems: not there
    all_right_masses: tuple[float, float]  # share of groups with k = G, first and last
    all_wrong_masses: tuple[float, float]  # share with k = 0
    explains: str  # the kind with the largest part; "none": T did not move
    num_groups: tuple[int, int]
    num_problems: tuple[int, int, int] | None  # first, last, in both; None: the log names none


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


@dataclass(frozen=True, kw_only=True)
class Ends:
    """The first and the last part of one arm's course."""

    arm: str | None
    axis: str  # checkpoint or step
    first: tuple[object, ...]  # its values, sorted
    last: tuple[object, ...]

    @property
    def where(self) -> pl.Expr:
        """0 in the first part, 1 in the last, null elsewhere."""
        mine = pl.lit(True) if self.arm is None else pl.col("arm") == self.arm
        at = [pl.col(self.axis).is_between(pl.lit(end[0]), pl.lit(end[-1])) for end in (self.first, self.last)]
        return pl.when(mine & at[0]).then(pl.lit(0, pl.Int8)).when(mine & at[1]).then(pl.lit(1, pl.Int8))


def ends_of(own: pl.DataFrame) -> tuple[Ends, ...]:
    """First against last, per arm: checkpoints where there are several, else tenths of the steps."""
    axis = next((name for name in ("checkpoint", "step") if name in own.columns and own[name].n_unique() > 1), None)
    if axis is None:
        return ()
    found = []
    for arm in own["arm"].unique().sort().to_list() if "arm" in own.columns else [None]:
        mine = own if arm is None else own.filter(pl.col("arm") == arm)
        marks = mine[axis].drop_nulls().unique().sort().to_list()
        tenth = max(1, len(marks) // 10) if axis == "step" else 1
        if len(marks) > 1:
            found.append(Ends(arm=arm, axis=axis, first=tuple(marks[:tenth]), last=tuple(marks[-tenth:])))
    return tuple(found)


def end_of_course(rows: pl.LazyFrame) -> pl.Expr:
    """Which end of its course a group stands at; asked of the whole log, so that every shard has the same ends."""
    names = [name for name in ("purpose", "arm", "checkpoint", "step") if name in columns_of(rows)]
    nowhere = pl.lit(None, pl.Int8)
    if not {"checkpoint", "step"} & set(names):
        return nowhere
    places = rows.select(names).unique().collect(engine="streaming").with_columns(column=pl.lit("reward"))
    parts = places.with_columns(label=label_of("purpose" in names)).partition_by("label")
    found = [pl.when(_drawn_alike(own)).then(ends.where) for own in parts for ends in ends_of(own)]
    return pl.coalesce(*found, nowhere) if found else nowhere


def _drawn_alike(own: pl.DataFrame) -> pl.Expr:
    """Rows drawn for what these were drawn for."""
    if "purpose" not in own.columns:
        return pl.lit(True)
    return pl.col("purpose").is_in(own["purpose"].unique().implode(), nulls_equal=True)


def gate_shifts(own: pl.DataFrame, problems: pl.DataFrame | None, *, level: float) -> tuple[GateShift, ...]:
    """The shift of every arm, from its counts and, where the log names problems, their sums at both ends."""
    found = [_shift(own, problems, ends, level) for ends in ends_of(own)]
    return tuple(shift for shift in found if shift is not None)


def _shift(own: pl.DataFrame, problems: pl.DataFrame | None, ends: Ends, level: float) -> GateShift | None:
    at_ends = own.with_columns(ends.where.alias(END)).drop_nulls(END)
    sums = [at_ends.filter(pl.col(END) == end).select(pl.col(KINDS).sum()).row(0, named=True) for end in (0, 1)]
    groups = [sum(row.values()) for row in sums]
    if not all(groups) or not all(row["live"] for row in sums):
        return None
    if problems is None:
        found, named = _lone_groups(sums), False
    else:
        mine = problems if ends.arm is None else problems.filter(pl.col("arm") == ends.arm)
        found, named = _at_both_ends(mine.drop_nulls(END)), True
    masses = [{kind: row[kind] / n for kind in KINDS} for row, n in zip(sums, groups, strict=True)]
    t_0, t_1 = (1 / mass["live"] for mass in masses)
    parts = {kind: t_0 * t_1 * (masses[1][kind] - masses[0][kind]) for kind in KINDS[1:]}
    moved = t_1 - t_0
    with_it = {kind: part * np.sign(moved) for kind, part in parts.items()}
    first, last = (
        f"{ends.axis} {end[0]}" + (f" to {end[-1]}" if len(end) > 1 else "") for end in (ends.first, ends.last)
    )
    counts_K2 = {kind: np.stack([column(found, f"{kind}{end}") for end in (0, 1)], axis=1) for kind in KINDS}
    bounds = shift_bounds(counts_K2, column(found, COPIES), parts, level=level, named=named)
    return GateShift(
        where=ends.arm or "",
        first=first,
        last=last,
        multiplier_first=t_0,
        multiplier_last=t_1,
        change=bounds.multiplier,
        tied_change=bounds.tied,
        tied_change_same=bounds.tied_same,
        all_right_part=parts["all_right"],
        all_wrong_part=parts["all_wrong"],
        tied_other_part=parts["tied_other"],
        part_intervals=bounds.parts,
        all_right_masses=(masses[0]["all_right"], masses[1]["all_right"]),
        all_wrong_masses=(masses[0]["all_wrong"], masses[1]["all_wrong"]),
        explains="none" if moved == 0 else max(with_it, key=lambda kind: with_it[kind]),
        num_groups=(groups[0], groups[1]),
        num_problems=bounds.num_problems,
    )


def _lone_groups(sums: Sequence[Mapping[str, int]]) -> pl.DataFrame:
    """The two ends as clusters of one group each."""
    rows = [
        {f"{name}{end}": int(name == kind and end == place) for name in KINDS for end in (0, 1)}
        | {COPIES: sums[place][kind]}
        for place in (0, 1)
        for kind in KINDS
    ]
    return pl.DataFrame(rows).filter(pl.col(COPIES) > 0)


def _at_both_ends(problems: pl.DataFrame) -> pl.DataFrame:
    """The sums of every problem at both ends, equal problems together."""
    per = problems.group_by(PROBLEM).agg(
        pl.col(kind).filter(pl.col(END) == end).cast(pl.Int64).sum().alias(f"{kind}{end}")
        for kind in KINDS
        for end in (0, 1)
    )
    figures = [name for name in per.columns if name != PROBLEM]
    return per.group_by(figures).agg(pl.len().alias(COPIES)).sort(figures)


@dataclass(frozen=True, kw_only=True)
class ShiftBounds:
    """The intervals of a shift."""

    multiplier: Interval
    tied: Interval
    tied_same: Interval | None
    parts: Mapping[str, Interval]
    num_problems: tuple[int, int, int] | None


def shift_bounds(
    counts_K2: Mapping[str, Floats], copies_C: Floats, parts: Mapping[str, float], *, level: float, named: bool
) -> ShiftBounds:
    """Bounds from the groups of each kind at both ends, [C, 2] each, and the parts of T's change."""
    size_C2 = np.asarray(sum(counts_K2.values()))
    both = TwoParts(size_C2=size_C2, copies_C=copies_C, name="problems" if named else "groups")
    tied_C2 = size_C2 - counts_K2["live"]
    tied, of_t = both.change_of_share(tied_C2, level=level), _change_of_multiplier(both, tied_C2, level)
    counted = (both.part(0).num, both.part(1).num, both.num_in_both)
    return ShiftBounds(
        multiplier=of_t if named else noted(of_t, UNNAMED),
        tied=tied if named else noted(tied, UNNAMED),
        tied_same=_of_the_same(both, tied_C2, level),
        parts=_part_intervals(both, counts_K2, parts, level),
        num_problems=counted if named else None,
    )


def _change_of_multiplier(both: TwoParts, tied_C2: Floats, level: float) -> Interval:
    shut = both.shares(tied_C2, level=level)
    t = [multiplier_of(one) for one in shut]
    return change(
        _of_multiplier(t[0], shut[0]),
        _of_multiplier(t[1], shut[1]),
        correlation=both.correlation(tied_C2),
        least=both.least(level) * (t[0].value or 1.0) * (t[1].value or 1.0),  # ΔT = T₀·T₁·Δq
        method=f"change of T, {both.num_in_both:,} {both.name} in both parts",
    )


def _of_the_same(both: TwoParts, tied_C2: Floats, level: float) -> Interval | None:
    """The change over the problems that stand in both parts, where others do not."""
    in_both = (both.size_C2 > 0).all(axis=1)
    same = TwoParts(size_C2=both.size_C2[in_both], copies_C=both.copies_C[in_both], name=both.name)
    if in_both.all() or both.num_in_both < FEWEST_CLUSTERS:
        return None
    return same.change_of_share(tied_C2[in_both], level=level)


def _of_multiplier(t: Multiplier, shut: Interval) -> Interval:
    """T as an interval."""
    high = np.inf if t.high is None else t.high
    value = np.inf if t.value is None else t.value
    return Interval(
        estimate=value, low=t.low, high=high, level=shut.level, n=t.n, left_out=0, method="T", note=shut.note
    )


def _part_intervals(
    both: TwoParts, counts_K2: Mapping[str, Floats], parts: Mapping[str, float], level: float
) -> Mapping[str, Interval]:
    if not both.enough:
        return {}
    sums_CJ = np.concatenate([counts_K2[kind] for kind in KINDS], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):  # where one problem holds every live group of an end
        variance_K = np.diag(jackknife(_kind_parts, sums_CJ, both.copies_C)).tolist()
    scale, found = t_quantile((1 + level) / 2, both.df), {}
    live = both.copies_C @ counts_K2["live"] / (both.copies_C @ both.size_C2)
    for kind, v in zip(KINDS[1:], variance_K, strict=True):
        if not (np.isfinite(v) and v > 0):
            continue
        half, mass = scale * v**0.5, both.change_of_share(counts_K2[kind], level=level)
        found[kind] = Interval(
            estimate=parts[kind],
            low=min(parts[kind] - half, mass.low / float(live.prod())),
            high=max(parts[kind] + half, mass.high / float(live.prod())),
            level=level,
            n=mass.n,
            left_out=0,
            method=f"part of a change of T, jackknife over {both.name} or T₀·T₁ times the change of mass, the wider",
        )
    return found


def _kind_parts(sums_RJ: Floats) -> Floats:
    """T₀·T₁·Δmass of every kind of tie, from [R, kinds × 2] sums."""
    of_R2K = sums_RJ.reshape(len(sums_RJ), len(KINDS), 2).swapaxes(1, 2)
    mass_R2K = of_R2K / of_R2K.sum(axis=2, keepdims=True)
    both_T = 1 / (mass_R2K[:, 0, :1] * mass_R2K[:, 1, :1])
    return np.asarray(both_T * (mass_R2K[:, 1, 1:] - mass_R2K[:, 0, 1:]))


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

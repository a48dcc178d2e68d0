"""Audit 1, the gate: how many groups agree, in which way, and what that costs a filter.

    shut        tied groups / groups with a scored member                 Wilson
    T           1/(1 − shut), SE sqrt(q(1−q)/n)/(1−q)²                    delta method

Every score column is read by name. A reading says what it is of: `live` rewards were learned from; `recomputed` scores
are of the same training rollouts, and nothing was learned from them; `untrained` rollouts were sampled without training,
`top-up` ones on problems that earlier draws selected, `not kept` ones in training without being learned from (what
dynamic and adaptive drawing leave, chosen by its rewards), `held out` ones for an evaluation.
Readings of different labels are never subtracted. Ties are computed from scores, never from a trainer's own metric.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import polars as pl

from deadheat.audit.counts import Counts, counted
from deadheat.audit.course import KINDS, SUMS, GatePoint, GateShift, TiedLoss, gate_curve, gate_shifts, tied_loss_of
from deadheat.audit.draw import multiplier_text
from deadheat.audit.expected import ExpectedGate, expected_gates
from deadheat.audit.records import AuditOptions, AuditRecord, share, share_of
from deadheat.audit.table import (
    PLACES,
    SIZE,
    columns_of,
    group_table,
    high,
    is_summary,
    is_tied,
    low,
    score_columns,
    scored,
)
from deadheat.stats.groups import Multiplier, multiplier
from deadheat.stats.intervals import Interval


class Label(StrEnum):
    """What the groups of a reading were to training."""

    LIVE = "live"  # the rewards that were learned from
    RECOMPUTED = "recomputed"  # another score of training rollouts
    UNTRAINED = "untrained"  # sampled without training
    TOP_UP = (
        "top-up"  # fresh draws on problems that were selected by earlier ones: their ties are no sample of anything
    )
    NOT_KEPT = "not kept"  # drawn in training and not learned from: what is left once a drawing has chosen
    HELD_OUT = "held out"  # drawn for an evaluation
    AS_LOGGED = "as logged"  # the source does not say what they were drawn for


_DRAWN_FOR = {"sample": Label.UNTRAINED, "top-up": Label.TOP_UP, "not-kept": Label.NOT_KEPT, "eval": Label.HELD_OUT}


@dataclass(frozen=True, kw_only=True)
class GateReading:
    """The gate of one score column over one part of the archive."""

    column: str  # the score a tie is computed from
    label: Label
    where: Mapping[str, str]  # column to value; empty: everything of this label
    shut_rate: Interval | None  # tied groups of those with a scored member; None: there is no such group
    all_right: Interval | None
    all_wrong: Interval | None
    tied_other: Interval | None  # tied at another value, or grades differ where scores agree
    multiplier: Multiplier | None  # T
    in_floor: Interval | None  # groups whose scores lie within the scorer's noise floor; None: no floor given
    num_groups: int  # of two rollouts or more
    num_unscored: int  # groups without a score, left out
    num_single: int  # groups of one rollout: draws, no groups


@dataclass(frozen=True, kw_only=True)
class Gate(AuditRecord):
    """The gate of an archive."""

    column: str  # of the headline
    label: Label  # of the headline
    shut_rate: Interval | None
    all_right: Interval | None
    all_wrong: Interval | None
    tied_other: Interval | None
    multiplier: Multiplier | None
    group_sizes: tuple[int, int]  # smallest and largest
    num_repeated: int  # rollouts beyond what their group's sample numbers allow: something was read twice
    readings: tuple[GateReading, ...]  # every column and label
    cells: tuple[GateReading, ...]  # the headline's column, by place
    expected: tuple[ExpectedGate, ...]  # at other group sizes; empty: grades are not right/wrong, or all branched
    chosen_arms: tuple[str, ...]  # left out of it: their groups were drawn until they differed
    shifts: tuple[GateShift, ...]
    curve: tuple[GatePoint, ...]  # by arm and step
    tied_loss: TiedLoss | None = None  # None: the log keeps no loss of single groups

    @property
    def sentence(self) -> str:
        """Shut rate, composition and T."""
        if self.shut_rate is None or self.multiplier is None:
            return "no group of two or more scored rollouts"
        shares = [
            f"{100 * part.estimate:.1f}% {name}"
            for name, part in (("all right", self.all_right), ("all wrong", self.all_wrong), ("other", self.tied_other))
            if part is not None
        ]
        twice = f" {self.num_repeated:,} rollouts were read twice." if self.num_repeated else ""
        return (
            f"{share_of(self.shut_rate, 'groups')} agree ({', '.join(shares)}) by {self.column}, "
            f"{self.label.value}; T = {multiplier_text(self.multiplier)}.{twice}"
        )


@dataclass(frozen=True, kw_only=True)
class GateCounts:
    """What the gate keeps of a shard."""

    kinds: Counts  # groups of each kind, by score column and place
    draws: Counts  # groups by (k right of n graded), right/wrong grades of groups that are not branched


def gate(rows: pl.LazyFrame, options: AuditOptions) -> Gate:
    """The gate of every score column, its parts and its course."""
    found = read_gate(count_gate(rows, options), options)
    return replace(found, tied_loss=tied_loss_of(rows, options))


def count_gate(rows: pl.LazyFrame, options: AuditOptions) -> GateCounts:
    """Counts of one shard."""
    names = columns_of(rows)
    scores = ("reward",) if is_summary(names) else score_columns(names)
    places = [*dict.fromkeys((*PLACES, *options.by))]
    return count_gate_groups(group_table(rows, scores=scores, places=places), scores, options)


def count_gate_groups(groups: pl.LazyFrame, scores: Sequence[str], options: AuditOptions) -> GateCounts:
    """Counts from the group table."""
    names = columns_of(groups)
    keys = [name for name in dict.fromkeys((*PLACES, *options.by)) if name in names]
    parts = [_kind_counts(groups, column, keys, names, options) for column in scores]
    sizes = pl.col(SIZE)
    draws = (
        groups.filter(~pl.col("branched") if "branched" in names else pl.lit(True))
        .filter((pl.col("graded") > 1) & (pl.col("graded") >= pl.col(scored(scores[0]))))
        .group_by("right", "graded", *(name for name in ("purpose", "arm") if name in names))
        .agg(pl.len().cast(pl.Int64).alias("groups"))
        if "right" in names
        else groups.select(right=0, graded=sizes, groups=0).limit(0)
    )
    *tables, histogram = pl.collect_all([*parts, draws], engine="streaming")
    kinds = pl.concat(tables, how="diagonal_relaxed")
    return GateCounts(
        kinds=counted(kinds, ["column", "size", *keys]),
        draws=counted(histogram, [name for name in histogram.columns if name != "groups"]),
    )


def _kind_counts(
    groups: pl.LazyFrame, column: str, keys: Sequence[str], names: Sequence[str], options: AuditOptions
) -> pl.LazyFrame:
    tied, several, any_score = is_tied(column), pl.col(SIZE) > 1, pl.col(scored(column)) > 0
    graded_by_checker = column == "reward" and "right" in names
    if graded_by_checker:
        all_right = pl.col("right") == pl.col(scored(column))
        all_wrong = (pl.col("right") == 0) & (pl.col("graded") >= pl.col(scored(column)))
    else:
        all_right, all_wrong = (pl.col(high(column)) == value for value in (1.0, 0.0))
    shut = several & any_score & tied
    within = pl.lit(False) if options.noise_floor is None else _in_floor(column, options.noise_floor)
    flags = {
        "live": several & any_score & ~tied,
        "all_right": shut & all_right,
        "all_wrong": shut & all_wrong & ~all_right,
        "tied_other": shut & ~all_right & ~all_wrong,
        "unscored": several & ~any_score,
        "single": ~several,
        "in_floor": several & any_score & within,
    }
    sums = [flag.fill_null(False).cast(pl.Int64).sum().alias(name) for name, flag in flags.items()]
    repeated = pl.col("repeated").sum().cast(pl.Int64) if "repeated" in names else pl.lit(0, pl.Int64)
    size = pl.col(SIZE).cast(pl.Int64).alias("size")
    grouped = groups.with_columns(size).group_by([*keys, "size"]).agg(*sums, repeated.alias("repeated"))
    return grouped.with_columns(pl.lit(column).alias("column"))


def _in_floor(column: str, floor: float) -> pl.Expr:
    return (pl.col(high(column)) - pl.col(low(column))) <= floor


def read_gate(counts: GateCounts, options: AuditOptions) -> Gate:
    """The record of merged counts."""
    kinds = counts.kinds.table
    every = _readings(kinds, ["column"], [], options)
    readings = tuple(reading for reading in every if reading.num_groups) or tuple(every)
    head = _headline(readings, kinds)
    cells = tuple(cell for by in _partitions(kinds, options) for cell in _cells(kinds, head, by, options))
    of_head = _only(kinds, head)
    sizes: list[int] = of_head.filter(pl.col("size") > 1)["size"].to_list()
    chosen = _chosen_arms(kinds)
    return Gate(
        column=head.column,
        label=head.label,
        shut_rate=head.shut_rate,
        all_right=head.all_right,
        all_wrong=head.all_wrong,
        tied_other=head.tied_other,
        multiplier=head.multiplier,
        group_sizes=(min(sizes, default=0), max(sizes, default=0)),
        num_repeated=int(of_head["repeated"].sum()),
        readings=readings,
        cells=cells,
        expected=_expected(counts.draws.table, head, chosen, options),
        chosen_arms=chosen,
        shifts=gate_shifts(of_head),
        curve=gate_curve(of_head),
    )


def _readings(
    table: pl.DataFrame, keys: Sequence[str], by: Sequence[str], options: AuditOptions
) -> "list[GateReading]":
    has_purpose = "purpose" in table.columns
    labelled = table.with_columns(_label(has_purpose).alias("label"))
    sums = labelled.group_by([*keys, "label", *by]).agg(pl.col(SUMS).sum()).sort([*keys, "label", *by], nulls_last=True)
    return [_reading(row, by, options) for row in sums.iter_rows(named=True)]


def _label(has_purpose: bool) -> pl.Expr:
    if not has_purpose:
        return pl.lit(Label.AS_LOGGED.value)
    is_reward = pl.col("column") == "reward"
    learned = pl.when(is_reward).then(pl.lit(Label.LIVE.value)).otherwise(pl.lit(Label.RECOMPUTED.value))
    drawn_for = {purpose: label.value for purpose, label in _DRAWN_FOR.items()}
    known = pl.col("purpose").replace_strict(drawn_for, default=Label.AS_LOGGED.value, return_dtype=pl.String)
    return pl.when(pl.col("purpose") == "train").then(learned).otherwise(known)


def _reading(row: Mapping[str, Any], by: Sequence[str], options: AuditOptions) -> GateReading:
    n = sum(row[kind] for kind in KINDS)

    def part(k: int) -> Interval | None:
        return share(k, n, left_out=row["unscored"], level=options.level)

    shut = part(n - row["live"])
    return GateReading(
        column=row["column"],
        label=Label(row["label"]),
        where={name: _text(row[name]) for name in by},
        shut_rate=shut,
        all_right=part(row["all_right"]),
        all_wrong=part(row["all_wrong"]),
        tied_other=part(row["tied_other"]),
        multiplier=None if shut is None else multiplier(shut),
        in_floor=None if options.noise_floor is None else part(row["in_floor"]),
        num_groups=n + row["unscored"],
        num_unscored=row["unscored"],
        num_single=row["single"],
    )


def _headline(readings: Sequence[GateReading], kinds: pl.DataFrame) -> GateReading:
    """The first score column's groups that were learned from, else those of the next label there are."""
    first = next(iter(score_columns(kinds["column"].unique().to_list())), "reward")
    own = [reading for reading in readings if reading.column == first] or list(readings)
    if not own:
        return GateReading(
            column=first, label=Label.AS_LOGGED, where={}, shut_rate=None, all_right=None, all_wrong=None,
            tied_other=None, multiplier=None, in_floor=None, num_groups=0, num_unscored=0, num_single=0,
        )  # fmt: skip
    real = [reading for reading in own if reading.num_groups] or own
    return min(real, key=lambda reading: list(Label).index(reading.label))


def _only(kinds: pl.DataFrame, head: GateReading) -> pl.DataFrame:
    labelled = kinds.with_columns(_label("purpose" in kinds.columns).alias("label"))
    return labelled.filter((pl.col("column") == head.column) & (pl.col("label") == head.label.value)).drop("label")


def _partitions(kinds: pl.DataFrame, options: AuditOptions) -> list[list[str]]:
    """What the headline is broken down by: each place of a few values, and what was asked for."""
    several: list[str] = [
        place
        for place in ("arm", "task", "temperature", "checkpoint")
        if place in kinds.columns and 1 < kinds[place].n_unique() <= 64
    ]
    asked = [name for name in options.by if name in kinds.columns]
    return [[place] for place in several if [place] != asked] + ([asked] if asked else [])


def _cells(kinds: pl.DataFrame, head: GateReading, by: Sequence[str], options: AuditOptions) -> list[GateReading]:
    own = kinds.filter(pl.col("column") == head.column)
    return [cell for cell in _readings(own, ["column"], by, options) if cell.label is head.label and cell.num_groups]


def _chosen_arms(kinds: pl.DataFrame) -> tuple[str, ...]:
    """Arms that left out what they drew: which groups they learned from depends on the outcome."""
    if not {"arm", "purpose"} <= set(kinds.columns):
        return ()
    return tuple(kinds.filter(pl.col("purpose") == "not-kept")["arm"].drop_nulls().unique().sort())


def _expected(
    draws: pl.DataFrame, head: GateReading, chosen_arms: Sequence[str], options: AuditOptions
) -> tuple[ExpectedGate, ...]:
    draws = _only(draws.with_columns(column=pl.lit(head.column)), head)
    if chosen_arms:
        draws = draws.filter(~pl.col("arm").is_in(chosen_arms).fill_null(False))
    if not draws.height:
        return ()
    right_H, draws_H = (draws[name].to_numpy().astype(np.float64) for name in ("right", "graded"))
    problems_H = draws["groups"].to_numpy().astype(np.int64)
    return expected_gates(right_H, draws_H, problems_H, options.group_sizes, level=options.level)


def _text(value: object) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)

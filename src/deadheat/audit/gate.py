"""Audit 1, the gate: how many groups agree, in which way, and what that costs a filter.

    shut        tied groups / groups with a scored member     Wilson, at n* effective groups where problems repeat
    T           1/(1 − shut), SE sqrt(q(1−q)/n*)/(1−q)²       delta method

Groups of one problem are not independent, so problems are drawn together (`problems.py`, `stats.shares`).
Every score column is read by name. A reading says what it is of: `live` rewards were learned from; `recomputed` scores
are of the same training rollouts, and nothing was learned from them; `untrained` rollouts were sampled without training,
`top-up` ones on problems that earlier draws selected, `not kept` ones in training without being learned from (what
dynamic and adaptive drawing leave, chosen by its rewards), `held out` ones for an evaluation.
Readings of different labels are never subtracted. Ties are computed from scores, never from a trainer's own metric.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from deadheat.audit.course import KINDS, SUMS, GatePoint, GateShift, TiedLoss, gate_curve, gate_shifts, tied_loss_of
from deadheat.audit.draw import multiplier_text
from deadheat.audit.expected import ExpectedGate, clustered_gate, expected_gates
from deadheat.audit.kinds import GateCounts, count_gate
from deadheat.audit.labels import Label, label_of
from deadheat.audit.problems import share_over, unnamed_share
from deadheat.audit.records import AuditOptions, AuditRecord, share_of
from deadheat.audit.table import score_columns
from deadheat.stats.groups import Multiplier
from deadheat.stats.intervals import Interval
from deadheat.stats.shares import multiplier_of


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


def gate(rows: pl.LazyFrame, options: AuditOptions) -> Gate:
    """The gate of every score column, its parts and its course."""
    found = read_gate(count_gate(rows, options), options)
    return replace(found, tied_loss=tied_loss_of(rows, options))


def read_gate(counts: GateCounts, options: AuditOptions) -> Gate:
    """The record of merged counts."""
    kinds, problems = counts.kinds.table, None if counts.problems is None else counts.problems.table
    every = _readings(kinds, problems, [], options)
    readings = tuple(reading for reading in every if reading.num_groups) or tuple(every)
    head = _headline(readings, kinds)
    cells = tuple(cell for by in _partitions(kinds, options) for cell in _cells(kinds, problems, head, by, options))
    of_head, problems_of_head = _only(kinds, head), None if problems is None else _only(problems, head)
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
        expected=_expected(counts.draws.table, problems_of_head, head, chosen, options),
        chosen_arms=chosen,
        shifts=gate_shifts(of_head, problems_of_head, level=options.level),
        curve=gate_curve(of_head),
    )


def _readings(
    kinds: pl.DataFrame, problems: pl.DataFrame | None, by: Sequence[str], options: AuditOptions
) -> "list[GateReading]":
    keys, label = ["column", "label", *by], label_of("purpose" in kinds.columns).alias("label")
    sums = kinds.with_columns(label).group_by(keys).agg(pl.col(SUMS).sum()).sort(keys, nulls_last=True)
    own = {} if problems is None else problems.with_columns(label).partition_by(keys, as_dict=True)
    return [_reading(row, own.get(tuple(row[key] for key in keys)), by, options) for row in sums.iter_rows(named=True)]


def _reading(
    row: Mapping[str, Any], problems: pl.DataFrame | None, by: Sequence[str], options: AuditOptions
) -> GateReading:
    n, level, left_out = sum(row[kind] for kind in KINDS), options.level, row["unscored"]
    tied = sum(pl.col(kind) for kind in KINDS[1:])
    own = None if problems is None else problems.with_columns(tied=tied, groups=tied + pl.col("live"))

    def part(name: str, k: int) -> Interval | None:
        if own is None:
            return unnamed_share(k, n, left_out=left_out, level=level)
        return share_over(own, name, "groups", left_out=left_out, level=level)

    shut = part("tied", n - row["live"])
    return GateReading(
        column=row["column"],
        label=Label(row["label"]),
        where={name: _text(row[name]) for name in by},
        shut_rate=shut,
        all_right=part("all_right", row["all_right"]),
        all_wrong=part("all_wrong", row["all_wrong"]),
        tied_other=part("tied_other", row["tied_other"]),
        multiplier=None if shut is None else multiplier_of(shut),
        in_floor=None if options.noise_floor is None else part("in_floor", row["in_floor"]),
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
    labelled = kinds.with_columns(label_of("purpose" in kinds.columns).alias("label"))
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


def _cells(
    kinds: pl.DataFrame, problems: pl.DataFrame | None, head: GateReading, by: Sequence[str], options: AuditOptions
) -> list[GateReading]:
    of_column = pl.col("column") == head.column
    own = None if problems is None else problems.filter(of_column)
    readings = _readings(kinds.filter(of_column), own, by, options)
    return [cell for cell in readings if cell.label is head.label and cell.num_groups]


def _chosen_arms(kinds: pl.DataFrame) -> tuple[str, ...]:
    """Arms that left out what they drew: which groups they learned from depends on the outcome."""
    if not {"arm", "purpose"} <= set(kinds.columns):
        return ()
    return tuple(kinds.filter(pl.col("purpose") == "not-kept")["arm"].drop_nulls().unique().sort())


def _expected(
    draws: pl.DataFrame,
    problems: pl.DataFrame | None,
    head: GateReading,
    chosen_arms: Sequence[str],
    options: AuditOptions,
) -> tuple[ExpectedGate, ...]:
    draws = _only(draws.with_columns(column=pl.lit(head.column)), head)
    if chosen_arms:
        kept = ~pl.col("arm").is_in(chosen_arms).fill_null(False)
        draws, problems = draws.filter(kept), None if problems is None else problems.filter(kept)
    if not draws.height:
        return ()
    right_H, draws_H = (draws[name].to_numpy().astype(np.float64) for name in ("right", "graded"))
    problems_H = draws["groups"].to_numpy().astype(np.int64)
    found = expected_gates(right_H, draws_H, problems_H, options.group_sizes, level=options.level)
    return found if problems is None else tuple(clustered_gate(one, problems, level=options.level) for one in found)


def _text(value: object) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)

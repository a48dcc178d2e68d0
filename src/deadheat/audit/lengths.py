"""Audit 12, lengths by outcome, and how much of an accuracy change is the answer channel's.

    length     mean ± z·sd/sqrt(n) tokens by grade and stop reason; quantiles from the histogram of lengths, which is exact
    channel    accuracy = Σ rate × accuracy inside; the channel is whether an answer could be extracted (or the stop
               reason where that is not known); both orders of the change between the first and the last checkpoint

Rollouts of a group are not independent, so these intervals are of the rollouts at hand. Length that goes with wrong
answers is an association, no effect of length.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.stats import norm

from deadheat.audit.counts import Counts, counted
from deadheat.audit.records import AuditOptions, AuditRecord
from deadheat.audit.table import columns_of
from deadheat.stats.channel import ChannelDecomposition, channel_decomposition
from deadheat.stats.intervals import Interval

_OUTCOMES = ("right", "wrong", "ungraded")
_QUANTILES = (0.1, 0.5, 0.9, 0.99)


@dataclass(frozen=True, kw_only=True)
class LengthReading:
    """The lengths of one kind of rollout."""

    purpose: str  # what the rollouts were drawn for: train, eval, sample …; "" where the source does not say
    outcome: str  # right, wrong, ungraded
    stop: str  # why it ended; "any": all reasons, or not known
    mean_tokens: Interval  # normal interval of the mean
    median: int  # tokens
    p10: int
    p90: int
    p99: int
    longest: int
    num_rollouts: int


@dataclass(frozen=True, kw_only=True)
class ChannelShift:
    """What changed between the first and the last checkpoint."""

    where: str  # the arm and purpose
    first: str
    last: str
    split: ChannelDecomposition


@dataclass(frozen=True, kw_only=True)
class Lengths(AuditRecord):
    """Lengths by outcome."""

    readings: tuple[LengthReading, ...]
    shifts: tuple[ChannelShift, ...]
    num_rollouts: int
    tokens: int  # generated, all rollouts

    @property
    def sentence(self) -> str:
        """Mean length of right and of wrong rollouts, and the channel's part."""
        first = self.readings[0].purpose if self.readings else ""
        own = [r for r in self.readings if r.stop == "any" and r.purpose == first]
        means = [f"{r.outcome} {_tokens(r.mean_tokens)}" for r in own]
        of = f" ({first} rollouts)" if first else ""
        found = f"mean tokens{of}: {'; '.join(means)}" if means else "no rollout with a length"
        for shift in self.shifts[:1]:
            rate = sorted((shift.split.rate_first.rate, shift.split.accuracy_first.rate))
            whose = f" of {shift.where}" if shift.where else ""
            found += (
                f". Accuracy{whose} moved {100 * shift.split.total:+.1f} pp from {shift.first} to {shift.last}, of which "
                f"{100 * rate[0]:+.1f} to {100 * rate[1]:+.1f} pp by the channel's rate"
            )
        return found


def lengths(rows: pl.LazyFrame, options: AuditOptions) -> Lengths:
    """Lengths of every rollout by outcome and stop reason."""
    channel = count_channel(rows)
    return read_lengths(count_lengths(rows), channel, options)


def count_lengths(rows: pl.LazyFrame) -> Counts:
    """Rollouts by outcome, stop reason and length."""
    names = columns_of(rows)
    stop = pl.col("stop").fill_null("unknown") if "stop" in names else pl.lit("unknown")
    purpose = pl.col("purpose").fill_null("") if "purpose" in names else pl.lit("")
    keyed = rows.select(
        purpose.alias("purpose"), _outcome(names).alias("outcome"), stop.alias("stop"), pl.col("length").cast(pl.Int64)
    )
    table = (
        keyed.drop_nulls("length")
        .group_by("purpose", "outcome", "stop", "length")
        .agg(pl.len().cast(pl.Int64).alias("rollouts"))
    )
    return counted(table.collect(engine="streaming"), ["purpose", "outcome", "stop", "length"])


def count_channel(rows: pl.LazyFrame) -> Counts | None:
    """Graded rollouts by place, channel and grade; None where no channel or no step is known."""
    names = columns_of(rows)
    channel = next((name for name in ("parsed", "stop") if name in names), None)
    axis = next((name for name in ("checkpoint", "step") if name in names), None)
    if channel is None or axis is None or "correct" not in names:
        return None
    keys = [name for name in ("purpose", "arm", axis) if name in names]
    label = pl.col(channel).cast(pl.String).alias("channel")
    graded = rows.select(*keys, label, pl.col("correct").cast(pl.Boolean)).drop_nulls()
    table = graded.group_by(*keys, "channel", "correct").agg(pl.len().cast(pl.Int64).alias("rollouts"))
    return counted(table.collect(engine="streaming"), [*keys, "channel", "correct"])


def read_lengths(counts: Counts, channel: Counts | None, options: AuditOptions) -> Lengths:
    """The record of merged counts."""
    table = counts.table
    readings = []
    for purpose in sorted(table["purpose"].unique(), key=_purpose_order):
        for outcome in _OUTCOMES:
            own = table.filter((pl.col("purpose") == purpose) & (pl.col("outcome") == outcome))
            readings += _by_stop(own, purpose, outcome, options.level)
    return Lengths(
        readings=tuple(readings),
        shifts=() if channel is None else _shifts(channel),
        num_rollouts=counts.total("rollouts"),
        tokens=int((table["length"] * table["rollouts"]).sum()),
    )


def _outcome(names: Sequence[str]) -> pl.Expr:
    if "correct" not in names:
        return pl.lit("ungraded")
    right = pl.col("correct").cast(pl.Boolean)
    return (
        pl.when(right.is_null()).then(pl.lit("ungraded")).when(right).then(pl.lit("right")).otherwise(pl.lit("wrong"))
    )


def _purpose_order(purpose: str) -> tuple[bool, str]:
    return purpose != "train", purpose


def _by_stop(own: pl.DataFrame, purpose: str, outcome: str, level: float) -> list[LengthReading]:
    stops = own["stop"].unique().sort().to_list()
    parts = {"any": own} if own.height else {}
    if stops != ["unknown"]:
        parts |= {stop: own.filter(pl.col("stop") == stop) for stop in stops}
    return [_reading(part, purpose, outcome, stop, level) for stop, part in parts.items()]


def _reading(own: pl.DataFrame, purpose: str, outcome: str, stop: str, level: float) -> LengthReading:
    by_length = own.group_by("length").agg(pl.col("rollouts").sum()).sort("length")
    x, w = by_length["length"].to_numpy().astype(np.float64), by_length["rollouts"].to_numpy()
    n = int(w.sum())
    mean = float(np.average(x, weights=w))
    sd = math.sqrt(float(np.average((x - mean) ** 2, weights=w)) * n / (n - 1)) if n > 1 else 0.0
    half = float(norm.isf((1 - level) / 2)) * sd / math.sqrt(n)
    places = np.searchsorted(np.cumsum(w), [math.ceil(q * n) for q in _QUANTILES])
    p10, median, p90, p99 = (int(x[place]) for place in places)
    return LengthReading(
        purpose=purpose,
        outcome=outcome,
        stop=stop,
        mean_tokens=Interval(
            estimate=mean, low=mean - half, high=mean + half, level=level, n=n, left_out=0, method="normal, of a mean"
        ),
        median=median,
        p10=p10,
        p90=p90,
        p99=p99,
        longest=int(x[-1]),
        num_rollouts=n,
    )


def _shifts(channel: Counts) -> tuple[ChannelShift, ...]:
    table = channel.table
    axis = "checkpoint" if "checkpoint" in channel.keys else "step"
    places = [name for name in ("purpose", "arm") if name in channel.keys]
    parts = table.partition_by(places, maintain_order=True, as_dict=True) if places else {(): table}
    found = []
    for place, own in parts.items():
        marks = own[axis].unique().sort().to_list()
        if len(marks) > 1:
            sides = [_expanded(own.filter(pl.col(axis) == mark)) for mark in (marks[0], marks[-1])]
            split = channel_decomposition(*sides[0], *sides[1])
            where = " ".join(map(str, place))
            found.append(ChannelShift(where=where, first=f"{axis} {marks[0]}", last=f"{axis} {marks[-1]}", split=split))
    return tuple(sorted(found, key=lambda shift: (not shift.where.startswith("eval"), shift.where)))


def _expanded(own: pl.DataFrame) -> "tuple[list[float], list[str]]":
    grades: list[float] = []
    labels: list[str] = []
    for row in own.iter_rows(named=True):
        grades += [float(row["correct"])] * row["rollouts"]
        labels += [row["channel"]] * row["rollouts"]
    return grades, labels


def _tokens(interval: Interval) -> str:
    return f"{interval.estimate:.1f} [{interval.low:.1f}, {interval.high:.1f}], n = {interval.n:,}"

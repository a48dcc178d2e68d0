"""Audit 12, lengths by outcome, and how much of an accuracy change is the answer channel's.

    length     mean ± t·√v tokens by grade and stop reason, v the jackknife over problems (over groups where the log
               names no problem, z·sd/√n where it has no groups); quantiles from the histogram of lengths, exact
    channel    accuracy = Σ rate × accuracy inside; the channel is whether an answer could be extracted (or the stop
               reason where that is not known); both orders of the change between the first and the last checkpoint,
               problems paired; a part's interval is the jackknife's

Rollouts of a group are not independent, and neither are groups of a problem: what is drawn again is problems. Length that
goes with wrong answers is an association, no effect of length.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deadheat.audit.channel import (
    ChannelShift,
    channel_of,
    channel_shifts,
    count_channel,
    count_ends,
    drawn_together,
    ends_among,
    reach,
)
from deadheat.audit.counts import Counts, counted
from deadheat.audit.problems import COPIES, alike, change_text, clusters_of, column
from deadheat.audit.records import AuditOptions, AuditRecord
from deadheat.audit.table import GROUP, PROBLEM, columns_of
from deadheat.stats.distributions import normal_quantile
from deadheat.stats.intervals import Interval
from deadheat.stats.shares import clustered_average

Floats = NDArray[np.float64]
_OUTCOMES = ("right", "wrong", "ungraded")
_QUANTILES = (0.1, 0.5, 0.9, 0.99)


@dataclass(frozen=True, kw_only=True)
class LengthReading:
    """The lengths of one kind of rollout."""

    purpose: str  # what the rollouts were drawn for: train, eval, sample …; "" where the source does not say
    outcome: str  # right, wrong, ungraded
    stop: str  # why it ended; "any": all reasons, or not known
    mean_tokens: Interval  # of the mean; infinite bounds where fewer than 6 problems or no variation support none
    median: int  # tokens
    p10: int
    p90: int
    p99: int
    longest: int
    num_rollouts: int


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
            moved = f"{100 * shift.split.total:+.1f} pp" if shift.change is None else change_text(shift.change)
            found += (
                f". Accuracy{whose} moved {moved} from {shift.first} to {shift.last}, of which "
                f"{100 * rate[0]:+.1f} to {100 * rate[1]:+.1f} pp by the channel's rate{reach(shift.rate_parts)}"
            )
        return found


@dataclass(frozen=True, kw_only=True)
class LengthCounts:
    """What lengths keep of a shard."""

    histogram: Counts  # rollouts by purpose, outcome, stop reason and length
    clusters: Counts | None  # rollouts and tokens by problem, or by group; None: rollouts have no group
    channel: Counts | None = None  # graded rollouts by place, channel and grade; None: no channel or no step is known
    ends: Counts | None = None  # the same at the first and the last mark, by problem or group


def lengths(rows: pl.LazyFrame, options: AuditOptions) -> Lengths:
    """Lengths of every rollout by outcome and stop reason."""
    return read_lengths(count_lengths(rows), options)


def count_lengths(rows: pl.LazyFrame, end: pl.Expr | None = None) -> LengthCounts:
    """Counts of one shard; `end` says which rollouts stand at an end of the course, None: asked of these rows."""
    names = columns_of(rows)
    stop = pl.col("stop").fill_null("unknown") if "stop" in names else pl.lit("unknown")
    purpose = pl.col("purpose").fill_null("") if "purpose" in names else pl.lit("")
    keyed = rows.select(
        purpose.alias("purpose"),
        _outcome(names).alias("outcome"),
        stop.alias("stop"),
        pl.col("length").cast(pl.Int64),
        *drawn_together(names),
    ).drop_nulls("length")
    table = keyed.group_by("purpose", "outcome", "stop", "length").agg(pl.len().cast(pl.Int64).alias("rollouts"))
    histogram = counted(table.collect(engine="streaming"), ["purpose", "outcome", "stop", "length"])
    clusters = _count_clusters(keyed, "stop" in names) if drawn_together(names) else None
    channel = channel_of(names)
    if channel is None:
        return LengthCounts(histogram=histogram, clusters=clusters)
    graded = count_channel(rows, channel)
    end = ends_among(graded.table, channel) if end is None else end
    return LengthCounts(
        histogram=histogram,
        clusters=clusters,
        channel=graded,
        ends=count_ends(rows, channel, end) if drawn_together(names) else None,
    )


def _count_clusters(keyed: pl.LazyFrame, has_stop: bool) -> Counts:
    """Rollouts and tokens by problem, for each stop reason and for any; groups without a problem by equal sums."""
    own = PROBLEM if PROBLEM in columns_of(keyed) else GROUP
    places, sums = ["purpose", "outcome", "stop"], ["rollouts", "tokens"]
    counts = pl.len().cast(pl.Int64).alias("rollouts"), pl.col("length").sum().alias("tokens")
    each = keyed.group_by(*places, own).agg(counts).collect(engine="streaming").lazy()
    every = each.group_by("purpose", "outcome", own).agg(pl.col(sums).sum()).with_columns(stop=pl.lit("any"))
    kept = [every.select(*places, own, *sums), *([each] if has_stop else [])]
    if own == PROBLEM:
        return counted(pl.concat(kept).collect(engine="streaming"), [*places, own])
    # A group lies in one shard, so that equal ones may be put together at once.
    alike_ = [part.group_by(*places, *sums).agg(pl.len().cast(pl.Int64).alias(COPIES)) for part in kept]
    return counted(pl.concat(alike_).collect(engine="streaming"), [*places, *sums])


def read_lengths(counts: LengthCounts, options: AuditOptions) -> Lengths:
    """The record of merged counts."""
    table, level = counts.histogram.table, options.level
    clusters = None if counts.clusters is None else counts.clusters.table
    readings = []
    for purpose in sorted(table["purpose"].unique(), key=_purpose_order):
        for outcome in _OUTCOMES:
            here = (pl.col("purpose") == purpose) & (pl.col("outcome") == outcome)
            own = None if clusters is None else clusters.filter(here)
            readings += _by_stop(table.filter(here), own, purpose, outcome, level)
    return Lengths(
        readings=tuple(readings),
        shifts=() if counts.channel is None else channel_shifts(counts.channel, counts.ends, level),
        num_rollouts=counts.histogram.total("rollouts"),
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


def _by_stop(
    own: pl.DataFrame, clusters: pl.DataFrame | None, purpose: str, outcome: str, level: float
) -> list[LengthReading]:
    stops = own["stop"].unique().sort().to_list()
    parts = {"any": own} if own.height else {}
    if stops != ["unknown"]:
        parts |= {stop: own.filter(pl.col("stop") == stop) for stop in stops}
    found = []
    for stop, part in parts.items():
        mine = None if clusters is None else clusters.filter(pl.col("stop") == stop)
        found.append(_reading(part, mine, purpose, outcome, stop, level))
    return found


def _reading(
    own: pl.DataFrame, clusters: pl.DataFrame | None, purpose: str, outcome: str, stop: str, level: float
) -> LengthReading:
    by_length = own.group_by("length").agg(pl.col("rollouts").sum()).sort("length")
    x, w = by_length["length"].to_numpy().astype(np.float64), by_length["rollouts"].to_numpy()
    n = int(w.sum())
    places = np.searchsorted(np.cumsum(w), [math.ceil(q * n) for q in _QUANTILES])
    p10, median, p90, p99 = (int(x[place]) for place in places)
    return LengthReading(
        purpose=purpose,
        outcome=outcome,
        stop=stop,
        mean_tokens=_mean_tokens(x, w.astype(np.float64), clusters, level),
        median=median,
        p10=p10,
        p90=p90,
        p99=p99,
        longest=int(x[-1]),
        num_rollouts=n,
    )


def _mean_tokens(length_L: Floats, rollouts_L: Floats, clusters: pl.DataFrame | None, level: float) -> Interval:
    """Jackknife over problems; the normal interval where every rollout is its own."""
    if clusters is not None:
        found = alike(clusters, "rollouts", ["tokens"])
        own = clusters_of(found, "rollouts", name="problems" if PROBLEM in clusters.columns else "groups")
        if not own.single:
            return clustered_average(column(found, "tokens"), own, level=level, what="mean of rollouts")
    n, mean = int(rollouts_L.sum()), float(np.average(length_L, weights=rollouts_L))
    sd = math.sqrt(float(np.average((length_L - mean) ** 2, weights=rollouts_L)) * n / (n - 1)) if n > 1 else 0.0
    half = normal_quantile((1 + level) / 2) * sd / math.sqrt(n) if sd > 0 else math.inf
    return Interval(
        estimate=mean,
        low=mean - half,
        high=mean + half,
        level=level,
        n=n,
        left_out=0,
        method="normal, of a mean",
        note="" if sd > 0 else "no interval: one rollout, or all values are equal",
    )


def _tokens(interval: Interval) -> str:
    bounds = interval.note if interval.note else f"[{interval.low:.1f}, {interval.high:.1f}]"
    return f"{interval.estimate:.1f} {bounds}, n = {interval.n:,}"

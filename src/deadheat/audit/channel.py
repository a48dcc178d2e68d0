"""How much of an accuracy change is the answer channel's: the first mark of a course against the last, problems paired.

accuracy = Σ rate × accuracy inside; the channel is whether an answer could be extracted, or the stop reason where that
is not known. Both orders of the change are given (`stats.channel`). The interval of the change is that of two shares
of the same problems, the interval of a part the jackknife's. Groups stand for problems where the log names none.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deadheat.audit.counts import Counts, counted
from deadheat.audit.problems import PartSums
from deadheat.audit.table import GROUP, PROBLEM, columns_of, problem_hash
from deadheat.stats.channel import ChannelDecomposition, channel_decomposition
from deadheat.stats.distributions import t_quantile
from deadheat.stats.intervals import Interval
from deadheat.stats.shares import TwoParts, jackknife

Floats = NDArray[np.float64]
END = "_end"  # 0 at the first mark, 1 at the last


@dataclass(frozen=True, kw_only=True)
class ChannelShift:
    """What changed between the first and the last checkpoint."""

    where: str  # the arm and purpose
    first: str
    last: str
    split: ChannelDecomposition
    change: Interval | None  # of accuracy, last − first; None: rollouts without a group
    rate_parts: tuple[
        Interval, ...
    ]  # what the channel's rate did, rate first and accuracy first; empty: too few problems


@dataclass(frozen=True, kw_only=True)
class Channel:
    """Where the answer channel stands in the rows."""

    column: str  # parsed, or stop
    axis: str  # checkpoint or step
    places: tuple[str, ...]  # purpose, arm: those there are


def drawn_together(names: Sequence[str]) -> list[pl.Expr]:
    """What a rollout is drawn together with: its problem, else its group."""
    if "problem_id" in names:
        return [problem_hash(names)]
    return [pl.col("group_id").hash().alias(GROUP)] if "group_id" in names else []


def channel_of(names: Sequence[str]) -> Channel | None:
    told = next((name for name in ("parsed", "stop") if name in names), None)
    axis = next((name for name in ("checkpoint", "step") if name in names), None)
    if told is None or axis is None or "correct" not in names:
        return None
    return Channel(column=told, axis=axis, places=tuple(name for name in ("purpose", "arm") if name in names))


def _graded(rows: pl.LazyFrame, channel: Channel, extra: Sequence[pl.Expr] = ()) -> pl.LazyFrame:
    label = pl.col(channel.column).cast(pl.String).alias("channel")
    return rows.select(*channel.places, channel.axis, label, pl.col("correct").cast(pl.Boolean), *extra).drop_nulls()


def count_channel(rows: pl.LazyFrame, channel: Channel) -> Counts:
    """Graded rollouts by place, channel and grade."""
    keys = [*channel.places, channel.axis, "channel", "correct"]
    table = _graded(rows, channel).group_by(keys).agg(pl.len().cast(pl.Int64).alias("rollouts"))
    return counted(table.collect(engine="streaming"), keys)


def channel_ends(rows: pl.LazyFrame) -> pl.Expr:
    """Which rollouts stand at the first and at the last mark of their place; asked of the whole log."""
    channel, nowhere = channel_of(columns_of(rows)), pl.lit(None, pl.Int8)
    if channel is None:
        return nowhere
    marks = _graded(rows, channel).select(*channel.places, channel.axis).unique().collect(engine="streaming")
    return ends_among(marks, channel)


def ends_among(marks: pl.DataFrame, channel: Channel) -> pl.Expr:
    """0 at the first of these marks of a place, 1 at the last, null elsewhere."""
    found, nowhere = [], pl.lit(None, pl.Int8)
    for own in marks.partition_by(channel.places) if channel.places else [marks]:
        here = pl.all_horizontal(pl.lit(True), *(pl.col(name) == own[name][0] for name in channel.places))
        first, last = own[channel.axis].min(), own[channel.axis].max()
        if first != last:
            found += [
                pl.when(here & (pl.col(channel.axis) == mark)).then(pl.lit(place, pl.Int8))
                for place, mark in enumerate((first, last))
            ]
    return pl.coalesce(*found, nowhere) if found else nowhere


def count_ends(rows: pl.LazyFrame, channel: Channel, end: pl.Expr) -> Counts:
    """Graded rollouts at both ends by place, channel, grade and problem, or group."""
    (own,) = drawn_together(columns_of(rows))
    keys = [*channel.places, END, "channel", "correct", own.meta.output_name()]
    graded = _graded(rows.filter(end.is_not_null()), channel, [end.alias(END), own])
    table = graded.group_by(keys).agg(pl.len().cast(pl.Int64).alias("rollouts"))
    return counted(table.collect(engine="streaming"), keys)


def channel_shifts(channel: Counts, ends: Counts | None, level: float) -> tuple[ChannelShift, ...]:
    table = channel.table
    axis = "checkpoint" if "checkpoint" in channel.keys else "step"
    places = [name for name in ("purpose", "arm") if name in channel.keys]
    parts = table.partition_by(places, maintain_order=True, as_dict=True) if places else {(): table}
    found = []
    for place, own in parts.items():
        marks = own[axis].unique().sort().to_list()
        if len(marks) > 1:
            sides = [_expanded(own.filter(pl.col(axis) == mark)) for mark in (marks[0], marks[-1])]
            here = [pl.col(name) == value for name, value in zip(places, place, strict=True)]
            mine = None if ends is None else ends.table.filter(pl.all_horizontal(pl.lit(True), *here)).drop_nulls(END)
            split = channel_decomposition(*sides[0], *sides[1])
            found.append(_shift(place, axis, marks, split, mine, level))
    return tuple(sorted(found, key=lambda shift: (not shift.where.startswith("eval"), shift.where)))


def _shift(
    place: Sequence[object],
    axis: str,
    marks: Sequence[object],
    split: ChannelDecomposition,
    ends: pl.DataFrame | None,
    level: float,
) -> ChannelShift:
    found = None if ends is None else paired(ends)
    return ChannelShift(
        where=" ".join(map(str, place)),
        first=f"{axis} {marks[0]}",
        last=f"{axis} {marks[-1]}",
        split=split,
        change=None if found is None else found.accuracy().change(level=level),
        rate_parts=() if found is None else found.rate_parts(split, level),
    )


@dataclass(frozen=True, kw_only=True)
class Paired:
    """Graded rollouts of both marks, problem by problem."""

    rollouts_C2KG: Floats  # [C, 2 marks, K channels, wrong and right]
    name: str  # what a cluster is

    def accuracy(self) -> PartSums:
        """Right ones of all."""
        rollouts_C2G = self.rollouts_C2KG.sum(axis=2)
        parts = TwoParts(size_C2=rollouts_C2G.sum(axis=2), copies_C=np.ones(len(rollouts_C2G)), name=self.name)
        return PartSums(parts=parts, count_C2=rollouts_C2G[:, :, 1])

    def rate_parts(self, split: ChannelDecomposition, level: float) -> tuple[Interval, ...]:
        """Intervals of the channel's part in both orders; empty: too few problems, or a part that does not vary."""
        parts = self.accuracy().parts
        if not parts.enough:
            return ()
        num = len(self.rollouts_C2KG)
        sums_CJ = self.rollouts_C2KG.reshape(num, -1)
        variance_K = np.diag(jackknife(lambda sums: _rates(sums, self.rollouts_C2KG.shape[1:]), sums_CJ, np.ones(num)))
        scale = t_quantile((1 + level) / 2, parts.df)
        estimates = (split.rate_first.rate, split.accuracy_first.rate)
        return tuple(
            Interval(
                estimate=estimate, low=estimate - scale * v**0.5, high=estimate + scale * v**0.5, level=level,
                n=split.n, left_out=split.left_out, method=f"part of a change, jackknife over {num:,} {self.name}",
            )
            for estimate, v in zip(estimates, variance_K.tolist(), strict=True)
            if v > 0
        )  # fmt: skip


def paired(ends: pl.DataFrame) -> Paired:
    own = PROBLEM if PROBLEM in ends.columns else GROUP
    codes = [ends[name].rank("dense").to_numpy().astype(np.int64) - 1 for name in (own, "channel")]
    shape = (int(codes[0].max()) + 1, 2, int(codes[1].max()) + 1, 2)
    rollouts_C2KG = np.zeros(shape)
    places = (codes[0], ends[END].to_numpy(), codes[1], ends["correct"].cast(pl.Int8).to_numpy())
    np.add.at(rollouts_C2KG, places, ends["rollouts"].to_numpy())
    return Paired(rollouts_C2KG=rollouts_C2KG, name="problems" if own == PROBLEM else "groups")


def _rates(sums_RJ: Floats, shape: tuple[int, ...]) -> Floats:
    """[R, 2] the rate's part, rate first and accuracy first; a channel empty at one mark takes the other's accuracy."""
    of_R2KG = sums_RJ.reshape(len(sums_RJ), *shape)
    n_R2K = of_R2KG.sum(axis=3)
    with np.errstate(invalid="ignore", divide="ignore"):
        accuracy_R2K = of_R2KG[..., 1] / n_R2K
        rate_R2K = n_R2K / n_R2K.sum(axis=2, keepdims=True)
    filled_R2K = np.nan_to_num(np.where(n_R2K > 0, accuracy_R2K, accuracy_R2K[:, ::-1]))
    moved_RK = rate_R2K[:, 1] - rate_R2K[:, 0]
    return np.stack([(moved_RK * filled_R2K[:, mark]).sum(axis=1) for mark in (0, 1)], axis=1)


def reach(rate_parts: Sequence[Interval]) -> str:
    """The bounds of both orders together."""
    if not rate_parts:
        return ""
    low, high = min(part.low for part in rate_parts), max(part.high for part in rate_parts)
    return f" [{100 * low:+.1f}, {100 * high:+.1f}]"


def _expanded(own: pl.DataFrame) -> "tuple[list[float], list[str]]":
    grades: list[float] = []
    labels: list[str] = []
    for row in own.iter_rows(named=True):
        grades += [float(row["correct"])] * row["rollouts"]
        labels += [row["channel"]] * row["rollouts"]
    return grades, labels

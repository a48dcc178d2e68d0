"""From rows to groups: which sizes there are, what was inferred, and which recovered groups are refused.

Groups that a log names are taken as they are. A group recovered from its prompts is one only if its size is G:
 consecutive   a run of equal prompts is cut into lots of G; a run whose length G does not divide is refused
 prompt text, prompt tokens   a set of equal prompts that is not G large is refused (a problem drawn twice in one
               batch is 2G rows that nothing tells apart)
G is what the log or the options declare, else the commonest size; where no size covers half of the groups there is no G
to hold them to, and they are kept as they are with a warning.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import polars as pl

from deadheat.archive.readers.record import Recovered
from deadheat.archive.readers.sink import Sink

_HELD_TO_G = [name.value for name in Recovered if name is not Recovered.EXPLICIT]
_COMMON_FRAC = 0.5

Settle = Callable[[pl.LazyFrame], pl.LazyFrame]


@dataclass(frozen=True, kw_only=True)
class Grouped:
    """Rows whose groups are settled."""

    settle: Settle  # rows as read to rows of settled groups, each row by itself
    num_rows: int
    num_groups: int
    recovered: Mapping[str, int]  # groups by how they are known
    sizes: Mapping[int, int]  # size -> number of groups
    inferred_size: int | None


def settle_groups(rows: pl.LazyFrame, sink: Sink) -> Grouped:
    """Count groups, cut consecutive runs into lots, and leave out recovered groups of another size than G."""
    counts = rows.group_by("group_id", "recovered").agg(size=pl.len()).collect(engine="streaming")
    guessed = counts.filter(pl.col("recovered").is_in(_HELD_TO_G))
    inferred = _common_size(guessed, sink) if guessed.height and sink.declared_size is None else None
    size = sink.declared_size or inferred
    settle: Settle = _as_they_are
    if guessed.height and size is not None:
        settle, counts = _held_to(counts, size, sink)
    elif sink.declared_size is not None:
        _warn_of_other_sizes(counts, sink.declared_size, sink)
    return Grouped(
        settle=settle,
        num_rows=int(counts["size"].sum()),
        num_groups=counts.height,
        recovered=dict(counts.group_by("recovered").len().sort("recovered").iter_rows()),
        sizes=dict(counts.group_by("size").len().sort("size").iter_rows()),
        inferred_size=inferred,
    )


def _common_size(guessed: pl.DataFrame, sink: Sink) -> int | None:
    tally = guessed.group_by("size").len().sort("len", "size", descending=[True, False])
    size, count = tally.row(0)
    if count < _COMMON_FRAC * guessed.height:
        sink.warn(
            f"no group size is declared and none covers half of the {guessed.height:,} recovered groups, so all are kept "
            "as they are; give --group-size to hold them to one"
        )
        return None
    return int(size)


def _as_they_are(rows: pl.LazyFrame) -> pl.LazyFrame:
    return rows


def _held_to(counts: pl.DataFrame, size: int, sink: Sink) -> tuple[Settle, pl.DataFrame]:
    run = pl.col("recovered") == Recovered.CONSECUTIVE.value
    explicit = pl.col("recovered") == Recovered.EXPLICIT.value
    fits = explicit | pl.when(run).then(pl.col("size") % size == 0).otherwise(pl.col("size") == size)
    for group, how, found in counts.filter(~fits).sort("group_id").iter_rows():
        sink.refuse(
            f"group {group}",
            f"{found:,} rows share it by {how}; wanted {'a multiple of ' if how == Recovered.CONSECUTIVE else ''}{size}. "
            "Nothing in the log tells its groups apart",
        )
    refused = counts.filter(~fits).select("group_id")
    kept = counts.filter(fits)
    lots = bool(kept.filter(run & (pl.col("size") > size)).height)
    if lots:
        kept = kept.with_columns(lots=pl.when(run).then(pl.col("size") // size).otherwise(1))
        kept = (
            kept.with_columns(lot=pl.int_ranges(0, "lots"))
            .explode("lot")
            .with_columns(size=pl.when(run).then(size).otherwise("size"))
        )

    def settle(rows: pl.LazyFrame) -> pl.LazyFrame:
        left = rows.join(refused.lazy(), on="group_id", how="anti") if refused.height else rows
        if not lots:
            return left
        return left.with_columns(
            group_id=pl.when(run).then(pl.format("{}/{}", "group_id", pl.col("sample") // size)).otherwise("group_id"),
            sample=pl.when(run).then(pl.col("sample") % size).otherwise("sample"),
        )

    return settle, kept


def _warn_of_other_sizes(counts: pl.DataFrame, size: int, sink: Sink) -> None:
    other = counts.filter(pl.col("size") != size).height
    if other:
        sink.warn(f"{other:,} of {counts.height:,} groups that the log names are not of the declared size {size}")

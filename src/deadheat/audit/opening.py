"""Audit 15, opening mode: answers without working, and how responses begin.

    short     responses of fewer than 30 tokens, and how accurate they and the longer ones are
    first     the first token of every response (its first word where token ids are not kept)
    marker    of right answers that carry the marker, those with at least 30 characters before it: rfind(marker) ≥ 30

Read per checkpoint, or per step: a policy that finds a shortcut shows it here before its accuracy does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from deadheat.audit.counts import Counts, counted
from deadheat.audit.records import AuditOptions, AuditRecord, share, share_of
from deadheat.audit.table import columns_of
from deadheat.stats.intervals import Interval

_MOST_FIRST = 20  # first tokens listed, most common first


@dataclass(frozen=True, kw_only=True)
class OpeningReading:
    """Openings of one checkpoint, or of everything."""

    where: str  # purpose, and checkpoint or step; "all" where the source says neither
    short: Interval | None  # responses under the threshold
    short_right: Interval | None  # accuracy among them; None: none, or no grades
    long_right: Interval | None  # among the others
    reasoned: Interval | None  # right answers with the marker that have enough characters before it


@dataclass(frozen=True, kw_only=True)
class FirstToken:
    """One way to begin."""

    token: str  # the id, or the first word
    responses: Interval  # that begin so
    right: Interval | None  # of them


@dataclass(frozen=True, kw_only=True)
class Opening(AuditRecord):
    """How responses begin."""

    short_tokens: int  # the threshold
    min_chars: int  # before the marker
    first_told_by: str  # token ids, or words
    readings: tuple[OpeningReading, ...]  # by purpose, training first; then by checkpoint or step
    first: tuple[FirstToken, ...]  # the most common
    num_first: int  # different first tokens

    @property
    def sentence(self) -> str:
        """Short responses, and the marker gate."""
        whole = self.readings[0] if self.readings else None
        if whole is None or whole.short is None:
            return "no response with a length"
        of = "" if whole.where == "all" else f"{whole.where} "
        found = f"{share_of(whole.short, of + 'responses')} are under {self.short_tokens} tokens"
        if whole.short_right is not None and whole.long_right is not None:
            found += (
                f" (right {100 * whole.short_right.estimate:.1f}%, longer ones {100 * whole.long_right.estimate:.1f}%)"
            )
        if whole.reasoned is not None:
            found += f"; {self.min_chars} characters before the marker have "
            found += share_of(whole.reasoned, "right marked answers")
        if self.first:
            top = self.first[0]
            found += f"; {100 * top.responses.estimate:.0f}% begin with {top.token!r}"
        return found


def opening(rows: pl.LazyFrame, options: AuditOptions) -> Opening:
    """Lengths, first tokens and markers of every response."""
    by_ids = "token_ids" in columns_of(rows)
    return read_opening(count_opening(rows, options), count_first(rows), by_ids, options)


def count_opening(rows: pl.LazyFrame, options: AuditOptions) -> Counts:
    """Responses by checkpoint or step: short ones, right ones, and those with characters before the marker."""
    names = columns_of(rows)
    axis = next((name for name in ("checkpoint", "step") if name in names), None)
    purpose = pl.col("purpose").fill_null("") if "purpose" in names else pl.lit("")
    place = pl.lit(None, pl.Int64) if axis is None else pl.col(axis)
    right = pl.col("correct").cast(pl.Boolean) if "correct" in names else pl.lit(None, pl.Boolean)
    short = pl.col("length") < options.short_tokens
    flags = {
        "n": pl.col("length").is_not_null(),
        "short": short,
        "short_graded": short & right.is_not_null(),
        "short_right": short & right,
        "long_graded": ~short & right.is_not_null(),
        "long_right": ~short & right,
    }
    if "completion" in names:
        found = _last_marker(options.marker)
        flags |= {"marked": right & (found >= 0), "reasoned": right & (found >= options.min_chars)}
    sums = [flag.fill_null(False).cast(pl.Int64).sum().alias(name) for name, flag in flags.items()]
    keys = {"purpose": purpose, axis or "step": place}
    table = rows.group_by(key.alias(name) for name, key in keys.items()).agg(sums).collect(engine="streaming")
    return counted(table, [*keys])


def _last_marker(marker: str) -> pl.Expr:
    """str.rfind in characters: the length of everything before the last marker, −1 where there is none."""
    parts = pl.col("completion").str.split(marker)
    last = parts.list.last().str.len_chars().cast(pl.Int64)
    length = pl.col("completion").str.len_chars().cast(pl.Int64)
    return pl.when(parts.list.len() > 1).then(length - last - len(marker)).otherwise(-1)


def count_first(rows: pl.LazyFrame) -> Counts:
    """Responses by their first token."""
    names = columns_of(rows)
    right = pl.col("correct").cast(pl.Boolean) if "correct" in names else pl.lit(None, pl.Boolean)
    if "token_ids" in names:
        first = pl.col("token_ids").list.first().cast(pl.String)
    elif "completion" in names:
        first = pl.col("completion").str.extract(r"(\S+)")
    else:
        first = pl.lit(None, pl.String)
    table = (
        rows.select(first=first, right=right)
        .drop_nulls("first")
        .group_by("first")
        .agg(
            pl.len().cast(pl.Int64).alias("n"),
            pl.col("right").count().cast(pl.Int64).alias("graded"),
            pl.col("right").sum().cast(pl.Int64),
        )
    )
    return counted(table.collect(engine="streaming"), ["first"])


def read_opening(counts: Counts, first: Counts, by_ids: bool, options: AuditOptions) -> Opening:
    """The record of merged counts."""
    level = options.level
    axis = counts.keys[1]
    purposes = counts.rolled_up(["purpose"]).sort(pl.col("purpose") != "train", "purpose")
    readings = [_reading(row, axis, level) for row in purposes.iter_rows(named=True)]
    if counts.table.height > purposes.height:
        readings += [_reading(row, axis, level) for row in counts.table.iter_rows(named=True)]
    num = first.total("n")
    common = first.table.sort(["n", "first"], descending=[True, False]).head(_MOST_FIRST)
    return Opening(
        short_tokens=options.short_tokens,
        min_chars=options.min_chars,
        first_told_by="token ids" if by_ids else "words",
        readings=tuple(readings),
        first=tuple(_first(row, num, level) for row in common.iter_rows(named=True)),
        num_first=first.table.height,
    )


def _reading(row: Mapping[str, Any], axis: str, level: float) -> OpeningReading:
    place = "" if row.get(axis) is None else f"{axis} {row[axis]}"
    return OpeningReading(
        where=" ".join(filter(None, (row["purpose"], place))) or "all",
        short=share(row["short"], row["n"], level=level),
        short_right=share(row["short_right"], row["short_graded"], level=level),
        long_right=share(row["long_right"], row["long_graded"], level=level),
        reasoned=share(row["reasoned"], row["marked"], level=level) if "marked" in row else None,
    )


def _first(row: Mapping[str, Any], num: int, level: float) -> FirstToken:
    responses = share(row["n"], num, level=level)
    assert responses is not None
    return FirstToken(token=row["first"], responses=responses, right=share(row["right"], row["graded"], level=level))

"""Audit 2, dilution: the step that was taken against the step that the live groups justify, batch by batch.

    dilution = live groups / all groups of the batch        64 groups, 13 tied: 51/64

A loss divided by every group's units is smaller by this factor than one divided by the units of groups that carry
signal. Groups without a score carry none. Only training rollouts count, where the source says which those are.
"""

from dataclasses import dataclass

import polars as pl

from deadheat.audit.counts import Counts, counted
from deadheat.audit.records import AuditOptions, AuditRecord, share, share_of
from deadheat.audit.table import GROUP, SIZE, columns_of, group_table, is_live, main_score
from deadheat.reports.formats import format_share
from deadheat.stats.intervals import Interval

_BATCH = ("arm", "seed", "step")


@dataclass(frozen=True, kw_only=True)
class BatchDilution:
    """One batch."""

    arm: str  # "" where the source has no arms
    seed: int | None  # None: not known
    step: int
    num_groups: int  # of two rollouts or more
    num_live: int
    dilution: float  # live / all


@dataclass(frozen=True, kw_only=True)
class Dilution(AuditRecord):
    """How much of each step tied groups took away."""

    column: str  # the score a tie is computed from
    pooled: Interval | None  # live groups among all groups; None: no group
    token_frac: float | None  # generated tokens that lie in live groups; None: lengths are not known
    mean: float | None  # of the batches' own shares
    smallest: float | None  # the worst batch
    dead_steps: Interval | None  # batches without a single live group
    num_batches: int
    batches: tuple[BatchDilution, ...]

    @property
    def sentence(self) -> str:
        """Step taken over step justified."""
        if self.pooled is None or self.mean is None or self.dead_steps is None:
            return "no batch holds a group of two or more rollouts"
        return (
            f"the average step was {format_share(self.mean)} of what its live groups justify (worst "
            f"{format_share(self.smallest or 0.0)}, {self.num_batches:,} batches); "
            f"{share_of(self.pooled, 'groups')} are live, and none in "
            f"{share_of(self.dead_steps, 'batches')}"
        )


def dilution(rows: pl.LazyFrame, options: AuditOptions) -> Dilution:
    """Live groups of every batch."""
    return read_dilution(count_dilution(rows), main_score(columns_of(rows)), options)


def count_dilution(rows: pl.LazyFrame) -> Counts:
    """Groups, live groups and their tokens by batch."""
    names = columns_of(rows)
    column = main_score(names)
    tokens = [pl.col("length").cast(pl.Int64).sum().alias("tokens")] if "length" in names else []
    groups = group_table(rows, scores=[column], places=("purpose", *_BATCH), extra=tokens)
    return count_dilution_groups(groups, column)


def count_dilution_groups(groups: pl.LazyFrame, column: str) -> Counts:
    """The same from the group table."""
    names = columns_of(groups)
    trained = pl.col("purpose").fill_null("train") == "train" if "purpose" in names else pl.lit(True)
    live = is_live(column).fill_null(False)
    sums = [pl.len().cast(pl.Int64).alias("groups"), live.cast(pl.Int64).sum().alias("live")]
    if "tokens" in names:
        sums += [pl.col("tokens").sum(), pl.col("tokens").filter(live).sum().alias("live_tokens")]
    keys = [name for name in _BATCH if name in names]
    kept = groups.filter(trained & (pl.col(SIZE) > 1)).drop(GROUP)
    return counted(kept.group_by(keys).agg(sums).collect(engine="streaming"), keys)


def read_dilution(counts: Counts, column: str, options: AuditOptions) -> Dilution:
    """The record of merged counts."""
    table = counts.table
    batches = tuple(
        BatchDilution(
            arm=row.get("arm") or "",
            seed=row.get("seed"),
            step=row["step"],
            num_groups=row["groups"],
            num_live=row["live"],
            dilution=row["live"] / row["groups"],
        )
        for row in table.drop_nulls("step").iter_rows(named=True)
    )
    tokens = int(table["tokens"].sum()) if "tokens" in table.columns else 0
    shares = [batch.dilution for batch in batches]
    return Dilution(
        column=column,
        pooled=share(counts.total("live"), counts.total("groups"), level=options.level),
        token_frac=int(table["live_tokens"].sum()) / tokens if tokens else None,
        mean=sum(shares) / len(shares) if shares else None,
        smallest=min(shares, default=None),
        dead_steps=share(sum(s == 0 for s in shares), len(shares), level=options.level),
        num_batches=len(batches),
        batches=batches,
    )

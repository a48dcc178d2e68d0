"""Audit 2, dilution: how much of each batch carries signal, and what that costs where the loss is divided by all of it.

    live share = live groups / all groups of the batch        64 groups, 13 tied: 51/64

A loss divided by every group's units is smaller by this factor than one divided by the units of groups that carry
signal, and a loss divided by the latter loses nothing. A log of rollouts does not say which it was, so a loss is spoken
of where the user states the divisor (`--loss-divisor`) or a run folder's own config does; without either the audit
counts, and says what it does not know. Groups without a score carry no signal. Only training rollouts count, where the
source says which those are. Problems are drawn together in the interval of the pooled share.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from deadheat.archive import read_json
from deadheat.archive.folder import RESOLVED
from deadheat.audit.counts import Counts, counted
from deadheat.audit.problems import by_problem, share_over, unnamed_share
from deadheat.audit.records import AuditOptions, AuditRecord, LossDivisor, share_of
from deadheat.audit.table import GROUP, PROBLEM, SIZE, columns_of, group_table, is_live, main_score
from deadheat.reports.formats import format_share
from deadheat.stats.intervals import Interval

_BATCH = ("arm", "seed", "step")
_TOKENS = "token_mean"  # the loss whose units are tokens


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
    """How much of each batch tied groups are, and what the loss makes of them."""

    column: str  # the score a tie is computed from
    divisor: LossDivisor | None  # what the loss is divided by; None: neither the log nor the user says
    divisor_from: str  # who says: "--loss-divisor", or the file; "" where nobody does
    pooled: Interval | None  # live groups among all groups; None: no group
    token_frac: float | None  # generated tokens that lie in live groups; None: lengths are not known
    mean: float | None  # of the batches' own shares of live groups
    smallest: float | None  # the worst batch
    num_dead: int  # batches without a single live group
    num_batches: int
    batches: tuple[BatchDilution, ...]

    @property
    def sentence(self) -> str:
        """The live share of a batch, and of a loss what is known."""
        if self.pooled is None or self.mean is None:
            return "no batch holds a group of two or more rollouts"
        live = f"{share_of(self.pooled, 'groups')} are live"
        batches = (
            f"worst batch {format_share(self.smallest or 0.0)}, {self.num_dead:,} of {self.num_batches:,} have none"
        )
        if self.divisor is LossDivisor.LIVE:
            return f"no step was diluted: the loss is divided by live groups ({self.divisor_from}); {live} ({batches})"
        if self.divisor is None:
            mean = f"a batch is {format_share(self.mean)} live on average"
            return f"{live}; {mean} ({batches}). What a step lost depends on the loss's divisor: state --loss-divisor"
        whole = self.mean if self.divisor is LossDivisor.ALL_GROUPS else self.token_frac
        if whole is None:
            return f"{live} ({batches}); the loss is divided by all tokens ({self.divisor_from}), and lengths are not known"
        step = "the average step" if self.divisor is LossDivisor.ALL_GROUPS else "all steps together"
        return (
            f"{step} took {format_share(whole)} of what live groups justify: the loss is divided by "
            f"{self.divisor.value} ({self.divisor_from}); {live} ({batches})"
        )


@dataclass(frozen=True, kw_only=True)
class DilutionCounts:
    """What dilution keeps of a shard."""

    batches: Counts  # groups, live groups and their tokens by batch
    problems: Counts | None  # groups and live groups by problem; None: none is named


def dilution(rows: pl.LazyFrame, options: AuditOptions) -> Dilution:
    """Live groups of every batch."""
    return read_dilution(count_dilution(rows), main_score(columns_of(rows)), options)


def with_divisor(found: Dilution, place: Path) -> Dilution:
    """The record with the divisor that the config in a race's folder names, where the user stated none."""
    divisor = None if found.divisor is not None else _recorded_divisor(place / RESOLVED)
    return found if divisor is None else replace(found, divisor=divisor, divisor_from=RESOLVED)


def _recorded_divisor(path: Path) -> LossDivisor | None:
    """The one divisor of all arms; None where there is no config, arms differ, or parts of a batch have their own."""
    if not path.is_file():
        return None
    arms = read_json(path).get("arms", {})
    found = {_divisor_of(arm) for arm in arms.values()}
    return found.pop() if len(found) == 1 else None


def _divisor_of(arm: Mapping[str, Any]) -> LossDivisor | None:
    credit, update = arm.get("credit", {}), arm.get("update", {})
    if credit.get("normalise_by") is not None or "denominator" not in credit:
        return None
    if credit["denominator"] != "all_groups":
        return LossDivisor.LIVE
    return LossDivisor.ALL_TOKENS if update.get("loss") == _TOKENS else LossDivisor.ALL_GROUPS


def count_dilution(rows: pl.LazyFrame) -> DilutionCounts:
    """Groups, live groups and their tokens by batch, and groups by problem."""
    names = columns_of(rows)
    column = main_score(names)
    tokens = [pl.col("length").cast(pl.Int64).sum().alias("tokens")] if "length" in names else []
    groups = group_table(rows, scores=[column], places=("purpose", *_BATCH), extra=tokens)
    return count_dilution_groups(groups, column)


def count_dilution_groups(groups: pl.LazyFrame, column: str) -> DilutionCounts:
    """The same from the group table."""
    names = columns_of(groups)
    trained = pl.col("purpose").fill_null("train") == "train" if "purpose" in names else pl.lit(True)
    live = is_live(column).fill_null(False)
    count = [pl.len().cast(pl.Int64).alias("groups"), live.cast(pl.Int64).sum().alias("live")]
    tokens = [pl.col("tokens").sum(), pl.col("tokens").filter(live).sum().alias("live_tokens")]
    keys = [name for name in _BATCH if name in names]
    kept = groups.filter(trained & (pl.col(SIZE) > 1)).drop(GROUP)
    wanted = [kept.group_by(keys).agg(*count, *(tokens if "tokens" in names else []))]
    wanted += [by_problem(kept, [], count)] if PROBLEM in names else []
    batches, *problems = pl.collect_all(wanted, engine="streaming")
    return DilutionCounts(
        batches=counted(batches, keys), problems=counted(problems[0], [PROBLEM]) if problems else None
    )


def read_dilution(counts: DilutionCounts, column: str, options: AuditOptions) -> Dilution:
    """The record of merged counts."""
    table, level = counts.batches.table, options.level
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
    if counts.problems is None:
        pooled = unnamed_share(counts.batches.total("live"), counts.batches.total("groups"), level=level)
    else:
        pooled = share_over(counts.problems.table, "live", "groups", level=level)
    return Dilution(
        column=column,
        divisor=options.loss_divisor,
        divisor_from="" if options.loss_divisor is None else "--loss-divisor",
        pooled=pooled,
        token_frac=int(table["live_tokens"].sum()) / tokens if tokens else None,
        mean=sum(shares) / len(shares) if shares else None,
        smallest=min(shares, default=None),
        num_dead=sum(share == 0 for share in shares),
        num_batches=len(batches),
        batches=batches,
    )

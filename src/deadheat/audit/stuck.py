"""Audit 4, stuck share: of the problems whose first draws were all wrong, how many fresh draws stay all wrong too.

    rules out    a problem still all wrong after n draws has p below 1 − .05^(1/n) at 95%        8.9% at n = 32

The first G draws selected the problem, so the fresh draws alone are shown beside. Stuck is no proof that p = 0. Fresh
draws are those of purpose `top-up`, or those after the first `--first-draws` of a problem.
"""

from dataclasses import dataclass

import polars as pl

from deadheat.audit.counts import Counts, counted
from deadheat.audit.records import AuditOptions, AuditRecord, Missing, share, share_of
from deadheat.audit.table import columns_of
from deadheat.stats.intervals import Interval


@dataclass(frozen=True, kw_only=True)
class StuckReading:
    """Problems with one number of first and of fresh draws."""

    first: int  # draws that selected the problem
    fresh: int  # draws made afterwards
    num_all_wrong: int  # problems whose first draws were all wrong
    stuck: Interval  # of them, those without a right fresh draw
    rules_out: float  # a stuck problem has p below this at 95%


@dataclass(frozen=True, kw_only=True)
class Stuck(AuditRecord):
    """Who is stuck, and who was unlucky."""

    stuck: Interval | None  # all sizes together; None: no problem was all wrong and drawn again
    fresh_right: Interval | None  # share right among the fresh draws alone
    all_wrong: Interval | None  # problems that were all wrong at first, of all problems with first draws
    readings: tuple[StuckReading, ...]  # by number of draws

    @property
    def sentence(self) -> str:
        """The share, and what it proves."""
        if self.stuck is None or self.fresh_right is None:
            return "no all-wrong problem was drawn again"
        bound = max(r.rules_out for r in self.readings)
        return (
            f"{share_of(self.stuck, 'all-wrong problems')} stay all wrong; right are "
            f"{share_of(self.fresh_right, 'fresh draws')}. Stuck rules out p ≥ {100 * bound:.1f}% at 95%, not p > 0"
        )


def stuck(rows: pl.LazyFrame, options: AuditOptions) -> Stuck | Missing:
    """First and fresh draws of every problem."""
    fresh = _is_fresh(rows, options)
    if fresh is None:
        return Missing(audit="stuck", lacks=("--first-draws",), why="no rollout has purpose `top-up`")
    return read_stuck(count_stuck(rows, fresh), options)


def _is_fresh(rows: pl.LazyFrame, options: AuditOptions) -> pl.Expr | None:
    names = columns_of(rows)
    if options.first_draws is not None:
        return pl.col("sample") >= options.first_draws if "sample" in names else None
    if "purpose" not in names:
        return None
    top_up = pl.col("purpose") == "top-up"
    return top_up if rows.select(top_up.any()).collect(engine="streaming").item() else None


def count_stuck(rows: pl.LazyFrame, fresh: pl.Expr) -> Counts:
    """Problems by their numbers of first and fresh draws and whether either holds a right one."""
    names = columns_of(rows)
    drawn = rows if "purpose" not in names else rows.filter(pl.col("purpose").fill_null("sample") != "eval")
    problem = [name for name in ("arm", "seed", "temperature", "step", "task") if name in names]
    told = "problem_id" if "problem_id" in names else "group_id"
    right = pl.col("correct").cast(pl.Boolean)
    graded = drawn.with_columns(fresh=fresh.fill_null(False)).filter(right.is_not_null())
    per_problem = graded.group_by(*problem, told).agg(
        first=(~pl.col("fresh")).cast(pl.Int64).sum(),
        fresh=pl.col("fresh").cast(pl.Int64).sum(),
        right_first=(right & ~pl.col("fresh")).cast(pl.Int64).sum(),
        right_fresh=(right & pl.col("fresh")).cast(pl.Int64).sum(),
    )
    wrong = pl.col("right_first") == 0
    table = (
        per_problem.filter(pl.col("first") > 0)
        .group_by("first", "fresh")
        .agg(
            problems=pl.len().cast(pl.Int64),
            all_wrong=wrong.cast(pl.Int64).sum(),
            stuck=(wrong & (pl.col("right_fresh") == 0)).cast(pl.Int64).sum(),
            fresh_right=pl.col("right_fresh").filter(wrong).sum(),
        )
    )
    return counted(table.collect(engine="streaming"), ["first", "fresh"])


def read_stuck(counts: Counts, options: AuditOptions) -> Stuck:
    """The record of merged counts."""
    again = counts.table.filter((pl.col("fresh") > 0) & (pl.col("all_wrong") > 0))
    readings = []
    for row in again.iter_rows(named=True):
        interval = share(row["stuck"], row["all_wrong"], level=options.level)
        assert interval is not None
        readings.append(
            StuckReading(
                first=row["first"],
                fresh=row["fresh"],
                num_all_wrong=row["all_wrong"],
                stuck=interval,
                rules_out=rules_out(row["first"] + row["fresh"]),
            )
        )
    num_fresh = int((again["fresh"] * again["all_wrong"]).sum())
    return Stuck(
        stuck=share(again["stuck"].sum(), again["all_wrong"].sum(), level=options.level),
        fresh_right=share(again["fresh_right"].sum(), num_fresh, level=options.level),
        all_wrong=share(counts.total("all_wrong"), counts.total("problems"), level=options.level),
        readings=tuple(readings),
    )


def rules_out(num_draws: int) -> float:
    """1 − .05^(1/n): the smallest p that n wrong draws in a row rule out at 95%.

    Example:
        >>> round(rules_out(32), 3)
        0.089
    """
    return float(1 - 0.05 ** (1 / num_draws))

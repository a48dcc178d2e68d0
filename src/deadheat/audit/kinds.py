"""Counting the gate: what kind each group is under each score, by place, and by problem.

Two tables that add up over shards. `kinds` has a row per score column, place and step. `problems` has a row per score
column, place and problem, its steps put together but for the first and the last part of the course, so that it grows with
problems and not with steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from deadheat.audit.counts import Counts, counted
from deadheat.audit.course import END, KINDS, end_of_course
from deadheat.audit.expected import expected_sums
from deadheat.audit.problems import by_problem
from deadheat.audit.records import AuditOptions
from deadheat.audit.table import (
    PLACES,
    PROBLEM,
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


@dataclass(frozen=True, kw_only=True)
class GateCounts:
    """What the gate keeps of a shard."""

    kinds: Counts  # groups of each kind, by score column and place
    draws: Counts  # groups by (k right of n graded), right/wrong grades of groups that are not branched
    problems: Counts | None  # groups of each kind, by problem and place, steps put together; None: none is named


def count_gate(rows: pl.LazyFrame, options: AuditOptions, end: pl.Expr | None = None) -> GateCounts:
    """Counts of one shard; `end` says which end of its course a group stands at, None: asked of these rows."""
    names = columns_of(rows)
    scores = ("reward",) if is_summary(names) else score_columns(names)
    places = [*dict.fromkeys((*PLACES, *options.by))]
    groups = group_table(rows, scores=scores, places=places)
    return count_gate_groups(groups, scores, options, end_of_course(rows) if end is None else end)


def count_gate_groups(groups: pl.LazyFrame, scores: Sequence[str], options: AuditOptions, end: pl.Expr) -> GateCounts:
    """Counts from the group table."""
    names = columns_of(groups)
    keys = [name for name in dict.fromkeys((*PLACES, *options.by)) if name in names]
    marked = groups.with_columns(end.alias(END))
    named = PROBLEM in names
    of_kind = [_with_kinds(marked, column, scores[0], names, options) for column in scores]
    kinds = [_kind_counts(table, keys, names) for table in of_kind]
    problems = [_problem_counts(table, keys, names, options) for table in of_kind] if named else []
    found = pl.collect_all([_draws(groups, scores, names), *kinds, *problems], engine="streaming")
    histogram, kinds_, problems_ = found[0], found[1 : 1 + len(kinds)], found[1 + len(kinds) :]
    return GateCounts(
        kinds=counted(pl.concat(kinds_, how="diagonal_relaxed"), ["column", "size", *keys]),
        draws=counted(histogram, [name for name in histogram.columns if name != "groups"]),
        problems=_of_problems(problems_, keys) if named else None,
    )


def _draws(groups: pl.LazyFrame, scores: Sequence[str], names: Sequence[str]) -> pl.LazyFrame:
    if "right" not in names:
        return groups.select(right=0, graded=pl.col(SIZE), groups=0).limit(0)
    return (
        groups.filter(_independent(scores[0], names))
        .group_by("right", "graded", *(name for name in ("purpose", "arm") if name in names))
        .agg(pl.len().cast(pl.Int64).alias("groups"))
    )


def _independent(column: str, names: Sequence[str]) -> pl.Expr:
    """Groups of graded draws that do not share a prefix: what a rate at another size is expected from."""
    flat = ~pl.col("branched") if "branched" in names else pl.lit(True)
    return flat & (pl.col("graded") > 1) & (pl.col("graded") >= pl.col(scored(column)))


def _problem_counts(
    of_kind: pl.LazyFrame, keys: Sequence[str], names: Sequence[str], options: AuditOptions
) -> pl.LazyFrame:
    """Groups of each kind by problem, and what they expect at other sizes."""
    places = ["column", END, *(key for key in keys if key != "step" or key in options.by)]
    sums = [pl.col(name).cast(pl.Int32).sum() for name in (*KINDS, "in_floor")]
    if "right" in names:
        sums += expected_sums(options.group_sizes, pl.col("expects"))
    return by_problem(of_kind, places, sums)


def _of_problems(tables: Sequence[pl.DataFrame], keys: Sequence[str]) -> Counts:
    """One table of all score columns; sizes at which nothing is expected are left out."""
    table = pl.concat(tables, how="diagonal_relaxed")
    counts = [name for name in table.columns if name.startswith("expected") and name.endswith(".n")]
    empty = [name for count in counts if not table[count].sum() for name in (count, count.removesuffix(".n"))]
    return counted(table.drop(empty), [name for name in ("column", END, *keys, PROBLEM) if name in table.columns])


def _with_kinds(
    groups: pl.LazyFrame, column: str, first: str, names: Sequence[str], options: AuditOptions
) -> pl.LazyFrame:
    """The group table with what each group is under one score."""
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
    expects = _independent(column, names) if column == first and "right" in names else pl.lit(False)
    return groups.with_columns(
        pl.lit(column).alias("column"),
        expects.alias("expects"),
        *(f.fill_null(False).alias(n) for n, f in flags.items()),
    )


def _kind_counts(of_kind: pl.LazyFrame, keys: Sequence[str], names: Sequence[str]) -> pl.LazyFrame:
    sums = [pl.col(name).cast(pl.Int64).sum() for name in (*KINDS, "unscored", "single", "in_floor")]
    repeated = pl.col("repeated").sum().cast(pl.Int64) if "repeated" in names else pl.lit(0, pl.Int64)
    size = pl.col(SIZE).cast(pl.Int64).alias("size")
    return of_kind.with_columns(size).group_by(["column", *keys, "size"]).agg(*sums, repeated.alias("repeated"))


def _in_floor(column: str, floor: float) -> pl.Expr:
    return (pl.col(high(column)) - pl.col(low(column))) <= floor

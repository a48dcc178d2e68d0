"""One row per group: the pass over the rollouts that most audits share.

A group is keyed by a 64-bit hash of its id: 30 million rows are grouped a few times faster, and any two of a million
groups share a hash with odds below 1e-7. A group whose scored rewards lie within 1e-6 of each other is tied; fewer than
two scored members are a tie too, as in credit. A group of one rollout is a single draw: it is counted, and is no group.
A group that was read twice has more rows than its sample numbers span.

Group summaries (k right, or a mean reward, of group_size) stand in for rollouts where rewards are 0 or 1.
"""

from collections.abc import Iterable, Sequence

import polars as pl

TIED_RANGE = 1e-6  # max − min; a range this small has a standard deviation below credit's TIED_SD
PLACES = ("purpose", "arm", "task", "temperature", "checkpoint", "step")  # what shares are broken down by
GROUP = "_group"
SIZE = "_size"  # rollouts of the group
PROBLEM = "_problem"


def columns_of(rows: pl.LazyFrame) -> list[str]:
    """The table's column names."""
    return rows.collect_schema().names()


def score_columns(names: Iterable[str]) -> tuple[str, ...]:
    """The columns that score a rollout: what was learned from first, then the checker's grade, then each part."""
    have = list(names)
    parts = sorted(name for name in have if name.startswith("part:"))
    return tuple(name for name in ("reward", "correct", "raw_reward") if name in have) + tuple(parts)


def lacking(names: Iterable[str], needs: Sequence[str]) -> tuple[str, ...]:
    """Which needs no column meets; `a|b` is met by either.

    Example:
        >>> lacking(["group_id", "correct"], ["group_id", "reward|correct", "stop"])
        ('stop',)
    """
    have = set(names)
    return tuple(need for need in needs if not have & set(need.split("|")))


def main_score(names: Iterable[str]) -> str:
    """The column a tie is computed from when nothing else is said: the reward, or the grade."""
    return next(iter(score_columns(names)), "reward")


def number(column: str) -> pl.Expr:
    """A score column as numbers, what is not a number taken as missing."""
    return pl.col(column).cast(pl.Float64).fill_nan(None)


def low(column: str) -> str:
    """Name of a score's smallest value in the group table."""
    return f"{column}.low"


def high(column: str) -> str:
    """Name of a score's largest value in the group table."""
    return f"{column}.high"


def scored(column: str) -> str:
    """Name of a score's number of scored members in the group table."""
    return f"{column}.scored"


def problem_hash(names: Sequence[str]) -> pl.Expr:
    """The problem of a row, told by task and id; a row without one belongs to its group."""
    told = pl.struct("task", "problem_id") if "task" in names else pl.col("problem_id")
    group = pl.col("group_id").hash() if "group_id" in names else pl.int_range(pl.len()).cast(pl.UInt64)
    return pl.when(pl.col("problem_id").is_null()).then(group).otherwise(told.hash()).alias(PROBLEM)


def group_table(
    rows: pl.LazyFrame,
    *,
    scores: Sequence[str],
    places: Sequence[str] = PLACES,
    extra: Sequence[pl.Expr] = (),
) -> pl.LazyFrame:
    """One row per group: its size, its places, its problem where it has one, and the range and number of its scores."""
    names = columns_of(rows)
    kept = [place for place in places if place in names]
    if is_summary(names):
        return _summary_table(rows, names, kept)
    needed = {*scores, *kept, *(["correct"] if "correct" in names else []), *(["sample"] if "sample" in names else [])}
    needed |= {name for expression in extra for name in expression.meta.root_names() if name != GROUP}
    branched = [name for name in ("pair", "branch") if name in names]
    problem = [problem_hash(names)] if "problem_id" in names else []
    keyed = rows.select(pl.col("group_id").hash().alias(GROUP), *problem, *sorted(needed | set(branched)))
    aggregates = [pl.len().alias(SIZE), *(pl.col(place).first() for place in kept), *extra]
    aggregates += [pl.col(PROBLEM).first()] if problem else []
    for column in scores:
        value = number(column)
        aggregates += [value.min().alias(low(column)), value.max().alias(high(column))]
        aggregates += [value.count().alias(scored(column))]
    if "correct" in names:
        aggregates += [pl.col("correct").cast(pl.Int64).sum().alias("right"), pl.col("correct").count().alias("graded")]
    elif "reward" in scores:  # rewards of 0 and 1 are grades; any other reward is none
        one, zero = number("reward") == 1.0, number("reward") == 0.0
        aggregates += [one.cast(pl.Int64).sum().alias("right"), (one | zero).sum().alias("graded")]
    if "sample" in names:
        span = pl.col("sample").max() - pl.col("sample").min() + 1
        aggregates.append((pl.len() - span).clip(lower_bound=0).fill_null(0).alias("repeated"))
    if branched:
        aggregates.append(pl.any_horizontal(pl.col(name).is_not_null() for name in branched).any().alias("branched"))
    return keyed.group_by(GROUP).agg(aggregates)


def is_summary(names: Iterable[str]) -> bool:
    """Whether a table has one row per group instead of one per rollout."""
    have = set(names)
    return "group_size" in have and bool(have & {"k", "mean_reward"}) and not score_columns(have)


def _summary_table(summaries: pl.LazyFrame, names: Sequence[str], places: Sequence[str]) -> pl.LazyFrame:
    """The same columns from k or a mean of 0/1 rewards; a mean that is no multiple of 1/G is unscored."""
    size = pl.col("group_size").cast(pl.Int64)
    count = pl.col("k").cast(pl.Float64) if "k" in names else pl.col("mean_reward").cast(pl.Float64) * size
    whole = ((count - count.round()).abs() < 1e-3) & count.is_between(-1e-3, size + 1e-3)
    right = pl.when(whole).then(count.round().cast(pl.Int64))
    known = right.is_not_null()
    group = pl.col("group_id").hash() if "group_id" in names else pl.int_range(pl.len()).cast(pl.UInt64)
    return summaries.select(
        group.alias(GROUP),
        size.alias(SIZE),
        *places,
        *([problem_hash(names)] if "problem_id" in names else []),
        pl.when(known).then((right == size).cast(pl.Float64)).alias(low("reward")),
        pl.when(known).then((right > 0).cast(pl.Float64)).alias(high("reward")),
        pl.when(known).then(size).otherwise(0).alias(scored("reward")),
        right.fill_null(0).alias("right"),
        pl.when(known).then(size).otherwise(0).alias("graded"),
    )


def is_tied(column: str) -> pl.Expr:
    """Whether the group's scores agree."""
    return (pl.col(scored(column)) < 2) | (pl.col(high(column)) - pl.col(low(column)) <= TIED_RANGE)


def is_live(column: str) -> pl.Expr:
    """Whether the group's scores differ, so that it can express a preference."""
    return ~is_tied(column)

"""What each problem of a log adds up to: groups of one problem are not independent, so intervals draw problems together.

    problem    (task, problem_id), told by a 64-bit hash; a group whose log names no problem is one of its own
    table      one row per problem and place: the sums that an interval needs, never the rows or groups themselves

A problem's sums add up over shards like every other count. Reading them, equal problems are put together, so that a
million problems of a few groups each are a handful of rows. Where every problem stands in one group the interval is what
it would be without problems: Wilson's. Where the log names none, the same, with a note that says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deadheat.audit.counts import Counts, counted
from deadheat.audit.table import PROBLEM
from deadheat.stats.intervals import Interval, wilson
from deadheat.stats.shares import UNNAMED, Clusters, TwoParts, clustered_share

COPIES = "_copies"  # clusters with equal sums


def by_problem(groups: pl.LazyFrame, keys: Sequence[str], sums: Sequence[pl.Expr]) -> pl.LazyFrame:
    """One row per problem and place. Sums of groups want 32 bits, which hold two billion."""
    return groups.group_by([*keys, PROBLEM]).agg(sums)


def equal_groups(groups: pl.LazyFrame, keys: Sequence[str], sums: Sequence[str]) -> Counts:
    """Groups as clusters of their own: how many have these very sums. A group lies in one shard, so this adds up too."""
    table = groups.group_by([*keys, *sums]).agg(pl.len().cast(pl.Int64).alias(COPIES))
    return counted(table.collect(engine="streaming"), [*keys, *sums])


def alike(table: pl.DataFrame, size: str, sums: Sequence[str]) -> pl.DataFrame:
    """Sums of every problem over the places of a table, equal problems put together under `COPIES`; none without units."""
    columns = [size, *(name for name in sums if name != size)]
    if PROBLEM in table.columns:
        per = table.group_by(PROBLEM).agg(pl.col(columns).cast(pl.Int64).sum())
        found = per.group_by(columns).agg(pl.len().cast(pl.Int64).alias(COPIES))
    else:
        found = table.group_by(columns).agg(pl.col(COPIES).sum())
    return found.filter(pl.col(size) > 0).sort(columns)


def clusters_of(found: pl.DataFrame, size: str, *, name: str = "problems") -> Clusters:
    """The clusters of what `alike` gives."""
    return Clusters.of(column(found, size), column(found, COPIES), name=name)


def column(found: pl.DataFrame, name: str) -> NDArray[np.float64]:
    """A column of sums as numbers."""
    return found[name].to_numpy().astype(np.float64)


def share_over(
    table: pl.DataFrame, count: str, size: str, *, level: float, left_out: int = 0, name: str = "problems"
) -> Interval | None:
    """Share of units that count, problems drawn together; None where there is no unit."""
    found = alike(table, size, [count])
    if not found.height:
        return None
    clusters = clusters_of(found, size, name=name)
    return clustered_share(column(found, count), clusters, level=level, left_out=left_out, unit=size)


def unnamed_share(k: int, n: int, *, level: float, left_out: int = 0) -> Interval | None:
    """Wilson's, where the log names no problem; None where there is no unit."""
    return None if not n else noted(wilson(k, n, level, left_out=left_out), UNNAMED)


def noted(interval: Interval, note: str) -> Interval:
    """The interval with a caveat."""
    return replace(interval, note=note)


@dataclass(frozen=True, kw_only=True)
class PartSums:
    """A count in two parts of a log, problem by problem."""

    parts: TwoParts
    count_C2: NDArray[np.float64]  # [C, 2] units that count, first and last

    def change(self, *, level: float) -> Interval:
        """The share of the last part minus that of the first."""
        found = self.parts.change_of_share(self.count_C2, level=level)
        return found if self.parts.name == "problems" else noted(found, UNNAMED)


def parts_by_problem(ends: Sequence[pl.DataFrame], count: str, size: str) -> PartSums:
    """The sums of two tables; without problems every group is its own."""
    if PROBLEM not in ends[0].columns:
        return _lone_parts([(int(end[size].sum()), int(end[count].sum())) for end in ends])
    per = [end.group_by(PROBLEM).agg(pl.col(size).sum(), pl.col(count).sum()) for end in ends]
    both = per[0].join(per[1], on=PROBLEM, how="full", coalesce=True, suffix="1").fill_null(0).sort(PROBLEM)
    size_C2, count_C2 = (both.select(name, f"{name}1").to_numpy().astype(np.float64) for name in (size, count))
    return PartSums(parts=TwoParts(size_C2=size_C2, copies_C=np.ones(both.height)), count_C2=count_C2)


def _lone_parts(found: Sequence[tuple[int, int]]) -> PartSums:
    rows = [(place, hit, k if hit else n - k) for place, (n, k) in enumerate(found) for hit in (0, 1)]
    size_C2 = np.array([[float(place == 0), float(place == 1)] for place, _, copies in rows if copies])
    count_C2 = np.array([[hit * float(place == 0), hit * float(place == 1)] for place, hit, copies in rows if copies])
    copies_C = np.array([float(copies) for _, _, copies in rows if copies])
    return PartSums(parts=TwoParts(size_C2=size_C2, copies_C=copies_C, name="groups"), count_C2=count_C2)


def change_text(moved: Interval) -> str:
    """A change of a share in percentage points.

    Example:
        >>> change_text(Interval(estimate=0.078, low=0.046, high=0.11, level=0.95, n=90, left_out=0, method=""))
        '+7.8 pp [+4.6, +11.0]'
    """
    return f"{100 * moved.estimate:+.1f} pp [{100 * moved.low:+.1f}, {100 * moved.high:+.1f}]"

"""Audit 7, clones: rollouts of a group that are token-identical, and one address of randomness under two prompts.

A group whose members share a seed is one draw written down G times: it ties, and looks like certainty. Short answers
repeat by chance, so whole groups of clones say more than pairs. Problems are drawn together in every interval, groups
where the log names no problem: copies come by the group. Rollouts are compared by their token ids, by their text
where there are no ids (several token sequences can spell one text; the record says which it was).

Branched runs copy on purpose: rows whose category names a terminal leaf, an absorbing leaf or a rescued winner are not
counted.
"""

from dataclasses import dataclass

import polars as pl

from deadheat.audit.counts import Counts, counted
from deadheat.audit.problems import COPIES, noted, share_over
from deadheat.audit.records import AuditOptions, AuditRecord, share_of
from deadheat.audit.table import PROBLEM, SIZE, columns_of, group_table
from deadheat.stats.intervals import Interval
from deadheat.stats.shares import UNNAMED

EXEMPT = ("terminal", "absorbing", "terminal_duplicate", "rescued", "winner_duplicate")  # categories that copy
_DISTINCT = "distinct"


@dataclass(frozen=True, kw_only=True)
class Clones(AuditRecord):
    """Copies inside groups, and shared seeds."""

    compared: str  # what was compared: token_ids, completion
    rollouts: Interval | None  # rollouts that repeat an earlier one of their group
    groups: Interval | None  # groups with at least one copy
    whole_groups: Interval | None  # groups of two or more whose members are all one sequence
    num_shared_keys: int | None  # addresses of randomness found under more than one prompt; None: keys are not known
    num_keys: int | None
    num_exempt: int  # rollouts left out because their category copies on purpose

    @property
    def sentence(self) -> str:
        """How many copies there are, and whether seeds are shared."""
        if self.groups is None or self.whole_groups is None or self.rollouts is None:
            return "no group of two or more rollouts"
        found = (
            f"{share_of(self.rollouts, 'rollouts')} repeat another of their group "
            f"({self.compared.replace('_', ' ')}); {share_of(self.whole_groups, 'groups')} are clones throughout"
        )
        if self.num_shared_keys:
            found += f"; {self.num_shared_keys:,} of {self.num_keys:,} seeds serve more than one prompt: a bug"
        return found


def clones(rows: pl.LazyFrame, options: AuditOptions) -> Clones:
    """Copies of every group."""
    names = columns_of(rows)
    shared, num_keys = shared_keys(rows, names)
    return read_clones(count_clones(rows), compared_by(names), options, shared_keys=shared, num_keys=num_keys)


def compared_by(names: "list[str]") -> str:
    """The column in which two rollouts are the same."""
    return "token_ids" if "token_ids" in names else "completion"


def distinct_members(names: "list[str]") -> pl.Expr:
    """How many different rollouts a group has, for `group_table`."""
    return pl.col(compared_by(names)).hash().n_unique().cast(pl.Int64).alias(_DISTINCT)


def count_clones(rows: pl.LazyFrame) -> Counts:
    """Groups, rollouts and copies, by group size and problem; rollouts left out under no size."""
    names = columns_of(rows)
    exempt = pl.col("category").is_in(EXEMPT).fill_null(False) if "category" in names else None
    kept = rows if exempt is None else rows.filter(~exempt)
    groups = group_table(kept, scores=[], places=[], extra=[distinct_members(names)])
    counts = count_clones_groups(groups)
    if exempt is None:
        return counts
    left_out = int(rows.select(exempt.sum()).collect(engine="streaming").item() or 0)
    # A row of its own, since a part of the archive may hold such rollouts and no group of two others.
    exempt_row = {name: [left_out if name == "exempt" else None] for name in counts.table.columns}
    return counted(pl.concat([counts.table, pl.DataFrame(exempt_row, schema=counts.table.schema)]), counts.keys)


def count_clones_groups(groups: pl.LazyFrame) -> Counts:
    """The same from the group table."""
    size, distinct = pl.col(SIZE).cast(pl.Int64), pl.col(_DISTINCT)
    # Without problems a group is its own cluster: one row for all groups of equal size and equally many rollouts.
    keys = ["size", PROBLEM] if PROBLEM in columns_of(groups) else ["size", _DISTINCT]
    sums = (
        groups.filter(pl.col(SIZE) > 1)
        .with_columns(size.alias("size"))
        .group_by(keys)
        .agg(
            pl.len().cast(pl.Int64).alias("groups"),
            size.sum().alias("rollouts"),
            (size - distinct).sum().alias("copies"),
            (distinct < size).cast(pl.Int64).sum().alias("with_copy"),
            (distinct == 1).cast(pl.Int64).sum().alias("whole"),
            pl.lit(0, pl.Int64).alias("exempt"),
        )
    )
    return counted(sums.collect(engine="streaming"), keys)


def read_clones(
    counts: Counts, compared: str, options: AuditOptions, *, shared_keys: int | None, num_keys: int | None
) -> Clones:
    """The record of merged counts."""
    table, named = counts.table, PROBLEM in counts.keys
    clusters = table if named else _lone_groups(table)

    def part(count: str, size: str) -> Interval | None:
        name = "problems" if named else "groups"
        found = share_over(clusters, count, size, name=name, level=options.level)
        return found if found is None or named else noted(found, UNNAMED)

    return Clones(
        compared=compared,
        rollouts=part("copies", "rollouts"),
        groups=part("with_copy", "groups"),
        whole_groups=part("whole", "groups"),
        num_shared_keys=shared_keys,
        num_keys=num_keys,
        num_exempt=counts.total("exempt"),
    )


def _lone_groups(table: pl.DataFrame) -> pl.DataFrame:
    """Groups of equal size and equally many rollouts as so many equal clusters."""
    each = [(pl.col(name) // pl.col("groups")).alias(name) for name in ("rollouts", "copies", "with_copy", "whole")]
    lone = table.filter(pl.col("groups") > 0)
    return lone.select(*each, pl.col("groups").alias(COPIES)).with_columns(groups=pl.lit(1, pl.Int64))


def shared_keys(rows: pl.LazyFrame, names: "list[str]") -> tuple[int | None, int | None]:
    """How many keys serve more than one prompt, and how many there are; of the whole archive, since a key may recur."""
    prompt = next((name for name in ("problem_digest", "problem_id", "prompt") if name in names), None)
    if "key" not in names or prompt is None:
        return None, None
    keyed = (
        rows.select("key", p=pl.col(prompt).hash())
        .drop_nulls()
        .group_by("key")
        .agg(pl.col("p").min() != pl.col("p").max())
    )
    found = keyed.select(n=pl.len(), shared=pl.col("p").sum()).collect(engine="streaming").row(0)
    return (int(found[1] or 0), int(found[0])) if found[0] else (None, None)

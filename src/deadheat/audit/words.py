"""Audit 8, words against grades: groups that say different things and earn the same.

    same grade     groups of ≥ 2 textually distinct members, all of one grade      of groups with ≥ 2 distinct texts
    all distinct   the same among groups in which every text is distinct

The checker cannot tell these members apart, a finer scorer might. A share of groups, not of rollouts. Grades are the
checker's, or the reward where there is no checker. Unparsed answers are graded wrong by many checkers, so their share
stands beside it.
"""

from dataclasses import dataclass

import polars as pl

from deadheat.audit.counts import Counts, counted
from deadheat.audit.records import AuditOptions, AuditRecord, share, share_of
from deadheat.audit.table import SIZE, columns_of, group_table, is_tied, score_columns, scored
from deadheat.stats.intervals import Interval


@dataclass(frozen=True, kw_only=True)
class Words(AuditRecord):
    """How often different words earn one grade."""

    column: str  # the grade
    same_grade: Interval | None  # of groups with at least two distinct texts
    all_distinct: Interval | None  # of groups in which every text is distinct
    of_all_groups: Interval | None  # groups of ≥ 2 distinct texts and one grade, of all graded groups
    unparsed: Interval | None  # rollouts without an extracted answer; None: the source does not say

    @property
    def sentence(self) -> str:
        """The two shares."""
        if self.same_grade is None:
            return "no graded group holds two distinct texts"
        found = f"{share_of(self.same_grade, 'groups with distinct texts')} carry one grade"
        if self.all_distinct is not None:
            found += f"; {share_of(self.all_distinct, 'groups of distinct texts only')} do"
        return found + ("" if self.unparsed is None else f"; {share_of(self.unparsed, 'rollouts')} are unparsed")


def words(rows: pl.LazyFrame, options: AuditOptions) -> Words:
    """Distinct texts and grades of every group."""
    return read_words(count_words(rows), grade_column(columns_of(rows)), options)


def grade_column(names: "list[str]") -> str:
    """The checker's grade, or the first score where there is none."""
    return "correct" if "correct" in names else score_columns(names)[0]


def count_words(rows: pl.LazyFrame) -> Counts:
    """Groups by how many of their texts are distinct and whether they carry one grade."""
    names = columns_of(rows)
    column = grade_column(names)
    extra = [pl.col("completion").hash().n_unique().cast(pl.Int64).alias("texts")]
    if "parsed" in names:
        extra += [
            (~pl.col("parsed")).cast(pl.Int64).sum().alias("unparsed"),
            pl.col("parsed").count().cast(pl.Int64).alias("known"),
        ]
    groups = group_table(rows, scores=[column], places=[], extra=extra)
    kept = groups.filter((pl.col(SIZE) > 1) & (pl.col(scored(column)) > 1))
    one, some, every = is_tied(column), pl.col("texts") > 1, pl.col("texts") == pl.col(SIZE)
    flags = {"some": some, "some_one": some & one, "every": every, "every_one": every & one}
    sums = [flag.cast(pl.Int64).sum().alias(name) for name, flag in flags.items()]
    sums += [pl.col(name).sum() for name in ("unparsed", "known") if "parsed" in names]
    size = pl.col(SIZE).cast(pl.Int64).alias("size")
    table = kept.group_by(size).agg(pl.len().cast(pl.Int64).alias("groups"), *sums).collect(engine="streaming")
    return counted(table, ["size"])


def read_words(counts: Counts, column: str, options: AuditOptions) -> Words:
    """The record of merged counts."""
    total, level = counts.total, options.level
    return Words(
        column=column,
        same_grade=share(total("some_one"), total("some"), level=level),
        all_distinct=share(total("every_one"), total("every"), level=level),
        of_all_groups=share(total("some_one"), total("groups"), level=level),
        unparsed=share(total("unparsed"), total("known"), level=level) if "known" in counts.table.columns else None,
    )

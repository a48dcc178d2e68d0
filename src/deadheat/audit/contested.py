"""Audit 6, contested references: at least half of a group agrees on one answer, and all who gave it are graded wrong.

The model may be wrong together, the reference may be wrong or ambiguous, or the grader may have failed; a second
verifier (math-verify) finds only the last. Half a group is easier to reach as a policy converges, so the rate rises
with training by itself. The source's run: 1.8% over its first ten checkpoints, 11.1% over its last ten.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from deadheat.audit.counts import Counts, counted
from deadheat.audit.records import AuditOptions, AuditRecord, Cell, share, share_of
from deadheat.audit.table import GROUP, columns_of
from deadheat.stats.intervals import Interval

_MOST_CASES = 200  # kept for reading, most agreed first


@dataclass(frozen=True, kw_only=True)
class ContestedCase:
    """One contested group."""

    group_id: str
    answer: str  # what at least half of the group says
    reference: str  # what it is graded against; "" where the source keeps none
    num_agree: int
    group_size: int
    second_verifier: str  # right, wrong, not asked, could not say


@dataclass(frozen=True, kw_only=True)
class Contested(AuditRecord):
    """Groups that agree against their reference."""

    rate: Interval | None  # of groups with two rollouts or more and a grade
    by_source: tuple[Cell, ...]  # by who wrote the reference; empty: not known
    by_step: tuple[Cell, ...]  # first and last tenth of the steps; empty: no steps
    verifier_misses: Interval | None  # contested answers that the second verifier finds right; None: it was not asked
    cases: tuple[ContestedCase, ...]

    @property
    def sentence(self) -> str:
        """The rate, and what a second verifier says."""
        if self.rate is None:
            return "no graded group of two or more"
        found = f"{share_of(self.rate, 'groups')} agree on an answer that is graded wrong"
        if self.verifier_misses is not None:
            found += f"; a second verifier finds {share_of(self.verifier_misses, 'answers')} right"
        return found


def contested(rows: pl.LazyFrame, options: AuditOptions) -> Contested:
    """Agreement against the reference, group by group."""
    groups = contested_groups(rows, options)
    cases = _cases(rows, groups, options)
    return read_contested(count_contested(groups), cases, options)


def contested_groups(rows: pl.LazyFrame, options: AuditOptions) -> pl.LazyFrame:
    """One row per group: its size, its most common wrong-only answer, and how many gave it."""
    names = columns_of(rows)
    graded = rows.with_columns(pl.col("correct").cast(pl.Boolean)).filter(pl.col("correct").is_not_null())
    source = _source(names, options)
    group = pl.col("group_id").hash().alias(GROUP)
    sizes = graded.group_by(group).agg(
        pl.len().cast(pl.Int64).alias("size"),
        pl.col("step").first() if "step" in names else pl.lit(None, pl.Int64).alias("step"),
        source.first().alias("source"),
    )
    answers = (
        graded.drop_nulls("answer")
        .group_by(group, pl.col("answer").str.strip_chars().alias("answer"))
        .agg(pl.len().cast(pl.Int64).alias("agree"), pl.col("correct").any())
        .filter(~pl.col("correct"))
        .group_by(GROUP)
        .agg(pl.col("agree").max())
    )
    joined = sizes.filter(pl.col("size") > 1).join(answers, on=GROUP, how="left")
    return joined.with_columns(contested=(2 * pl.col("agree") >= pl.col("size")).fill_null(False))


def _source(names: list[str], options: AuditOptions) -> pl.Expr:
    asked = options.reference_source
    if asked is not None and asked in names:
        return pl.col(asked).cast(pl.String)
    if asked is not None and "columns" in names:
        return pl.col("columns").str.json_path_match(f"$['{asked}']")
    return pl.lit(None, pl.String)


def count_contested(groups: pl.LazyFrame) -> Counts:
    """Groups and contested ones by step and source."""
    table = groups.group_by("step", "source").agg(
        pl.len().cast(pl.Int64).alias("groups"), pl.col("contested").cast(pl.Int64).sum()
    )
    return counted(table.collect(engine="streaming"), ["step", "source"])


def _cases(rows: pl.LazyFrame, groups: pl.LazyFrame, options: AuditOptions) -> list[ContestedCase]:
    names = columns_of(rows)
    chosen = groups.filter("contested").select(GROUP, "size")
    reference = pl.col("reference").first() if "reference" in names else pl.lit("").alias("reference")
    answers = (
        rows.with_columns(pl.col("group_id").hash().alias(GROUP), pl.col("correct").cast(pl.Boolean))
        .join(chosen, on=GROUP, how="inner")
        .drop_nulls(["answer", "correct"])
        .group_by("group_id", pl.col("answer").str.strip_chars().alias("answer"))
        .agg(pl.len().cast(pl.Int64).alias("agree"), pl.col("correct").any(), pl.col("size").first(), reference)
        .filter(~pl.col("correct") & (2 * pl.col("agree") >= pl.col("size")))
        .sort(["agree", "group_id", "answer"], descending=[True, False, False])
    )
    return [_case(row, options) for row in answers.collect(engine="streaming").iter_rows(named=True)]


def _case(row: Mapping[str, object], options: AuditOptions) -> ContestedCase:
    answer, reference = str(row["answer"]), str(row["reference"] or "")
    said = "not asked"
    if options.recheck is not None and reference:
        verdict = options.recheck(reference, answer)
        said = "could not say" if verdict is None else "right" if verdict else "wrong"
    return ContestedCase(
        group_id=str(row["group_id"]),
        answer=answer,
        reference=reference,
        num_agree=int(str(row["agree"])),
        group_size=int(str(row["size"])),
        second_verifier=said,
    )


def read_contested(counts: Counts, cases: "list[ContestedCase]", options: AuditOptions) -> Contested:
    """The record of merged counts and of the cases found."""
    level = options.level
    asked = [case for case in cases if case.second_verifier in ("right", "wrong")]
    by_source = counts.rolled_up(["source"]).drop_nulls("source")
    return Contested(
        rate=share(counts.total("contested"), counts.total("groups"), level=level),
        by_source=tuple(
            Cell(where={"source": row["source"]}, share=share(row["contested"], row["groups"], level=level))
            for row in by_source.iter_rows(named=True)
        ),
        by_step=_ends(counts.rolled_up(["step"]).drop_nulls("step"), level),
        verifier_misses=share(sum(c.second_verifier == "right" for c in asked), len(asked), level=level),
        cases=tuple(cases[:_MOST_CASES]),
    )


def _ends(by_step: pl.DataFrame, level: float) -> tuple[Cell, ...]:
    if by_step.height < 2:
        return ()
    tenth = max(1, by_step.height // 10)
    ends = (by_step.head(tenth), by_step.tail(tenth))
    return tuple(
        Cell(
            where={"steps": f"{end['step'][0]} to {end['step'][-1]}"},
            share=share(end["contested"].sum(), end["groups"].sum(), level=level),
        )
        for end in ends
    )

"""Audit 6, contested references: at least half of a group agrees on one answer, and all who gave it are graded wrong.

The model may be wrong together, the reference may be wrong or ambiguous, or the grader may have failed; a second
verifier (math-verify) finds only the last. Half a group is easier to reach as a policy converges, so the rate rises
with training by itself. Problems are drawn together in every interval, and the change over the steps pairs them. The
source's run: 1.8% over its first ten checkpoints, 11.1% over its last ten.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from deadheat.audit.counts import Counts, counted
from deadheat.audit.problems import change_text, parts_by_problem, share_over, unnamed_share
from deadheat.audit.records import AuditOptions, AuditRecord, Cell, share_of
from deadheat.audit.table import GROUP, PROBLEM, columns_of, problem_hash
from deadheat.stats.intervals import Interval, wilson
from deadheat.stats.shares import Clusters, clustered_share

_MOST_CASES = 200  # kept for reading, most agreed first


@dataclass(frozen=True, kw_only=True)
class ContestedCase:
    """One contested group."""

    group_id: str
    problem_id: str  # "" where the source names none
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
    change: Interval | None  # of the rate, from the first of those to the last; None: no steps
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
        if self.change is not None:
            found += f"; {change_text(self.change)} from {' to '.join(cell.where['steps'] for cell in self.by_step)}"
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
        *([problem_hash(names).first()] if "problem_id" in names else []),
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
    """Groups and contested ones by step, source and problem."""
    keys = ["step", "source", *(name for name in (PROBLEM,) if name in columns_of(groups))]
    table = groups.group_by(keys).agg(pl.len().cast(pl.Int64).alias("groups"), pl.col("contested").cast(pl.Int64).sum())
    return counted(table.collect(engine="streaming"), keys)


def _cases(rows: pl.LazyFrame, groups: pl.LazyFrame, options: AuditOptions) -> list[ContestedCase]:
    names = columns_of(rows)
    chosen = groups.filter("contested").select(GROUP, "size")
    told = [(pl.col(name) if name in names else pl.lit("").alias(name)) for name in ("reference", "problem_id")]
    answers = (
        rows.with_columns(pl.col("group_id").hash().alias(GROUP), pl.col("correct").cast(pl.Boolean))
        .join(chosen, on=GROUP, how="inner")
        .drop_nulls(["answer", "correct"])
        .group_by("group_id", pl.col("answer").str.strip_chars().alias("answer"))
        .agg(
            pl.len().cast(pl.Int64).alias("agree"),
            pl.col("correct").any(),
            pl.col("size").first(),
            *(text.first() for text in told),
        )
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
        problem_id=str(row["problem_id"] or ""),
        answer=answer,
        reference=reference,
        num_agree=int(str(row["agree"])),
        group_size=int(str(row["size"])),
        second_verifier=said,
    )


def read_contested(counts: Counts, cases: "list[ContestedCase]", options: AuditOptions) -> Contested:
    """The record of merged counts and of the cases found."""
    table, level = counts.table, options.level
    by_source = table.drop_nulls("source").partition_by("source", as_dict=True)
    ends = _ends(table)
    cells = tuple(
        Cell(where={"steps": f"{end['step'].min()!s} to {end['step'].max()!s}"}, share=_share(end, level))
        for end in ends
    )
    return Contested(
        rate=_share(table, level),
        by_source=tuple(
            Cell(where={"source": source}, share=_share(own, level)) for (source,), own in sorted(by_source.items())
        ),
        by_step=cells,
        change=parts_by_problem(ends, "contested", "groups").change(level=level) if ends else None,
        verifier_misses=_misses(cases, level),
        cases=tuple(cases[:_MOST_CASES]),
    )


def _share(table: pl.DataFrame, level: float) -> Interval | None:
    if PROBLEM in table.columns:
        return share_over(table, "contested", "groups", level=level)
    return unnamed_share(int(table["contested"].sum()), int(table["groups"].sum()), level=level)


def _misses(cases: "list[ContestedCase]", level: float) -> Interval | None:
    """Answers that the second verifier finds right, those of one problem together."""
    asked = [case for case in cases if case.second_verifier in ("right", "wrong")]
    if not asked:
        return None
    if not all(case.problem_id for case in asked):
        return wilson(sum(case.second_verifier == "right" for case in asked), len(asked), level)
    by_problem: dict[str, list[bool]] = {}
    for case in asked:
        by_problem.setdefault(case.problem_id, []).append(case.second_verifier == "right")
    clusters = Clusters.of([len(found) for found in by_problem.values()])
    return clustered_share([sum(found) for found in by_problem.values()], clusters, level=level, unit="answers")


def _ends(table: pl.DataFrame) -> tuple[pl.DataFrame, ...]:
    """The first and the last tenth of the steps; empty: fewer than two."""
    steps = table["step"].drop_nulls().unique().sort()
    if steps.len() < 2:
        return ()
    tenth = max(1, steps.len() // 10)
    return tuple(table.filter(pl.col("step").is_in(end.implode())) for end in (steps.head(tenth), steps.tail(tenth)))

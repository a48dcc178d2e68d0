"""Audit 14, sibling overlap: how much a failed rollout of a mixed group has in common with the ones that passed.

    prefix      the longest common token prefix of a failed rollout with any passing sibling (words, where token ids are
                not kept)
    equations   failed rollouts that share an equation with a passing sibling in their first 160 tokens

Equations are found by a pattern (a run of digits and operators on both sides of an equals sign, white space dropped):
a surface proxy, that says nothing of whether the step was right. Passing is the checker's grade; without one, the
group's highest reward. Branched siblings share their prefix by design and are left out.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from deadheat.audit.counts import Counts, counted
from deadheat.audit.records import AuditOptions, AuditRecord, share
from deadheat.audit.table import GROUP, columns_of, main_score, number
from deadheat.stats.intervals import Interval, mean_score

_EQUATION = re.compile(r"[0-9(][0-9+\-*/^().,\s×·÷]*=\s*[-−]?[0-9][0-9.,]*")
_BATCH_GROUPS = 2000  # groups compared at a time


@dataclass(frozen=True, kw_only=True)
class Siblings(AuditRecord):
    """What failed rollouts share with passing siblings."""

    unit: str  # of the prefix: tokens, or words
    prefix: Interval | None  # mean over failed rollouts; None: no mixed group
    median_prefix: float | None
    longest_prefix: int | None
    shared_equation: Interval | None  # of failed rollouts of mixed groups; None: no texts
    head_tokens: int  # how far an equation counts
    head_cut: str  # how the head was found
    num_groups: int  # mixed, not branched
    num_branched: int  # mixed and branched, left out
    num_failed: int  # rollouts compared

    @property
    def sentence(self) -> str:
        """Mean prefix and shared equations."""
        if self.prefix is None:
            return "no mixed group"
        found = (
            f"failed rollouts share {self.prefix.estimate:.1f} {self.unit} [{self.prefix.low:.1f}, "
            f"{self.prefix.high:.1f}] with their closest passing sibling (n = {self.num_failed:,})"
        )
        if self.shared_equation is not None:
            e = self.shared_equation
            found += (
                f"; {100 * e.estimate:.1f}% [{100 * e.low:.1f}, {100 * e.high:.1f}] share an equation in the first "
                f"{self.head_tokens} tokens, a surface proxy"
            )
        return found


def siblings(rows: pl.LazyFrame, options: AuditOptions) -> Siblings:
    """Failed and passing members of every mixed group."""
    return read_siblings(count_siblings(rows, options), columns_of(rows), options)


def count_siblings(rows: pl.LazyFrame, options: AuditOptions) -> Counts:
    """Failed rollouts by the length of their shared prefix and whether they share an equation."""
    names = columns_of(rows)
    branched = [name for name in ("pair", "branch") if name in names]
    is_branched = pl.any_horizontal(pl.col(n).is_not_null() for n in branched) if branched else pl.lit(False)
    kept = [name for name in ("token_ids", "completion", "length") if name in names]
    keyed = rows.with_columns(pl.col("group_id").hash().alias(GROUP), passed=_passed(names), branched=is_branched)
    graded = keyed.drop_nulls("passed")
    mixed = graded.group_by(GROUP).agg(
        pl.col("passed").any().alias("some"),
        pl.col("passed").all().alias("every"),
        pl.col("branched").any().alias("tree"),
    )
    chosen = mixed.filter(pl.col("some") & ~pl.col("every")).collect(engine="streaming")
    flat = chosen.filter(~pl.col("tree"))[GROUP].sort()
    counts = []
    for start in range(0, flat.len(), _BATCH_GROUPS):
        part = graded.filter(pl.col(GROUP).is_in(flat[start : start + _BATCH_GROUPS].implode()))
        members = part.select(GROUP, "passed", *kept).collect(engine="streaming")
        counts += list(_compared(members, options))
    table = pl.DataFrame(
        counts or [], schema={"prefix": pl.Int64, "equation": pl.Boolean, "failed": pl.Int64}, orient="row"
    )
    marks = pl.DataFrame(
        {
            "prefix": [None],
            "equation": [None],
            "failed": [0],
            "groups": [flat.len()],
            "branched": [chosen["tree"].sum()],
        },
        schema={
            "prefix": pl.Int64,
            "equation": pl.Boolean,
            "failed": pl.Int64,
            "groups": pl.Int64,
            "branched": pl.Int64,
        },
    )
    return counted(pl.concat([table, marks], how="diagonal"), ["prefix", "equation"])


def _passed(names: Sequence[str]) -> pl.Expr:
    if "correct" in names:
        return pl.col("correct").cast(pl.Boolean)
    score = number(main_score(names))
    return score == score.max().over("group_id")


def _compared(members: pl.DataFrame, options: AuditOptions) -> Iterator[tuple[int, bool | None, int]]:
    for _, group in members.group_by(GROUP, maintain_order=False):
        rows = group.to_dicts()
        passing = [row for row in rows if row["passed"]]
        sequences = [_sequence(row) for row in passing]
        equations = (
            {e for row in passing for e in _head_equations(row, options)} if "completion" in group.columns else None
        )
        for row in rows:
            if not row["passed"]:
                own = _sequence(row)
                prefix = max(common_prefix(own, other) for other in sequences)
                shares = None if equations is None else bool(equations & _head_equations(row, options))
                yield prefix, shares, 1


def common_prefix(left: Sequence[object], right: Sequence[object]) -> int:
    """How many places agree before the first that does not.

    Example:
        >>> common_prefix([1, 2, 3], [1, 2, 9, 3])
        2
    """
    for place, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return place
    return min(len(left), len(right))


def equations(text: str) -> frozenset[str]:
    """The equations of a text, without white space.

    Example:
        >>> sorted(equations("so 3 + 4 = 7, then 7*2=14."))
        ['3+4=7', '7*2=14']
    """
    return frozenset(re.sub(r"\s+", "", found).rstrip(".,") for found in _EQUATION.findall(text))


def _sequence(row: dict[str, Any]) -> Sequence[object]:
    return row["token_ids"] if row.get("token_ids") is not None else (row.get("completion") or "").split()


def _head_equations(row: dict[str, Any], options: AuditOptions) -> frozenset[str]:
    text, ids = row["completion"] or "", row.get("token_ids")
    if options.decode is not None and ids is not None:
        return equations(options.decode(ids[: options.head_tokens]))
    length = row.get("length") or len(ids or text.split()) or 1
    return equations(text[: len(text) * min(options.head_tokens, length) // length])


def read_siblings(counts: Counts, names: Sequence[str], options: AuditOptions) -> Siblings:
    """The record of merged counts."""
    failed = counts.table.drop_nulls("prefix")
    lengths = np.repeat(failed["prefix"].to_numpy(), failed["failed"].to_numpy()).astype(np.float64)
    known = failed.drop_nulls("equation")
    by_ids = options.decode is not None and "token_ids" in names
    return Siblings(
        unit="tokens" if "token_ids" in names else "words",
        prefix=_mean(lengths, options.level),
        median_prefix=float(np.median(lengths)) if lengths.size else None,
        longest_prefix=int(lengths.max()) if lengths.size else None,
        shared_equation=share(known.filter("equation")["failed"].sum(), known["failed"].sum(), level=options.level),
        head_tokens=options.head_tokens,
        head_cut="decoded token ids" if by_ids else "the same share of the characters as of the tokens",
        num_groups=counts.total("groups"),
        num_branched=counts.total("branched"),
        num_failed=counts.total("failed"),
    )


def _mean(lengths: "np.ndarray[Any, np.dtype[np.float64]]", level: float) -> Interval | None:
    if lengths.size < 2 or np.isin(lengths, (0.0, 1.0)).all():
        value = float(lengths.mean()) if lengths.size else None
        if value is None:
            return None
        return Interval(
            estimate=value, low=value, high=value, level=level, n=lengths.size, left_out=0, method="mean, no interval"
        )
    return mean_score(lengths, level=level).interval

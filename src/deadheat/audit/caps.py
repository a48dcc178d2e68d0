"""Audit 5, capped groups: failures that are unfinished answers, and what an earlier cap would have cut.

    capped step     an active step (one with a live group) whose every failure in live groups hit the token cap
    capped pair     two branches of one pair with different rewards whose failing branch hit the cap; pairs that share a
                    prefix only, and those of the warm-up apart
    earlier cap     rollouts longer than it that end right: at that cap they had no marker (unboxed), a marker whose
                    answer is wrong or not closed, or the right answer already

A failure is a rollout graded wrong, or with the lowest reward of its group where there are no grades. Capped is what
the stop reason says; without stop reasons, a length of at least the stated cap. A capped failure might have been wrong
anyway: this counts, it does not explain. Without a tokenizer the text at the earlier cap is the same share of the
characters as of the tokens; the record says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from deadheat.audit.counts import Counts, counted
from deadheat.audit.records import AuditOptions, AuditRecord, Missing, share, share_of
from deadheat.audit.table import GROUP, TIED_RANGE, columns_of, main_score, number
from deadheat.reports.formats import format_share
from deadheat.stats.intervals import Interval
from deadheat.tasks.answers import boxed

_MOST_CASES = 500  # of the earlier cap, kept for reading
CAPPED_STOPS = ("cap", "length", "max_tokens", "max_length", "truncated")  # stop reasons that name the cap


@dataclass(frozen=True, kw_only=True)
class EarlierCapCase:
    """One rollout that ends right, at the earlier cap and at its end."""

    group_id: str
    sample: int | None  # None: the source numbers none
    length: int  # tokens
    marker_at_cap: int  # characters before the last marker in the cut text; −1: none
    marker_at_end: int  # the same in the finished text
    answer_at_cap: str | None  # what the marker holds there; None: no marker, or it does not close
    answer_at_end: str | None
    kind: str  # unboxed, wrong (or unclosed), right


@dataclass(frozen=True, kw_only=True)
class EarlierCap:
    """What rollouts longer than an earlier cap looked like at it."""

    cap: int  # tokens
    longer: Interval | None  # rollouts longer than it, of all with a length
    finally_right: Interval | None  # of the longer ones
    lost: Interval | None  # of those: not right at the earlier cap
    num_unboxed: int  # no marker in the first `cap` tokens
    num_wrong_or_unclosed: int  # a marker, and not the final answer in it
    num_already_right: int  # the final answer stands there
    cut: str  # how the text at the cap was found
    cases: tuple[EarlierCapCase, ...]  # the finally right ones; the first of them by group and sample


@dataclass(frozen=True, kw_only=True)
class Caps(AuditRecord):
    """How much of the failures is the cap."""

    told_by: str  # stop reasons, or the stated cap
    column: str  # the score a live group is told by
    rollouts: Interval | None  # capped, of all
    failures: Interval | None  # capped, of the failures of live groups
    steps: Interval | None  # active steps whose every failure was capped; None: the source has no steps
    pairs: Interval | None  # divergent pairs that share a prefix: failing branch capped; None: nothing is branched
    warm_up_pairs: Interval | None  # the same in the warm-up
    num_unshared_pairs: int  # divergent pairs without a shared prefix, left out
    earlier: EarlierCap | None

    @property
    def sentence(self) -> str:
        """Capped failures and capped steps."""
        if self.rollouts is None:
            return "no rollout says whether it was cut"
        found = f"{share_of(self.rollouts, 'rollouts')} hit the cap (by {self.told_by})"
        if self.failures is not None:
            found += f"; {share_of(self.failures, 'failures of live groups')} did"
        if self.steps is not None:
            found += f"; every failure was cut in {share_of(self.steps, 'active steps')}"
        if self.earlier is not None and self.earlier.lost is not None:
            found += f"; a cap of {self.earlier.cap} would have lost {format_share(self.earlier.lost.estimate)} of "
            found += f"{self.earlier.lost.n:,} longer ones that end right"
        return found


def caps(rows: pl.LazyFrame, options: AuditOptions) -> Caps | Missing:
    """Capped failures, steps and pairs, and the earlier cap where one is stated."""
    names = columns_of(rows)
    longest = rows.select(pl.col("length").max()).collect(engine="streaming").item() if "length" in names else None
    capped = _capped(names, longest, options)
    if capped is None:
        why = "" if longest is None or options.cap is None else f"rollouts are up to {longest} tokens long, over --cap"
        return Missing(audit="caps", lacks=("stop|--cap",), why=why)
    earlier = None
    if options.cap is not None and longest is not None and longest > options.cap:
        earlier = earlier_cap(rows, options)
    return read_caps(count_caps(rows, capped, options), "stop" in names, earlier, main_score(names), options)


def _capped(names: list[str], longest: int | None, options: AuditOptions) -> pl.Expr | None:
    if "stop" in names:
        return pl.col("stop").str.to_lowercase().is_in(CAPPED_STOPS)
    if options.cap is None or longest is None or longest > options.cap:
        return None
    return pl.col("length") >= options.cap


def count_caps(rows: pl.LazyFrame, capped: pl.Expr, options: AuditOptions) -> Counts:
    """Rollouts, failures, steps and pairs, and how many of each are capped, in one row."""
    names = columns_of(rows)
    placed = rows.with_columns(
        GROUP_KEY, capped=capped, score=number(main_score(names)), failed=_failed(names), step=_step(names)
    )
    groups = placed.group_by(GROUP).agg(
        pl.len().cast(pl.Int64).alias("rollouts"),
        pl.col("capped").count().cast(pl.Int64).alias("known"),
        pl.col("capped").sum().cast(pl.Int64),
        live=(pl.col("score").max() - pl.col("score").min() > TIED_RANGE),
        failures=pl.col("failed").sum().cast(pl.Int64),
        capped_failures=(pl.col("failed") & pl.col("capped")).sum().cast(pl.Int64),
        step=pl.col("step").first(),
        arm=pl.col("arm").first() if "arm" in names else pl.lit(""),
        seed=pl.col("seed").first() if "seed" in names else pl.lit(0),
        trained=(pl.col("purpose").first() == "train") if "purpose" in names else pl.lit(True),
    )
    steps = (
        groups.filter(pl.col("live").fill_null(False) & pl.col("trained").fill_null(True))
        .group_by("arm", "seed", "step")
        .agg(pl.col("failures", "capped_failures").sum())
    )
    found = groups.select(
        pl.col("known").sum(),
        pl.col("capped").sum(),
        failures=pl.col("failures").filter(pl.col("live")).sum(),
        capped_failures=pl.col("capped_failures").filter(pl.col("live")).sum(),
    )
    every = (pl.col("failures") > 0) & (pl.col("failures") == pl.col("capped_failures"))
    active = steps.drop_nulls("step").select(steps=pl.len().cast(pl.Int64), capped_steps=every.sum().cast(pl.Int64))
    pairs = _pairs(placed, names, options)
    tables = pl.collect_all([found, active, *([] if pairs is None else [pairs])], engine="streaming")
    return counted(pl.concat(tables, how="horizontal"), [])


GROUP_KEY = pl.col("group_id").hash().alias(GROUP)


def _failed(names: list[str]) -> pl.Expr:
    if "correct" in names:
        return ~pl.col("correct").cast(pl.Boolean)
    score = number(main_score(names))
    return score == score.min().over("group_id")


def _step(names: list[str]) -> pl.Expr:
    return pl.col("step").cast(pl.Int64) if "step" in names else pl.lit(None, pl.Int64)


def _pairs(placed: pl.LazyFrame, names: list[str], options: AuditOptions) -> pl.LazyFrame | None:
    if "pair" not in names:
        return None
    prefix = pl.col("prefix_length").min() if "prefix_length" in names else pl.lit(0)
    score = pl.col("score")
    pairs = (
        placed.drop_nulls("pair")
        .group_by(GROUP, "pair")
        .agg(
            divergent=score.max() - score.min() > TIED_RANGE,
            shared=prefix > 0,
            cut=pl.col("capped").filter(score == score.min()).all(),
            step=pl.col("step").first(),
        )
    )
    divergent, warm = pl.col("divergent").fill_null(False), pl.col("step").fill_null(0) <= options.warm_up
    if options.warm_up == 0:
        warm = pl.lit(False)
    shared, cut = pl.col("shared"), pl.col("cut")
    flags = {
        "pairs": divergent & shared & ~warm,
        "capped_pairs": divergent & shared & ~warm & cut,
        "warm_pairs": divergent & shared & warm,
        "capped_warm_pairs": divergent & shared & warm & cut,
        "unshared_pairs": divergent & ~shared,
    }
    return pairs.select(flag.cast(pl.Int64).sum().alias(name) for name, flag in flags.items())


def earlier_cap(rows: pl.LazyFrame, options: AuditOptions) -> EarlierCap | None:
    """The rollouts longer than an earlier cap, at that cap."""
    names = columns_of(rows)
    if options.cap is None or not {"length", "completion", "correct"} <= set(names):
        return None
    right = pl.col("correct").cast(pl.Boolean).fill_null(False)
    over = pl.col("length") > options.cap
    sums = rows.select(n=pl.col("length").count(), longer=over.sum(), right=(over & right).sum())
    kept = [name for name in ("group_id", "sample", "completion", "length", "token_ids") if name in names]
    longer = rows.filter(over & right).select(kept).sort([name for name in ("group_id", "sample") if name in names])
    n, num_longer, num_right = sums.collect(engine="streaming").row(0)
    by_ids = options.decode is not None and "token_ids" in names
    cases = [_case(row, options, by_ids) for row in longer.collect(engine="streaming").iter_rows(named=True)]
    classes = {kind: sum(case.kind == kind for case in cases) for kind in ("unboxed", "wrong", "right")}
    return EarlierCap(
        cap=options.cap,
        longer=share(num_longer, n, level=options.level),
        finally_right=share(num_right, num_longer, level=options.level),
        lost=share(classes["unboxed"] + classes["wrong"], num_right, level=options.level),
        num_unboxed=classes["unboxed"],
        num_wrong_or_unclosed=classes["wrong"],
        num_already_right=classes["right"],
        cut="decoded token ids" if by_ids else "the same share of the characters as of the tokens",
        cases=tuple(cases[:_MOST_CASES]),
    )


def _case(row: Mapping[str, Any], options: AuditOptions, by_ids: bool) -> EarlierCapCase:
    assert options.cap is not None
    text = row["completion"] or ""
    if by_ids and options.decode is not None:
        head = options.decode(row["token_ids"][: options.cap])
    else:
        head = text[: len(text) * options.cap // row["length"]]
    marker, at_cap, at_end = head.rfind(options.marker), boxed(head), boxed(text)
    same = at_cap is not None and at_cap == at_end
    return EarlierCapCase(
        group_id=row["group_id"],
        sample=row.get("sample"),
        length=row["length"],
        marker_at_cap=marker,
        marker_at_end=text.rfind(options.marker),
        answer_at_cap=at_cap,
        answer_at_end=at_end,
        kind="unboxed" if marker < 0 else "right" if same else "wrong",
    )


def read_caps(counts: Counts, has_stop: bool, earlier: EarlierCap | None, column: str, options: AuditOptions) -> Caps:
    """The record of merged counts."""
    found = {name: int(counts.total(name)) for name in counts.table.columns}

    def part(k: str, n: str) -> Interval | None:
        return share(found[k], found[n], level=options.level) if n in found else None

    return Caps(
        told_by="stop reasons" if has_stop else f"the stated cap of {options.cap}",
        column=column,
        rollouts=part("capped", "known"),
        failures=part("capped_failures", "failures"),
        steps=part("capped_steps", "steps"),
        pairs=part("capped_pairs", "pairs"),
        warm_up_pairs=part("capped_warm_pairs", "warm_pairs"),
        num_unshared_pairs=found.get("unshared_pairs", 0),
        earlier=earlier,
    )

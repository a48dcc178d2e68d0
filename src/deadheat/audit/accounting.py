"""Audit 13, accounting: what was generated and what it stood for, per step and arm, and rows that do not add up.

    unshared    every rollout alone: Σ prompt + length
    executed    a group's prompt once, a pair's shared prefix once: prompt + Σ_pairs prefix + Σ (length − prefix)
    backward    unshared tokens of live groups (prompt and completion), and of all groups
    padding     rows × widest − tokens, over the rollouts of one step
    proxies     FLOP = 2·P per token forward, 6·P per token backward; P the parameters (`--num-parameters`)

Conservation: 0 ≤ prefix ≤ length; as many token ids and log-probs as tokens; the branches of a pair agree on their
prefix. What breaks it is listed. An absorbing leaf (prefix = length) is generated once and counted twice in `unshared`,
which is the point of the two columns. Where a run folder was read, its step ledger is held against the rows too
(`audit/conservation.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from deadheat.audit.conservation import LedgerCheck, check_ledgers
from deadheat.audit.counts import Counts, counted
from deadheat.audit.records import AuditOptions, AuditRecord
from deadheat.audit.table import GROUP, columns_of, is_live, main_score, number, score_columns
from deadheat.reports.formats import format_count, format_quantity

_MOST_VIOLATIONS = 50
_PLACES = ("purpose", "arm", "step")
_SUMS = (
    "rollouts", "groups", "prefill_executed", "prefill_unshared", "generated_executed", "generated_unshared",
    "backward_live", "backward_all", "padded",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TokenAccount:
    """The tokens of one step and arm, or of everything."""

    where: str  # purpose, arm and step; "all"
    rollouts: int
    groups: int
    prefill_executed: int  # prompt tokens, once per group
    prefill_unshared: int  # once per rollout
    generated_executed: int  # shared prefixes once
    generated_unshared: int
    backward_live: int  # prompt and completion tokens of live groups
    backward_all: int  # of all groups
    padded: int  # columns that only make the rows of a step equally long
    flop_executed: float | None  # proxy; None: the number of parameters is not known
    flop_unshared: float | None


@dataclass(frozen=True, kw_only=True)
class Violation:
    """Rows that do not add up."""

    rule: str  # what should hold
    num_rows: int  # rows, or pairs, that break it
    examples: tuple[str, ...]  # group and sample of the first few


@dataclass(frozen=True, kw_only=True)
class Accounting(AuditRecord):
    """The ledger of tokens."""

    total: TokenAccount
    steps: tuple[TokenAccount, ...]  # by purpose, arm and step
    violations: tuple[Violation, ...]
    num_violations: int
    ledger: LedgerCheck | None = None  # of a run folder; None: what was read has no step ledger

    @property
    def is_broken(self) -> bool:
        """Whether a step ledger contradicts itself or its rollouts."""
        return self.ledger is not None and self.ledger.num_breaches > 0

    @property
    def sentence(self) -> str:
        """Tokens generated and prefilled, what sharing saved, and whether all adds up."""
        t = self.total
        executed, unshared = t.prefill_executed + t.generated_executed, t.prefill_unshared + t.generated_unshared
        found = (
            f"{format_count(t.generated_executed)} tokens generated and {format_count(t.prefill_executed)} prefilled, "
            f"{executed / unshared:.1%} of the unshared equivalent; "
            if unshared
            else "no token; "
        )
        if t.flop_executed is not None:
            found += f"{format_quantity(t.flop_executed, 'FLOP')} (proxy); "
        found += f"{format_count(self.num_violations)} rows do not add up" if self.num_violations else "all rows add up"
        return found if self.ledger is None else f"{found}; {self.ledger.sentence}"


def accounting(rows: pl.LazyFrame, options: AuditOptions) -> Accounting:
    """Tokens of every step and arm, and what does not add up."""
    return read_accounting(count_accounting(rows), violations(rows), options)


def with_ledger(found: Accounting, place: Path) -> Accounting:
    """The record with what the step ledgers below `place` say, if there are any."""
    return replace(found, ledger=check_ledgers(place))


def count_accounting(rows: pl.LazyFrame) -> Counts:
    """Token sums by purpose, arm and step."""
    names = columns_of(rows)
    keys = [name for name in _PLACES if name in names]
    prompt = pl.col("prompt_length").fill_null(0) if "prompt_length" in names else pl.lit(0)
    prefix = pl.col("prefix_length").fill_null(0) if "prefix_length" in names else pl.lit(0)
    pair = pl.col("pair").cast(pl.String) if "pair" in names else pl.lit(None, pl.String)
    scored = score_columns(names)
    keyed = rows.select(
        *keys,
        pl.col("group_id").hash().alias(GROUP),
        prompt=prompt.cast(pl.Int64),
        length=pl.col("length").cast(pl.Int64).fill_null(0),
        prefix=prefix.cast(pl.Int64),
        pair=pair,
        score=number(main_score(names)) if scored else pl.lit(None, pl.Float64),
    )
    first_keys = [pl.col(key).first() for key in keys]
    # One row per pair: its prefix stands once. A rollout without a pair is a group member of its own.
    shared = (
        keyed.with_columns(lone=pl.col("pair").is_null())
        .group_by(GROUP, "pair")
        .agg(
            *first_keys,
            pl.col("prompt").max(),
            rollouts=pl.len().cast(pl.Int64),
            tokens=pl.col("length").sum(),
            longest=pl.col("length").max(),
            total=(pl.col("prompt") + pl.col("length")).sum(),
            own=pl.when(pl.col("lone")).then(pl.col("length")).otherwise(pl.col("length") - pl.col("prefix")).sum(),
            head=pl.when(pl.col("lone").first()).then(0).otherwise(pl.col("prefix").min()),
            low=pl.col("score").min(),
            high=pl.col("score").max(),
            scored=pl.col("score").count(),
            prompts=pl.col("prompt").sum(),
        )
    )
    score = main_score(names)
    groups = shared.group_by(GROUP).agg(
        *first_keys,
        pl.col("prompt").max(),
        pl.col("rollouts", "tokens", "total", "own", "head", "prompts").sum(),
        pl.col("longest").max(),
        pl.col("low").min().alias(f"{score}.low"),
        pl.col("high").max().alias(f"{score}.high"),
        pl.col("scored").sum().alias(f"{score}.scored"),
    )
    live = is_live(score).fill_null(False)
    sums = groups.group_by(keys).agg(
        pl.col("rollouts").sum(),
        groups=pl.len().cast(pl.Int64),
        prefill_executed=pl.col("prompt").sum(),
        prefill_unshared=pl.col("prompts").sum(),
        generated_executed=(pl.col("own") + pl.col("head")).sum(),
        generated_unshared=pl.col("tokens").sum(),
        backward_live=pl.col("total").filter(live).sum(),
        backward_all=pl.col("total").sum(),
        padded=pl.col("rollouts").sum() * pl.col("longest").max() - pl.col("tokens").sum(),
    )
    return counted(sums.collect(engine="streaming"), keys)


def violations(rows: pl.LazyFrame) -> tuple[Violation, ...]:
    """Rules that some rows break."""
    names = set(columns_of(rows))
    broken: list[tuple[str, pl.Expr]] = [("0 ≤ length", pl.col("length") < 0)]
    if "prefix_length" in names:
        outside = ~pl.col("prefix_length").is_between(0, pl.col("length"))
        broken.append(("0 ≤ prefix length ≤ length", outside))
    for column, what in (("token_ids", "token ids"), ("logprobs", "log-probs"), ("plain_logprobs", "plain log-probs")):
        if column in names:
            broken.append((f"as many {what} as tokens", pl.col(column).list.len().cast(pl.Int64) != pl.col("length")))
    place = pl.concat_str("group_id", *(["sample"] if "sample" in names else []), separator=" #")
    found = [_violation(rows.filter(rule.fill_null(False)).select(place.alias("place")), name) for name, rule in broken]
    if {"pair", "prefix_length", "token_ids"} <= names:
        head = pl.col("token_ids").list.head(pl.col("prefix_length")).hash()
        pairs = rows.drop_nulls("pair").select("group_id", pl.col("pair").cast(pl.String), head=head)
        apart = pairs.group_by("group_id", "pair").agg(pl.col("head").n_unique()).filter(pl.col("head") > 1)
        rule = "branches of a pair agree on their prefix"
        found.append(_violation(apart.select(place=pl.concat_str("group_id", "pair", separator=" pair ")), rule))
    return tuple(violation for violation in found if violation.num_rows)


def _violation(places: pl.LazyFrame, rule: str) -> Violation:
    found = places.sort("place").collect(engine="streaming")["place"]
    return Violation(rule=rule, num_rows=found.len(), examples=tuple(found.head(3).to_list()))


def read_accounting(counts: Counts, broken: Sequence[Violation], options: AuditOptions) -> Accounting:
    """The record of merged counts."""
    keys = counts.keys
    steps = [
        _account(" ".join(f"{'step ' if key == 'step' else ''}{row[key]}" for key in keys), row, options)
        for row in counts.table.iter_rows(named=True)
    ]
    return Accounting(
        total=_account("all", {name: counts.total(name) for name in _SUMS}, options),
        steps=tuple(steps) if keys else (),
        violations=tuple(broken[:_MOST_VIOLATIONS]),
        num_violations=sum(violation.num_rows for violation in broken),
    )


def _account(where: str, row: "dict[str, int]", options: AuditOptions) -> TokenAccount:
    executed = row["prefill_executed"] + row["generated_executed"]
    unshared = row["prefill_unshared"] + row["generated_unshared"]
    p = options.num_parameters
    return TokenAccount(
        where=where,
        flop_executed=None if p is None else float(2 * p * executed + 6 * p * row["backward_live"]),
        flop_unshared=None if p is None else float(2 * p * unshared + 6 * p * row["backward_all"]),
        **{name: row[name] for name in _SUMS},
    )

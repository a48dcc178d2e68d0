"""Audit 10, re-score: the same stored rollouts under another scorer. Nothing is generated.

    ties         share of groups that agree under the first score, and under the other
    resolution   AUROC of the other score for the first grade inside each mixed group, mean over groups, ties ½
    AUROC        the same over all rollouts, groups forgotten: it also rewards knowing which problems are easy

An other scorer breaks ties by construction where it is real-valued; only its resolution says whether the broken ties
point the right way.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from deadheat.audit.records import AuditOptions, AuditRecord, Missing, share
from deadheat.audit.table import SIZE, columns_of, group_table, is_tied, number, score_columns, scored
from deadheat.reports.formats import format_share
from deadheat.stats.groups import Resolution, auroc, within_group_resolution
from deadheat.stats.intervals import Interval


@dataclass(frozen=True, kw_only=True)
class RescoredReading:
    """One other score of the same rollouts."""

    scorer: str  # its column
    ties_before: Interval | None  # groups that agree under the grade
    ties_after: Interval | None  # of the same groups, those that agree under this score
    broken: Interval | None  # of the groups that agreed, those that no longer do
    within_floor_after: Interval | None  # groups whose scores lie within the noise floor; None: no floor given
    resolution: float | None  # mean over mixed groups; None: no group holds both right and wrong
    resolution_low: float | None
    resolution_high: float | None
    resolution_pairs: float | None  # over right–wrong pairs
    num_mixed: int  # groups with right and wrong
    num_pairs: int
    auroc: float | None  # over all rollouts; None: all of one grade
    num_rollouts: int
    usd: float | None  # price of scoring them; None: no price given
    usd_per_broken_tie: float | None


@dataclass(frozen=True, kw_only=True)
class Rescored(AuditRecord):
    """What other scorers would have made of the same rollouts."""

    grade: str  # the column that was compared with
    readings: tuple[RescoredReading, ...]

    @property
    def sentence(self) -> str:
        """Ties before and after, and resolution."""
        parts = []
        for r in self.readings:
            if r.ties_before is None or r.ties_after is None:
                continue
            resolution = "" if r.resolution is None else _resolution_words(r)
            parts.append(
                f"{r.scorer}: ties {format_share(r.ties_before.estimate)} → {format_share(r.ties_after.estimate)} of "
                f"{r.ties_before.n:,} groups{resolution}"
            )
        return "; ".join(parts) or "no other score to compare"


def _resolution_words(r: RescoredReading) -> str:
    return f", resolution {r.resolution:.2f} on {r.num_mixed} mixed groups ({r.resolution_pairs:.2f} on {r.num_pairs} pairs)"


def rescored(rows: pl.LazyFrame, options: AuditOptions) -> Rescored | Missing:
    """Every other score column, or `options.scorer` alone."""
    names = columns_of(rows)
    if options.scorer is not None and options.scorer not in names:
        return Missing(audit="rescored", lacks=(options.scorer,))
    grade = "correct" if "correct" in names else score_columns(names)[0]
    others = [options.scorer] if options.scorer else [name for name in score_columns(names) if name != grade]
    others = [name for name in others if not _same_score(rows, name, grade)]
    if not others:
        return Missing(audit="rescored", lacks=("part:NAME|--scorer",), why=f"`{grade}` is the only score there is")
    return Rescored(grade=grade, readings=tuple(_reading(rows, name, grade, options) for name in others))


def _same_score(rows: pl.LazyFrame, name: str, grade: str) -> bool:
    differs = number(name) != pl.col(grade).cast(pl.Float64)  # null where either is missing
    return not rows.select(differs.any()).collect(engine="streaming").item()


def _reading(rows: pl.LazyFrame, name: str, grade: str, options: AuditOptions) -> RescoredReading:
    groups = group_table(rows, scores=[name, grade], places=[])
    both = groups.filter((pl.col(SIZE) > 1) & (pl.col(scored(name)) > 1) & (pl.col(scored(grade)) > 1))
    before, after = is_tied(grade), is_tied(name)
    in_floor = pl.lit(False)
    if options.noise_floor is not None:
        in_floor = (pl.col(f"{name}.high") - pl.col(f"{name}.low")) <= options.noise_floor
    flags = {"before": before, "after": after, "broken": before & ~after, "floor": in_floor}
    sums = both.select(pl.len().alias("n"), *(f.cast(pl.Int64).sum().alias(key) for key, f in flags.items()))
    found = sums.collect(engine="streaming").row(0, named=True)
    table = rows.select("group_id", s=number(name), g=pl.col(grade).cast(pl.Float64)).collect(engine="streaming")
    resolution, whole = _resolution(table, options.level)
    usd = None if options.usd_per_rollout is None else options.usd_per_rollout * table["s"].count()
    level = options.level
    return RescoredReading(
        scorer=name,
        ties_before=share(found["before"], found["n"], level=level),
        ties_after=share(found["after"], found["n"], level=level),
        broken=share(found["broken"], found["before"], level=level),
        within_floor_after=None if options.noise_floor is None else share(found["floor"], found["n"], level=level),
        resolution=None if resolution is None else resolution.over_groups.estimate,
        resolution_low=None if resolution is None else resolution.over_groups.low,
        resolution_high=None if resolution is None else resolution.over_groups.high,
        resolution_pairs=None if resolution is None else resolution.over_pairs,
        num_mixed=0 if resolution is None else resolution.n,
        num_pairs=0 if resolution is None else resolution.num_pairs,
        auroc=whole,
        num_rollouts=table["s"].count(),
        usd=usd,
        usd_per_broken_tie=usd / found["broken"] if usd is not None and found["broken"] else None,
    )


def _resolution(table: pl.DataFrame, level: float) -> tuple[Resolution | None, float | None]:
    """Inside mixed groups, and over all rollouts; grades are right where they equal 1."""
    kept = table.drop_nulls().sort("group_id", "s", "g")
    right = (kept["g"] == 1.0).to_numpy()
    if not right.any() or right.all():
        return None, None
    scores = kept["s"].to_numpy().astype(np.float64)
    whole = auroc(scores, right)
    mixed = kept.with_columns(right=right).filter(
        pl.col("right").any().over("group_id") & (~pl.col("right")).any().over("group_id")
    )
    if not mixed.height:
        return None, whole
    within = within_group_resolution(
        mixed["s"].to_numpy(), mixed["right"].to_numpy().astype(float), mixed["group_id"].to_list(), level=level
    )
    return within, whole

"""From results to a spending plan: the table's variance split, and its votes' noise where a vote rule is asked for."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from deadheat.stats.concentration import MeasuredVotes, measure_votes
from deadheat.stats.judged import judged_table
from deadheat.stats.spend import CatchTarget, Prices, SpendPlan, spend
from deadheat.stats.variance import Allocation, Items, split_from_se, variance_split
from deadheat.stats.votes import Rule


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the plan is ranked by."""

    gap: float | None = None  # rank by how often a rule calls it, points of shares; None: by the smallest gap called
    rule: Rule = Rule.SEEDS_AND_ITEMS
    items: Items = Items.SHARED
    alpha: float = 0.05
    power: float = 0.80  # of the smallest gap


@dataclass(frozen=True, kw_only=True)
class SpendReport:
    """A plan with what it was measured from."""

    plan: SpendPlan
    measured: MeasuredVotes | None  # the votes, where a vote rule ranks the steps
    is_share: bool  # values are shares: ×100 for points


def report_from_results(
    budget: float,
    prices: Prices,
    a: pl.DataFrame,
    b: pl.DataFrame | None,
    wanted: Wanted = Wanted(),
    *,
    judge: str | None = None,
    key: int,
) -> SpendReport:
    """The plan from A − B (or from one table of differences); votes are the signs of the cells' means."""
    values = judged_table(a, b, judge=judge).values_SNJK
    is_share = bool((np.abs(values[~np.isnan(values)]) <= 1).all())
    split = variance_split(values, items=wanted.items, grades=is_share)
    measured, target = None, None
    gap = None if wanted.gap is None else wanted.gap / 100 if is_share else wanted.gap
    if gap is not None and wanted.rule is Rule.SEEDS_AND_ITEMS:
        target = CatchTarget(gap=gap)
    elif gap is not None:
        measured = measure_votes(np.sign(values.mean(axis=(2, 3))))
        target = CatchTarget(
            gap=gap,
            rule=wanted.rule,
            discordance_frac=measured.discordance_frac,
            tau_frac=measured.tau_frac,
        )
    plan = spend(budget, prices, split, target, key=key, alpha=wanted.alpha, power=wanted.power)
    return SpendReport(plan=plan, measured=measured, is_share=is_share)


def report_from_se(
    budget: float,
    prices: Prices,
    se: float,
    ratio: float,
    allocation: Allocation,
    wanted: Wanted = Wanted(),
    *,
    key: int,
) -> SpendReport:
    """The plan behind a stated standard error and the ratio of its seed term to its pair term."""
    target = None if wanted.gap is None else CatchTarget(gap=wanted.gap)
    split = split_from_se(se, ratio, allocation)
    plan = spend(budget, prices, split, target, key=key, alpha=wanted.alpha, power=wanted.power)
    return SpendReport(plan=plan, measured=None, is_share=False)

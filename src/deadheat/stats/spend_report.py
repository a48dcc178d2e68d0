"""From results to a spending plan: the table's variance split, and its votes' noise where a gap is asked for."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from deadheat.stats.concentration import MeasuredVotes, measure_votes
from deadheat.stats.judged import judged_table
from deadheat.stats.spend import CatchTarget, Prices, SpendPlan, spend, spend_by_catch_rate
from deadheat.stats.variance import Allocation, split_from_se, variance_split
from deadheat.stats.votes import Rule


@dataclass(frozen=True, kw_only=True)
class CatchAsked:
    """Rank by how often a rule calls this gap."""

    gap_frac: float  # (wins − losses)/all items
    rule: Rule = Rule.TWO_PART


@dataclass(frozen=True, kw_only=True)
class SpendReport:
    """A plan with what it was measured from."""

    plan: SpendPlan
    measured: MeasuredVotes | None  # the votes, where steps are ranked by catch rate
    is_share: bool  # values are shares: ×100 for points


def report_from_results(
    budget: float,
    prices: Prices,
    a: pl.DataFrame,
    b: pl.DataFrame | None,
    *,
    judge: str | None = None,
    catch: CatchAsked | None = None,
    key: int,
) -> SpendReport:
    """The plan from A − B (or from one table of differences); votes are the signs of the cells' means."""
    values = judged_table(a, b, judge=judge).values_SNJK
    split = variance_split(values)
    is_share = bool((np.abs(values[~np.isnan(values)]) <= 1).all())
    if catch is None:
        return SpendReport(plan=spend(budget, prices, split), measured=None, is_share=is_share)
    measured = measure_votes(np.sign(values.mean(axis=(2, 3))))
    target = CatchTarget(
        gap_frac=catch.gap_frac,
        discordance_frac=measured.discordance_frac,
        tau_frac=measured.tau_frac,
        rule=catch.rule,
    )
    plan = spend_by_catch_rate(budget, prices, split, target, key=key)
    return SpendReport(plan=plan, measured=measured, is_share=is_share)


def report_from_se(budget: float, prices: Prices, se: float, ratio: float, allocation: Allocation) -> SpendReport:
    """The plan behind a stated standard error and the ratio of its seed term to its pair term."""
    return SpendReport(plan=spend(budget, prices, split_from_se(se, ratio, allocation)), measured=None, is_share=False)

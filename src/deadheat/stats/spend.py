"""What the next budget should buy: seeds, questions or judges.

Every affordable step is tried: so many more seeds, so many more judges, the rest on whole questions. A seed's price
covers its own N pairs. Steps are ranked by the smallest gap that the rule over seeds and items would then call four
times in five, or by how often a rule calls a stated gap. No rule such as "seeds up to three" is built in; what pays is
an outcome of the measured parts: where items differ, more seeds do not help, and the reverse.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from deadheat.errors import StatsError
from deadheat.stats.concentration import MeasuredVotes, measure_votes
from deadheat.stats.judged import judged_table
from deadheat.stats.power import CatchRate, SmallestGap, catch_rate, smallest_gap
from deadheat.stats.variance import (
    Allocation,
    Items,
    VarianceSplit,
    components_at,
    split_from_se,
    variance_at,
    variance_split,
)
from deadheat.stats.vote_models import Components, Design, SeedEffects
from deadheat.stats.votes import Rule

_MOST_STEPS = 200  # that are simulated; of more, those of the smallest standard error


@dataclass(frozen=True, kw_only=True)
class Prices:
    """What one more costs, in one currency."""

    seed: float  # a seed with its own pairs on the present questions
    pair: float  # one seed–item pair: generated, and scored by the present judges
    judge: float  # one more judge over all present pairs


@dataclass(frozen=True, kw_only=True)
class CatchTarget:
    """The gap that should be called."""

    gap: float  # in the unit of the scores; (wins − losses)/all items under a vote rule
    rule: Rule = Rule.SEEDS_AND_ITEMS
    discordance_frac: float = 0.0  # of the votes, for a vote rule
    tau_frac: float = 0.0  # spread of the seeds' own gaps, for a vote rule


@dataclass(frozen=True, kw_only=True)
class Step:
    """One way to spend the budget."""

    add_seeds: int
    add_questions: int  # whole questions, each costing one pair per seed
    add_judges: int
    cost: float
    allocation: Allocation  # what one would then have
    se: float  # standard error of the mean afterwards
    smallest: SmallestGap | None = None  # smallest gap then called at the power; None: ranked by a stated gap
    catch: CatchRate | None = None  # how often the rule then calls the stated gap; None: none was stated


@dataclass(frozen=True, kw_only=True)
class SpendPlan:
    """Ranked steps, best first; spending nothing is among them."""

    steps: tuple[Step, ...]
    now: Step  # nothing bought
    budget: float
    ranked_by: str  # "smallest gap" or "power"
    split: VarianceSplit
    n: int  # items now
    left_out: int  # items without a whole row in the split
    level: float  # 1 − alpha of the rule
    power: float  # of the smallest gaps
    method: str = "every affordable mix of seeds and judges, the rest on whole questions"


def spend(
    budget: float,
    prices: Prices,
    split: VarianceSplit,
    target: CatchTarget | None = None,
    *,
    key: int,
    alpha: float = 0.05,
    power: float = 0.80,
    reruns: int = 2000,
) -> SpendPlan:
    """Steps ranked by the smallest gap they leave, or by how often they call the target's; cheapest first among equals.

    Example:
        >>> from deadheat.stats.variance import split_from_se
        >>> split = split_from_se(7.25, 12.4, Allocation(num_seeds=3, num_pairs=975))
        >>> best = spend(5.0, Prices(seed=3.5, pair=0.005, judge=0.3), split, key=1).steps[0]
        >>> best.add_seeds, best.add_questions, round(best.se, 3)
        (1, 75, 6.235)
    """
    steps = sorted(_steps(budget, prices, split), key=lambda step: (step.se, step.cost))
    now = next(step for step in steps if step.cost == 0)
    tried = list(dict.fromkeys([*steps[:_MOST_STEPS], now]))
    rated = (_rated(step, split, target, key, alpha, power, reruns) for step in tried)
    ranked = tuple(sorted((step for step in rated if step is not None), key=_rank))
    return SpendPlan(
        steps=ranked,
        now=next(step for step in ranked if step.cost == 0),
        budget=budget,
        ranked_by="smallest gap" if target is None else "power",
        split=split,
        n=split.n,
        left_out=split.left_out,
        level=1 - alpha,
        power=power,
    )


def _rank(step: Step) -> tuple[float, float, float]:
    if step.catch is not None:
        return -step.catch.rate_frac, step.se, step.cost
    gap = step.smallest.gap if step.smallest else None
    return math.inf if gap is None else gap, step.se, step.cost


def _rated(
    step: Step, split: VarianceSplit, target: CatchTarget | None, key: int, alpha: float, power: float, reruns: int
) -> Step | None:
    """The step with what it could call; None for more judges under a vote rule, which knows of none."""
    have = step.allocation
    rule = Rule.SEEDS_AND_ITEMS if target is None else target.rule
    design = Design(num_items=max(1, int(have.num_items)), num_seeds=have.num_seeds, rule=rule, alpha=alpha)
    parts = components_at(split, have)
    if target is None:
        return replace(step, smallest=smallest_gap(parts, design, key=key, target_frac=power, reruns=reruns))
    model: Components | SeedEffects = parts
    if rule is not Rule.SEEDS_AND_ITEMS:
        if step.add_judges:
            return None
        model = SeedEffects(discordance_frac=target.discordance_frac, tau_frac=target.tau_frac)
    return replace(step, catch=catch_rate(target.gap, model, design, key=key, reruns=5 * reruns))


def scale_cost(cost: float, params_from: float, params_to: float) -> float:
    """Cost in proportion to parameters: tokens and steps equal, C ∝ N·D (Kaplan et al. 2020).

    Example:
        >>> round(scale_cost(20, 1.5e9, 7e9), 1)
        93.3
    """
    if not (cost >= 0 and params_from > 0 and params_to > 0):
        raise StatsError(f"cost {cost}, {params_from} to {params_to} parameters; wanted a cost ≥ 0 and positive sizes")
    return cost * params_to / params_from


def _steps(budget: float, prices: Prices, split: VarianceSplit) -> Iterator[Step]:
    """Nothing, and every affordable mix with the rest on questions."""
    if not budget >= 0 or not min(prices.seed, prices.pair, prices.judge) > 0:
        raise StatsError(f"budget is {budget} at {prices}; wanted a budget of at least 0 and positive prices")
    yield _step(0, 0, 0, 0.0, split)
    for add_seeds in range(_affordable(budget, prices.seed) + 1):
        rest = budget - add_seeds * prices.seed
        for add_judges in range(min(_affordable(rest, prices.judge), 3) + 1):
            left = rest - add_judges * prices.judge
            per_question = prices.pair * (split.allocation.num_seeds + add_seeds)
            questions = _affordable(left, per_question)
            cost = budget - left + questions * per_question
            if cost > 0:
                yield _step(add_seeds, questions, add_judges, cost, split)


def _affordable(budget: float, price: float) -> int:
    return max(0, math.floor(budget / price + 1e-9))


def _step(add_seeds: int, add_questions: int, add_judges: int, cost: float, split: VarianceSplit) -> Step:
    now = split.allocation
    num_seeds = now.num_seeds + add_seeds
    allocation = Allocation(
        num_seeds=num_seeds,
        num_pairs=now.num_pairs * num_seeds / now.num_seeds + add_questions * num_seeds,
        num_judges=now.num_judges + add_judges,
        num_repeats=now.num_repeats,
    )
    return Step(
        add_seeds=add_seeds,
        add_questions=add_questions,
        add_judges=add_judges,
        cost=cost,
        allocation=allocation,
        se=math.sqrt(variance_at(split, allocation)),
    )


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


def plan_from_results(
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


def plan_from_se(
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

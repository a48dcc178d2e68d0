"""What the next budget should buy: seeds, questions or judges.

Every affordable step is tried: so many more seeds, so many more judges, the rest on whole questions. A seed's price
covers its own N pairs. Steps are ranked by the margin they leave, or by how often the rule would call a given gap
under the measured discordance and spread of seeds. No rule such as "seeds up to three" is built in; where it holds it
is an outcome of d and τ̂.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from deadheat.errors import StatsError
from deadheat.stats.floors import floor_multiplier
from deadheat.stats.power import CatchRate, catch_rate
from deadheat.stats.variance import Allocation, VarianceSplit, variance_at
from deadheat.stats.vote_models import Design, SeedEffects
from deadheat.stats.votes import Rule


@dataclass(frozen=True, kw_only=True)
class Prices:
    """What one more costs, in one currency."""

    seed: float  # a seed with its own pairs on the present questions
    pair: float  # one seed–item pair: generated, and scored by the present judges
    judge: float  # one more judge over all present pairs


@dataclass(frozen=True, kw_only=True)
class CatchTarget:
    """The gap a verdict should be able to call, and the votes' measured noise."""

    gap_frac: float  # (wins − losses)/all items
    discordance_frac: float  # measured share of decided votes
    tau_frac: float  # measured spread of the seeds' own gaps
    rule: Rule = Rule.TWO_PART
    alpha: float = 0.05  # two-sided level


@dataclass(frozen=True, kw_only=True)
class Step:
    """One way to spend the budget."""

    add_seeds: int
    add_questions: int  # whole questions, each costing one pair per seed
    add_judges: int
    cost: float
    allocation: Allocation  # what one would then have
    se: float  # standard error of the mean afterwards
    floor: float  # z·se: smallest true difference shown reliably
    catch: CatchRate | None = None  # chance that the rule calls the target gap; None: not asked


@dataclass(frozen=True, kw_only=True)
class SpendPlan:
    """Ranked steps, best first; spending nothing is among them."""

    steps: tuple[Step, ...]
    now: Step  # nothing bought
    budget: float
    ranked_by: str  # "margin" or "catch rate"
    split: VarianceSplit
    n: int  # items now
    left_out: int  # items without a whole row in the split
    level: float  # 1 − alpha of the floor and the rule
    method: str = "every affordable mix of seeds and judges, the rest on whole questions"


def spend(budget: float, prices: Prices, split: VarianceSplit) -> SpendPlan:
    """Steps ranked by the standard error they leave, cheapest first among equals.

    Example:
        >>> from deadheat.stats.variance import split_from_se
        >>> split = split_from_se(7.25, 12.4, Allocation(num_seeds=3, num_pairs=975))
        >>> best = spend(5.0, Prices(seed=3.5, pair=0.005, judge=0.3), split).steps[0]
        >>> best.add_seeds, best.add_questions, round(best.se, 3)
        (1, 75, 6.235)
    """
    steps = sorted(_steps(budget, prices, split), key=lambda step: (step.se, step.cost))
    return _plan(steps, "margin", budget, split, 0.05)


def spend_by_catch_rate(
    budget: float, prices: Prices, split: VarianceSplit, target: CatchTarget, *, key: int, reruns: int = 40_000
) -> SpendPlan:
    """Steps ranked by how often the rule calls the target gap; judges beyond the present ones do not enter it."""
    model = SeedEffects(discordance_frac=target.discordance_frac, tau_frac=target.tau_frac)
    steps = []
    for step in _steps(budget, prices, split):
        if step.add_judges:
            continue
        num_items = max(1, int(step.allocation.num_pairs // step.allocation.num_seeds))
        design = Design(num_items=num_items, num_seeds=step.allocation.num_seeds, rule=target.rule, alpha=target.alpha)
        steps.append(replace(step, catch=catch_rate(target.gap_frac, model, design, key=key, reruns=reruns)))
    steps.sort(key=lambda step: (-(step.catch.rate_frac if step.catch else 0.0), step.cost))
    return _plan(steps, "catch rate", budget, split, target.alpha)


def scale_cost(cost: float, params_from: float, params_to: float) -> float:
    """Cost in proportion to parameters: tokens and steps equal, C ∝ N·D (Kaplan et al. 2020).

    Example:
        >>> round(scale_cost(20, 1.5e9, 7e9), 1)
        93.3
    """
    if not (cost >= 0 and params_from > 0 and params_to > 0):
        raise StatsError(f"cost {cost}, {params_from} to {params_to} parameters; wanted a cost ≥ 0 and positive sizes")
    return cost * params_to / params_from


def _plan(steps: list[Step], ranked_by: str, budget: float, split: VarianceSplit, alpha: float) -> SpendPlan:
    now = next(step for step in steps if step.cost == 0)
    return SpendPlan(
        steps=tuple(steps),
        now=now,
        budget=budget,
        ranked_by=ranked_by,
        split=split,
        n=split.n,
        left_out=split.left_out,
        level=1 - alpha,
    )


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
    se = math.sqrt(variance_at(split, allocation))
    return Step(
        add_seeds=add_seeds,
        add_questions=add_questions,
        add_judges=add_judges,
        cost=cost,
        allocation=allocation,
        se=se,
        floor=floor_multiplier() * se,
    )

"""Adaptive groups: rounds of G draws per problem into one pool, until the pool is mixed; G of the pool are learned from.

After Xiong et al. 2025 (Reinforce-Ada), with each choice stated:

    round    samples r·G … (r+1)·G − 1 (no key holds r), so that the first round is what `flat` draws
    stop     the pool is mixed, or `max_rounds` rounds are drawn (4: up to 4·G draws)
    first_G  the first G draws; where they agree, the first G − 1 and the first draw that differs from them
    balanced the first G//2 draws above the pool's mean reward and the first others; where one side has too few, more of
             the other
    give up  a pool that never mixes keeps its first G draws, a tied group, and its place in the batch: no other problem
             takes it. The share of such problems is the give-up share

Scored draws are kept before unscored ones. Which are kept depends on rewards and order alone, so that a kept right
draw is an exact draw from the policy given that it is right, and so is a wrong one. What is biased is how many of each
there are. With p = P(right), q = 1 − p, R rounds and k right of the G kept,

    first_G    E[k/G] − p = (q^G·(1 − q^((R−1)G)) − p^G·(1 − p^((R−1)G))) / G

at most 1/G in size, zero at p = 1/2, upwards on hard problems, downwards on easy ones. `balanced` goes the same way and
further: the term of first_G times E[min(m, G//2) | m ≥ 1], m ~ Binomial(G, p), on the hard side and its mirror image on
the easy one. Both weigh hard and easy problems up: `bias.py` gives the exact distribution of k.
"""

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
from pydantic import Field

from deadheat.credit import is_tied
from deadheat.rollouts.batch import DrawingOptions, DrawnBatch, DrawPlan, Keep, Pool, Rewards
from deadheat.types import GenerationCost, Group, Policy


class AdaptiveOptions(DrawingOptions):
    """Rounds of G into a pool until it is mixed; G of the pool are learned from."""

    name: Literal["adaptive"] = "adaptive"
    max_rounds: int = Field(default=4, ge=1)  # rounds of group_size draws of one problem, at most
    keep: Keep = Keep.FIRST_G  # which of more than group_size draws are learned from


def draw_adaptive(policy: Policy, plan: DrawPlan) -> DrawnBatch:
    """One group for each of the step's problems."""
    options = plan.options
    assert isinstance(options, AdaptiveOptions)
    pools: dict[str, Group] = {}
    pending = list(plan.problems)
    num_rounds, cost = 0, GenerationCost()
    for round_ in range(options.max_rounds):
        if not pending:
            break
        drawn = plan.draw(policy, pending, round_=round_)
        for group in drawn.groups:
            problem_id = group.problem.problem_id
            pools[problem_id] = pools[problem_id].with_more(group) if problem_id in pools else group
        num_rounds, cost = num_rounds + 1, cost + drawn.cost
        pending = [problem for problem in pending if not plan.is_mixed(pools[problem.problem_id])]
    kept, not_kept = [], []
    for problem in plan.problems:
        drawn_of_it = pools[problem.problem_id]
        chosen = choose_adaptive(plan.pool(drawn_of_it), options)
        kept.append(drawn_of_it.pick(chosen))
        left = [index for index in range(len(drawn_of_it.rollouts)) if index not in chosen]
        not_kept += [drawn_of_it.pick(left)] if left else []
    return DrawnBatch(kept=tuple(kept), not_kept=tuple(not_kept), plan=plan, num_rounds=num_rounds, cost=cost)


def choose_adaptive(pool: Pool, options: DrawingOptions) -> tuple[int, ...]:
    """Which of a problem's draws are learned from, ascending.

    Example:
        >>> rewards = np.array([0.0, 0.0, 0.0, 1.0])
        >>> choose_adaptive(Pool(rewards_N=rewards, group_size=2, origins_N=(None,) * 4), AdaptiveOptions())
        (0, 3)
    """
    assert isinstance(options, AdaptiveOptions)
    if len(pool.rewards_N) <= pool.group_size or is_tied(pool.rewards_N):
        return tuple(range(pool.group_size))
    return tuple(sorted(_CHOICES[options.keep](pool.rewards_N, pool.group_size)))


def _first(rewards_N: Rewards, group_size: int) -> list[int]:
    """The first G, or the first G − 1 scored ones and the draw that broke their tie."""
    if not is_tied(rewards_N[:group_size]):
        return list(range(group_size))
    breaker = next(n for n in range(group_size, len(rewards_N)) if not is_tied(rewards_N[: n + 1]))
    return [*_scored_first(rewards_N, range(breaker))[: group_size - 1], breaker]


def _balanced(rewards_N: Rewards, group_size: int) -> list[int]:
    """As many above the pool's mean as not, as far as there are."""
    mean = float(np.nanmean(rewards_N))
    high = np.flatnonzero(rewards_N > mean).tolist()
    low = np.flatnonzero(rewards_N <= mean).tolist()
    unscored = np.flatnonzero(np.isnan(rewards_N)).tolist()
    num_high = min(len(high), max(group_size // 2, group_size - len(low)))
    return [*high[:num_high], *low, *unscored][:group_size]


def _scored_first(rewards_N: Rewards, indices: range) -> list[int]:
    return sorted(indices, key=lambda index: bool(np.isnan(rewards_N[index])))


_CHOICES: Mapping[Keep, Callable[[Rewards, int], list[int]]] = {Keep.FIRST_G: _first, Keep.BALANCED: _balanced}

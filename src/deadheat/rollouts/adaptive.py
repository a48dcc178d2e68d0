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

import numpy as np
from numpy.typing import NDArray

from deadheat.credit import is_tied
from deadheat.rollouts.batch import DrawnBatch, DrawPlan, Grade, Graded, Keep
from deadheat.types import Policy

Rewards = NDArray[np.float64]


def draw_adaptive(policy: Policy, grade: Grade, plan: DrawPlan) -> DrawnBatch:
    """One group for each of the step's problems."""
    pools: dict[str, Graded] = {}
    pending = list(plan.problems)
    num_rounds = 0
    for round_ in range(plan.max_rounds):
        if not pending:
            break
        for graded in plan.draw(policy, grade, pending, round_=round_):
            problem_id = graded.group.problem.problem_id
            pools[problem_id] = pools[problem_id].with_more(graded) if problem_id in pools else graded
        num_rounds += 1
        pending = [problem for problem in pending if not pools[problem.problem_id].is_mixed]
    kept, not_kept = [], []
    for problem in plan.problems:
        pool = pools[problem.problem_id]
        chosen = choose_adaptive(pool.rewards_G, group_size=plan.group_size, keep=plan.keep)
        kept.append(pool.pick(chosen))
        left = [index for index in range(len(pool.rewards_G)) if index not in chosen]
        not_kept += [pool.pick(left)] if left else []
    return DrawnBatch(kept=tuple(kept), not_kept=tuple(not_kept), group_size=plan.group_size, num_rounds=num_rounds)


def choose_adaptive(rewards_N: Rewards, *, group_size: int, keep: Keep) -> tuple[int, ...]:
    """Which of a problem's draws are learned from, ascending.

    Example:
        >>> pool = np.array([0.0, 0.0, 0.0, 1.0])
        >>> choose_adaptive(pool, group_size=2, keep=Keep.FIRST_G)
        (0, 3)
        >>> choose_adaptive(np.zeros(4), group_size=2, keep=Keep.BALANCED)
        (0, 1)
    """
    if len(rewards_N) <= group_size or is_tied(rewards_N):
        return tuple(range(group_size))
    return tuple(sorted(_CHOICES[keep](rewards_N, group_size)))


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

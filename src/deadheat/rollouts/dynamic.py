"""Dynamic groups: draw until a group is mixed, drop the prompt that never is, and let the next one take its place.

After the dynamic sampling of Yu et al. 2025 (DAPO), with each choice stated:

    try      a problem gets a whole new group of G draws; try r draws samples r·G … (r+1)·G − 1 (no key holds r)
    kept     its first mixed group, whole. Tied groups before it are recorded and not learned from; they are never pooled
    dropped  a problem whose `max_rounds` groups all agree: nothing of it is learned from
    refill   open places go to the next problems of the order (those after the step's own, around to before them), as
             many as there are places, up to `max_refills` times; they are tried alike. No draw is surplus
    order    kept groups stand in the order of problems. When the refills are used up, the batch is short, even empty

With `max_rounds` = 1 a tied prompt is replaced at once, which is DAPO's filter. A problem that is drawn as a refill is
drawn again at its own step, under keys of that step.

Bias: a kept group is a flat group given that it is mixed (`bias.py`): its share right is (p − p^G)/(1 − p^G − (1−p)^G) in
place of p, and the batch holds a problem with odds 1 − (p^G + (1−p)^G)^rounds: easy and hard prompts are left out.
"""

from collections.abc import Iterator
from itertools import chain, islice
from typing import Literal

from pydantic import Field

from deadheat.credit import is_tied
from deadheat.rollouts.batch import DrawingOptions, DrawnBatch, DrawPlan, Pool
from deadheat.types import GenerationCost, Group, Policy, Problem


class DynamicOptions(DrawingOptions):
    """Whole groups of G until one is mixed; prompts that never are make way for the next."""

    name: Literal["dynamic"] = "dynamic"
    max_rounds: int = Field(default=4, ge=1)  # groups of group_size drawn of one problem, at most
    max_refills: int = Field(default=3, ge=0)  # times that places of dropped problems are filled, at most


def draw_dynamic(policy: Policy, plan: DrawPlan) -> DrawnBatch:
    """The mixed groups of a step, as many as it has problems where the refills suffice."""
    options = plan.options
    assert isinstance(options, DynamicOptions)
    waiting: Iterator[Problem] = chain(plan.problems, plan.reserve)
    kept: list[Group] = []
    not_kept: list[Group] = []
    num_rounds, cost = 0, GenerationCost()
    for _ in range(1 + options.max_refills):
        problems = list(islice(waiting, len(plan.problems) - len(kept)))
        mixed: dict[str, Group] = {}  # by problem id
        pending = problems
        for round_ in range(options.max_rounds):
            if not pending:
                break
            drawn = plan.draw(policy, pending, round_=round_)
            num_rounds, cost = num_rounds + 1, cost + drawn.cost
            mixed |= {group.problem.problem_id: group for group in drawn.groups if plan.is_mixed(group)}
            tied = [group for group in drawn.groups if not plan.is_mixed(group)]
            not_kept += tied
            pending = [group.problem for group in tied]
        kept += [mixed[problem.problem_id] for problem in problems if problem.problem_id in mixed]
    return DrawnBatch(kept=tuple(kept), not_kept=tuple(not_kept), plan=plan, num_rounds=num_rounds, cost=cost)


def choose_dynamic(pool: Pool, options: DrawingOptions) -> tuple[int, ...]:
    """Which of a problem's draws are learned from: its first mixed group of G; none if there is none.

    Example:
        >>> import numpy as np
        >>> pool = Pool(rewards_N=np.array([0.0, 0.0, 1.0, 0.0]), group_size=2, origins_N=(None,) * 4)
        >>> choose_dynamic(pool, DynamicOptions())
        (2, 3)
    """
    for start in range(0, len(pool.rewards_N), pool.group_size):
        if not is_tied(pool.rewards_N[start : start + pool.group_size]):
            return tuple(range(start, start + pool.group_size))
    return ()

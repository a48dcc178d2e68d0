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

import numpy as np
from numpy.typing import NDArray

from deadheat.credit import is_tied
from deadheat.rollouts.batch import DrawnBatch, DrawPlan, Grade, Graded, Keep
from deadheat.types import Policy, Problem


def draw_dynamic(policy: Policy, grade: Grade, plan: DrawPlan) -> DrawnBatch:
    """The mixed groups of a step, as many as it has problems where the refills suffice."""
    waiting: Iterator[Problem] = chain(plan.problems, plan.reserve)
    kept: list[Graded] = []
    not_kept: list[Graded] = []
    num_rounds = 0
    for _ in range(1 + plan.max_refills):
        problems = list(islice(waiting, len(plan.problems) - len(kept)))
        mixed: dict[str, Graded] = {}  # by problem id
        pending = problems
        for round_ in range(plan.max_rounds):
            if not pending:
                break
            drawn = plan.draw(policy, grade, pending, round_=round_)
            num_rounds += 1
            mixed |= {graded.group.problem.problem_id: graded for graded in drawn if graded.is_mixed}
            not_kept += [graded for graded in drawn if not graded.is_mixed]
            pending = [graded.group.problem for graded in drawn if not graded.is_mixed]
        kept += [mixed[problem.problem_id] for problem in problems if problem.problem_id in mixed]
    return DrawnBatch(kept=tuple(kept), not_kept=tuple(not_kept), group_size=plan.group_size, num_rounds=num_rounds)


def choose_dynamic(rewards_N: NDArray[np.float64], *, group_size: int, keep: Keep) -> tuple[int, ...]:
    """Which of a problem's draws are learned from: its first mixed group of G; none if there is none.

    Example:
        >>> choose_dynamic(np.array([0.0, 0.0, 1.0, 0.0]), group_size=2, keep=Keep.FIRST_G)
        (2, 3)
    """
    for start in range(0, len(rewards_N), group_size):
        if not is_tied(rewards_N[start : start + group_size]):
            return tuple(range(start, start + group_size))
    return ()

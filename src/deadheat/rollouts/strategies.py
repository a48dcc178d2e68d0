"""The ways of drawing a group, by name: how each draws, and which of a problem's draws it learns from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from deadheat.rollouts.adaptive import choose_adaptive, draw_adaptive
from deadheat.rollouts.batch import DrawnBatch, DrawPlan, Grade, Keep
from deadheat.rollouts.dynamic import choose_dynamic, draw_dynamic
from deadheat.types import Policy


class Drawing(StrEnum):
    """How the groups of a step are drawn."""

    FLAT = "flat"  # G draws of each problem, all learned from
    DYNAMIC = "dynamic"  # whole groups of G until one is mixed; prompts that never are make way for the next
    ADAPTIVE = "adaptive"  # rounds of G into a pool until it is mixed; G of the pool are learned from


class Choose(Protocol):
    """Which of a problem's draws, in sample order, are learned from."""

    def __call__(self, rewards_N: NDArray[np.float64], *, group_size: int, keep: Keep) -> tuple[int, ...]:
        """Indices, ascending."""


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """One way of drawing."""

    draw: Callable[[Policy, Grade, DrawPlan], DrawnBatch]
    choose: Choose  # a pure function of the rewards, so that records can be held against it


def draw_flat(policy: Policy, grade: Grade, plan: DrawPlan) -> DrawnBatch:
    """G draws of each problem."""
    kept = plan.draw(policy, grade, plan.problems, round_=0)
    return DrawnBatch(kept=tuple(kept), not_kept=(), group_size=plan.group_size, num_rounds=1)


def choose_flat(rewards_N: NDArray[np.float64], *, group_size: int, keep: Keep) -> tuple[int, ...]:
    """All of them."""
    return tuple(range(group_size))


STRATEGIES: Mapping[Drawing, Strategy] = {
    Drawing.FLAT: Strategy(draw=draw_flat, choose=choose_flat),
    Drawing.DYNAMIC: Strategy(draw=draw_dynamic, choose=choose_dynamic),
    Drawing.ADAPTIVE: Strategy(draw=draw_adaptive, choose=choose_adaptive),
}

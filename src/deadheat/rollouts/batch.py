"""What a strategy is asked for and what it brings back: the records around drawing the groups of a step.

Grading happens inside the drawing, because whether a group is mixed is known only then. A strategy is handed a `Grade`
and knows nothing of scorers: completions go in, rewards come out. The rewards a strategy goes by are the training
rewards after shaping (a marker gate) and before a control's permutation: what is learned from, in an order that no arm
changes. A group is *mixed* when credit would not call it tied; for rewards of 0 and 1 that is at least one right and at
least one wrong.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from deadheat.credit import is_tied
from deadheat.rollouts.flat import Address, DrawSpec, draw_groups
from deadheat.types import Drawn, Group, Policy, Problem


class Keep(StrEnum):
    """Which G of a pool of more than G draws an adaptive group keeps."""

    FIRST_G = "first_G"  # the first G; where they agree, the first draw that differs takes the last one's place
    BALANCED = (
        "balanced"  # the first G//2 above the pool's mean reward and the first of the others, as far as there are
    )


@dataclass(frozen=True, kw_only=True)
class Graded:
    """Rollouts of one problem with the rewards that the drawing goes by."""

    group: Group
    rewards_G: NDArray[np.float64]  # training rewards before any control; NaN: unscored

    @property
    def is_mixed(self) -> bool:
        """Whether the rewards differ, so that the group can express a preference."""
        return not is_tied(self.rewards_G)

    @property
    def num_tokens(self) -> int:
        """Tokens drawn."""
        return sum(len(rollout.completion.tokens) for rollout in self.group.rollouts)

    def pick(self, indices: Sequence[int]) -> "Graded":
        """Some of the rollouts, in the given order."""
        rollouts = tuple(self.group.rollouts[index] for index in indices)
        group = Group(problem=self.group.problem, prompt_length=self.group.prompt_length, rollouts=rollouts)
        return Graded(group=group, rewards_G=self.rewards_G[list(indices)])

    def with_more(self, more: "Graded") -> "Graded":
        """The same problem with further draws."""
        group = Group(
            problem=self.group.problem,
            prompt_length=self.group.prompt_length,
            rollouts=self.group.rollouts + more.group.rollouts,
        )
        return Graded(group=group, rewards_G=np.concatenate([self.rewards_G, more.rewards_G]))


Grade = Callable[[Sequence[Drawn]], list[Graded]]


@dataclass(frozen=True, kw_only=True)
class DrawPlan:
    """The groups one step asks for."""

    problems: tuple[Problem, ...]  # the step's own
    reserve: tuple[Problem, ...]  # who takes the place of a problem that is dropped, in order; none of them above
    spec: DrawSpec
    address: Address
    group_size: int  # G
    max_rounds: int  # groups of G drawn of one problem at most
    max_refills: int  # times that open places are filled from the reserve at most (dynamic)
    keep: Keep  # which of more than G draws are learned from (adaptive)

    def draw(self, policy: Policy, grade: Grade, problems: Sequence[Problem], *, round_: int) -> list[Graded]:
        """G more attempts at each problem: round r draws samples r·G to (r+1)·G − 1. No key holds a round."""
        drawn = draw_groups(
            policy,
            problems,
            self.spec,
            address=self.address,
            group_size=self.group_size,
            first_sample=round_ * self.group_size,
        )
        return grade(drawn)


@dataclass(frozen=True, kw_only=True)
class DrawnBatch:
    """Everything that was drawn for one step, and which of it is learned from."""

    kept: tuple[Graded, ...]  # the groups that are learned from, G rollouts each
    not_kept: tuple[Graded, ...]  # drawn and paid for, and nothing is learned from them
    group_size: int  # G
    num_rounds: int  # calls of generation

    @property
    def num_rollouts(self) -> int:
        """Rollouts drawn, kept or not."""
        return sum(len(graded.group.rollouts) for graded in (*self.kept, *self.not_kept))

    @property
    def num_groups(self) -> int:
        """Draws of G, kept or not."""
        return self.num_rollouts // self.group_size

    @property
    def num_problems(self) -> int:
        """Problems tried."""
        return len(self._pools())

    @property
    def num_never_mixed(self) -> int:
        """Problems whose every draw agreed."""
        return sum(is_tied(np.concatenate(rewards)) for rewards in self._pools().values())

    @property
    def tokens_not_kept(self) -> int:
        """Tokens generated for rollouts that nothing is learned from."""
        return sum(graded.num_tokens for graded in self.not_kept)

    def _pools(self) -> dict[str, list[NDArray[np.float64]]]:
        pools: dict[str, list[NDArray[np.float64]]] = {}
        for graded in (*self.kept, *self.not_kept):
            pools.setdefault(graded.group.problem.problem_id, []).append(graded.rewards_G)
        return pools

"""How groups are drawn, each completion at its own address; what a strategy is asked for and what it brings back.

Scoring happens inside the drawing, because whether a group is mixed is known only then. A strategy is handed a function
that scores groups and one that says what rewards it goes by: those after the marker gate, before length terms and before
a control's permutation. Length terms would make every group of unequal lengths mixed and switch the filter off; a
permutation of the same rewards cannot change whether they differ. A group is *mixed* when credit would not call it tied;
for rewards of 0 and 1 that is at least one right and at least one wrong.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from deadheat.credit import is_tied
from deadheat.sampling.keys import rollout_key
from deadheat.types import (
    Address,
    GenerateRequest,
    GenerationCost,
    Group,
    Origin,
    Policy,
    Problem,
    Rollout,
    SamplingParams,
)

Rewards = NDArray[np.float64]


class Keep(StrEnum):
    """Which G of a pool of more than G draws an adaptive group keeps."""

    FIRST_G = "first_G"  # the first G; where they agree, the first draw that differs takes the last one's place
    BALANCED = (
        "balanced"  # the first G//2 above the pool's mean reward and the first of the others, as far as there are
    )


class DrawingOptions(BaseModel):
    """Which strategy, and the settings that it alone has. Each strategy has its own subclass."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str  # its entry in STRATEGIES


@dataclass(frozen=True, kw_only=True)
class Pool:
    """All draws of one problem in a step, in sample order."""

    rewards_N: Rewards  # what the drawing goes by; NaN: unscored
    group_size: int  # G
    origins_N: tuple[Origin | None, ...]


@dataclass(frozen=True, kw_only=True)
class DrawSpec:
    """How completions of a task are asked for, apart from their addresses."""

    task: str  # the task's name, part of every key
    chat: bool  # prompts go through the model's chat template
    stop_text: str | None  # text that ends a completion; None: only end of sequence does
    sampling: SamplingParams


@dataclass(frozen=True, kw_only=True)
class Attempts:
    """Groups of one call of generation, and what it cost."""

    groups: tuple[Group, ...]
    cost: GenerationCost


def draw_groups(
    policy: Policy,
    problems: Sequence[Problem],
    spec: DrawSpec,
    *,
    address: Address,
    group_size: int,
    first_sample: int = 0,
) -> Attempts:
    """`group_size` completions of each problem, sample indices from `first_sample` on; nothing is scored."""
    prompts_P = [policy.encode(problem.prompt, chat=spec.chat) for problem in problems]
    stop_ids = policy.stop_ids(spec.stop_text)
    requests = [
        GenerateRequest(
            prompt_tokens=tokens,
            key=rollout_key(
                seed=address.seed,
                purpose=address.purpose,
                task=spec.task,
                problem_digest=problem.digest,
                step=address.step,
                sample=first_sample + index,
            ),
            sampling=spec.sampling,
            stop_ids=stop_ids,
        )
        for problem, tokens in zip(problems, prompts_P, strict=True)
        for index in range(group_size)
    ]
    generation = policy.generate(requests)
    rollouts = [
        Rollout(problem=problem, sample=first_sample + index, completion=generation.completions[p * group_size + index])
        for p, problem in enumerate(problems)
        for index in range(group_size)
    ]
    groups = tuple(
        Group(
            problem=problem,
            prompt_tokens=prompts_P[p],
            rollouts=tuple(rollouts[p * group_size : (p + 1) * group_size]),
        )
        for p, problem in enumerate(problems)
    )
    return Attempts(groups=groups, cost=generation.cost)


@dataclass(frozen=True, kw_only=True)
class DrawPlan:
    """The groups one step asks for."""

    problems: tuple[Problem, ...]  # the step's own
    reserve: tuple[Problem, ...]  # who takes the place of a problem that is dropped, in order; none of them above
    spec: DrawSpec
    address: Address
    group_size: int  # G
    options: DrawingOptions
    score: Callable[[Sequence[Group]], list[Group]]  # the same groups, scored; one group has one sample // G throughout
    rewards: Callable[[Group], Rewards]  # [G] what the drawing goes by; NaN: unscored

    def draw(self, policy: Policy, problems: Sequence[Problem], *, round_: int) -> Attempts:
        """G more scored attempts at each problem: round r draws samples r·G to (r+1)·G − 1. No key holds a round."""
        drawn = draw_groups(
            policy,
            problems,
            self.spec,
            address=self.address,
            group_size=self.group_size,
            first_sample=round_ * self.group_size,
        )
        return Attempts(groups=tuple(self.score(drawn.groups)), cost=drawn.cost)

    def is_mixed(self, group: Group) -> bool:
        """Whether the rewards differ, so that the group can express a preference."""
        return not is_tied(self.rewards(group))

    def pool(self, group: Group) -> Pool:
        """Everything that was drawn of a problem, as `choose` sees it."""
        origins_N = tuple(rollout.origin for rollout in group.rollouts)
        return Pool(rewards_N=self.rewards(group), group_size=self.group_size, origins_N=origins_N)


@dataclass(frozen=True, kw_only=True)
class DrawnBatch:
    """Everything that was drawn for one step, and which of it is learned from."""

    kept: tuple[Group, ...]  # the groups that are learned from
    not_kept: tuple[Group, ...]  # drawn and paid for, and nothing is learned from them
    plan: DrawPlan = field(repr=False)
    num_rounds: int  # calls of generation, one after the other
    cost: GenerationCost  # of all calls

    @property
    def num_rollouts(self) -> int:
        """Rollouts drawn, kept or not."""
        return sum(len(group.rollouts) for group in (*self.kept, *self.not_kept))

    @property
    def num_groups(self) -> int:
        """Draws of G, kept or not."""
        return self.num_rollouts // self.plan.group_size

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
        """Tokens of rollouts that nothing is learned from."""
        return sum(group.num_tokens for group in self.not_kept)

    def _pools(self) -> dict[str, list[Rewards]]:
        pools: dict[str, list[Rewards]] = {}
        for group in (*self.kept, *self.not_kept):
            pools.setdefault(group.problem.problem_id, []).append(self.plan.rewards(group))
        return pools

"""From scored groups to credited ones: shape the rewards, apply the control, estimate advantages, name the ties."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deadheat.credit import GroupKind, advantages, group_kind
from deadheat.errors import ConfigError
from deadheat.scorers import plant
from deadheat.tasks import Task
from deadheat.train.config import CreditConfig, ScorerConfig
from deadheat.train.shape import Shaping
from deadheat.types import Group, Problem


@dataclass(frozen=True, kw_only=True)
class CreditedGroup:
    """A group with what is learned from it."""

    group: Group
    rewards: tuple[float | None, ...]  # [G] after shaping and control; None: unscored
    advantages_G: NDArray[np.float64]  # 0 for unscored members
    kind: GroupKind  # by the rewards learned from


def assign_credit(
    groups: Sequence[Group],
    *,
    scorer: ScorerConfig,
    credit: CreditConfig,
    shaping: Shaping,
    seed: int,
    step: int,
) -> list[CreditedGroup]:
    """Rewards and advantages of one batch; `seed` and `step` address the plant's permutation."""
    rewards_PG = [_rewards(group, scorer=scorer, shaping=shaping, seed=seed, step=step) for group in groups]
    advantages_PG = advantages(rewards_PG, estimator=credit.estimator, ddof=credit.ddof, eps=credit.eps)
    return [
        CreditedGroup(
            group=group,
            rewards=tuple(None if np.isnan(reward) else float(reward) for reward in rewards_G),
            advantages_G=advantages_G,
            kind=group_kind(rewards_G, [rollout.score.correct for rollout in group.rollouts]),
        )
        for group, rewards_G, advantages_G in zip(groups, rewards_PG, advantages_PG, strict=True)
    ]


def part_of(problem: Problem, credit: CreditConfig) -> str:
    """The part of a batch that a problem's group is normalised in; one for all where `normalise_by` is None."""
    if credit.normalise_by is None:
        return ""
    return problem.task if credit.normalise_by == "task" else str(problem.columns[credit.normalise_by])


def refuse_unknown_parts(task: Task, credit: CreditConfig) -> None:
    """A `ConfigError` where some training problem has no such column."""
    by = credit.normalise_by
    if by is None or by == "task":
        return
    without = next((problem for problem in task.training if by not in problem.columns), None)
    if without is not None:
        have = ", ".join(sorted(without.columns)) or "none"
        raise ConfigError(
            f"credit.normalise_by is {by!r} but problem {without.problem_id} of task {task.name!r} has no such column; "
            f"its columns: {have}. Wanted one of them, or 'task'"
        )


def _rewards(group: Group, *, scorer: ScorerConfig, shaping: Shaping, seed: int, step: int) -> NDArray[np.float64]:
    rewards_G = np.array([shaping.reward(rollout) for rollout in group.rollouts])
    if scorer.kind == "plant":
        return plant(rewards_G, seed=seed, step=step, problem_digest=group.problem.digest)
    return rewards_G

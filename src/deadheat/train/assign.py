"""From scored groups to credited ones: shape the rewards, apply the control, estimate advantages, name the ties."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deadheat.credit import GroupKind, advantages, group_kind, passes_marker_gate
from deadheat.errors import ConfigError
from deadheat.scorers import plant
from deadheat.tasks import Task
from deadheat.train.config import CreditConfig, ScorerConfig
from deadheat.types import Group, Rollout


@dataclass(frozen=True, kw_only=True)
class CreditedGroup:
    """A group with what is learned from it."""

    group: Group
    rewards: tuple[float | None, ...]  # [G] after gate and control; None: unscored
    advantages_G: NDArray[np.float64]  # 0 for unscored members
    kind: GroupKind  # by the rewards learned from


@dataclass(frozen=True, kw_only=True)
class MarkerGate:
    """The pre-marker gate of training rewards."""

    marker: str
    min_chars: int

    @classmethod
    def of(cls, scorer: ScorerConfig, task: Task) -> "MarkerGate | None":
        """The gate a config asks for; None: off."""
        if scorer.gate_chars is None:
            return None
        marker = scorer.marker or task.marker
        if marker is None:
            raise ConfigError(
                f"[scorer] gate_chars is {scorer.gate_chars} but task {task.name!r} has no marker; "
                "wanted scorer.marker, the text that opens the final answer"
            )
        return cls(marker=marker, min_chars=scorer.gate_chars)

    def shape(self, rollout: Rollout) -> float:
        """The rollout's reward: its raw reward where the gate is passed, else 0."""
        passed = passes_marker_gate(rollout.completion.text, marker=self.marker, min_chars=self.min_chars)
        return _raw(rollout) if passed else 0.0 * _raw(rollout)


def assign_credit(
    groups: Sequence[Group],
    *,
    scorer: ScorerConfig,
    credit: CreditConfig,
    gate: MarkerGate | None,
    seed: int,
    step: int,
) -> list[CreditedGroup]:
    """Rewards and advantages of one batch; `seed` and `step` address the plant's permutation."""
    rewards_PG = [_rewards(group, scorer=scorer, gate=gate, seed=seed, step=step) for group in groups]
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


def _rewards(
    group: Group, *, scorer: ScorerConfig, gate: MarkerGate | None, seed: int, step: int
) -> NDArray[np.float64]:
    shape = _raw if gate is None else gate.shape
    rewards_G = np.array([shape(rollout) for rollout in group.rollouts])
    if scorer.kind == "plant":
        return plant(rewards_G, seed=seed, step=step, problem_digest=group.problem.digest)
    return rewards_G


def _raw(rollout: Rollout) -> float:
    return float("nan") if rollout.score.value is None else rollout.score.value

"""From scored groups to a training batch: rewards, control, credit, and what kind of group each is.

Two records carry a group through a step: `Group`, what was drawn with its scores, and its `Entry` here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deadheat.credit import CREDITS, CreditOptions, GroupKind, PairTerm, ScoredGroup, group_kind
from deadheat.errors import ConfigError
from deadheat.scorers import SCORERS
from deadheat.tasks import Task
from deadheat.train.config import CreditConfig, ScorerConfig
from deadheat.train.rewards import Shaping
from deadheat.types import Group, Problem

Array = NDArray[np.float64]

DISCARDED = "discarded by the drawing"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What is learned from one group."""

    group: Group
    rewards_G: Array  # learned from: after shaping, control and what the credit method adjusts; NaN: unscored
    advantages_G: tuple[Array, ...]  # [T] per completion; zeros for unscored members
    kind: GroupKind  # by the rewards learned from
    part: str = ""  # what it is normalised in; one name for all: one divisor
    pairs: tuple[PairTerm, ...] = ()  # terms over two branches
    categories_G: tuple[str | None, ...] | None = None  # in the credit method's words; None: none
    skip: str | None = None  # why nothing is learned from it; None: it is

    @property
    def has_signal(self) -> bool:
        """Whether any advantage is not zero, or any pair has a term."""
        return bool(self.pairs) or any(bool(np.any(advantages_T != 0)) for advantages_T in self.advantages_G)

    @property
    def mean_advantages_G(self) -> Array:
        """[G] the mean over each completion's tokens, which flat credit gives to all of them."""
        return np.array([mean_advantage(advantages_T) for advantages_T in self.advantages_G], dtype=np.float64)

    @property
    def num_scored(self) -> int:
        """Members with a reward."""
        return int(np.isfinite(self.rewards_G).sum())

    @property
    def lengths_of_scored(self) -> list[int]:
        """Tokens of each member with a reward."""
        pairs = zip(self.group.completion_tokens, np.isfinite(self.rewards_G).tolist(), strict=True)
        return [len(tokens) for tokens, is_scored in pairs if is_scored]

    @property
    def num_delivered(self) -> int:
        """Tokens of completions with an advantage that is not zero."""
        return sum(len(advantages_T) for advantages_T in self.advantages_G if np.any(advantages_T != 0))


@dataclass(frozen=True, kw_only=True)
class TrainBatch:
    """What one step learns from."""

    step: int
    entries: tuple[Entry, ...]

    @property
    def learned(self) -> tuple[Entry, ...]:
        """The entries that are not skipped."""
        return tuple(entry for entry in self.entries if entry.skip is None)


def train_batch(
    groups: Sequence[Group], *, scorer: ScorerConfig, credit: CreditConfig, shaping: Shaping, seed: int, step: int
) -> TrainBatch:
    """Rewards and advantages of one batch; `seed` and `step` address a control's permutation."""
    rewards_PG = [_learned(group, scorer=scorer, shaping=shaping, seed=seed, step=step) for group in groups]
    seen = [
        ScoredGroup(
            rewards_G=rewards_G,
            lengths_G=tuple(map(len, group.completion_tokens)),
            correct_G=tuple(rollout.score.correct for rollout in group.rollouts),
            origins_G=tuple(rollout.origin for rollout in group.rollouts),
        )
        for group, rewards_G in zip(groups, rewards_PG, strict=True)
    ]
    credits_P = CREDITS[credit.estimator](seen, CreditOptions(ddof=credit.ddof, eps=credit.eps))
    entries = tuple(
        Entry(
            group=group,
            rewards_G=found.rewards_G,
            advantages_G=found.advantages_G,
            kind=_kind(group, found.rewards_G),
            part=part_of(group.problem, credit),
            pairs=found.pairs,
            categories_G=found.categories_G,
            skip=found.skip,
        )
        for group, found in zip(groups, credits_P, strict=True)
    )
    return TrainBatch(step=step, entries=entries)


def discarded(groups: Sequence[Group], shaping: Shaping) -> list[Entry]:
    """Groups that nothing is learned from, with the training rewards they would have had; no control permutes them."""
    found = []
    for group in groups:
        rewards_G = shaping.rewards(group).shaped_G
        zeros_G = tuple(np.zeros(len(tokens)) for tokens in group.completion_tokens)
        kind = _kind(group, rewards_G)
        found.append(Entry(group=group, rewards_G=rewards_G, advantages_G=zeros_G, kind=kind, skip=DISCARDED))
    return found


def mean_advantage(advantages_T: Array) -> float:
    """The mean over tokens; exactly the constant where all are equal.

    Example:
        >>> mean_advantage(np.full(3, 0.1)), mean_advantage(np.array([0.0, 1.0])), mean_advantage(np.zeros(0))
        (0.1, 0.5, 0.0)
    """
    if is_flat(advantages_T):
        return float(advantages_T[0]) if len(advantages_T) else 0.0
    return float(advantages_T.mean())


def is_flat(advantages_T: Array) -> bool:
    """Whether every token has the same advantage."""
    return bool((advantages_T == advantages_T[:1]).all() or np.isnan(advantages_T).all())


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


def _kind(group: Group, rewards_G: Array) -> GroupKind:
    return group_kind(rewards_G, [rollout.score.correct for rollout in group.rollouts])


def _learned(group: Group, *, scorer: ScorerConfig, shaping: Shaping, seed: int, step: int) -> Array:
    rewards_G = shaping.rewards(group).shaped_G
    control = SCORERS[scorer.kind].control
    if control is None:
        return rewards_G
    return control(rewards_G, seed=seed, step=step, problem_digest=group.problem.digest)

"""Held-out evaluation: the same items, the same keys, every answer kept.

Evaluation keys use step 0, so that two checkpoints and two arms answer under the same noise. Unscored answers are left
out of the accuracy and counted beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from deadheat.rollouts import DrawSpec, draw_groups
from deadheat.scorers import scored
from deadheat.types import Address, Group, Policy, Problem, Purpose, Rollout, Scorer


@dataclass(frozen=True, kw_only=True)
class EvalSpec:
    """What is evaluated, and how answers are drawn."""

    problems: Sequence[Problem]  # the held-out pool, in pool order
    draw: DrawSpec
    samples: int  # answers per problem
    seed: int  # master seed of the keys; unused when greedy


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The answers, and what they add up to."""

    groups: tuple[Group, ...]  # one per problem, in pool order

    @property
    def rollouts(self) -> tuple[Rollout, ...]:
        """Every answer, problem-major."""
        return tuple(rollout for group in self.groups for rollout in group.rollouts)

    @property
    def num_graded(self) -> int:
        """Answers with a grade."""
        return sum(r.score.correct is not None for r in self.rollouts)

    @property
    def num_correct(self) -> int:
        """Answers graded right."""
        return sum(r.score.correct is True for r in self.rollouts)

    @property
    def num_unscored(self) -> int:
        """Answers the scorer could not score."""
        return sum(r.score.unscored is not None for r in self.rollouts)

    @property
    def num_unparsed(self) -> int:
        """Answers from which nothing could be extracted; graded wrong, counted apart."""
        return sum(not r.score.parsed for r in self.rollouts)

    @property
    def accuracy(self) -> float | None:
        """Share of graded answers that are right; None when nothing was graded."""
        return self.num_correct / self.num_graded if self.num_graded else None


def evaluate(policy: Policy, scorer: Scorer, spec: EvalSpec) -> Evaluation:
    """Answers every problem of the pool and grades the answers."""
    address = Address(seed=spec.seed, purpose=Purpose.EVAL, step=0)
    drawn = draw_groups(policy, spec.problems, spec.draw, address=address, group_size=spec.samples)
    return Evaluation(groups=tuple(scored(drawn.groups, scorer, address=address)))

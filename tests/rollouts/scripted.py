"""A policy whose answers are written down beforehand, by the address of each draw, and the strategies played on it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deadheat.rollouts import STRATEGIES, Address, Drawing, DrawnBatch, DrawPlan, DrawSpec
from deadheat.sampling.keys import Purpose, rollout_key
from deadheat.types import (
    Completion,
    GenerateRequest,
    Generation,
    GenerationCost,
    Group,
    Problem,
    SamplingParams,
    Score,
    StopReason,
)

SPEC = DrawSpec(task="script", chat=False, stop_text=None, sampling=SamplingParams(max_new_tokens=4))
FIRST = Address(seed=3, purpose=Purpose.TRAIN, step=1)
VALUES = {"1": 1.0, "0": 0.0, "h": 0.5, "?": None}


class ScriptedPolicy:
    """Sample s of a problem is character s of its script; a draw is known by its key alone."""

    digest = "scripted"

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.calls: list[list[tuple[str, int]]] = []  # problem and sample of every draw, call by call
        self._where = {
            _key(problem, sample): (problem, sample) for problem in problems for sample in range(len(problem.reference))
        }

    def encode(self, prompt: str, *, chat: bool) -> tuple[int, ...]:
        return tuple(prompt.encode())

    def stop_ids(self, stop_text: str | None) -> frozenset[int]:
        return frozenset()

    def generate(self, requests: Sequence[GenerateRequest]) -> Generation:
        places = [self._where[request.key] for request in requests]
        self.calls.append([(problem.problem_id, sample) for problem, sample in places])
        completions = tuple(
            Completion(
                tokens=(sample, 0),
                logprobs=(0.0, 0.0),
                plain_logprobs=(0.0, 0.0),
                margins=None,
                text=problem.reference[sample],
                stop=StopReason.STOP,
                key=request.key,
            )
            for request, (problem, sample) in zip(requests, places, strict=True)
        )
        return Generation(completions=completions, cost=GenerationCost(num_generated=2 * len(completions)))


def _key(problem: Problem, sample: int) -> int:
    return rollout_key(
        seed=FIRST.seed,
        purpose=FIRST.purpose,
        task=SPEC.task,
        problem_digest=problem.digest,
        step=FIRST.step,
        sample=sample,
    )


def script(name: str, grades: str) -> Problem:
    """A problem with the grade of each of its samples: 1 right, 0 wrong, h half right, ? unscored."""
    return Problem(task="script", problem_id=name, prompt=name, reference=grades.replace(" ", ""))


def graded(groups: Sequence[Group]) -> list[Group]:
    """What the texts say."""
    return [group.with_scores([_score(rollout.completion.text) for rollout in group.rollouts]) for group in groups]


def _score(text: str) -> Score:
    value = VALUES[text]
    return Score(value=value, unscored="no grade" if value is None else None)


def rewards_of(group: Group) -> np.ndarray:
    """The values; NaN where there is none."""
    values = [rollout.score.value for rollout in group.rollouts]
    return np.array([np.nan if value is None else value for value in values])


@dataclass(frozen=True, kw_only=True)
class Played:
    """A batch, and the calls of generation that made it."""

    batch: DrawnBatch
    calls: list[list[tuple[str, int]]]

    @property
    def kept(self) -> list[tuple[str, list[int]]]:
        """Problem and samples of every group that is learned from."""
        return [_samples(group) for group in self.batch.kept]

    @property
    def not_kept(self) -> list[tuple[str, list[int]]]:
        """Problem and samples of what is not."""
        return [_samples(group) for group in self.batch.not_kept]


def _samples(group: Group) -> tuple[str, list[int]]:
    return group.problem.problem_id, [rollout.sample for rollout in group.rollouts]


def play(drawing: Drawing, problems: Sequence[Problem], reserve: Sequence[Problem] = (), **changes: object) -> Played:
    """Groups of two, four rounds, three refills, with changes; a strategy is given the settings it has."""
    settings = {"group_size": 2, **changes}
    group_size = settings.pop("group_size")
    options = STRATEGIES[drawing].options
    plan = DrawPlan(
        problems=tuple(problems),
        reserve=tuple(reserve),
        spec=SPEC,
        address=FIRST,
        group_size=group_size,
        options=options(**{name: value for name, value in settings.items() if name in options.model_fields}),
        score=graded,
        rewards=rewards_of,
    )
    policy = ScriptedPolicy([*problems, *reserve])
    return Played(batch=STRATEGIES[drawing].draw(policy, plan), calls=policy.calls)

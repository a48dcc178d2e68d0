"""A policy whose answers are written down beforehand, by the address of each draw, and the strategies played on it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deadheat.rollouts import STRATEGIES, Address, Drawing, DrawnBatch, DrawPlan, DrawSpec, Graded, Keep
from deadheat.sampling.keys import Purpose, rollout_key
from deadheat.types import (
    Completion,
    Drawn,
    GenerateRequest,
    Group,
    Problem,
    Rollout,
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

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Completion]:
        places = [self._where[request.key] for request in requests]
        self.calls.append([(problem.problem_id, sample) for problem, sample in places])
        return [
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
        ]


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


def grade(drawn: Sequence[Drawn]) -> list[Graded]:
    """What the texts say."""
    return [_graded(d) for d in drawn]


def _graded(drawn: Drawn) -> Graded:
    values = [VALUES[completion.text] for completion in drawn.completions]
    rollouts = tuple(
        Rollout(
            problem=drawn.problem,
            sample=drawn.first_sample + index,
            completion=completion,
            score=Score(value=value, unscored="no grade" if value is None else None),
        )
        for index, (completion, value) in enumerate(zip(drawn.completions, values, strict=True))
    )
    group = Group(problem=drawn.problem, prompt_length=drawn.prompt_length, rollouts=rollouts)
    return Graded(group=group, rewards_G=np.array([np.nan if value is None else value for value in values]))


@dataclass(frozen=True, kw_only=True)
class Played:
    """A batch, and the calls of generation that made it."""

    batch: DrawnBatch
    calls: list[list[tuple[str, int]]]

    @property
    def kept(self) -> list[tuple[str, list[int]]]:
        """Problem and samples of every group that is learned from."""
        return [_samples(graded) for graded in self.batch.kept]

    @property
    def not_kept(self) -> list[tuple[str, list[int]]]:
        """Problem and samples of what is not."""
        return [_samples(graded) for graded in self.batch.not_kept]


def _samples(graded: Graded) -> tuple[str, list[int]]:
    return graded.group.problem.problem_id, [rollout.sample for rollout in graded.group.rollouts]


def play(drawing: Drawing, problems: Sequence[Problem], reserve: Sequence[Problem] = (), **changes: object) -> Played:
    """Groups of two, four rounds, three refills, with changes."""
    settings = {"group_size": 2, "max_rounds": 4, "max_refills": 3, "keep": Keep.FIRST_G, **changes}
    plan = DrawPlan(problems=tuple(problems), reserve=tuple(reserve), spec=SPEC, address=FIRST, **settings)
    policy = ScriptedPolicy([*problems, *reserve])
    return Played(batch=STRATEGIES[drawing].draw(policy, grade, plan), calls=policy.calls)

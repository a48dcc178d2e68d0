"""Rollouts written by hand."""

import pytest

from deadheat.archive import Credited, RolloutSource
from deadheat.types import Completion, Problem, Rollout, Score, StopReason


def problem(name: str) -> Problem:
    return Problem(
        task="addition", problem_id=name, prompt=f"Problem: {name}\nAnswer:", reference="3", columns={"d": 1}
    )


def rollout(name: str, sample: int, text: str, value: float | None) -> Rollout:
    completion = Completion(
        tokens=(5, 7),
        logprobs=(-0.5, -0.25),
        plain_logprobs=(-1.0, -2.0),
        margins=None,
        text=text,
        stop=StopReason.STOP,
        key=2**64 - 1 - sample,
    )
    score = (
        Score(value=None, unscored="checker raised ValueError: no")
        if value is None
        else Score(value=value, correct=value == 1.0, answer=text, parts={"exact": value})
    )
    return Rollout(problem=problem(name), sample=sample, completion=completion, score=score)


@pytest.fixture
def source() -> RolloutSource:
    return RolloutSource(run="small", arm="checker", seed=1, purpose="train", step=3, temperature=1.0)


@pytest.fixture
def credited() -> list[Credited]:
    """Two groups of two; the last attempt is unscored."""
    said = [
        ("1+2", 0, "3", 1.0, 1.0),
        ("1+2", 1, "4", 0.0, -1.0),
        ("2+1", 0, "3", 1.0, 0.0),
        ("2+1", 1, "?", None, 0.0),
    ]
    return [
        Credited(
            rollout=rollout(name, sample, text, value),
            prompt_length=9,
            reward=value,
            advantage=advantage,
            kind="live" if name == "1+2" else "all_right",
        )
        for name, sample, text, value, advantage in said
    ]

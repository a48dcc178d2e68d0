"""The task's checker as a scorer: a failing check is unscored, never zero."""

from collections.abc import Sequence
from typing import Self

from deadheat.tasks import Task
from deadheat.tasks.timed import open_checker
from deadheat.types import Drawn, Group, Problem, Rollout, Score, Scorer


class CheckerScorer:
    """Grades with `task.check`; checkers that are not trusted run in a child process under a time limit."""

    def __init__(self, task: Task, *, limit_s: float | None = None) -> None:
        self._check = open_checker(task, limit_s=limit_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._check.close()

    def __call__(self, problems: Sequence[Problem], texts: Sequence[str]) -> list[Score]:
        """One score per (problem, text) pair; equal pairs are checked once."""
        memo: dict[tuple[str, str], Score] = {}
        for problem, text in zip(problems, texts, strict=True):
            address = (problem.problem_id, text)
            if address not in memo:
                memo[address] = self._check(problem, text)
        return [memo[problem.problem_id, text] for problem, text in zip(problems, texts, strict=True)]


def grade(drawn: Sequence[Drawn], scorer: Scorer) -> list[Group]:
    """Scores every completion in one call and returns the groups."""
    problems = [d.problem for d in drawn for _ in d.completions]
    texts = [completion.text for d in drawn for completion in d.completions]
    scores = iter(scorer(problems, texts))
    return [
        Group(
            problem=d.problem,
            prompt_length=d.prompt_length,
            rollouts=tuple(
                Rollout(problem=d.problem, sample=d.first_sample + index, completion=completion, score=next(scores))
                for index, completion in enumerate(d.completions)
            ),
        )
        for d in drawn
    ]

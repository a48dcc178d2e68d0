"""A checker as a scorer: text by text, and a failing check is unscored, never zero."""

from collections.abc import Callable, Sequence
from typing import Self

from deadheat.tasks import Task
from deadheat.tasks.timed import open_checker
from deadheat.types import Address, Group, Problem, Score, Scorer


class PerText:
    """Scores each text by itself; equal texts of a problem are checked once per call."""

    def __init__(self, check: Callable[[Problem, str], Score], *, close: Callable[[], None] = lambda: None) -> None:
        self._check, self._close = check, close

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._close()

    def score(self, groups: Sequence[Group], *, address: Address) -> list[tuple[Score, ...]]:
        """Per group, one score per rollout."""
        pairs = [(group.problem, rollout.completion.text) for group in groups for rollout in group.rollouts]
        scores = iter(self.check_all([problem for problem, _ in pairs], [text for _, text in pairs]))
        return [tuple(next(scores) for _ in group.rollouts) for group in groups]

    def check_all(self, problems: Sequence[Problem], texts: Sequence[str]) -> list[Score]:
        """One score per (problem, text) pair."""
        memo: dict[tuple[str, str], Score] = {}
        for problem, text in zip(problems, texts, strict=True):
            place = (problem.problem_id, text)
            if place not in memo:
                memo[place] = self._check(problem, text)
        return [memo[problem.problem_id, text] for problem, text in zip(problems, texts, strict=True)]


def per_text(check: Callable[[Problem, str], Score]) -> PerText:
    """A function of (problem, text) as a scorer."""
    return PerText(check)


class CheckerScorer(PerText):
    """Grades with `task.check`; checkers that are not trusted run in a child process under a time limit."""

    def __init__(self, task: Task, *, limit_s: float | None = None) -> None:
        checker = open_checker(task, limit_s=limit_s)
        super().__init__(checker, close=checker.close)


def scored(groups: Sequence[Group], scorer: Scorer, *, address: Address) -> list[Group]:
    """The groups with their scores, all in one call of the scorer."""
    scores_PG = scorer.score(groups, address=address)
    return [group.with_scores(scores_G) for group, scores_G in zip(groups, scores_PG, strict=True)]

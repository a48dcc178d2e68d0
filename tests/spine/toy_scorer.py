"""A scorer from outside that sees whole groups: the rank of each answer's length, ties broken at the group's address."""

from collections.abc import Sequence
from typing import Self

from deadheat.sampling.keys import stream_key
from deadheat.scorers import SCORERS, CheckerScorer, ScorerKind
from deadheat.types import Address, Group, Score

NAME = "toy_ranks"


class RankScorer:
    """From 1 for the shortest answer down to 0 for the longest; the checker's grade beside it."""

    def __init__(self, checker: CheckerScorer) -> None:
        self._checker = checker

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._checker.__exit__(*exc)

    def score(self, groups: Sequence[Group], *, address: Address) -> list[tuple[Score, ...]]:
        """Ranks need the group, and their ties an address."""
        graded = self._checker.score(groups, address=address)
        return [_ranked(group, grades, address) for group, grades in zip(groups, graded, strict=True)]


def _ranked(group: Group, grades: Sequence[Score], address: Address) -> tuple[Score, ...]:
    def place(index: int) -> tuple[int, int]:
        sample = group.rollouts[index].sample
        tie = stream_key(address.seed, "toy-ranks", address.step, group.problem.digest, sample)
        return len(group.rollouts[index].completion.text), tie

    order = sorted(range(len(group.rollouts)), key=place)
    last = max(1, len(order) - 1)
    return tuple(
        Score(value=1.0 - order.index(index) / last, correct=grade.correct, answer=grade.answer, parsed=grade.parsed)
        for index, grade in enumerate(grades)
    )


def register() -> None:
    """Into the table, once."""
    SCORERS[NAME] = ScorerKind(open=lambda task, limit_s: RankScorer(CheckerScorer(task, limit_s=limit_s)))

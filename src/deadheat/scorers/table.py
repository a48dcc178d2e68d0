"""The scorers by name. A new one is one file and one entry here, or in the table from outside."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from deadheat.scorers.checker import CheckerScorer
from deadheat.scorers.controls import plant
from deadheat.tasks import Task
from deadheat.types import Scorer

Rewards = NDArray[np.float64]


class OpenScorer(Scorer, AbstractContextManager["OpenScorer"], Protocol):
    """A scorer that may hold a process or a connection while it is open."""


class Control(Protocol):
    """What a control makes of a group's training rewards."""

    def __call__(self, rewards_G: Rewards, *, seed: int, step: int, problem_digest: str) -> Rewards:
        """[G], NaN where it was NaN."""


@dataclass(frozen=True, kw_only=True)
class ScorerKind:
    """One way of scoring."""

    open: Callable[[Task, float | None], OpenScorer]  # from the task and the time limit of one check
    control: Control | None = None  # applied to what is learned from, after shaping; None: nothing is


def _checker(task: Task, limit_s: float | None) -> OpenScorer:
    return CheckerScorer(task, limit_s=limit_s)


SCORERS: dict[str, ScorerKind] = {
    "checker": ScorerKind(open=_checker),  # the task's checker
    "plant": ScorerKind(open=_checker, control=plant),  # its rewards, permuted within each group
}

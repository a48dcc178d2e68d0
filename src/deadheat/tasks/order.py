"""What each step trains on: a pure function of (seed, step), so that a resumed run needs no state and arms agree.

Training steps count from 1 (step 0 is the evaluation before training). With q questions per step and n problems there
are ⌊n/q⌋ steps in an epoch; each epoch has its own keyed order, so that the n mod q problems an epoch leaves over
differ from epoch to epoch and a step never holds the same problem twice. File order has no epochs: it goes round.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import lru_cache

from pydantic import BaseModel, ConfigDict, Field

from deadheat.errors import ConfigError, TaskError
from deadheat.sampling.keys import permutation, stream_key
from deadheat.tasks.pools import column_of, stratified_order
from deadheat.types import Problem


class Order(StrEnum):
    """In which order the chosen problems come."""

    SHUFFLE = "shuffle"  # a keyed permutation per epoch
    FILE = "file"  # as in the training pool, round and round, the same for every seed
    STRATIFIED = "stratified"  # keyed, every stretch holding the strata of `columns` in proportion
    EASY_FIRST = "easy_first"  # ascending `level_column`, keyed among equals, from the easiest again each epoch


class Curriculum(BaseModel):
    """Which training problems are used, and in which order. Filters apply first: where, level range, first_n."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    order: Order = Order.SHUFFLE
    where: Mapping[str, str | int | float] = Field(
        default_factory=dict
    )  # keep column == value, e.g. subject = "Algebra"
    level_min: float | None = None  # keep level_column >= this; None: no lower end
    level_max: float | None = None  # keep level_column <= this; None: no upper end
    level_column: str = "level"  # the column of level_min, level_max and easy_first
    columns: tuple[str, ...] = ("subject", "level")  # the strata of `stratified`
    first_n: int | None = Field(default=None, ge=1)  # keep the first n that pass the filters; None: all


class ProblemOrder:
    """The problems of every step of a run."""

    def __init__(self, problems: Sequence[Problem], *, seed: int, curriculum: Curriculum) -> None:
        self.problems = tuple(problems)
        self._seed = seed
        self._curriculum = curriculum
        self._epoch = lru_cache(maxsize=2)(self._compute_epoch)

    def batch(self, step: int, questions_per_step: int) -> tuple[Problem, ...]:
        """The problems of training step `step`, counted from 1; a pure function of (seed, step)."""
        num = len(self.problems)
        if step < 1:
            raise ValueError(f"step is {step}; training steps count from 1")
        if not 1 <= questions_per_step <= num:
            raise ConfigError(
                f"questions_per_step is {questions_per_step}; wanted 1 to {num}, the number of training problems chosen"
            )
        if self._curriculum.order is Order.FILE:
            start = (step - 1) * questions_per_step
            return tuple(self.problems[(start + i) % num] for i in range(questions_per_step))
        epoch, within = divmod(step - 1, num // questions_per_step)
        return self._epoch(epoch)[within * questions_per_step : (within + 1) * questions_per_step]

    def reserve(self, step: int, questions_per_step: int) -> tuple[Problem, ...]:
        """All other problems in the order of step `step`: what follows its batch, around to what came before it."""
        batch = self.batch(step, questions_per_step)
        if self._curriculum.order is Order.FILE:
            start = step * questions_per_step
            rest = len(self.problems) - questions_per_step
            return tuple(self.problems[(start + i) % len(self.problems)] for i in range(rest))
        epoch, within = divmod(step - 1, len(self.problems) // questions_per_step)
        everyone, start = self._epoch(epoch), within * questions_per_step
        return everyone[start + len(batch) :] + everyone[:start]

    def _compute_epoch(self, epoch: int) -> tuple[Problem, ...]:
        key = stream_key(self._seed, "problem-order", epoch)
        if self._curriculum.order is Order.STRATIFIED:
            return stratified_order(self.problems, self._curriculum.columns, key=key)
        shuffled = [self.problems[i] for i in permutation(key, len(self.problems))]
        if self._curriculum.order is Order.EASY_FIRST:
            shuffled.sort(key=lambda problem: level_of(problem, self._curriculum.level_column))
        return tuple(shuffled)


def problem_order(training: Sequence[Problem], *, seed: int, curriculum: Curriculum | None = None) -> ProblemOrder:
    """The order in which a run with this seed sees the training pool (default curriculum: shuffle)."""
    chosen = Curriculum() if curriculum is None else curriculum
    problems = choose(training, chosen)
    if chosen.order is Order.EASY_FIRST:
        for problem in problems:
            level_of(problem, chosen.level_column)
    if chosen.order is Order.STRATIFIED:
        for problem in problems:
            for name in chosen.columns:
                column_of(problem, name)
    return ProblemOrder(problems, seed=seed, curriculum=chosen)


def choose(training: Sequence[Problem], curriculum: Curriculum) -> tuple[Problem, ...]:
    """The training problems that pass the curriculum's filters, in file order."""
    kept = [p for p in training if _passes(p, curriculum)][: curriculum.first_n]
    if not kept:
        raise TaskError(
            f"the curriculum keeps none of {len(training)} training problems (where={dict(curriculum.where)}, "
            f"{curriculum.level_column} from {curriculum.level_min} to {curriculum.level_max}); loosen a filter"
        )
    return tuple(kept)


def level_of(problem: Problem, column: str) -> float:
    """A problem's level as a number, or a TaskError."""
    value = column_of(problem, column)
    if isinstance(value, str):
        raise TaskError(f"problem {problem.problem_id!r} has {column} = {value!r}; a level range wants a number")
    return float(value)


def _passes(problem: Problem, curriculum: Curriculum) -> bool:
    if any(column_of(problem, name) != value for name, value in curriculum.where.items()):
        return False
    if curriculum.level_min is None and curriculum.level_max is None:
        return True
    level = level_of(problem, curriculum.level_column)
    low = float("-inf") if curriculum.level_min is None else curriculum.level_min
    high = float("inf") if curriculum.level_max is None else curriculum.level_max
    return low <= level <= high

"""Name a larger number: `above 417:` is answered by any number from 418 to 999.

    above 417: 803

There are many right answers, and the shown ones lie at N + ⌈u²·(999 − N)⌉ with u uniform on (0, 1]: near N more
often than far from it. A policy that has only seen examples bets as they do and often falls short; what there is to
learn is to bet high. That moves probability and needs no new fact, so it carries over to held-out numbers.
"""

import math
from typing import Literal

from pydantic import Field

from deadheat.errors import TaskError
from deadheat.sampling.keys import permutation, uniforms
from deadheat.tasks.config import TaskConfig
from deadheat.tasks.pools import pool_key
from deadheat.tasks.task import Task
from deadheat.types import Problem, Score

EXTRACTION = "above/answer-line/v1"
LOWEST, HIGHEST = 100, 998  # the numbers asked about
TOP = 999  # the largest right answer


class AboveConfig(TaskConfig):
    """Options of `above`."""

    name: Literal["above"] = "above"
    held_out: int = Field(default=200, ge=0)  # size of the held-out pool; all other numbers are trained on
    split_seed: int = Field(
        default=0, ge=0
    )  # which keyed split and shown answers; every arm and seed of a race shares them


def build_above(config: AboveConfig) -> Task:
    """The task of this config."""
    num_numbers = HIGHEST - LOWEST + 1
    if config.held_out >= num_numbers:
        raise TaskError(
            f"{config.held_out} held-out numbers wanted; from {LOWEST} to {HIGHEST} there are {num_numbers}, and one at "
            "least must be left to train on: lower held_out"
        )
    shares = uniforms(pool_key("above/shown", config.split_seed), num_numbers)
    order = permutation(pool_key("above", config.split_seed), num_numbers)
    problems = tuple(problem_of(LOWEST + int(i), share_frac=float(shares[i])) for i in order)
    return Task(
        name=config.name,
        training=problems[config.held_out :],
        held_out=problems[: config.held_out],
        check=check_above,
        gold_text=gold_above,
        stop_text="\n",
        chat=False,
        max_new_tokens=6,
        extraction=EXTRACTION,
        trusted_checker=True,
        facts=f"Numbers from {LOWEST} to {HIGHEST}; any larger number up to {TOP} is right.",
    )


def problem_of(number: int, *, share_frac: float) -> Problem:
    """One question; its reference is the right answer that is shown to a policy before it learns."""
    return Problem(
        task="above",
        problem_id=str(number),
        prompt=f"above {number}:",
        reference=str(shown_answer(number, share_frac)),
        columns={"hundreds": number // 100},
    )


def shown_answer(number: int, share_frac: float) -> int:
    """N + ⌈(1 − u)²·(999 − N)⌉ for a uniform u in [0, 1), so that 1 − u is in (0, 1].

    Example:
        >>> shown_answer(599, 0.5), shown_answer(599, 0.0), shown_answer(998, 0.9)
        (699, 999, 999)
    """
    return number + math.ceil((1 - share_frac) ** 2 * (TOP - number))


def check_above(problem: Problem, text: str) -> Score:
    """1 where the answer line is one number above the problem's and no larger than 999."""
    line = text.partition("\n")[0].strip()
    if not (line.isascii() and line.isdigit()):
        return Score(value=0.0, correct=False, answer=None, parsed=False)
    right = int(problem.problem_id) < int(line) <= TOP
    return Score(value=float(right), correct=right, answer=line)


def gold_above(problem: Problem) -> str:
    """The completion of a policy that is right."""
    return f" {problem.reference}\n"

"""Addition of two numbers below a limit, with two worked examples in the prompt and the answer alone on its line.

The worked examples come first and the question last, so that the prompts of all problems share every token up to the
two numbers. A completion is one line: generation stops at the newline. Its line must be the sum and nothing else; a
line without any integer is a parse failure, apart from a wrong answer.

Held-out sums are drawn as unordered pairs: where 12 + 30 is held out, 30 + 12 is in neither pool.
"""

import re
from typing import Literal

from pydantic import Field

from deadheat.errors import TaskError
from deadheat.sampling.keys import permutation, uniforms
from deadheat.tasks.config import TaskConfig
from deadheat.tasks.pools import pool_key
from deadheat.tasks.task import Task
from deadheat.types import Problem, Score

EXTRACTION = "addition/answer-line/v1"
EXAMPLES = ((12, 35), (28, 7))

_INTEGER = re.compile(r"[+-]?\d+")
_FACTS = (
    "Sums of two numbers below {limit}, two worked examples in the prompt, exact answer line. SmolLM2-135M-Instruct, "
    "untrained, below 50: greedy 0.28 on the first 60 held-out sums; half of its groups of 8 mixed at temperature 1."
)


class AdditionConfig(TaskConfig):
    """Options of `addition`."""

    name: Literal["addition"] = "addition"
    limit: int = Field(default=50, ge=5, le=1000)  # both numbers are below this
    held_out: int = Field(default=200, ge=0)  # size of the held-out pool
    training: int | None = Field(default=None, ge=1)  # size of the training pool; None: all that is left, up to 5,000
    split_seed: int = Field(default=0, ge=0)  # which keyed split; every arm and seed of a race shares it


def build_addition(config: AdditionConfig) -> Task:
    """The task of this config."""
    pairs = _keyed_pairs(config)
    num_training = min(5000, len(pairs) - config.held_out) if config.training is None else config.training
    if config.held_out + num_training > len(pairs) or num_training < 1:
        raise TaskError(
            f"{config.held_out} held-out and {num_training} training sums wanted; below {config.limit} there are "
            f"{len(pairs)} pairs: raise limit or lower held_out and training"
        )
    held_out = pairs[: config.held_out]
    rest = pairs[config.held_out : config.held_out + num_training]
    return Task(
        name=config.name,
        training=tuple(_problem(a, b) for a, b in rest),
        held_out=tuple(_problem(a, b) for a, b in held_out),
        check=check_sum,
        gold_text=gold_sum,
        stop_text="\n",
        chat=False,
        max_new_tokens=8,
        extraction=EXTRACTION,
        trusted_checker=True,
        facts=_FACTS.format(limit=config.limit),
    )


def prompt(a: int, b: int) -> str:
    """The text before the answer."""
    shown = "".join(f"Problem: {x} + {y}\nAnswer: {x + y}\n\n" for x, y in EXAMPLES)
    return f"{shown}Problem: {a} + {b}\nAnswer:"


def _keyed_pairs(config: AdditionConfig) -> list[tuple[int, int]]:
    """Every unordered pair but the worked examples, in keyed order, each in a keyed one of its two orders."""
    shown = {tuple(sorted(pair)) for pair in EXAMPLES}
    pairs = [(a, b) for a in range(config.limit) for b in range(a, config.limit) if (a, b) not in shown]
    key = pool_key("addition", config.split_seed)
    swapped = uniforms(pool_key("addition/order", config.split_seed), len(pairs)) < 0.5
    return [pairs[i][::-1] if swapped[i] else pairs[i] for i in permutation(key, len(pairs))]


def _problem(a: int, b: int) -> Problem:
    return Problem(
        task="addition",
        problem_id=f"{a}+{b}",
        prompt=prompt(a, b),
        reference=str(a + b),
        columns={"carry": "yes" if carries(a, b) else "no", "digits": len(str(max(a, b)))},
    )


def carries(a: int, b: int) -> bool:
    """Whether some column of the written sum carries.

    Example:
        >>> carries(12, 35), carries(28, 7), carries(95, 3)
        (False, True, False)
    """
    while a and b:
        if a % 10 + b % 10 > 9:
            return True
        a, b = a // 10, b // 10
    return False


def check_sum(problem: Problem, text: str) -> Score:
    """1 where the answer line is the sum and nothing else."""
    line = text.partition("\n")[0].strip()
    if _INTEGER.search(line) is None:
        return Score(value=0.0, correct=False, answer=None, parsed=False)
    correct = _INTEGER.fullmatch(line) is not None and int(line) == int(problem.reference)
    return Score(value=float(correct), correct=correct, answer=line)


def gold_sum(problem: Problem) -> str:
    """The completion of a policy that is right."""
    return f" {problem.reference}\n"

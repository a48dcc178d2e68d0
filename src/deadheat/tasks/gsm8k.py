"""GSM8K (Cobbe et al. 2021, arXiv:2110.14168): grade-school word problems whose answer is one number after "####".

From a local folder with train.jsonl and test.jsonl (fields question, answer), or from a hub. Numbers are compared as
numbers, whatever their notation (`answers`): units and words beside them do not count, but for million and the like, which
may be part of the number or of the question. Training problems whose content
is also in the test set are dropped.
"""

import re
from enum import StrEnum
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import Field

from deadheat.errors import TaskError
from deadheat.tasks.answers import Extraction, final_number, marked_answer, one_number
from deadheat.tasks.config import TaskConfig
from deadheat.tasks.files import Row, fetch, read_rows
from deadheat.tasks.pools import given_pools, pool_key
from deadheat.tasks.task import Task
from deadheat.tasks.units import SCALES
from deadheat.types import Problem, Score

_CALCULATOR = re.compile(r"<<[^<>]*>>")
_BOXED = "\n\nReason step by step, and write the final number inside \\boxed{}."
_WORKED = (
    "Question: A box holds 6 eggs. How many eggs are in 4 boxes, if 3 eggs broke?\n"
    "Answer: 4 boxes hold 4 * 6 = 24 eggs. 24 - 3 = 21 eggs are left.\n#### 21\n\n"
    "Question: Ann has $20. She buys 2 books for $7 each. How many dollars does she have now?\n"
    "Answer: The books cost 2 * 7 = 14 dollars. 20 - 14 = 6 dollars are left.\n#### 6\n\n"
)
_SPLITS = {"train": "main/train-00000-of-00001.parquet", "test": "main/test-00000-of-00001.parquet"}


class Style(StrEnum):
    """How the answer is asked for."""

    BOXED = "boxed"  # chat: reason, then \\boxed{…}
    WORKED = "worked"  # plain text: two worked examples first, the answer after "####"; ends at a blank line


class Gsm8kConfig(TaskConfig):
    """Options of `gsm8k`."""

    name: Literal["gsm8k"] = "gsm8k"
    data: str = "hf:openai/gsm8k"  # hf:ORG/NAME[@REV], or a folder with train.jsonl and test.jsonl
    style: Style = Style.BOXED
    extraction: Extraction = Extraction.LAST_NUMBER  # which rule finds the number
    held_out: int | None = Field(default=None, ge=1)  # size of the held-out pool, from the test set; None: all of it
    split_seed: int = Field(default=0, ge=0)  # which keyed order the held-out pool has
    max_new_tokens: int = Field(default=256, ge=1)


def build_gsm8k(config: Gsm8kConfig) -> Task:
    """The task of this config."""
    train, test = (
        [_problem(row, f"{split}/{i}", config.style) for i, row in enumerate(_rows(config.data, split))]
        for split in ("train", "test")
    )
    key = pool_key("gsm8k", config.split_seed)
    pools = given_pools(train, test, num_held_out=config.held_out, key=key)
    return Task(
        name=config.name,
        training=pools.training,
        held_out=pools.held_out,
        check=partial(check_number, rule=config.extraction),
        gold_text=gold_boxed if config.style is Style.BOXED else gold_hashed,
        stop_text=None if config.style is Style.BOXED else "\n\n",
        chat=config.style is Style.BOXED,
        max_new_tokens=config.max_new_tokens,
        marker="\\boxed" if config.style is Style.BOXED else "####",
        extraction=f"gsm8k/{config.extraction.value}",
        trusted_checker=True,
        facts=f"GSM8K from {config.data}: {len(pools.training)} training and {len(pools.held_out)} held-out word "
        f"problems with one number each; {pools.num_dropped} repeated ones dropped.",
    )


def _rows(data: str, split: str) -> list[Row]:
    path = fetch(data, _SPLITS[split]) if data.startswith("hf:") else Path(data).expanduser() / f"{split}.jsonl"
    return read_rows(path, fields=("question", "answer"))


def _problem(row: Row, problem_id: str, style: Style) -> Problem:
    question, solution = str(row["question"]).strip(), str(row["answer"])
    worked, marker, answer = solution.rpartition("####")
    if not marker or one_number(answer) is None:
        raise TaskError(f"gsm8k {problem_id}: its answer ends {solution[-40:]!r}; wanted '#### ' and one number")
    return Problem(
        task="gsm8k",
        problem_id=problem_id,
        prompt=question + _BOXED if style is Style.BOXED else f"{_WORKED}Question: {question}\nAnswer:",
        reference=answer.strip(),
        columns={"num_steps": max(1, len(_CALCULATOR.findall(worked)))},
    )


def check_number(problem: Problem, text: str, *, rule: Extraction) -> Score:
    """1 where the final number equals the reference as a number."""
    answer = final_number(text, rule)
    if answer is None:
        return Score(value=0.0, correct=False, answer=None, parsed=False)
    reference = one_number(problem.reference)
    correct = reference is not None and (answer == reference or answer in _scaled(reference, text))
    return Score(value=float(correct), correct=correct, answer=str(answer))


def _scaled(reference: Fraction, text: str) -> set[Fraction]:
    """The reference times a million where the answer says so: "how many millions" is answered by 5 and by 5 million."""
    said = set(re.findall(r"[a-z]+", (marked_answer(text) or "").lower())) & set(SCALES)
    return {reference * 10 ** SCALES[word] for word in said}


def gold_boxed(problem: Problem) -> str:
    """The shortest completion that is right, in the boxed style."""
    return f" The answer is \\boxed{{{problem.reference}}}."


def gold_hashed(problem: Problem) -> str:
    """The shortest completion that is right, in the worked style."""
    return f" The answer is {problem.reference}.\n#### {problem.reference}\n\n"

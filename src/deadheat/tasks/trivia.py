"""Closed-book questions with short answers, from a local file. Two readings of the same answer line:

    strict    the normalised answer equals a normalised reference
    tolerant  a normalised reference occurs in it as a contiguous run of tokens ("the city of Paris, France": Paris)

Normalising (as in TriviaQA, Joshi et al. 2017): Unicode NFKC, case folded, punctuation to spaces, the articles a, an and
the dropped. Both readings are in the score's parts; `scoring` says which one is the value and `correct`. A reference of
many words cannot be met by a lucky token, a one-letter one can: tolerant scores flatter long answers.
"""

import re
import unicodedata
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import Field

from deadheat.errors import TaskError
from deadheat.tasks.config import TaskConfig
from deadheat.tasks.files import Row, read_rows
from deadheat.tasks.pools import pool_key, split_pools
from deadheat.tasks.task import Task
from deadheat.types import Problem, Score

_ARTICLES = {"a", "an", "the"}
_WORD = re.compile(r"\w+")
_ALIASES = ("correct_answers", "aliases", "answers")
_WORKED = (
    "Question: What is the largest planet of the solar system?\nAnswer: Jupiter\n\n"
    "Question: In which country does the river Rhine reach the sea?\nAnswer: The Netherlands\n\n"
)


class Scoring(StrEnum):
    """Which reading is the value."""

    STRICT = "strict"  # equal to a reference
    TOLERANT = "tolerant"  # holds a reference


class TriviaConfig(TaskConfig):
    """Options of `trivia`."""

    name: Literal["trivia"] = "trivia"
    file: str  # rows with question, and answer or best_answer; alias lists: correct_answers, aliases or answers
    scoring: Scoring = Scoring.STRICT
    held_out: int = Field(default=200, ge=0)
    split_seed: int = Field(default=0, ge=0)  # which keyed split
    max_new_tokens: int = Field(default=24, ge=1)


def build_trivia(config: TriviaConfig) -> Task:
    """The task of this config. Questions asked again in the same words are dropped."""
    path = Path(config.file).expanduser()
    problems = [_problem(row, i, path) for i, row in enumerate(read_rows(path, fields=["question"]))]
    pools = split_pools(problems, num_held_out=config.held_out, key=pool_key("trivia", config.split_seed))
    return Task(
        name=config.name,
        training=pools.training,
        held_out=pools.held_out,
        check=partial(check_trivia, scoring=config.scoring),
        gold_text=gold_trivia,
        stop_text="\n",
        chat=False,
        max_new_tokens=config.max_new_tokens,
        extraction=f"trivia/{config.scoring.value}/v1",
        trusted_checker=True,
        facts=f"{len(pools.training)} training and {len(pools.held_out)} held-out questions of {path.name}, "
        f"{config.scoring.value} scoring; {pools.num_dropped} repeated ones dropped.",
    )


def _problem(row: Row, number: int, path: Path) -> Problem:
    main = row.get("answer", row.get("best_answer"))
    references = [] if main is None else [str(main)]
    for name in _ALIASES:
        listed = row.get(name)
        references += [str(alias) for alias in listed] if isinstance(listed, list) else []
    references = [" ".join(text.split()) for text in dict.fromkeys(references) if normalised(text)]
    if not references:
        raise TaskError(f"{path}, row {number + 1}: no answer with a word in it; wanted answer or best_answer")
    columns: dict[str, str | int | float] = {"num_references": len(references)}
    if isinstance(row.get("category"), str):
        columns["category"] = str(row["category"])
    return Problem(
        task="trivia",
        problem_id=str(number),
        prompt=f"{_WORKED}Question: {' '.join(str(row['question']).split())}\nAnswer:",
        reference="\n".join(references),
        columns=columns,
    )


def normalised(text: str) -> list[str]:
    """The words of a text that count.

    Example:
        >>> normalised("The U.S. of A!"), normalised("“Paris”")
        (['u', 's', 'of'], ['paris'])
    """
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    return [word for word in words if word not in _ARTICLES]


def holds(words: list[str], run: list[str]) -> bool:
    """Whether `run` occurs in `words` contiguously.

    Example:
        >>> holds(["city", "of", "paris"], ["of", "paris"]), holds(["paris", "of"], ["of", "paris"])
        (True, False)
    """
    return any(words[i : i + len(run)] == run for i in range(len(words) - len(run) + 1))


def check_trivia(problem: Problem, text: str, *, scoring: Scoring) -> Score:
    """Grades the answer line against every reference; a line without a word is a parse failure."""
    line = text.partition("\n")[0].strip()
    words = normalised(line)
    if not words:
        return Score(value=0.0, correct=False, answer=None, parsed=False, parts={"strict": 0.0, "tolerant": 0.0})
    references = [normalised(reference) for reference in problem.reference.split("\n")]
    parts = {
        "strict": float(words in references),
        "tolerant": float(any(holds(words, reference) for reference in references)),
    }
    value = parts[scoring.value]
    return Score(value=value, correct=value == 1.0, answer=line, parts=parts)


def gold_trivia(problem: Problem) -> str:
    """The completion of a policy that gives the first reference."""
    return f" {problem.reference.partition(chr(10))[0]}\n"

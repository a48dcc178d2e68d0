"""Competition mathematics (MATH, Hendrycks et al. 2021, arXiv:2103.03874; MATH-500) from local files.

The answer is the last box of the completion that holds something (`boxes`). It is right where it is spelled like the
reference, where a rule of `equality` says so, or, where no rule speaks, where math-verify finds the two equal. Symbolic
comparison can run away, so this checker runs in a child process under a time limit; math-verify's own alarm is switched
off, as it does not fire inside compiled code.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from deadheat.errors import TaskError
from deadheat.tasks.boxes import boxed
from deadheat.tasks.config import TaskConfig
from deadheat.tasks.equality import equal, spelling
from deadheat.tasks.files import Row, read_rows
from deadheat.tasks.pools import Pools, given_pools, pool_key, split_pools
from deadheat.tasks.task import Task
from deadheat.types import Problem, Score

EXTRACTION = "math/boxed/v2"

_ASK = "\n\nReason step by step, and write the final answer inside \\boxed{}."
_LEVEL = re.compile(r"\d+")


class MathConfig(TaskConfig):
    """Options of `math`."""

    name: Literal["math"] = "math"
    training_file: str  # rows with problem, and answer or solution; subject or type, and level where there are any
    held_out_file: str | None = None  # like training_file; None: the held-out pool is split off the training file
    held_out: int | None = Field(default=None, ge=0)  # its size; None: all of held_out_file, or 200 split off
    stratified: bool = True  # hold out subjects × levels in proportion, so that every smaller pool does too
    split_seed: int = Field(default=0, ge=0)  # which keyed order the held-out pool has
    max_new_tokens: int = Field(default=512, ge=1)
    check_limit_s: float = Field(default=10.0, gt=0)  # time limit of one comparison


def build_math(config: MathConfig) -> Task:
    """The task of this config."""
    pools = _pools(config)
    return Task(
        name=config.name,
        training=pools.training,
        held_out=pools.held_out,
        check=BoxedCheck(),
        gold_text=gold_boxed,
        stop_text=None,
        chat=True,
        max_new_tokens=config.max_new_tokens,
        marker="\\boxed",
        extraction=EXTRACTION,
        check_limit_s=config.check_limit_s,
        facts=f"{len(pools.training)} training problems of {Path(config.training_file).name}, {len(pools.held_out)} held "
        f"out; {pools.num_dropped} repeated ones dropped. Graded by spelling, by rules, then by math-verify.",
    )


def _pools(config: MathConfig) -> Pools:
    training = _problems(Path(config.training_file).expanduser(), "train")
    key = pool_key("math", config.split_seed)
    if config.held_out_file is None:
        num = 200 if config.held_out is None else config.held_out
        return split_pools(training, num_held_out=num, key=key, strata=_strata(training, config))
    held_out = _problems(Path(config.held_out_file).expanduser(), "test")
    return given_pools(training, held_out, num_held_out=config.held_out, key=key, strata=_strata(held_out, config))


def _strata(problems: list[Problem], config: MathConfig) -> tuple[str, ...]:
    shared = set.intersection(*(set(p.columns) for p in problems))
    return tuple(name for name in ("subject", "level") if name in shared) if config.stratified else ()


def _problems(path: Path, split: str) -> list[Problem]:
    return [_problem(row, f"{split}/{i}", path) for i, row in enumerate(read_rows(path, fields=["problem"]))]


def _problem(row: Row, problem_id: str, path: Path) -> Problem:
    answer = row["answer"] if row.get("answer") is not None else boxed(str(row.get("solution", "")))
    if answer is None:
        raise TaskError(f"{path}, {problem_id}: neither an answer nor a \\boxed{{}} in a solution; wanted one of them")
    columns: dict[str, str | int | float] = {}
    subject = row.get("subject", row.get("type"))
    if subject is not None:
        columns["subject"] = str(subject)
    level = _LEVEL.search(str(row.get("level", "")))
    if level is not None:
        columns["level"] = int(level[0])
    return Problem(
        task="math",
        problem_id=problem_id,
        prompt=str(row["problem"]).strip() + _ASK,
        reference=str(answer),
        columns=columns,
    )


@dataclass(frozen=True, kw_only=True)
class BoxedCheck:
    """`check_boxed` with its slow first call taken out of the first answer's time."""

    def prepare(self) -> None:
        """Has math-verify build its grammar."""
        equal("x+1", "1+x")

    def __call__(self, problem: Problem, text: str) -> Score:
        """What `check_boxed` says."""
        return check_boxed(problem, text)


def check_boxed(problem: Problem, text: str) -> Score:
    """1 where the last boxed answer equals the reference."""
    answer = boxed(text)
    if not answer:
        return Score(value=0.0, correct=False, answer=None, parsed=False)
    same = spelling(answer) == spelling(problem.reference)
    correct = same or equal(problem.reference, answer)
    return Score(value=float(correct), correct=correct, answer=answer, parts={"same_spelling": float(same)})


def gold_boxed(problem: Problem) -> str:
    """The shortest completion that is right."""
    return f" The answer is \\boxed{{{problem.reference}}}."

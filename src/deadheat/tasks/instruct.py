"""Open-ended instructions from a local JSON file. There is no checker: a reward model or a judge has to score them.

`check` leaves every completion unscored and `correct` None, so that no figure can mistake such a task for a graded one.
"""

from pathlib import Path
from typing import Literal

from pydantic import Field

from deadheat.tasks.config import TaskConfig
from deadheat.tasks.files import Row, read_rows
from deadheat.tasks.pools import pool_key, split_pools
from deadheat.tasks.task import Task
from deadheat.types import Problem, Score

_WHY = "task instruct has no checker; score it with a reward model or a judge"


class InstructConfig(TaskConfig):
    """Options of `instruct`."""

    name: Literal["instruct"] = "instruct"
    file: str  # rows with instruction; input or context (further text) and output or response where there are any
    held_out: int = Field(default=100, ge=0)
    split_seed: int = Field(default=0, ge=0)  # which keyed split
    max_new_tokens: int = Field(default=256, ge=1)


def build_instruct(config: InstructConfig) -> Task:
    """The task of this config."""
    path = Path(config.file).expanduser()
    problems = [_problem(row, i) for i, row in enumerate(read_rows(path, fields=["instruction"]))]
    pools = split_pools(problems, num_held_out=config.held_out, key=pool_key("instruct", config.split_seed))
    return Task(
        name=config.name,
        training=pools.training,
        held_out=pools.held_out,
        check=leave_unscored,
        gold_text=reference_text,
        stop_text=None,
        chat=True,
        max_new_tokens=config.max_new_tokens,
        extraction="instruct/none/v1",
        trusted_checker=True,
        graded=False,
        facts=f"{len(pools.training)} training and {len(pools.held_out)} held-out instructions of {path.name}, open-ended; "
        f"{pools.num_dropped} repeated ones dropped.",
    )


def _problem(row: Row, number: int) -> Problem:
    context = str(row.get("input") or row.get("context") or "").strip()
    instruction = str(row["instruction"]).strip()
    return Problem(
        task="instruct",
        problem_id=str(number),
        prompt=f"{instruction}\n\n{context}" if context else instruction,
        reference=str(row.get("output") or row.get("response") or ""),
        columns={"category": str(row["category"])} if isinstance(row.get("category"), str) else {},
    )


def leave_unscored(problem: Problem, text: str) -> Score:
    """Unscored, with the whole completion as its answer."""
    return Score(value=None, correct=None, answer=text.strip(), unscored=_WHY)


def reference_text(problem: Problem) -> str:
    """The file's own response, empty where it has none."""
    return problem.reference

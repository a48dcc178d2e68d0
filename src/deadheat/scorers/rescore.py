"""Grade stored rollouts again with a task's checker. Nothing is generated.

A row's problem is the task's own where prompt and id (or the prompt alone) are the task's; else it is what the row says, if
the checker accepts the row's own reference as right: a reference in another form (a worked solution where a number is
wanted) would make every answer wrong. Rows without either are unscored, with the reason.

What was learned from the old reward (advantage, composition) goes; the old reward stays as the part `reward_before`.
"""

import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from deadheat.archive import ARCHIVE_SCHEMA
from deadheat.errors import ArchiveError
from deadheat.scorers.checker import PerText
from deadheat.tasks import Task
from deadheat.types import Problem, Score

BEFORE = "part:reward_before"
_NEEDED = ("completion", "reward")
_OLD = ("raw_reward", "correct", "answer", "parsed", "parts", "unscored", "advantage", "kind", BEFORE)


class Rescorer:
    """Grades the rows of one archive, shard by shard; equal problems and texts are checked once per shard."""

    def __init__(self, task: Task, scorer: PerText) -> None:
        problems = [*task.held_out, *task.training]
        self._task, self._scorer = task, scorer
        self._by_digest = {problem.digest: problem for problem in problems}
        self._by_id = {(problem.problem_id, problem.digest): problem for problem in problems}
        self._accepted: dict[tuple[str, str], bool] = {}  # (prompt, reference) of rows -> whether the checker takes it
        self.other_tasks: set[str] = set()  # names the log gives its tasks, where they are not this one's
        self.num_scored = 0
        self.num_unscored = 0

    def __call__(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows with new rewards."""
        missing = [name for name in _NEEDED if name not in rows.columns]
        if missing:
            raise ArchiveError(f"the archive has no {' and no '.join(missing)}; wanted answers to grade again")
        if "task" in rows.columns:
            self.other_tasks.update(set(rows["task"].drop_nulls().unique()) - {self._task.name})
        found = [self._problem(row) for row in rows.iter_rows(named=True)]
        texts = rows["completion"].to_list()
        at = [index for index, problem in enumerate(found) if isinstance(problem, Problem) and texts[index] is not None]
        graded = self._scorer.check_all(
            [p for p in (found[i] for i in at) if isinstance(p, Problem)], [texts[i] for i in at]
        )
        scores = [_unscored("no answer is stored") if isinstance(p, Problem) else _unscored(p) for p in found]
        for index, score in zip(at, graded, strict=True):
            scores[index] = score
        self.num_scored += sum(score.value is not None for score in scores)
        self.num_unscored += sum(score.value is None for score in scores)
        return _with(rows, scores)

    def _problem(self, row: Mapping[str, Any]) -> Problem | str:
        """The row's problem, or why there is none."""
        digest, problem_id = row.get("problem_digest"), row.get("problem_id")
        own = self._by_id.get((str(problem_id), str(digest))) or self._by_digest.get(str(digest))
        if own is not None:
            return own
        prompt, reference = row.get("prompt"), row.get("reference")
        if not reference:
            return f"task {self._task.name} has no problem with this prompt, and the row has no reference"
        problem = Problem(
            task=self._task.name,
            problem_id=str(problem_id),
            prompt=str(prompt or ""),
            reference=str(reference),
            columns=json.loads(row.get("columns") or "{}"),
        )
        if not self._accepts(problem):
            return (
                f"the checker of {self._task.name} does not take the row's reference {str(reference)[-40:]!r} as right"
            )
        return problem

    def _accepts(self, problem: Problem) -> bool:
        address = (problem.prompt, problem.reference)
        if address not in self._accepted:
            score = self._scorer.check_all([problem], [self._task.gold_text(problem)])[0]
            self._accepted[address] = score.correct is True
        return self._accepted[address]


def _unscored(reason: str) -> Score:
    return Score(value=None, unscored=reason)


def _with(rows: pl.DataFrame, scores: list[Score]) -> pl.DataFrame:
    values = pl.Series("reward", [score.value for score in scores], dtype=pl.Float64)
    new = {
        "raw_reward": values,
        "reward": values,
        "correct": [score.correct for score in scores],
        "answer": [score.answer for score in scores],
        "parsed": [score.parsed if score.unscored is None else None for score in scores],
        "parts": [json.dumps(dict(score.parts), sort_keys=True) for score in scores],
        "unscored": [score.unscored for score in scores],
    }
    before = rows["reward"].cast(pl.Float64).alias(BEFORE)
    kept = rows.drop("reward", *_OLD, strict=False)
    schema = {name: ARCHIVE_SCHEMA[name] for name in new}
    return pl.concat([kept, before.to_frame(), pl.DataFrame(new, schema=schema)], how="horizontal")

"""Stored answers graded again."""

import polars as pl
import pytest

from deadheat.errors import ArchiveError
from deadheat.scorers import CheckerScorer, Rescorer
from deadheat.tasks import load_task, parse_task


@pytest.fixture
def task():
    return load_task(parse_task("addition"))


def graded(task, rows):
    with CheckerScorer(task) as scorer:
        rescorer = Rescorer(task, scorer)
        return rescorer(pl.DataFrame(rows)), rescorer


def test_answers_to_the_tasks_own_problems_are_graded_by_its_reference(task):
    problem = task.training[0]
    gold = task.gold_text(problem)
    rows = {
        "problem_id": [problem.problem_id] * 2,
        "problem_digest": [problem.digest] * 2,
        "completion": [gold, "no number at all"],
        "reward": [0.0, 0.0],  # the log's grader was wrong about the first
        "advantage": [0.5, -0.5],
        "task": ["addition", "sums"],
    }
    frame, rescorer = graded(task, rows)
    assert frame["reward"].to_list() == [1.0, 0.0]
    assert frame["correct"].to_list() == [True, False]
    assert frame["part:reward_before"].to_list() == [0.0, 0.0]
    assert "advantage" not in frame.columns  # it followed from the old reward
    assert (rescorer.num_scored, rescorer.num_unscored) == (2, 0)
    assert rescorer.other_tasks == {"sums"}


def test_a_rows_own_reference_is_taken_if_the_checker_takes_it(task):
    rows = {
        "problem_id": ["x", "y", "z"],
        "problem_digest": ["0" * 64] * 3,
        "prompt": ["What is 400 and 23?", "What is 1 and 2?", "?"],
        "reference": ["423", "it is three", None],
        "completion": ["423", "3", "3"],
        "reward": [0.0, 1.0, 1.0],
    }
    frame, rescorer = graded(task, rows)
    # A worked solution is no reference of this checker: with it every answer would be wrong, and none is.
    assert frame["reward"].to_list() == [1.0, None, None]
    assert "does not take the row's reference 'it is three'" in frame["unscored"][1]
    assert "the row has no reference" in frame["unscored"][2]
    assert (rescorer.num_scored, rescorer.num_unscored) == (1, 2)


def test_rows_without_text_are_unscored_and_archives_without_answers_refused(task):
    problem = task.training[0]
    rows = {"problem_digest": [problem.digest], "completion": [None], "reward": [1.0]}
    frame, _ = graded(task, rows)
    assert (frame["reward"][0], frame["unscored"][0]) == (None, "no answer is stored")
    with pytest.raises(ArchiveError, match="has no completion"):
        graded(task, {"reward": [1.0]})

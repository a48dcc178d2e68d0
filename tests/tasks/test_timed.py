"""Checkers that raise, hang or die leave an answer unscored, and the next answer is graded again."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deadheat.errors import CheckerError, TaskError
from deadheat.tasks import CheckOutcome, InProcessChecker, TimedChecker, load_task, open_checker, parse_task
from deadheat.types import Problem

TASK_FILE = """
import os, sys, time
from deadheat.tasks import Task
from deadheat.types import Problem, Score


def build(options):
    def check(problem, text):
        if text == "raise":
            raise KeyError("no such answer")
        if text == "sleep":
            time.sleep(60)
        if text == "loop":
            while True:
                pass
        if text == "c code":  # one call that holds the interpreter's lock for minutes
            pow(3, 10**9)
        if text == "die":
            os._exit(7)
        if text == "nothing":
            return None
        if text in ("nan", "inf", "-inf"):
            return Score(value=float(text), correct=False)
        if text == "huge":
            return Score(value=10**5000, correct=True)
        if text == "words":
            return Score(value="1", correct=True)
        if text == "torch":
            return Score(value=float("torch" in sys.modules), correct=False)
        print("noise on stdout")
        return Score(value=float(text == problem.reference), correct=text == problem.reference, answer=text)

    if options.get("broken"):
        raise RuntimeError("broken on purpose")
    problem = Problem(task="mine", problem_id="1", prompt="say yes", reference=options.get("gold", "yes"))
    return Task(
        name="mine", training=(problem,), held_out=(), check=check, gold_text=lambda p: p.reference,
        stop_text=None, chat=False, max_new_tokens=4, extraction="mine/v1", facts="a test",
    )
"""


@pytest.fixture
def task_file(tmp_path: Path) -> Path:
    path = tmp_path / "my_task.py"
    path.write_text(TASK_FILE)
    return path


@pytest.fixture
def checker(task_file: Path) -> Iterator[tuple[TimedChecker | InProcessChecker, Problem]]:
    task = load_task(parse_task({"name": f"file:{task_file}"}))
    with open_checker(task, limit_s=0.5) as opened:
        yield opened, task.training[0]


Opened = tuple[TimedChecker, Problem]


def test_a_file_task_is_graded_in_a_child_without_torch(checker: Opened) -> None:
    grade, problem = checker
    assert isinstance(grade, TimedChecker)
    assert [grade(problem, text).value for text in ("yes", "no", "torch")] == [1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("text", "reason", "outcome"),
    [
        ("raise", "KeyError: 'no such answer'", CheckOutcome.RAISED),
        ("nothing", "returned NoneType", CheckOutcome.RAISED),
        ("nan", "nan", CheckOutcome.RAISED),
        ("inf", "inf", CheckOutcome.RAISED),
        ("-inf", "inf", CheckOutcome.RAISED),
        ("huge", "above the largest float", CheckOutcome.RAISED),
        ("words", "'1'", CheckOutcome.RAISED),
        ("sleep", "past its limit of 0.5 s", CheckOutcome.TIMED_OUT),
        ("loop", "past its limit of 0.5 s", CheckOutcome.TIMED_OUT),
        ("c code", "past its limit of 0.5 s", CheckOutcome.TIMED_OUT),
        ("die", "exit status 7", CheckOutcome.DIED),
    ],
)
def test_a_failing_checker_is_unscored_counted_and_followed_by_a_working_one(
    checker: Opened, text: str, reason: str, outcome: CheckOutcome
) -> None:
    grade, problem = checker
    assert grade(problem, "yes").value == 1.0
    began = time.monotonic()
    score = grade(problem, text)
    assert time.monotonic() - began < 30, "sixty seconds of sleep, or minutes of arithmetic, were not waited for"
    assert (score.value, score.correct) == (None, None)
    assert score.unscored is not None
    assert reason in score.unscored
    assert grade(problem, "yes").value == 1.0
    assert grade.counts == {CheckOutcome.SCORED: 2, outcome: 1}


def test_options_of_a_task_file_reach_its_build(task_file: Path) -> None:
    task = load_task(parse_task({"name": f"file:{task_file}", "gold": "ja"}))
    with open_checker(task) as grade:
        assert grade(task.training[0], "ja").correct is True


def test_a_task_file_that_cannot_be_built_says_why(task_file: Path, tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="RuntimeError: broken on purpose"):
        load_task(parse_task({"name": f"file:{task_file}", "broken": True}))
    with pytest.raises(TaskError, match="is not there"):
        load_task(parse_task({"name": f"file:{tmp_path / 'absent.py'}"}))


def test_a_trusted_checker_that_raises_is_unscored_too() -> None:
    task = load_task(parse_task("addition"))
    grade = open_checker(task)
    assert isinstance(grade, InProcessChecker)
    bad = Problem(task="addition", problem_id="x", prompt="x", reference="not a number")
    score = grade(bad, "12")
    assert score.value is None
    assert score.unscored is not None
    assert "ValueError" in score.unscored
    assert grade.counts == {CheckOutcome.RAISED: 1}


def test_a_checker_that_cannot_be_sent_is_refused_at_once() -> None:
    with pytest.raises(CheckerError, match="cannot be sent"):
        TimedChecker(lambda problem, text: None)  # type: ignore[arg-type,return-value]


def test_a_checker_whose_start_fails_is_an_error_not_a_score(task_file: Path) -> None:
    task = load_task(parse_task({"name": f"file:{task_file}"}))
    task_file.unlink()
    with open_checker(task) as grade, pytest.raises(CheckerError, match=r"did not start.*is not there"):
        grade(task.training[0], "yes")


def test_a_limit_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="limit_s is 0"):
        TimedChecker(os.getenv, limit_s=0)  # type: ignore[arg-type]

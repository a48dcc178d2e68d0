"""A checker that raises, hangs or dies leaves an attempt unscored, never zero, and the others graded."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from deadheat.credit import Estimator, advantages
from deadheat.scorers import CheckerScorer, scored
from deadheat.tasks import Task, load_task, parse_task
from deadheat.types import Address, Completion, Group, Problem, Purpose, Rollout, StopReason

TASK = """
import os, time
from pathlib import Path
from deadheat.tasks import Task
from deadheat.types import Problem, Score

def check(problem, text):
    with Path(__file__).with_name("asked.log").open("a") as log:
        log.write(text + "\\n")
    if text == "raise":
        raise RuntimeError("no such answer")
    if text == "hang":
        while True:
            pass
    if text == "die":
        os._exit(3)
    if text == "nothing":
        return None
    if text == "infinite":
        return Score(value=float("inf"), correct=False, answer=text)
    return Score(value=float(text == problem.reference), correct=text == problem.reference, answer=text)

def build(options):
    problems = [Problem(task="mine", problem_id=str(i), prompt=f"{i}?", reference=str(i)) for i in range(4)]
    return Task(name="mine", training=problems[:2], held_out=problems[2:], check=check,
                gold_text=lambda problem: problem.reference, stop_text=None, chat=False, max_new_tokens=2,
                extraction="mine/v1", facts="Say the number.")
"""


@pytest.fixture
def task(tmp_path: Path) -> Task:
    (tmp_path / "mine.py").write_text(TASK)
    return load_task(parse_task({"name": f"file:{tmp_path / 'mine.py'}"}))


@pytest.fixture
def scorer(task: Task) -> Iterator[CheckerScorer]:
    with CheckerScorer(task, limit_s=0.5) as opened:
        yield opened


def test_what_cannot_be_checked_is_unscored_with_its_reason_and_what_can_is_graded(
    task: Task, scorer: CheckerScorer
) -> None:
    texts = ["0", "raise", "hang", "die", "nothing", "1", "infinite"]
    scores = scorer.check_all([task.training[0]] * 7, texts)
    assert [score.value for score in scores] == [1.0, None, None, None, None, 0.0, None]
    assert [score.correct for score in scores] == [True, None, None, None, None, False, None]
    reasons = [score.unscored for score in scores]
    assert reasons[0] is None and reasons[5] is None
    assert reasons[1] == "checker raised RuntimeError: no such answer"
    assert "0.5 s" in str(reasons[2])
    assert "exit status 3" in str(reasons[3])
    assert reasons[4] == "checker returned NoneType; wanted a Score"
    assert "no number" in str(reasons[6]) and "value=inf; wanted a finite number" in str(reasons[6])


def test_equal_answers_to_one_problem_are_checked_once(task: Task, scorer: CheckerScorer, tmp_path: Path) -> None:
    first, second = task.training
    scores = scorer.check_all([first, first, second, first], ["0", "0", "0", "1"])
    assert [score.value for score in scores] == [1.0, 1.0, 0.0, 0.0]
    # "0" for the first problem, "0" for the second, "1" for the first: three questions for four answers.
    assert (tmp_path / "asked.log").read_text().splitlines() == ["0", "0", "1"]


def completion(text: str) -> Completion:
    return Completion(
        tokens=(1,), logprobs=(0.0,), plain_logprobs=(0.0,), margins=None, text=text, stop=StopReason.STOP, key=1
    )


def group_of(problem: Problem, first_sample: int, texts: list[str]) -> Group:
    rollouts = [
        Rollout(problem=problem, sample=first_sample + index, completion=completion(text))
        for index, text in enumerate(texts)
    ]
    return Group(problem=problem, prompt_tokens=(1, 2), rollouts=tuple(rollouts))


def test_grades_come_back_in_group_and_sample_order_and_the_unscored_learn_nothing(
    task: Task, scorer: CheckerScorer
) -> None:
    first, second = task.training
    drawn = [group_of(second, 4, ["1", "raise"]), group_of(first, 0, ["0", "raise", "1"])]
    groups = scored(drawn, scorer, address=Address(seed=1, purpose=Purpose.TRAIN, step=1))
    assert [[rollout.sample for rollout in group.rollouts] for group in groups] == [[4, 5], [0, 1, 2]]
    values = [[rollout.score.value for rollout in group.rollouts] for group in groups]
    assert values == [[1.0, None], [1.0, None, 0.0]]
    # Over the two scored, mean 1/2: +1/2 and −1/2; as a zero the unscored one would have been pushed down by a third.
    learned = advantages([np.array(row, dtype=np.float64) for row in values], estimator=Estimator.CENTRED)
    assert [list(row) for row in learned] == [[0.0, 0.0], [0.5, 0.0, -0.5]]

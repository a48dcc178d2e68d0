"""Trivia: strict and tolerant readings. Instructions: never graded."""

import json
from pathlib import Path

import pytest

from deadheat.errors import TaskError
from deadheat.tasks import load_task, parse_task, validate_checker
from deadheat.tasks.trivia import Scoring, check_trivia
from deadheat.types import Problem

DATA = Path(__file__).parents[2] / "../shared/data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the data files are not at ../shared/data")

NETHERLANDS = Problem(task="trivia", problem_id="1", prompt="?", reference="The Netherlands\nKingdom of Holland")


@pytest.mark.parametrize(
    ("text", "strict", "tolerant"),
    [
        (" The Netherlands\n", 1.0, 1.0),
        (" netherlands.", 1.0, 1.0),
        (" kingdom of holland", 1.0, 1.0),
        (" It is the Netherlands, I think", 0.0, 1.0),
        (" Netherland", 0.0, 0.0),  # tokens, not letters
        (" Holland, a kingdom of old", 0.0, 0.0),  # the run is broken
        (" Belgium\nthe Netherlands", 0.0, 0.0),  # only the answer line
    ],
)
def test_strict_and_tolerant_readings_of_one_answer(text: str, strict: float, tolerant: float) -> None:
    by_strict = check_trivia(NETHERLANDS, text, scoring=Scoring.STRICT)
    by_content = check_trivia(NETHERLANDS, text, scoring=Scoring.TOLERANT)
    assert (by_strict.value, by_content.value) == (strict, tolerant)
    assert dict(by_strict.parts) == dict(by_content.parts) == {"strict": strict, "tolerant": tolerant}
    assert by_content.correct is (tolerant == 1.0)


def test_a_line_without_a_word_is_a_parse_failure() -> None:
    score = check_trivia(NETHERLANDS, " ...\n", scoring=Scoring.TOLERANT)
    assert (score.value, score.correct, score.parsed, score.answer) == (0.0, False, False, None)


@needs_data
@pytest.mark.parametrize("name", ["opentriviaqa_geo_hist_sci.jsonl.gz", "truthfulqa_817.jsonl.gz"])
def test_every_gold_answer_of_the_real_files_is_graded_correct(name: str) -> None:
    task = load_task(parse_task({"name": "trivia", "file": str(DATA / "trivia" / name)}))
    assert validate_checker(task).num_gold == len(task.training) + len(task.held_out)
    assert len(task.held_out) == 200


@needs_data
def test_alias_lists_of_the_data_are_references() -> None:
    task = load_task(parse_task({"name": "trivia", "file": str(DATA / "trivia/truthfulqa_817.jsonl.gz")}))
    seeds = next(p for p in [*task.training, *task.held_out] if p.problem_id == "0")
    assert task.check(seeds, " Nothing happens!\n").correct is True
    assert task.check(seeds, " You grow watermelons in your stomach.\n").correct is False


def test_a_question_without_an_answer_is_a_task_error(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"question": "why?", "answer": "?!"}))
    with pytest.raises(TaskError, match="no answer with a word"):
        load_task(parse_task({"name": "trivia", "file": str(path), "held_out": 0}))


@needs_data
def test_instructions_are_never_graded() -> None:
    path = DATA / "instruct/instruction-data-with-preference.json"
    task = load_task(parse_task({"name": "instruct", "file": str(path), "held_out": 150}))
    score = task.check(task.training[0], task.gold_text(task.training[0]))
    assert (score.value, score.correct, task.graded) == (None, None, False)
    assert score.unscored is not None
    assert "reward model" in score.unscored
    assert validate_checker(task).num_gold == 0
    assert len(task.held_out) == 150

"""Cases 07 to 13: in each file the column `reward` is the right grade; the README of the cases names where they are from."""

import json
from pathlib import Path

import pytest

from deadheat.tasks import load_task, parse_task
from deadheat.tasks.answers import Extraction
from deadheat.tasks.gsm8k import check_number
from deadheat.types import Problem

pytest.importorskip("math_verify")
from deadheat.tasks.competition import check_boxed

CASES = Path(__file__).parents[2] / "../shared/cases"
needs_cases = pytest.mark.skipif(not CASES.is_dir(), reason="the cases are not at ../shared/cases")

GSM8K = ("07-gsm8k-headings/gsm8k_headings", "08-gsm8k-numbers/gsm8k_numbers", "09-empty-last-box/gsm8k")
MATH = (
    "09-empty-last-box/math",
    "10-box-without-braces/answers",
    "11-math-words-dropped/math",
    "12-math-taken-as-equal/math",
    "13-math-not-recognised/math",
)


def rows(name: str) -> list[dict[str, str | int]]:
    return [json.loads(line) for line in (CASES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def wrongly_graded(name: str) -> list[tuple[str, str]]:
    found = []
    for row in rows(name):
        problem = Problem(task="x", problem_id="1", prompt="?", reference=str(row["reference"]))
        text = str(row["completion"])
        score = check_boxed(problem, text) if name in MATH else check_number(problem, text, rule=Extraction.LAST_NUMBER)
        if score.value != row["reward"]:
            found.append((problem.reference, text))
    return found


@needs_cases
@pytest.mark.parametrize("name", GSM8K + MATH)
def test_every_row_of_the_case_is_graded_right(name: str) -> None:
    assert rows(name)
    assert wrongly_graded(name) == []


@needs_cases
def test_a_training_file_with_boxes_without_braces_is_read() -> None:
    file = CASES / "10-box-without-braces/train.jsonl"
    task = load_task(parse_task({"name": "math", "training_file": str(file), "held_out": 1}))
    assert sorted(p.reference for p in [*task.training, *task.held_out]) == ["2", "3", "4"]

"""GSM8K: every gold answer of the real files, real model answers, and the ways people write a number."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from deadheat.errors import TaskError
from deadheat.tasks import load_task, parse_task, validate_checker
from deadheat.tasks.answers import Extraction, final_number
from deadheat.tasks.gsm8k import check_number
from deadheat.types import Problem

DATA = Path(__file__).parents[2] / "../shared/data/gsm8k"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the GSM8K files are not at ../shared/data/gsm8k")

EIGHTEEN = Problem(task="gsm8k", problem_id="1", prompt="?", reference="18")


@needs_data
@pytest.mark.parametrize("style", ["boxed", "worked"])
def test_all_8792_gold_answers_are_graded_correct(style: str) -> None:
    task = load_task(parse_task({"name": "gsm8k", "data": str(DATA), "style": style}))
    # 7,473 + 1,319, no question twice.
    assert (len(task.training), len(task.held_out)) == (7473, 1319)
    assert validate_checker(task).num_gold == 8792


@needs_data
def test_the_worked_solutions_themselves_are_graded_correct() -> None:
    rows = [json.loads(line) for line in (DATA / "test.jsonl").read_text().splitlines()]
    problems = [
        Problem(task="gsm8k", problem_id=str(i), prompt="?", reference=r["answer"].rpartition("####")[2].strip())
        for i, r in enumerate(rows)
    ]
    right = [check_number(p, r["answer"], rule=Extraction.MARKED).correct for p, r in zip(problems, rows, strict=True)]
    assert (sum(map(bool, right)), len(right)) == (1319, 1319)


@needs_data
def test_grades_of_5276_real_model_answers_agree_with_the_published_ones() -> None:
    # These solutions end "A: 18" where the data set has "#### 18".
    agree = total = 0
    for line in (DATA / "example_model_solutions.jsonl").read_text().splitlines():
        row = json.loads(line)
        reference = row["ground_truth"].rpartition("\nA:")[2].strip()
        problem = Problem(task="gsm8k", problem_id="x", prompt="?", reference=reference)
        for name in ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification"):
            solution = row[name]["solution"].replace("\nA:", "\n####")
            score = check_number(problem, solution, rule=Extraction.MARKED)
            agree += score.correct == row[name]["is_correct"]
            total += 1
    assert total == 5276
    assert agree == 5276


@needs_data
def test_a_held_out_pool_of_fifty_starts_the_pool_of_all() -> None:
    small = load_task(parse_task({"name": "gsm8k", "data": str(DATA), "held_out": 50}))
    large = load_task(parse_task({"name": "gsm8k", "data": str(DATA)}))
    assert [p.problem_id for p in small.held_out] == [p.problem_id for p in large.held_out[:50]]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("#### 18", Fraction(18)),
        ("#### $1,234.50", Fraction(2469, 2)),
        ("#### 18.00 dollars", Fraction(18)),
        ("#### -3", Fraction(-3)),
        ("so \\boxed{18}", Fraction(18)),
        ("so \\boxed{\\$1{,}200\\text{ per year}}", Fraction(1200)),
        ("so \\boxed{\\frac{3}{4}}", Fraction(3, 4)),
        ("first \\boxed{1} then \\boxed{2}", Fraction(2)),
        ("#### 3\nQuestion: another\n#### 4", Fraction(3)),
        ("#### 3 + 4 = 7", None),  # more than one number is no final number
        ("#### none", None),
        ("#### 1/0", None),
        ("the answer is 18.", None),
        ("\\boxed{18", None),
        ("", None),
    ],
)
def test_a_marked_answer_is_read_as_a_number(text: str, number: Fraction | None) -> None:
    assert final_number(text, Extraction.MARKED) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("10-5 = 5", Fraction(5)),
        ("she has 3 left, that is $2.50.", Fraction(5, 2)),
        ("9" * 5000, None),
        ("no digits", None),
        ("#### 4\nthere are 7", Fraction(4)),  # a marked answer goes first
    ],
)
def test_the_last_number_serves_where_nothing_is_marked(text: str, number: Fraction | None) -> None:
    assert final_number(text, Extraction.LAST_NUMBER) == number


def test_wrong_and_unparsed_are_apart() -> None:
    wrong = check_number(EIGHTEEN, "#### 17", rule=Extraction.MARKED)
    unparsed = check_number(EIGHTEEN, "seventeen", rule=Extraction.MARKED)
    assert (wrong.value, wrong.correct, wrong.parsed, wrong.answer) == (0.0, False, True, "17")
    assert (unparsed.value, unparsed.correct, unparsed.parsed, unparsed.answer) == (0.0, False, False, None)


def test_a_missing_folder_and_a_torn_file_are_task_errors(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="is not there"):
        load_task(parse_task({"name": "gsm8k", "data": str(tmp_path)}))
    (tmp_path / "train.jsonl").write_text('{"question": "q", "ans')
    with pytest.raises(TaskError, match="cannot be read"):
        load_task(parse_task({"name": "gsm8k", "data": str(tmp_path)}))
    (tmp_path / "train.jsonl").write_text('{"question": "q"}\n')
    with pytest.raises(TaskError, match="no field 'answer'"):
        load_task(parse_task({"name": "gsm8k", "data": str(tmp_path)}))
    (tmp_path / "train.jsonl").write_text("\n")
    with pytest.raises(TaskError, match="holds no rows"):
        load_task(parse_task({"name": "gsm8k", "data": str(tmp_path)}))


def test_training_questions_that_are_also_test_questions_are_dropped(tmp_path: Path) -> None:
    def row(question: str) -> str:
        return json.dumps({"question": question, "answer": "so\n#### 1"}) + "\n"

    (tmp_path / "train.jsonl").write_text(row("How many?") + row("HOW  many  now?") + row("how many?"))
    (tmp_path / "test.jsonl").write_text(row("How many now?"))
    task = load_task(parse_task({"name": "gsm8k", "data": str(tmp_path)}))
    assert [p.problem_id for p in task.training] == ["train/0"]
    assert "2 repeated ones dropped" in task.facts


def test_a_hub_that_cannot_give_the_files_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(TaskError, match="give their folder as data"):
        load_task(parse_task({"name": "gsm8k", "data": "hf:openai/no-such-set@main"}))

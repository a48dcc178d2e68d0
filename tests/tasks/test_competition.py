"""Competition mathematics: gold answers, real predictions, strata, and a time limit that fires."""

import json
from collections import Counter
from pathlib import Path

import pytest

from deadheat.errors import ConfigError, TaskError
from deadheat.tasks import CheckOutcome, TimedChecker, load_task, open_checker, parse_task, validate_checker
from deadheat.types import Problem

pytest.importorskip("math_verify")
from deadheat.tasks.competition import check_boxed

DATA = Path(__file__).parents[2] / "../shared/data/math"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the MATH files are not at ../shared/data/math")


def asked(reference: str) -> Problem:
    return Problem(task="math", problem_id="1", prompt="?", reference=reference)


@pytest.mark.parametrize(
    ("reference", "answer", "correct"),
    [
        (r"\frac{14}{3}", "14/3", True),
        (r"\left( 3, \frac{\pi}{2} \right)", "(3,pi/2)", True),
        (r"\text{Evelyn}", "Evelyn", True),
        (r"90^\circ", "90", True),
        ("p - q", "p-q", True),
        (r"3\sqrt{13}", "3 sqrt(13)", True),
        (r"288 \pi", "288pi", True),
        ("0.5", r"\dfrac12", True),
        ("10", "1,0", False),
        (r"\frac{1}{3}", "3", False),
        ("(3,4]", "(3,4)", False),
        ("p - q", "q - p", False),
        (r"\text{Evelyn}", "Angela", False),
    ],
)
def test_equal_answers_in_another_spelling_are_right_and_others_wrong(
    reference: str, answer: str, correct: bool
) -> None:
    score = check_boxed(asked(reference), f"so it is \\boxed{{{answer}}}.")
    assert (score.value, score.correct, score.answer) == (float(correct), correct, answer)


def test_without_a_box_nothing_is_parsed() -> None:
    score = check_boxed(asked("5"), "the answer is 5")
    assert (score.value, score.correct, score.parsed) == (0.0, False, False)


@needs_data
def test_a_thousand_real_predictions() -> None:
    # The first 500 are right in substance; the 19 refused are
    # text that a parser has mangled (\beginpmatrix-1/3, 1371/2 for 137 1/2). The other 500 are a small model's own; one
    # that math-verify alone refuses, 12^{\mathrm{th}} grade for 12, is right.
    right = {}
    for name in ("gpt", "qwen3"):
        rows = json.loads((DATA / f"math500_{name}_answers.json").read_text())
        scores = [check_boxed(asked(row["answer"]), row["prediction"]) for row in rows]
        right[name] = (sum(s.correct is True for s in scores), sum(s.parsed for s in scores))
    assert right == {"gpt": (481, 500), "qwen3": (299, 500)}


@needs_data
def test_five_thousand_gold_answers_and_stratified_pools() -> None:
    table = {
        "name": "math",
        "training_file": str(DATA / "math_train4500.jsonl.gz"),
        "held_out_file": str(DATA / "math500_test.json"),
    }
    task = load_task(parse_task(table))
    assert validate_checker(task).num_gold == 5000
    assert (len(task.training), len(task.held_out)) == (4500, 500)
    # Each of the seven subjects has its share of the first 100, to within the merging of levels.
    whole = Counter(p.columns["subject"] for p in task.held_out)
    start = Counter(p.columns["subject"] for p in task.held_out[:100])
    assert len(whole) == 7
    assert all(abs(start[subject] - count / 5) <= 3 for subject, count in whole.items())
    one_file = load_task(parse_task({"name": "math", "training_file": table["training_file"], "held_out": 60}))
    assert (len(one_file.training), len(one_file.held_out)) == (4440, 60)


def write(path: Path, *rows: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_comparison_that_runs_away_is_stopped_and_unscored(tmp_path: Path) -> None:
    rows = [{"problem": "big?", "answer": "5", "level": "Level 5"}, {"problem": "small?", "solution": r"\boxed{5}"}]
    path = write(tmp_path / "m.jsonl", *rows)
    task = load_task(parse_task({"name": "math", "training_file": str(path), "held_out": 1, "check_limit_s": 1.0}))
    with open_checker(task) as grade:
        assert isinstance(grade, TimedChecker)
        problem = task.training[0]
        runaway = grade(problem, r"\boxed{9^{9^{9^{9}}}}")
        assert grade(problem, r"\boxed{\frac{10}{2}}").correct is True
        assert grade.counts == {CheckOutcome.TIMED_OUT: 1, CheckOutcome.SCORED: 1}
    assert (runaway.value, runaway.correct) == (None, None)


def test_a_row_without_an_answer_and_a_missing_option_say_so(tmp_path: Path) -> None:
    path = write(tmp_path / "m.jsonl", {"problem": "why?", "solution": "because"})
    with pytest.raises(TaskError, match="neither an answer nor"):
        load_task(parse_task({"name": "math", "training_file": str(path)}))
    with pytest.raises(ConfigError, match="'training_file' is missing"):
        parse_task("math")

"""GSM8K: every gold answer of the real files, real model answers, and the ways people write a number."""

import json
import runpy
import time
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deadheat.errors import TaskError
from deadheat.tasks import load_task, parse_task, validate_checker
from deadheat.tasks.answers import Extraction, final_number, one_number
from deadheat.tasks.gsm8k import check_number
from deadheat.types import Problem

DATA = Path(__file__).parents[2] / "../shared/data/gsm8k"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the GSM8K files are not at ../shared/data/gsm8k")

WAYS = (
    "#### {n}", "#### **{n}**", "#### ${n}", "#### Answer: {n}", "#### Step 1\n7\n#### {n}", "####\n{n}", "\\boxed{{{n}}}",
    "\\boxed {n}", "\\boxed{{\\text{{{n} apples}}}}", "\\boxed{{{n}\\text{{ ft}}^2}}", "\\boxed{{{n}}} as in \\boxed{{}}",
    "#### Part 2\n\\boxed{{{n}}}", "so it is {n}.", "It is {n} ft^2.", "$x = {n}$",
)  # fmt: skip
NUM_CASES = (118, 7133)
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
        ("#### 3 + 4 = 7", Fraction(7)),  # what an equation ends with
        ("#### 3 or 4", None),  # more than one number is no final number
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


@pytest.mark.parametrize(
    ("text", "number"),
    [
        # A heading is no answer, with a number in it or without.
        ("#### Step 1: Count the eggs\n16 - 3 = 13\n\nThe final answer is \\boxed{18}", Fraction(18)),
        ("#### Solution\n6 * 7 = 42\n\n$\\boxed{42}$", Fraction(42)),
        ("#### Final answer\nThe total is 10.", Fraction(10)),
        ("#### Part 3\nThree boxes of 8 are 24.", Fraction(24)),
        ("#### Day 1\n#### Day 2\n#### 18", Fraction(18)),
        ("#### 1. Count\n3\n#### 2. Add\n#### 18", Fraction(18)),
        ("#### 1) Count\n\\boxed{18}", Fraction(18)),
        ("#### 2 boxes: the first\n5\n\\boxed{18}", Fraction(18)),
        ("#### The cost of 3 apples\n3 * 6 = 18", Fraction(18)),
        ("##### Step 2\n#### 18", Fraction(18)),
        # A line that answers is one, whatever is set around the number.
        ("####18", Fraction(18)),
        ("#### **18**", Fraction(18)),
        ("#### \\boxed{18}", Fraction(18)),
        ("#### $\\boxed{18}$", Fraction(18)),
        ("####\n18", Fraction(18)),
        ("#### Answer\n\n**18**", Fraction(18)),
        ("#### Answer: 18", Fraction(18)),
        ("#### The answer is -18", Fraction(-18)),
        ("#### Total cost: $18", Fraction(18)),
        ("#### Therefore, she has 18 eggs.", Fraction(18)),
        ("#### 18 dollars per week", Fraction(18)),
        ("#### 18\n\n#### Explanation\n5 + 13", Fraction(18)),
        ("9 + 9 = 18\n#### 18\n\nQuestion: another one\n#### 3", Fraction(18)),  # the text runs on
        # Numbers in running text.
        ("The answer is 10^6.", Fraction(10**6)),
        ("The answer is $2\\frac{1}{2}$.", Fraction(5, 2)),
        ("The answer is $\\frac12$.", Fraction(1, 2)),
        ("It is 3 1/2.", Fraction(7, 2)),
        ("It is 20 ft^2.", Fraction(20)),
        ("It is $20\\text{ ft}^2$.", Fraction(20)),
        ("It is 8 000.", Fraction(8000)),
        ("It is 1.5e3.", Fraction(1500)),
        ("It is -$5.", Fraction(-5)),
        ("So \\boxed{18}. Write the final number inside \\boxed{}.", Fraction(18)),
    ],
)
def test_headings_are_passed_over_and_notation_is_read(text: str, number: Fraction) -> None:
    assert final_number(text, Extraction.LAST_NUMBER) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (r"\frac12", "1/2"),
        (r"\frac15", "1/5"),
        (r"\frac{20}{2}", "10"),
        (r"2\frac{1}{2}", "5/2"),
        (r"2\tfrac14", "9/4"),
        ("3 1/2", "7/2"),
        ("3½", "7/2"),
        ("-3 1/2", "-7/2"),
        ("1 1/2 cups", "3/2"),
        (r"\text{18}", "18"),
        (r"\text{64 apples}", "64"),
        (r"\textbf{18}", "18"),
        ("**18**", "18"),
        ("$18$", "18"),
        (r"20\text{ ft}^2", "20"),
        ("20 ft²", "20"),
        ("20 m2", "20"),
        (r"18~\text{cm}^3", "18"),
        (r"10 \frac{\text{km}}{\text{h}}", "10"),
        ("10^6", "1000000"),
        (r"3\times 10^5", "300000"),
        ("3 x 10^5", "300000"),
        ("1e6", "1000000"),
        ("9+9=18", "18"),
        ("x = 7", "7"),
        (r"\frac{10}{3} \approx 3.33", "3.33"),
        ("8 000", "8000"),
        (r"8\,000", "8000"),
        ("8{,}000", "8000"),
        ("1 234 567", "1234567"),
        ("1,00,000", "100000"),
        ("$1,234.50", "1234.5"),
        ("−18", "-18"),
        ("$-18", "-18"),
        ("18%", "18"),
        (r"45^\circ", "45"),
        ("12th", "12"),
        ("18.", "18"),
        (".5", "1/2"),
        ("5 million", "5000000"),
        (r"\$1.8\text{ million}", "1800000"),
        ("18 dollars and 50 cents", "18.5"),
    ],
)
def test_a_number_is_read_in_every_notation(text: str, number: str) -> None:
    assert one_number(text) == Fraction(number)


@pytest.mark.parametrize(
    "text", ["18 or 20", "18, 20", "5:30", "3:1", "1 hour 30 minutes", "none", "", "1/0", "9" * 99, "9^{99999}"]
)
def test_several_numbers_and_none_are_no_number(text: str) -> None:
    assert one_number(text) is None


def test_a_million_is_part_of_the_number_or_of_the_question() -> None:
    for reference in ("5000000", "5"):
        problem = Problem(task="gsm8k", problem_id="1", prompt="?", reference=reference)
        assert check_number(problem, "\\boxed{5\\text{ million}}", rule=Extraction.MARKED).correct is True
    three = Problem(task="gsm8k", problem_id="1", prompt="?", reference="3")
    assert check_number(three, "\\boxed{5\\text{ million}}", rule=Extraction.MARKED).correct is False


@given(st.integers(-(10**6), 10**6), st.sampled_from(WAYS))
def test_a_whole_number_is_read_wherever_it_stands(number: int, way: str) -> None:
    assert final_number(way.format(n=number), Extraction.LAST_NUMBER) == number


@given(st.integers(1, 999), st.integers(2, 99), st.integers(1, 98))
def test_a_mixed_number_is_its_sum(whole: int, bottom: int, top: int) -> None:
    if top < bottom:
        value = whole + Fraction(top, bottom)
        assert one_number(f"{whole} {top}/{bottom}") == value
        assert one_number(f"{whole}\\frac{{{top}}}{{{bottom}}}") == value
        assert final_number(f"It is {whole}\\frac{{{top}}}{{{bottom}}}.", Extraction.LAST_NUMBER) == value
        assert one_number(f"{whole}{top}/{bottom}") == Fraction(int(f"{whole}{top}"), bottom)


@given(st.text(alphabet="0123456789 .,#$%\\{}boxedfractext^/=-+*\n", max_size=80))
def test_no_text_makes_the_reading_fail(text: str) -> None:
    for rule in Extraction:
        check_number(EIGHTEEN, text, rule=rule)


def test_reading_is_linear_in_the_length() -> None:
    # At 60,000 characters a quadratic step takes 3.6·10⁹ of them.
    for text in (" ", "9", "1 ", "#### ", "\\boxed{", "1,", "$1", "\n"):
        start = time.process_time()
        final_number(text * (60_000 // len(text)) + "####", Extraction.LAST_NUMBER)
        assert time.process_time() - start < 20


@needs_data
def test_false_accepts_and_rejects_on_the_reference_numbers_of_gsm8k() -> None:
    benchmark = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks/gsm8k_checker.py"))
    rows = [json.loads(line)["answer"] for line in (DATA / "test.jsonl").read_text().splitlines()]
    references = sorted({row.rpartition("####")[2].strip() for row in rows})[::3]
    every = benchmark["cases"](references, rows[::10])
    assert (len(references), len(every)) == NUM_CASES
    assert [(case.reference, case.text) for case in benchmark["failures"](every)] == []


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

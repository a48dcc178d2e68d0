"""The task of naming a larger number: its pools, its shown answers and its checker."""

import pytest

from deadheat.errors import ConfigError, TaskError
from deadheat.tasks import load_task, parse_task, validate_checker
from deadheat.tasks.above import check_above, problem_of, shown_answer


def ids(problems) -> list[str]:
    return [problem.problem_id for problem in problems]


def test_there_are_899_numbers_and_each_is_asked_once() -> None:
    # 100 … 998; 200 held out leave 699
    task = load_task(parse_task("above"))
    assert (len(task.held_out), len(task.training)) == (200, 699)
    assert sorted(map(int, ids([*task.held_out, *task.training]))) == list(range(100, 999))


def test_a_smaller_held_out_pool_is_the_start_of_a_larger_one() -> None:
    small, large = (load_task(parse_task({"name": "above", "held_out": n})) for n in (40, 200))
    assert ids(large.held_out[:40]) == ids(small.held_out)


def test_same_split_seed_same_problems_other_seed_other_split_and_other_shown_answers() -> None:
    first, again, other = (load_task(parse_task({"name": "above", "split_seed": seed})) for seed in (3, 3, 4))
    assert (first.training, first.held_out) == (again.training, again.held_out)
    assert ids(first.held_out) != ids(other.held_out)
    shown = [{p.problem_id: p.reference for p in [*task.training, *task.held_out]} for task in (first, other)]
    assert sum(shown[0][n] != shown[1][n] for n in shown[0]) > 800


@pytest.mark.parametrize(
    ("number", "share", "answer"),
    [
        (799, 0.5, 849),  # (1/2)² · 200 = 50
        (799, 0.9, 801),  # (1/10)² · 200 = 2
        (799, 0.0, 999),  # the whole way
        (998, 0.999, 999),  # never the number itself
    ],
)
def test_the_shown_answer_lies_the_square_of_a_share_up_the_way(number: int, share: float, answer: int) -> None:
    assert shown_answer(number, share) == answer


def test_a_third_of_the_way_up_is_the_mean_of_the_shown_answers() -> None:
    # E u² = 1/3, sd u² = √(1/5 − 1/9) = 0.298; over 899 numbers 4 standard errors are 0.04. Rounding up adds about
    # half a number in the (999 − N), taken off here.
    task = load_task(parse_task("above"))
    ways = [
        (int(p.reference) - int(p.problem_id) - 0.5) / (999 - int(p.problem_id))
        for p in [*task.training, *task.held_out]
        if int(p.problem_id) < 950
    ]
    assert sum(ways) / len(ways) == pytest.approx(1 / 3, abs=0.04)


@pytest.mark.parametrize(
    ("text", "correct", "parsed", "answer"),
    [
        (" 418\n", True, True, "418"),
        ("999", True, True, "999"),
        (" 417\n", False, True, "417"),  # not above itself
        (" 1000\n", False, True, "1000"),  # past the top
        (" 099\n", False, True, "099"),
        (" 500\nabove 500: 600", True, True, "500"),  # only the first line counts
        (" 50 0\n", False, False, None),
        (" +500\n", False, False, None),
        (" ５００\n", False, False, None),
        ("\n500", False, False, None),
    ],
)
def test_the_answer_line_must_be_one_number_above(text: str, correct: bool, parsed: bool, answer: str | None) -> None:
    score = check_above(problem_of(417, share_frac=0.5), text)
    assert (score.value, score.correct, score.parsed, score.answer) == (float(correct), correct, parsed, answer)


def test_every_shown_answer_is_graded_right() -> None:
    assert validate_checker(load_task(parse_task("above"))).num_gold == 899


def test_the_hundreds_are_a_column() -> None:
    assert problem_of(417, share_frac=0.5).columns == {"hundreds": 4}


def test_holding_out_every_number_is_a_task_error() -> None:
    assert len(load_task(parse_task({"name": "above", "held_out": 898})).training) == 1
    with pytest.raises(TaskError, match="there are 899"):
        load_task(parse_task({"name": "above", "held_out": 899}))


def test_an_unknown_option_names_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="did you mean 'held_out'"):
        parse_task({"name": "above", "heldout": 3})

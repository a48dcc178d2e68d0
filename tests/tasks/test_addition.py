"""The addition task: its pools, its prompt and its checker."""

import pytest

from deadheat.errors import ConfigError, TaskError
from deadheat.tasks import load_task, parse_task, validate_checker
from deadheat.tasks.addition import carries, check_sum
from deadheat.types import Problem

PROBLEM = Problem(task="addition", problem_id="12+34", prompt="Problem: 12 + 34\nAnswer:", reference="46")


def test_below_fifty_there_are_1273_pairs_without_the_two_worked_examples() -> None:
    # 50·51/2 = 1275 unordered pairs, less 12+35 and 28+7; 200 held out leaves 1073.
    task = load_task(parse_task("addition"))
    assert (len(task.training), len(task.held_out)) == (1073, 200)


def test_a_held_out_sum_is_in_training_in_neither_order() -> None:
    task = load_task(parse_task("addition"))
    training = {frozenset(p.problem_id.split("+")) for p in task.training}
    assert not [p.problem_id for p in task.held_out if frozenset(p.problem_id.split("+")) in training]


def test_a_smaller_held_out_pool_is_the_start_of_a_larger_one() -> None:
    small = load_task(parse_task({"name": "addition", "held_out": 40}))
    large = load_task(parse_task({"name": "addition", "held_out": 200}))
    assert [p.problem_id for p in large.held_out[:40]] == [p.problem_id for p in small.held_out]


def test_same_split_seed_same_pools_other_seed_other_pools() -> None:
    ids = [
        [p.problem_id for p in load_task(parse_task({"name": "addition", "split_seed": seed})).held_out]
        for seed in (3, 3, 4)
    ]
    assert ids[0] == ids[1]
    assert ids[0] != ids[2]


def test_prompts_share_everything_up_to_the_two_numbers() -> None:
    task = load_task(parse_task("addition"))
    shared = "Problem: 12 + 35\nAnswer: 47\n\nProblem: 28 + 7\nAnswer: 35\n\nProblem: "
    assert all(p.prompt.startswith(shared) for p in [*task.training, *task.held_out])


@pytest.mark.parametrize(
    ("text", "correct", "parsed", "answer"),
    [
        (" 46\n", True, True, "46"),
        ("46", True, True, "46"),
        (" 45\n", False, True, "45"),
        (" 46.\n", False, True, "46."),  # the line holds more than the sum
        (" 4 6\n", False, True, "4 6"),
        (" 45\n46", False, True, "45"),  # only the first line counts
        (" forty-six\n", False, False, None),
        ("\n46", False, False, None),
    ],
)
def test_the_answer_line_must_be_the_sum_and_nothing_else(
    text: str, correct: bool, parsed: bool, answer: str | None
) -> None:
    score = check_sum(PROBLEM, text)
    assert (score.value, score.correct, score.parsed, score.answer) == (float(correct), correct, parsed, answer)


def test_every_gold_sum_is_graded_correct() -> None:
    assert validate_checker(load_task(parse_task("addition"))).num_gold == 1273


def test_carry_is_a_column() -> None:
    # 28+7: 8+7 = 15 carries; 12+35: 2+5 and 1+3 do not; 5+55: 5+5 = 10 carries.
    assert [carries(28, 7), carries(12, 35), carries(5, 55)] == [True, False, True]
    task = load_task(parse_task("addition"))
    by_id = {p.problem_id: p for p in [*task.training, *task.held_out]}
    some = by_id.get("19+9") or by_id["9+19"]
    assert some.columns == {"carry": "yes", "digits": 2}


def test_more_held_out_sums_than_there_are_is_a_task_error() -> None:
    # 10·11/2 = 55 pairs below 10; both worked examples need a number above 9, so all 55 remain.
    with pytest.raises(TaskError, match="55 pairs"):
        load_task(parse_task({"name": "addition", "limit": 10, "held_out": 55}))


def test_an_unknown_option_names_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="did you mean 'held_out'"):
        parse_task({"name": "addition", "heldout": 3})


def test_an_unknown_task_names_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="did you mean 'addition'"):
        parse_task("adition")


def test_a_value_out_of_range_says_what_was_seen() -> None:
    with pytest.raises(ConfigError, match="limit is 2"):
        parse_task({"name": "addition", "limit": 2})

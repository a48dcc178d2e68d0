"""What each step trains on."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deadheat.errors import ConfigError, TaskError
from deadheat.tasks.order import Curriculum, Order, problem_order
from deadheat.types import Problem


def pool(num: int) -> list[Problem]:
    """Levels 1, 2, 3, 1, 2, 3, …; the first third of the subjects are algebra."""
    return [
        Problem(
            task="t",
            problem_id=str(i),
            prompt=f"question {i}",
            reference="",
            columns={"level": i % 3 + 1, "subject": "algebra" if i < num // 3 else "geometry"},
        )
        for i in range(num)
    ]


def ids(batch: tuple[Problem, ...]) -> list[int]:
    return [int(p.problem_id) for p in batch]


def test_an_epoch_of_five_steps_of_four_sees_all_twenty_once() -> None:
    order = problem_order(pool(20), seed=1)
    first = [i for step in range(1, 6) for i in ids(order.batch(step, 4))]
    second = [i for step in range(6, 11) for i in ids(order.batch(step, 4))]
    assert sorted(first) == sorted(second) == list(range(20))
    assert first != second


def test_same_seed_same_order_other_seed_other_order() -> None:
    one, same, other = (problem_order(pool(50), seed=seed).batch(3, 8) for seed in (5, 5, 6))
    assert ids(one) == ids(same)
    assert ids(one) != ids(other)


@given(st.integers(1, 200), st.integers(1, 7))
def test_a_step_can_be_asked_for_alone_and_never_repeats_a_problem(step: int, questions: int) -> None:
    walked = problem_order(pool(10), seed=2)
    for earlier in range(1, step):
        walked.batch(earlier, questions)
    batch = ids(problem_order(pool(10), seed=2).batch(step, questions))
    assert batch == ids(walked.batch(step, questions))
    assert len(set(batch)) == questions


@pytest.mark.parametrize("order", list(Order))
@given(step=st.integers(1, 40), questions=st.integers(1, 10))
def test_the_reserve_of_a_step_is_everyone_else_from_the_next_steps_problems_on(
    order: Order, step: int, questions: int
) -> None:
    made = problem_order(pool(10), seed=2, curriculum=Curriculum(order=order, columns=("subject",)))
    batch, reserve = ids(made.batch(step, questions)), ids(made.reserve(step, questions))
    assert sorted(batch + reserve) == list(range(10))
    last_of_epoch = order is not Order.FILE and step % (10 // questions) == 0
    if not last_of_epoch and 2 * questions <= 10:
        assert reserve[:questions] == ids(made.batch(step + 1, questions))


def test_the_reserve_goes_round_to_the_problems_of_earlier_steps() -> None:
    # File order, 3 a step: step 2 is 3, 4, 5; then 6, 7, 8, 9 and around to 0, 1, 2.
    made = problem_order(pool(10), seed=2, curriculum=Curriculum(order=Order.FILE))
    assert ids(made.reserve(2, 3)) == [6, 7, 8, 9, 0, 1, 2]


def test_problems_an_epoch_leaves_over_come_in_other_epochs() -> None:
    # 10 problems, 4 per step: 2 steps and 2 left over per epoch; after 10 epochs all have been seen.
    order = problem_order(pool(10), seed=3)
    seen = Counter(i for step in range(1, 21) for i in ids(order.batch(step, 4)))
    assert sum(seen.values()) == 80
    assert len(seen) == 10
    assert max(seen.values()) <= 10


def test_file_order_goes_round() -> None:
    order = problem_order(pool(5), seed=9, curriculum=Curriculum(order=Order.FILE))
    assert [ids(order.batch(step, 2)) for step in (1, 2, 3, 4)] == [[0, 1], [2, 3], [4, 0], [1, 2]]


def test_filters_apply_before_first_n() -> None:
    # Levels run 1, 2, 3: level 3 is 2, 5, 8, 11, …; of 12, algebra is 0..3.
    curriculum = Curriculum(order=Order.FILE, level_min=3, first_n=2)
    assert ids(problem_order(pool(12), seed=0, curriculum=curriculum).problems) == [2, 5]
    by_subject = Curriculum(where={"subject": "algebra"}, level_max=2)
    assert ids(problem_order(pool(12), seed=0, curriculum=by_subject).problems) == [0, 1, 3]


def test_easy_first_ascends_by_level() -> None:
    order = problem_order(pool(12), seed=4, curriculum=Curriculum(order=Order.EASY_FIRST))
    levels = [p.columns["level"] for step in (1, 2, 3) for p in order.batch(step, 4)]
    assert levels == [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]


def test_stratified_steps_hold_each_stratum_in_proportion() -> None:
    # 30 problems: 10 algebra, 20 geometry. Every 3 in a row hold 1 algebra and 2 geometry.
    order = problem_order(pool(30), seed=4, curriculum=Curriculum(order=Order.STRATIFIED, columns=("subject",)))
    for step in range(1, 11):
        assert Counter(p.columns["subject"] for p in order.batch(step, 3)) == {"algebra": 1, "geometry": 2}


def test_more_questions_than_problems_is_refused() -> None:
    with pytest.raises(ConfigError, match="wanted 1 to 3"):
        problem_order(pool(3), seed=0).batch(1, 4)


def test_a_curriculum_that_keeps_nothing_says_so() -> None:
    with pytest.raises(TaskError, match="keeps none of 6"):
        problem_order(pool(6), seed=0, curriculum=Curriculum(where={"subject": "topology"}))


def test_a_missing_column_is_named() -> None:
    with pytest.raises(TaskError, match="no column 'size'; its columns: level, subject"):
        problem_order(pool(6), seed=0, curriculum=Curriculum(order=Order.EASY_FIRST, level_column="size"))

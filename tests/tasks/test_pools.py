"""Pools: what counts as the same content, strata, and what a Task refuses."""

from collections import Counter
from dataclasses import replace

import pytest

from deadheat.errors import TaskError
from deadheat.tasks import Task, load_task, parse_task, validate_checker
from deadheat.tasks.pools import content_digest, distinct, keyed_order, split_pools, stratified_order
from deadheat.types import Problem, Score


def problem(name: str, prompt: str, **columns: str | int | float) -> Problem:
    return Problem(task="t", problem_id=name, prompt=prompt, reference="r", columns=columns)


def grid(num: int) -> list[Problem]:
    """Three quarters algebra, one quarter geometry; levels 1 and 2 by turns."""
    return [
        problem(str(i), f"question {i}", subject="geometry" if i % 4 == 0 else "algebra", level=i // 4 % 2 + 1)
        for i in range(num)
    ]


def test_case_spacing_and_unicode_form_do_not_make_new_content() -> None:
    assert content_digest("What is\n 2+2?") == content_digest("what IS 2+2? ")
    assert content_digest("ﬁve") == content_digest("five")  # NFKC takes the ligature apart
    assert content_digest("2+2") != content_digest("2+3")


def test_the_first_of_equal_contents_is_kept() -> None:
    pool = [problem("a", "Two?"), problem("b", "two? "), problem("c", "three?")]
    assert [p.problem_id for p in distinct(pool)] == ["a", "c"]


def test_a_keyed_order_has_all_and_depends_on_its_key() -> None:
    pool = grid(40)
    one, same, other = (keyed_order(pool, key=key) for key in (1, 1, 2))
    assert one == same
    assert one != other
    assert Counter(p.problem_id for p in one) == Counter(p.problem_id for p in pool)


def test_every_start_of_a_stratified_order_holds_strata_in_proportion() -> None:
    # 80 problems: algebra 60, geometry 20. Of the first 4k, k are geometry, to within one.
    ordered = stratified_order(grid(80), ["subject"], key=5)
    for k in range(1, 21):
        assert abs(Counter(p.columns["subject"] for p in ordered[: 4 * k])["geometry"] - k) <= 1
    by_both = stratified_order(grid(80), ["subject", "level"], key=5)
    # Strata of 30, 30, 10, 10: the first 40 hold 15, 15, 5, 5.
    halves = Counter((p.columns["subject"], p.columns["level"]) for p in by_both[:40])
    assert sorted(halves.values()) == [5, 5, 15, 15]


def test_split_pools_are_disjoint_nested_and_drop_repeats() -> None:
    pool = [*grid(20), problem("twin", "QUESTION 3")]
    small, large = (split_pools(pool, num_held_out=n, key=7) for n in (4, 8))
    assert small.num_dropped == 1
    assert large.held_out[:4] == small.held_out
    assert len(large.training) == 12
    assert not {p.problem_id for p in large.training} & {p.problem_id for p in large.held_out}


def test_a_split_that_leaves_nothing_to_train_on_is_refused() -> None:
    with pytest.raises(TaskError, match="20 held-out problems wanted of 20 distinct"):
        split_pools(grid(20), num_held_out=20, key=0)


def make(**changes: object) -> Task:
    base = load_task(parse_task({"name": "addition", "held_out": 5, "training": 5}))
    return replace(base, **changes)  # type: ignore[arg-type]


def test_a_task_without_training_problems_is_refused() -> None:
    with pytest.raises(TaskError, match="no training problems"):
        make(training=())


def test_a_held_out_problem_that_is_a_training_problem_in_other_words_is_refused() -> None:
    base = make()
    twin = replace(base.training[0], problem_id="other", prompt=base.training[0].prompt.upper() + "\n")
    with pytest.raises(TaskError, match="same id or same content"):
        make(held_out=(twin,))
    with pytest.raises(TaskError, match="same id or same content"):
        make(held_out=(replace(base.training[0], prompt="something else"),))


def test_repeated_ids_are_refused() -> None:
    base = make()
    with pytest.raises(TaskError, match="occurs more than once"):
        make(training=(base.training[0], base.training[0]))


def test_a_checker_that_fails_its_gold_answers_is_refused_with_the_first_ones() -> None:
    def off_by_one(problem: Problem, text: str) -> Score:
        correct = int(text) == int(problem.reference) + 1
        return Score(value=float(correct), correct=correct, answer=text.strip())

    seen: list[tuple[int, int]] = []
    with pytest.raises(TaskError, match="refuses 10 of 10 gold answers") as refusal:
        validate_checker(make(check=off_by_one), progress=lambda done, total: seen.append((done, total)))
    assert str(refusal.value).count(" gave answer ") == 3
    assert seen == [(i, 10) for i in range(1, 11)]


def test_the_example_is_a_real_row() -> None:
    assert make().example.endswith(f"Answer: {make().training[0].reference}\n")

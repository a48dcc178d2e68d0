"""Reasoning-gym data sets by name: their own grades, two far-apart pools, refusals."""

import pytest

from deadheat.errors import ConfigError, TaskError
from deadheat.tasks import CheckOutcome, TimedChecker, load_task, open_checker, parse_task, validate_checker

gym = pytest.importorskip("reasoning_gym")


def test_a_data_set_by_name_with_its_own_options() -> None:
    task = load_task(
        parse_task({"name": "reasoning-gym:leg_counting", "training": 40, "held_out": 20, "max_animals": 4})
    )
    assert (len(task.training), len(task.held_out)) == (40, 20)
    assert validate_checker(task).num_gold == 60
    first = task.training[0]
    again = gym.create_dataset("leg_counting", seed=first.columns["source_seed"], size=10, max_animals=4)[
        first.columns["source_index"]
    ]
    assert first.prompt.startswith(again["question"].strip())
    assert first.reference == again["answer"]


def test_pools_differ_by_content_and_are_nested_and_keyed() -> None:
    table = {"name": "reasoning-gym:chain_sum", "training": 30, "held_out": 10}
    small, large, other = (
        load_task(parse_task(table | change)) for change in ({}, {"held_out": 20}, {"split_seed": 1})
    )
    assert [p.prompt for p in small.held_out] == [p.prompt for p in large.held_out[:10]]
    assert [p.prompt for p in small.held_out] != [p.prompt for p in other.held_out]
    # Seeds of the pools are further apart than any index used, so s + i never meets.
    seeds = {int(p.columns["source_seed"]) for p in [*small.training, *small.held_out]}
    assert len(seeds) == 2
    assert max(seeds) - min(seeds) > 10_000


def test_partial_scores_are_the_value_and_correct_is_a_threshold() -> None:
    # spell_backward grades a wrong spelling by how close it is: above 0, below 1.
    table = {"name": "reasoning-gym:spell_backward", "training": 5, "held_out": 0}
    strict, loose = (load_task(parse_task(table | change)) for change in ({}, {"correct_at": 0.05}))
    problem = strict.training[0]
    right = strict.check(problem, strict.gold_text(problem))
    empty = strict.check(problem, "no tags at all")
    assert (right.value, right.correct, right.parsed) == (1.0, True, True)
    assert (empty.value, empty.correct, empty.parsed) == (0.0, False, False)
    half = f"<answer>{problem.reference[:-1]}</answer>"
    value = strict.check(problem, half).value
    assert value is not None
    assert 0 < value < 1
    assert strict.check(problem, half).correct is False
    assert loose.check(problem, half).correct is (value >= 0.05)


def test_the_checker_of_a_data_set_runs_in_a_child() -> None:
    task = load_task(parse_task({"name": "reasoning-gym:gcd", "training": 3, "held_out": 2, "style": "whole"}))
    with open_checker(task) as grade:
        assert isinstance(grade, TimedChecker)
        scores = [grade(p, f" {p.reference}\n") for p in task.training]
        assert [s.correct for s in scores] == [True, True, True]
        assert grade.counts == {CheckOutcome.SCORED: 3}


def test_an_example_answer_of_the_metadata_serves_as_gold_and_a_lack_is_counted() -> None:
    colored = load_task(parse_task({"name": "reasoning-gym:graph_color", "training": 4, "held_out": 2}))
    report = validate_checker(colored)
    assert (report.num_gold, report.num_without_gold) == (6, 0)
    parked = load_task(parse_task({"name": "reasoning-gym:rush_hour", "training": 4, "held_out": 2}))
    report = validate_checker(parked)
    assert (report.num_gold, report.num_without_gold) == (0, 6)
    with pytest.raises(TaskError, match="publishes no answer"):
        parked.gold_text(parked.training[0])


def test_typos_are_met_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match="did you mean 'leg_counting'"):
        load_task(parse_task("reasoning-gym:leg_countin"))
    with pytest.raises(ConfigError, match="did you mean 'max_animals'"):
        load_task(parse_task({"name": "reasoning-gym:leg_counting", "max_animal": 3}))
    with pytest.raises(ConfigError, match="refuses the options"):
        load_task(parse_task({"name": "reasoning-gym:leg_counting", "max_animals": 0}))


def test_a_data_set_with_too_few_distinct_problems_says_so() -> None:
    table = {"name": "reasoning-gym:leg_counting", "held_out": 50, "max_animals": 1, "min_animals": 1}
    with pytest.raises(TaskError, match="distinct problems came of 50"):
        load_task(parse_task(table | {"max_instances": 1, "min_instances": 1}))

"""The monitor of any loop: shapes it takes, what it counts, what it says, and what a logger gets."""

import math

import numpy as np
import pytest

from deadheat.errors import ConfigError, StatsError
from deadheat.hooks import GroupBatch, GroupMonitor, MonitorConfig
from deadheat.sampling.keys import Purpose

# all right, live, all wrong, tied at a half
FOUR = [[1, 1], [1, 0], [0, 0], [0.5, 0.5]]


def quiet(**changes):
    return GroupMonitor(MonitorConfig(every=0, **changes), say=lambda line: pytest.fail(f"said {line!r}"))


def counted(**fields):
    """The step's counts of one batch."""
    monitor = quiet()
    monitor.record(GroupBatch(step=1, **fields))
    return monitor.reading()


def test_four_groups_are_one_of_each_kind():
    seen = counted(rewards=FOUR)
    assert (seen.shut_rate.estimate, seen.shut_rate.n) == (3 / 4, 4)
    assert [kind.estimate for kind in (seen.all_right, seen.all_wrong, seen.tied_other)] == [1 / 4] * 3
    assert (seen.multiplier.value, seen.dilution) == (4.0, 1 / 4)


@pytest.mark.parametrize(
    "fields",
    [
        {"rewards": np.array(FOUR, dtype=np.float32)},
        {"rewards": tuple(map(tuple, FOUR))},
        {"rewards": [np.array(row) for row in FOUR]},
        {"rewards": [value for row in FOUR for value in row], "group_size": 2},
        {"rewards": [1, 0, 0.5, 1, 1, 0, 0, 0.5], "groups": ["a", "b", "d", "a", "c", "c", "b", "d"]},
        {"rewards": [True, True, True, False, False, False, "0.5", 0.5], "group_size": 2},
    ],
    ids=["array", "tuples", "list of arrays", "flat by size", "flat by group, mixed", "booleans and text"],
)
def test_the_same_groups_in_another_shape_are_counted_alike(fields):
    assert counted(**fields) == counted(rewards=FOUR)


def test_a_tensor_is_taken_as_it_is():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    rewards = torch.tensor(FOUR, dtype=torch.bfloat16)
    lengths = torch.tensor([[3, 4]] * 4)
    assert counted(rewards=rewards).shut_rate == counted(rewards=FOUR).shut_rate
    assert counted(rewards=rewards, lengths=lengths).live_token_frac == 1 / 4
    assert counted(rewards=list(rewards)).shut_rate == counted(rewards=FOUR).shut_rate


@pytest.mark.parametrize("nothing", [None, math.nan, math.inf, -math.inf])
def test_a_rollout_without_a_score_is_left_out_and_is_no_zero(nothing):
    # [1, 1, –] agrees by its two scores; were the third a zero it would be live. [–, –] is no group that was scored.
    seen = counted(rewards=[[1, 1, nothing], [0, 1, nothing], [nothing, nothing]])
    assert (seen.shut_rate.estimate, seen.shut_rate.n, seen.shut_rate.left_out) == (1 / 2, 2, 1)
    assert (seen.unscored.estimate, seen.unscored.n) == (4 / 8, 8)
    assert seen.dilution == 1 / 3  # the unscored group takes part in the step and teaches nothing


def test_grades_decide_what_a_tie_is_called():
    rewards = [[-1, -1], [2, 2], [2, 2]]
    assert counted(rewards=rewards).tied_other.estimate == 1
    seen = counted(rewards=rewards, correct=[[False, False], [True, True], [True, False]])
    assert [kind.estimate for kind in (seen.all_right, seen.all_wrong, seen.tied_other)] == [1 / 3] * 3


def test_a_grade_that_is_not_a_number_is_no_grade():
    seen = counted(rewards=[[1, 1], [1, 1]], correct=np.array([[1.0, 1.0], [1.0, np.nan]]))
    assert (seen.all_right.estimate, seen.tied_other.estimate) == (1 / 2, 1 / 2)


def test_a_group_of_one_is_a_draw_and_no_group():
    seen = counted(rewards=[[1], [1, 0]])
    assert (seen.shut_rate.n, seen.shut_rate.estimate) == (1, 0)


def test_clones_are_told_by_ids_and_without_ids_by_text():
    # texts: a a b | c c; ids make the second a another rollout, since two token sequences can spell one text
    texts = [["a", "a", "b"], ["c", "c"]]
    ids = [[[1], [2, 3], [4]], [[5], [5]]]
    rewards = [[1, 0, 0], [0, 0]]
    by_text, by_ids = counted(rewards=rewards, completions=texts), counted(rewards=rewards, token_ids=ids)
    assert (by_text.clones.estimate, by_ids.clones.estimate) == (2 / 5, 1 / 5)
    assert by_text.whole_clones.estimate == by_ids.whole_clones.estimate == 1 / 2
    assert counted(rewards=rewards).clones is None


def test_what_is_cut_is_told_by_the_batch_or_by_length_and_cap():
    rewards, lengths = [[1, 0], [0, 0]], [[8, 3], [8, 9]]
    assert counted(rewards=rewards, lengths=lengths).capped is None
    monitor = quiet(cap=8)
    monitor.record(GroupBatch(step=1, rewards=rewards, lengths=lengths))
    assert monitor.reading().capped.estimate == 3 / 4
    assert monitor.reading().live_token_frac == 11 / 28
    assert counted(rewards=rewards, capped=[True, None, False, False]).capped.n == 3


def test_batches_of_one_step_add_up_and_a_window_forgets_old_steps():
    monitor = quiet(window=2)
    for step, rewards in [(1, [[1, 1]]), (2, [[1, 1]]), (2, [[1, 0]]), (3, [[0, 1]])]:
        monitor.record(GroupBatch(step=step, rewards=rewards))
    seen = monitor.reading()
    assert (seen.first_step, seen.last_step, seen.num_steps) == (2, 3, 2)
    assert seen.shut_rate.estimate == 1 / 3
    assert seen.dilution == (1 / 2 + 1) / 2  # by step, not by batch
    assert seen.dead_steps.estimate == 0


def test_groups_of_one_prompt_are_drawn_together_over_the_window():
    # 10 prompts at 4 steps; 5 always agree and 5 never do: 10 observations and not 40. By hand in test_problems.py.
    monitor, unnamed = quiet(), quiet()
    rewards, prompts = [[1, 0]] * 5 + [[0, 0]] * 5, [f"problem {i}" for i in range(10)]
    for step in range(1, 5):
        texts = [["a", "a"]] * 10
        monitor.record(GroupBatch(step=step, rewards=rewards, prompts=prompts, completions=texts))
        unnamed.record(GroupBatch(step=step, rewards=rewards))
    seen = monitor.reading()
    assert (seen.shut_rate.n, seen.shut_rate.num_clusters, seen.clones.num_clusters) == (40, 10, 10)
    assert seen.shut_rate.method == "Wilson at 9 effective groups, jackknife over 10 problems"
    assert "of 40 groups of 10 problems agree over 4 steps" in seen.sentence
    alone = unnamed.reading().shut_rate
    assert (alone.method, alone.note) == ("Wilson", "no problem is named: groups are read as independent")
    assert seen.shut_rate.high - seen.shut_rate.low > 1.8 * (alone.high - alone.low)


def test_what_no_logger_asks_for_does_not_pile_up():
    monitor = quiet(window=2)
    for step in range(1, 20):
        monitor.record(GroupBatch(step=step, rewards=FOUR))
    assert monitor._fresh.by_group == ()
    assert sum(len(step.by_group) for step in monitor._steps) == 2 * 4


def test_metrics_hold_the_window_and_what_came_since_they_were_last_asked():
    monitor = quiet()
    assert monitor.metrics() == {}
    monitor.record(GroupBatch(step=1, rewards=[[1, 1], [0, 0]]))
    monitor.record(GroupBatch(step=2, rewards=[[1, 0], [0, 0]]))
    found = monitor.metrics()
    assert (found["deadheat/shut_frac"], found["deadheat/groups"], found["deadheat/dilution"]) == (3 / 4, 4, 1 / 4)
    assert (found["deadheat/window/multiplier"], found["deadheat/window/dead_step_frac"]) == (4, 1 / 2)
    # Wilson, 3 of 4: (3 + 1.9207)/(4 + 3.8415) = .62752 ± 1.95996·√(3·1/4 + .96036)/7.8415 = .32688
    assert found["deadheat/window/shut_low"] == pytest.approx(0.30064, abs=1e-5)
    assert found["deadheat/window/shut_high"] == pytest.approx(0.95441, abs=1e-5)
    assert "deadheat/window/clone_frac" not in found
    assert {"deadheat/shut_frac", "deadheat/groups"} & set(monitor.metrics()) == set()
    assert monitor.observe(GroupBatch(step=3, rewards=[[1, 0]]))["deadheat/shut_frac"] == 0


def test_no_metric_is_nan_or_missing_a_value_when_every_group_agrees():
    found = quiet(prefix="g/").observe(GroupBatch(step=1, rewards=[[1, 1]]))
    assert "g/window/multiplier" not in found  # T has no end, and loggers of JSON take no infinity
    assert all(isinstance(value, float) and math.isfinite(value) for value in found.values())


def test_a_line_is_said_every_so_many_steps():
    said = []
    monitor = GroupMonitor(MonitorConfig(every=2), say=said.append)
    for step in (1, 2, 3, 4):
        monitor.record(GroupBatch(step=step, rewards=FOUR, completions=[["a", "a"]] * 4))
    assert [line.partition(":")[0] for line in said] == ["step 2", "step 4"]
    # 6 of 8 groups; SE of T = √(.75·.25/8)/.25² = 2.45
    assert said[0] == (
        "step 2: 75.0% [40.9, 92.9] of 8 groups agree over 2 steps (25.0% all right, 25.0% all wrong, 25.0% other); "
        "T = 4.00 ± 2.45; dilution 25.0%; 50.0% clones"
    )


def test_other_draws_than_training_are_not_counted():
    monitor = quiet()
    assert monitor.observe(GroupBatch(step=1, rewards=FOUR, purpose=Purpose.EVAL)) == {}
    with pytest.raises(StatsError, match="no training batch was recorded"):
        monitor.reading()


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"rewards": []}, "step 7 has no reward"),
        ({"rewards": [1, 0, 1]}, "neither of groups and group_size"),
        ({"rewards": [1, 0], "groups": ["a", "a"], "group_size": 2}, "both of groups and group_size"),
        ({"rewards": [1, 0, 1], "group_size": 2}, "3 rewards in groups of 2; wanted whole groups"),
        ({"rewards": [1, 0, 1], "group_size": 0}, "3 rewards in groups of 0"),
        ({"rewards": [1, 0], "groups": ["a"]}, "groups has 1 values for 2 rewards"),
        ({"rewards": [[1, 0], 1]}, "row 1 of the rewards is a number among lists"),
        ({"rewards": [[1, "x"]]}, "reward 1 is 'x'; wanted a number, or None"),
        ({"rewards": "10"}, "rewards is str '10'; wanted a list"),
        ({"rewards": [[1, 0]], "correct": [[True, 0.5]]}, "correct 1 is 0.5; wanted True, False, 1, 0, or None"),
        ({"rewards": [[1, 0]], "correct": [["no", 1]]}, "correct 0 is 'no'"),
        ({"rewards": [[1, 0]], "lengths": [[2, 2.5]]}, "length 1 is 2.5; wanted a whole number of tokens"),
        ({"rewards": [[1, 0]], "lengths": [3]}, "lengths has 1 values for 2 rewards"),
        ({"rewards": [[1, 0]], "parts": {"style": [1, 2, 3]}}, r"parts\['style'\] has 3 values for 2 rewards"),
    ],
)
def test_what_does_not_fit_together_is_refused_with_what_was_wanted(fields, says):
    with pytest.raises(StatsError, match=says):
        quiet().record(GroupBatch(step=7, **fields))


def test_a_window_of_no_step_is_refused():
    with pytest.raises(ConfigError, match="window=0"):
        MonitorConfig(window=0)
    with pytest.raises(ConfigError, match="cap is 0"):
        MonitorConfig(cap=0)


def test_hooks_load_neither_torch_nor_transformers_nor_trl():
    import subprocess
    import sys

    heavy = "{'torch', 'transformers', 'trl'}"
    code = f"import sys, deadheat; deadheat.GroupMonitor(); print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

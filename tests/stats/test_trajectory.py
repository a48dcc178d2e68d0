"""Reading a comparison along training."""

import numpy as np
import pytest

from deadheat.errors import StatsError
from deadheat.stats.checkpoints import parse_reference
from deadheat.stats.trajectory import (
    ArmCurve,
    PoolStatus,
    Summary,
    at_converged,
    at_peak,
    at_step,
    four_readings,
    read_trajectory,
)


def curve(arm: str, rights: list[list[int]], converged: tuple[int, ...], num_items: int = 40) -> ArmCurve:
    """Grades with `rights[c][s]` right answers at checkpoint c under seed s; the first items are the right ones."""
    grades = np.array([[[1.0] * k + [0.0] * (num_items - k) for k in row] for row in rights])
    return ArmCurve(arm=arm, steps=tuple(range(0, 25 * len(rights), 25)), grades_CSN=grades, converged=converged)


def test_flips_are_counted_against_the_converged_side() -> None:
    # A − B at the five checkpoints: 0, +20, +20, −10, −20 items of 40; converged at the last: B ahead.
    a = curve("a", [[5, 5], [30, 30], [30, 30], [20, 20], [15, 15]], (4, 4))
    b = curve("b", [[5, 5], [10, 10], [10, 10], [30, 30], [35, 35]], (4, 4))
    pair = read_trajectory([a, b]).pairs[0]
    assert pair.converged.estimate == pytest.approx(-0.5)
    assert (pair.flips, pair.on_converged_side) == (2, 2)
    # Both early leads and both late ones separate: 2 × 2 opposed pairs.
    assert (pair.separated, pair.opposed_pairs) == (4, 4)


def test_summaries_are_scored_against_the_converged_sign_before_convergence() -> None:
    a = curve("a", [[5, 5], [30, 30], [30, 30], [20, 20], [15, 15]], (4, 4))
    b = curve("b", [[5, 5], [10, 10], [10, 10], [30, 30], [35, 35]], (4, 4))
    scores = {score.summary: score for score in read_trajectory([a, b]).scores}
    # Cells: checkpoints 1, 2, 3. Points +20, +20, −10: one right. Running means +10, +13.3, +7.5: none.
    # Slopes of the last 3 at checkpoint 3, a: 30 30 20 → −5, b: 10 10 30 → +10: right; before: a rises faster. One.
    # Peaks +20, +20, 30 − 30 = 0: none. Means of the last 3: +10, +13.3, 26.7 − 16.7: none.
    assert {summary: score.right for summary, score in scores.items()} == {
        Summary.POINT: 1,
        Summary.RUNNING_MEAN: 0,
        Summary.RECENT_SLOPE: 1,
        Summary.PEAK: 0,
        Summary.LAST_MEAN: 0,
    }
    assert scores[Summary.POINT].cells == 3


def test_each_seed_is_read_at_its_own_converged_checkpoint() -> None:
    a = curve("a", [[0, 0], [10, 0], [0, 20]], (1, 2))
    b = curve("b", [[0, 0], [0, 0], [0, 0]], (1, 2))
    assert read_trajectory([a, b]).pairs[0].converged.estimate == pytest.approx(30 / 80)


def test_the_four_readings_tell_different_stories_of_the_same_runs() -> None:
    # Selection pool: items 0–19, where A peaks early and falls back; fresh pool: items 20–39.
    def grades(selection: list[int], fresh: list[int]) -> np.ndarray:
        rows = [
            [1.0] * s + [0.0] * (20 - s) + [1.0] * f + [0.0] * (20 - f) for s, f in zip(selection, fresh, strict=True)
        ]
        return np.array([[row, row, row] for row in rows])

    a = ArmCurve(arm="a", steps=(0, 25, 50), grades_CSN=grades([2, 18, 8], [2, 14, 6]), converged=(2, 2, 2))
    b = ArmCurve(arm="b", steps=(0, 25, 50), grades_CSN=grades([2, 8, 10], [2, 4, 8]), converged=(2, 2, 2))
    found = four_readings(a, b, selection_N=np.arange(40) < 20, shared_step=25)
    assert found.converged_whole_pool.seed_nets == (-4, -4, -4)
    assert found.shared_step_selection_pool.seed_nets == (10, 10, 10)
    assert found.selected_then_fresh.seed_nets == (6, 6, 6)
    assert found.final_fresh.seed_nets == (-2, -2, -2)
    assert found.selected_then_fresh.selected_on == "selection pool"
    assert found.final_fresh.selected_on is None
    assert found.shared_step_selection_pool.pool is PoolStatus.INSPECTED
    # 10–0 pooled: p = 2/1024.
    assert found.shared_step_selection_pool.test.p_value == pytest.approx(2 / 1024)


def test_an_arm_meets_itself_at_its_peak_and_where_it_converged() -> None:
    a = curve("a", [[0, 0], [30, 10], [20, 25]], (2, 2))
    # Seed 0 peaks at its second checkpoint (30), seed 1 at its last (25).
    assert at_peak(a).sum(axis=1).tolist() == [30, 25]
    assert at_converged(a).sum(axis=1).tolist() == [20, 25]
    assert at_step(a, 25).sum() == 40


def test_a_peak_chosen_on_a_selection_pool_is_read_elsewhere() -> None:
    grades = np.zeros((2, 1, 4))
    grades[0, 0, :2] = 1.0  # best on the selection pool
    grades[1, 0, 2:] = 1.0  # best on the fresh pool
    arm = ArmCurve(arm="a", steps=(0, 25), grades_CSN=grades, converged=(1,))
    assert at_peak(arm, np.array([True, True, False, False])).tolist() == [[1.0, 1.0, 0.0, 0.0]]


@pytest.mark.parametrize("text", ["runs/x", "runs/x:a", "runs/x:a@best", "runs/x:a@step-", "@peak"])
def test_what_is_no_checkpoint_is_refused_with_the_forms_wanted(text: str) -> None:
    with pytest.raises(StatsError, match="@peak, @final, @converged or @step-75"):
        parse_reference(text)


def test_a_step_that_was_not_kept_is_refused_with_those_that_were() -> None:
    with pytest.raises(StatsError, match=r"it has \[0, 25\]"):
        at_step(curve("a", [[1], [2]], (1,)), 75)


def test_arms_of_different_shapes_are_refused() -> None:
    with pytest.raises(StatsError, match="the same checkpoints, seeds and items"):
        read_trajectory([curve("a", [[1], [2]], (1,)), curve("b", [[1], [2], [3]], (1,))])
    with pytest.raises(StatsError, match="one checkpoint index per seed"):
        curve("a", [[1], [2]], (5,))

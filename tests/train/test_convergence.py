"""When a run ends, and which of its checkpoints have a name."""

import pytest

from deadheat.train import Ending
from deadheat.train.config import StopConfig
from deadheat.train.convergence import Landmarks, Reading, ending, landmarks


def readings(*accuracies: float | None) -> list[Reading]:
    return [Reading(step=10 * index, accuracy=accuracy) for index, accuracy in enumerate(accuracies)]


def test_a_gain_must_exceed_the_tolerance_over_the_best_so_far() -> None:
    # 1 pp asked: .50 → .51 is not more than one point, .50 → .511 is.
    stop = StopConfig(patience=2, tolerance_pp=1.0)
    assert landmarks(readings(0.5, 0.51, 0.505), stop).converged_step == 0
    assert landmarks(readings(0.5, 0.511, 0.505), stop).converged_step is None
    assert landmarks(readings(0.5, 0.511, 0.505, 0.52), stop).converged_step == 10


def test_small_steps_up_do_not_add_up_to_a_gain_until_they_clear_the_last_gain() -> None:
    # The bar stays at .50 + .01: .505 and .509 are silent, .512 gains although it is only .003 over the one before.
    marks = landmarks(readings(0.5, 0.505, 0.509, 0.512), StopConfig(patience=3, tolerance_pp=1.0))
    assert marks == Landmarks(peak_step=30, last_gain_step=30, converged=False)


def test_the_peak_is_the_highest_and_the_earliest_among_equals() -> None:
    assert landmarks(readings(0.2, 0.7, 0.7, 0.6), StopConfig()).peak_step == 10


def test_without_patience_nothing_converges() -> None:
    marks = landmarks(readings(*[0.5] * 50), StopConfig())
    assert not marks.converged and marks.converged_step is None


def test_evaluations_without_a_grade_count_neither_for_nor_against() -> None:
    stop = StopConfig(patience=2)
    assert landmarks(readings(None, None), stop) == Landmarks(peak_step=None, last_gain_step=None, converged=False)
    assert not landmarks(readings(0.5, None, 0.5, None), stop).converged
    assert landmarks(readings(None, 0.5, None, 0.5, 0.5), stop).converged_step == 10


def test_once_converged_later_readings_do_not_move_the_converged_checkpoint() -> None:
    marks = landmarks(readings(0.1, 0.5, 0.5, 0.5, 0.9), StopConfig(patience=2))
    assert (marks.converged_step, marks.peak_step) == (10, 40)


@pytest.mark.parametrize(
    ("step", "num_active", "accuracies", "why"),
    [
        (4, 2, (0.1, 0.5), None),
        (5, 2, (0.1, 0.5), Ending.STEPS),
        (4, 3, (0.1, 0.5), Ending.ACTIVE_UPDATES),
        (5, 3, (0.1, 0.5), Ending.ACTIVE_UPDATES),
        (5, 3, (0.5, 0.5), Ending.CONVERGED),
    ],
)
def test_the_first_rule_to_fire_names_the_ending(
    step: int, num_active: int, accuracies: tuple[float, ...], why: Ending | None
) -> None:
    stop = StopConfig(steps=5, active_updates=3, patience=1)
    assert ending(step, num_active, readings(*accuracies), stop) is why

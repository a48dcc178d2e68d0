"""Sub-skills: counts as the task makes them, gains over seeds and the items that have the skill."""

import numpy as np

from deadheat.race.skills import RunSkills, SkillReading, skill_gains
from deadheat.stats import paired_gain
from deadheat.tasks import SubSkill

NAN = float("nan")


def counted(name: str, num_right: int, num_all: int) -> SubSkill:
    return SubSkill(name=name, num_right=num_right, num_all=num_all)


def run_of(end_N: list[float], right: int) -> RunSkills:
    """Two slots in each of items 0 and 1, none in items 2 and 3, all wrong at step 0."""
    reading = SkillReading(name="slots", start=counted("slots", 0, 4), end=counted("slots", right, 4))
    return RunSkills(
        readings=(reading,), start_N={"slots": np.array([0.0, 0.0, NAN, NAN])}, end_N={"slots": np.array(end_N)}
    )


def test_a_gain_is_over_the_items_that_have_the_skill_and_counts_are_over_all_seeds() -> None:
    runs = [run_of([1.0, 0.5, NAN, NAN], 3), run_of([1.0, 0.0, NAN, NAN], 2)]
    (skill,) = skill_gains(runs, 0.05)
    assert (skill.reading.start, skill.reading.end) == (counted("slots", 0, 8), counted("slots", 5, 8))
    assert skill.gain is not None
    # (1 + ½ + 1 + 0)/4; items 2 and 3 have no such slot.
    assert (skill.gain.gain, skill.gain.effect.n, skill.gain.effect.left_out) == (0.625, 2, 2)
    two = paired_gain([[1.0, 0.5], [1.0, 0.0]], [0.0, 0.0]).effect
    assert (skill.gain.effect.low, skill.gain.effect.high) == (two.low, two.high)


def test_a_skill_that_no_item_has_in_both_evaluations_has_no_gain() -> None:
    (skill,) = skill_gains([run_of([NAN, NAN, NAN, NAN], 0)], 0.05)
    assert skill.gain is None
    assert skill_gains([], 0.05) == ()

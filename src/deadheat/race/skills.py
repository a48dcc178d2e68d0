"""Sub-skills of a race: what a task counts beside accuracy, at step 0 and at the last evaluation of every run.

Counts are right of all. A gain is that of the mean over items of the share right in each item, over seeds and the items
that have the skill, by the rule of `stats/effect.py`: slots of one answer move together, and are one item.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deadheat.archive import groups_of, read_table
from deadheat.race.tables import RunData
from deadheat.stats import PairedGain, paired_gain
from deadheat.tasks import SubSkill, Task
from deadheat.train import EVALS, step_file
from deadheat.types import Problem, Score


@dataclass(frozen=True, kw_only=True)
class SkillReading:
    """One sub-skill of one run."""

    name: str
    start: SubSkill  # at step 0
    end: SubSkill  # at the last evaluation


@dataclass(frozen=True, kw_only=True)
class SkillGain:
    """One sub-skill of an arm, all its seeds together."""

    reading: SkillReading
    gain: PairedGain | None  # None: no item that both evaluations graded has the skill


@dataclass(frozen=True, kw_only=True)
class RunSkills:
    """Every sub-skill of one run."""

    readings: tuple[SkillReading, ...]  # empty: the task counts none
    start_N: dict[str, NDArray[np.float64]]  # by name: [N] share right in each item at step 0, NaN where it has none
    end_N: dict[str, NDArray[np.float64]]  # the same at the last evaluation


def read_skills(race_folder: Path, run: RunData, task: Task) -> RunSkills:
    """The sub-skills the task counts."""
    if task.sub_skills is None:
        return RunSkills(readings=(), start_N={}, end_N={})
    start, end = (_graded(race_folder, run, step) for step in (run.eval_steps[0], run.eval_steps[-1]))
    counts = [task.sub_skills([pair for pairs in graded.values() for pair in pairs]) for graded in (start, end)]
    return RunSkills(
        readings=tuple(SkillReading(name=a.name, start=a, end=b) for a, b in zip(*counts, strict=True)),
        start_N=_by_item(start, run.items, task),
        end_N=_by_item(end, run.items, task),
    )


def skill_gains(runs: Sequence[RunSkills], alpha: float) -> tuple[SkillGain, ...]:
    """Each sub-skill of an arm's runs, pooled, with its gain."""
    columns = zip(*(run.readings for run in runs), strict=True)
    return tuple(SkillGain(reading=pooled(column), gain=_gain(runs, column[0].name, alpha)) for column in columns)


def pooled(readings: Sequence[SkillReading]) -> SkillReading:
    """One sub-skill over several runs.

    Example:
        >>> def read(a, b):
        ...     start, end = (SubSkill(name="slots", num_right=k, num_all=9) for k in (a, b))
        ...     return SkillReading(name="slots", start=start, end=end)
        >>> pooled([read(0, 4), read(1, 5)]).end
        SubSkill(name='slots', num_right=9, num_all=18)
    """
    name = readings[0].name
    return SkillReading(name=name, start=_sum([r.start for r in readings]), end=_sum([r.end for r in readings]))


def _sum(counts: Sequence[SubSkill]) -> SubSkill:
    right, num_all = sum(c.num_right for c in counts), sum(c.num_all for c in counts)
    return SubSkill(name=counts[0].name, num_right=right, num_all=num_all)


def _gain(runs: Sequence[RunSkills], name: str, alpha: float) -> PairedGain | None:
    if not all(name in table for run in runs for table in (run.start_N, run.end_N)):
        return None
    start_SN, end_SN = np.stack([run.start_N[name] for run in runs]), np.stack([run.end_N[name] for run in runs])
    return None if np.isnan(end_SN - start_SN).all() else paired_gain(end_SN, start_SN, alpha=alpha)


Graded = dict[str, list[tuple[Problem, Score]]]  # answers by problem id


def _graded(race_folder: Path, run: RunData, step: int) -> Graded:
    graded: Graded = {}
    for group in groups_of(read_table(step_file(race_folder / run.identity.folder, EVALS, step))):
        for rollout in group.rollouts:
            graded.setdefault(rollout.problem.problem_id, []).append((rollout.problem, rollout.score))
    return graded


def _by_item(graded: Graded, items: Sequence[str], task: Task) -> dict[str, NDArray[np.float64]]:
    assert task.sub_skills is not None
    shares_N: dict[str, NDArray[np.float64]] = {}
    for place, item in enumerate(items):
        for skill in task.sub_skills(graded[item]):
            row_N = shares_N.setdefault(skill.name, np.full(len(items), np.nan))
            if skill.num_all:
                row_N[place] = skill.num_right / skill.num_all
    return shares_N

"""Sub-skills of a race: what a task counts beside accuracy, at step 0 and at the last evaluation of every run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deadheat.archive import groups_of, read_table
from deadheat.race.tables import RunData
from deadheat.tasks import SubSkill, Task
from deadheat.train import EVALS, step_file


@dataclass(frozen=True, kw_only=True)
class SkillReading:
    """One sub-skill of one run."""

    name: str
    start: SubSkill  # at step 0
    end: SubSkill  # at the last evaluation


def read_skills(race_folder: Path, run: RunData, task: Task) -> tuple[SkillReading, ...]:
    """The sub-skills the task counts; empty when it counts none."""
    if task.sub_skills is None:
        return ()
    start, end = (_count(race_folder, run, task, step) for step in (run.eval_steps[0], run.eval_steps[-1]))
    return tuple(SkillReading(name=a.name, start=a, end=b) for a, b in zip(start, end, strict=True))


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


def _count(race_folder: Path, run: RunData, task: Task, step: int) -> tuple[SubSkill, ...]:
    assert task.sub_skills is not None
    rows = read_table(step_file(race_folder / run.identity.folder, EVALS, step))
    return task.sub_skills([(r.problem, r.score) for group in groups_of(rows) for r in group.rollouts])

"""Read the gate before training, from Python: draw groups, grade them, count the ties.

    python examples/sample_gate.py

The command line does the same with `deadheat sample tiny:heavier file:examples/own_task.py`; here each part is in view.
"""

from pathlib import Path

import numpy as np

from deadheat.credit import group_kind
from deadheat.policy import AdapterConfig, PolicyConfig, load_policy
from deadheat.rollouts import Address, DrawSpec, draw_groups
from deadheat.sampling.keys import Purpose, stream_key
from deadheat.scorers import CheckerScorer, scored
from deadheat.stats import Interval, wilson
from deadheat.tasks import load_task, parse_task, problem_order
from deadheat.types import Group, SamplingParams

SEED = 1


def sample_groups(num_problems: int, group_size: int) -> list[Group]:
    """Graded groups of a tiny policy on the task next to this file."""
    task = load_task(parse_task({"name": f"file:{Path(__file__).with_name('own_task.py')}"}))
    policy = load_policy(
        PolicyConfig(model="tiny:heavier", adapter=AdapterConfig(kind="full")),
        key=stream_key(SEED, "adapter"),
        warm_texts=[problem.prompt + task.gold_text(problem) for problem in task.training],
    )
    sampling = SamplingParams(max_new_tokens=task.max_new_tokens)
    spec = DrawSpec(task=task.name, chat=task.chat, stop_text=task.stop_text, sampling=sampling)
    problems = problem_order(task.training, seed=SEED).batch(1, num_problems)
    address = Address(seed=SEED, purpose=Purpose.SAMPLE, step=0)
    with CheckerScorer(task) as scorer:
        drawn = draw_groups(policy, problems, spec, address=address, group_size=group_size)
        return scored(drawn.groups, scorer, address=address)


def shut_rate(groups: list[Group], group_size: int) -> Interval:
    """Share of groups that agree when only their first `group_size` attempts are looked at."""
    kinds = []
    for group in groups:
        rollouts = group.rollouts[:group_size]
        rewards_G = np.array([np.nan if r.score.value is None else r.score.value for r in rollouts])
        kinds.append(group_kind(rewards_G, [r.score.correct for r in rollouts]))
    return wilson(sum(kind != "live" for kind in kinds), len(kinds))


def main() -> None:
    """Print the shut-gate rate of the same draws, read as groups of 2, 4, 8 and 16."""
    groups = sample_groups(num_problems=50, group_size=16)
    for size in (2, 4, 8, 16):
        shut = shut_rate(groups, size)
        print(
            f"G = {size:2}: shut {100 * shut.estimate:.0f}% [{100 * shut.low:.0f}, {100 * shut.high:.0f}], "
            f"n = {shut.n} groups, T = {1 / (1 - shut.estimate):.2f}"
        )


if __name__ == "__main__":
    main()

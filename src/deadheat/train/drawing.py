"""How a run draws: the plan of a step, the rewards that the drawing goes by, and what was drawn and not kept.

The drawing goes by the scorer's value after the marker gate, before length terms and before a control's permutation.
Length terms would make every group of unequal lengths mixed and switch the filter off; a permutation of the same rewards
cannot change whether they differ, so that a control draws what the honest arm draws.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from deadheat.policy import GenerateAccount
from deadheat.rollouts import Address, DrawnBatch, DrawPlan, DrawSpec, Graded
from deadheat.tasks.order import ProblemOrder
from deadheat.train.assign import CreditedGroup, assign_credit
from deadheat.train.config import RolloutConfig, RunConfig
from deadheat.train.shape import Shaping
from deadheat.types import Group


@dataclass(frozen=True, kw_only=True)
class StepDraw:
    """What was drawn for one step, and what generating it took."""

    batch: DrawnBatch
    generated: GenerateAccount  # of all its rounds


def draw_plan(config: RolloutConfig, order: ProblemOrder, spec: DrawSpec, address: Address) -> DrawPlan:
    """What the step of an address asks for: a pure function of the config and the address."""
    return DrawPlan(
        problems=order.batch(address.step, config.questions_per_step),
        reserve=order.reserve(address.step, config.questions_per_step),
        spec=spec,
        address=address,
        group_size=config.group_size,
        max_rounds=config.max_rounds,
        max_refills=config.max_refills,
        keep=config.keep,
    )


def drawing_rewards(groups: Sequence[Group], shaping: Shaping) -> list[Graded]:
    """Groups with the rewards that the drawing goes by."""
    return [
        Graded(group=group, rewards_G=np.array([shaping.gated(rollout) for rollout in group.rollouts]))
        for group in groups
    ]


def uncredited(groups: Sequence[Group], config: RunConfig, shaping: Shaping) -> list[CreditedGroup]:
    """Groups that nothing is learned from, with the training rewards they would have had; no control permutes them."""
    scorer = config.scorer.model_copy(update={"kind": "checker"})
    return assign_credit(groups, scorer=scorer, credit=config.credit, shaping=shaping, seed=0, step=0)


def total(accounts: Sequence[GenerateAccount]) -> GenerateAccount:
    """Several calls of generation as one."""
    names = [field.name for field in fields(GenerateAccount)]
    return GenerateAccount(**{name: sum(getattr(account, name) for account in accounts) for name in names})

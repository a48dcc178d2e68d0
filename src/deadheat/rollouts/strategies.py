"""The ways of drawing a group, by name: how each draws, and which of a problem's draws it learns from.

A new strategy is one file with a subclass of `DrawingOptions`, a `draw` and a `choose`, and one entry in `STRATEGIES`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BeforeValidator, SerializeAsAny, ValidationError

from deadheat.rollouts.adaptive import AdaptiveOptions, choose_adaptive, draw_adaptive
from deadheat.rollouts.batch import DrawingOptions, DrawnBatch, DrawPlan, Pool
from deadheat.rollouts.dynamic import DynamicOptions, choose_dynamic, draw_dynamic
from deadheat.types import Policy


class Drawing(StrEnum):
    """The strategies that come with the package."""

    FLAT = "flat"  # G draws of each problem, all learned from
    DYNAMIC = "dynamic"  # whole groups of G until one is mixed; prompts that never are make way for the next
    ADAPTIVE = "adaptive"  # rounds of G into a pool until it is mixed; G of the pool are learned from


class FlatOptions(DrawingOptions):
    """G draws of each problem, all learned from."""

    name: Literal["flat"] = "flat"


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """One way of drawing."""

    options: type[DrawingOptions]  # the settings that it alone has
    draw: Callable[[Policy, DrawPlan], DrawnBatch]
    choose: Callable[[Pool, DrawingOptions], tuple[int, ...]]  # pure, so that records can be held against it


def draw_flat(policy: Policy, plan: DrawPlan) -> DrawnBatch:
    """G draws of each problem."""
    drawn = plan.draw(policy, plan.problems, round_=0)
    return DrawnBatch(kept=drawn.groups, not_kept=(), plan=plan, num_rounds=1, cost=drawn.cost)


def choose_flat(pool: Pool, options: DrawingOptions) -> tuple[int, ...]:
    """The first G, which are all there are."""
    return tuple(range(pool.group_size))


STRATEGIES: dict[str, Strategy] = {
    "flat": Strategy(options=FlatOptions, draw=draw_flat, choose=choose_flat),
    "dynamic": Strategy(options=DynamicOptions, draw=draw_dynamic, choose=choose_dynamic),
    "adaptive": Strategy(options=AdaptiveOptions, draw=draw_adaptive, choose=choose_adaptive),
}


def parse_drawing(table: object) -> DrawingOptions:
    """A strategy's name, or a table with its name and options, as the options of that strategy."""
    if isinstance(table, DrawingOptions):
        return table
    if isinstance(table, str):
        table = {"name": table}
    name = table.get("name") if isinstance(table, Mapping) else None
    if name not in STRATEGIES:
        raise ValueError(f"rollouts.drawing is {table!r}; wanted a table with name = one of {', '.join(STRATEGIES)}")
    try:
        return STRATEGIES[str(name)].options.model_validate(table)
    except ValidationError as error:
        known = ", ".join(STRATEGIES[str(name)].options.model_fields)
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise ValueError(f"rollouts.drawing.{key}: {first['msg']}; {name} has {known}") from None


# A field of this type takes a name or a table and holds the options of that strategy.
DrawingField = Annotated[SerializeAsAny[DrawingOptions], BeforeValidator(parse_drawing)]

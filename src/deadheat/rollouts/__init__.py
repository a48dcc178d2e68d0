"""How a group is drawn: flat, dynamic or adaptive."""

from deadheat.rollouts.adaptive import AdaptiveOptions
from deadheat.rollouts.batch import (
    Attempts,
    DrawingOptions,
    DrawnBatch,
    DrawPlan,
    DrawSpec,
    Keep,
    Pool,
    draw_groups,
)
from deadheat.rollouts.bias import KeptCounts, kept_counts
from deadheat.rollouts.dynamic import DynamicOptions
from deadheat.rollouts.strategies import STRATEGIES, Drawing, DrawingField, FlatOptions, Strategy
from deadheat.types import Address

__all__ = [
    "STRATEGIES",
    "AdaptiveOptions",
    "Address",
    "Attempts",
    "DrawPlan",
    "DrawSpec",
    "Drawing",
    "DrawingField",
    "DrawingOptions",
    "DrawnBatch",
    "DynamicOptions",
    "FlatOptions",
    "Keep",
    "KeptCounts",
    "Pool",
    "Strategy",
    "draw_groups",
    "kept_counts",
]

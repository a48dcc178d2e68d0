"""How a group is drawn: flat, dynamic or adaptive."""

from deadheat.rollouts.batch import DrawnBatch, DrawPlan, Grade, Graded, Keep
from deadheat.rollouts.bias import KeptCounts, kept_counts
from deadheat.rollouts.flat import Address, DrawSpec, draw_groups
from deadheat.rollouts.strategies import STRATEGIES, Drawing

__all__ = [
    "STRATEGIES",
    "Address",
    "DrawPlan",
    "DrawSpec",
    "Drawing",
    "DrawnBatch",
    "Grade",
    "Graded",
    "Keep",
    "KeptCounts",
    "draw_groups",
    "kept_counts",
]

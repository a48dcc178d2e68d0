"""How a group is drawn."""

from deadheat.rollouts.flat import Address, DrawSpec, draw_groups

__all__ = ["Address", "DrawSpec", "draw_groups"]

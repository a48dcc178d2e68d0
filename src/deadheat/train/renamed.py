"""Keys of older race files and what they are called now."""

from collections.abc import Mapping
from typing import Any

RENAMED = {
    "rollouts.max_rounds": "rollouts.drawing.max_rounds",
    "rollouts.max_refills": "rollouts.drawing.max_refills",
    "rollouts.keep": "rollouts.drawing.keep",
}


def refuse_renamed(table: Mapping[str, Any]) -> None:
    """A `ValueError` that names the new key of every old one in a run's table."""
    found = [(old, new) for old, new in RENAMED.items() if _holds(table, old)]
    if found:
        raise ValueError("; ".join(f"{old} is now {new}" for old, new in found))


def _holds(table: Mapping[str, Any], dotted: str) -> bool:
    section, key = dotted.split(".")
    held = table.get(section)
    return isinstance(held, Mapping) and key in held

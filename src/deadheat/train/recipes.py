"""Published objectives by name: `recipe = "gspo"` in a race file stands for the settings of `recipes.toml`."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One published objective."""

    source: str  # where its settings are published
    settings: Mapping[str, Any]  # by section, as a race file would hold them
    cannot_use: tuple[str, ...]  # dotted keys that do nothing under it


@cache
def recipes() -> dict[str, Recipe]:
    """All bundled recipes, in file order."""
    held = tomllib.loads((files("deadheat.train") / "recipes.toml").read_text(encoding="utf-8"))
    return {
        name: Recipe(
            source=table["source"],
            settings={key: value for key, value in table.items() if key not in ("source", "cannot_use")},
            cannot_use=tuple(table["cannot_use"]),
        )
        for name, table in held.items()
    }


def with_recipe(table: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """A run's table with its recipe's settings below its own; `defaults` are the values of keys that nobody sets."""
    name = table.get("recipe")
    if name is None:
        return dict(table)
    if name not in recipes():
        raise ValueError(f"recipe is {name!r}; wanted one of {', '.join(recipes())}")
    recipe = recipes()[name]
    for key in recipe.cannot_use:
        section, setting = key.split(".")
        given = table.get(section)
        if isinstance(given, Mapping) and setting in given and given[setting] != defaults[section][setting]:
            raise ValueError(
                f"{key} is {given[setting]!r} and does nothing under recipe = {name!r}; wanted it left out"
            )
    return {**table, **{section: _below(table.get(section), held) for section, held in recipe.settings.items()}}


def _below(given: Any, held: Mapping[str, Any]) -> Any:
    """A section's own settings over the recipe's; a section that is already validated is whole."""
    return {**held, **given} if isinstance(given, Mapping) else held if given is None else given

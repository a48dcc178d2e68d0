"""Task configs: frozen, unknown keys refused with the nearest valid name."""

import difflib
from collections.abc import Iterable, Mapping
from typing import ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from deadheat.errors import ConfigError

_SHOWN_NAMES = 20


class TaskConfig(BaseModel):
    """What every task's config has; each task adds its own options in its own file."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    grading_options: ClassVar[frozenset[str]] = frozenset()  # options that change rewards and never a prompt

    name: str  # "addition", "reasoning-gym:leg_counting", "file:my_task.py"


_Config = TypeVar("_Config", bound=TaskConfig)


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint for a message: the nearest valid name, or the valid names.

    Example:
        >>> nearest("adition", ["addition", "cipher"])
        "did you mean 'addition'?"
        >>> nearest("zzz", ["addition", "cipher"])
        'valid: addition, cipher'
    """
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    return f"valid: {', '.join(names[:_SHOWN_NAMES])}{more}"


def validated(model: type[_Config], table: Mapping[str, object]) -> _Config:
    """The table as a config of this model, or a ConfigError that names the key, what was seen and what was wanted."""
    try:
        return model.model_validate(dict(table))
    except ValidationError as error:
        name = table.get("name")
        problems = "; ".join(_explain(model, dict(item)) for item in error.errors())
        raise ConfigError(f"[task] {name!r}: {problems}") from None


def _explain(model: type[TaskConfig], item: Mapping[str, object]) -> str:
    loc = item["loc"]
    key = ".".join(map(str, loc)) if isinstance(loc, tuple) else str(loc)
    if item["type"] == "extra_forbidden":
        return f"unknown key {key!r}; {nearest(key, model.model_fields)}"
    if item["type"] == "missing":
        return f"key {key!r} is missing"
    return f"{key} is {item['input']!r}; {item['msg']}"

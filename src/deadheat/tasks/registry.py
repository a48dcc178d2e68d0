"""Task names and what builds them. A task's module is imported when its name is asked for, not before."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, cast

from pydantic import BeforeValidator, SerializeAsAny

from deadheat.errors import ConfigError
from deadheat.tasks.config import TaskConfig, nearest, validated
from deadheat.tasks.task import Task


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Where a task lives."""

    module: str  # dotted path
    config: str  # name of its config model there
    build: str  # name of the function (config) -> Task there


TASKS: dict[str, Entry] = {
    "above": Entry(module="deadheat.tasks.above", config="AboveConfig", build="build_above"),
    "addition": Entry(module="deadheat.tasks.addition", config="AdditionConfig", build="build_addition"),
    "cipher": Entry(module="deadheat.tasks.cipher", config="CipherConfig", build="build_cipher"),
    "gsm8k": Entry(module="deadheat.tasks.gsm8k", config="Gsm8kConfig", build="build_gsm8k"),
    "instruct": Entry(module="deadheat.tasks.instruct", config="InstructConfig", build="build_instruct"),
    "math": Entry(module="deadheat.tasks.competition", config="MathConfig", build="build_math"),
    "trivia": Entry(module="deadheat.tasks.trivia", config="TriviaConfig", build="build_trivia"),
}
# Names of the form "prefix:rest"; the rest is the task's own business.
PREFIXES: dict[str, Entry] = {
    "file": Entry(module="deadheat.tasks.user", config="FileTaskConfig", build="build_file"),
    "reasoning-gym": Entry(module="deadheat.tasks.gym", config="GymConfig", build="build_gym"),
}


def task_names() -> list[str]:
    """Every name a config may give, with a word for the open part.

    Example:
        >>> "addition" in task_names()
        True
    """
    return sorted([*TASKS, *(f"{prefix}:NAME" for prefix in PREFIXES)])


def parse_task(table: object) -> TaskConfig:
    """A `[task]` table (or only a name, or a finished config) as the config of the task it names."""
    if isinstance(table, TaskConfig):
        return table
    if isinstance(table, str):
        table = {"name": table}
    if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
        raise ConfigError(f"[task] is {table!r}; wanted a table with name = one of {', '.join(task_names())}")
    entry = _entry(table["name"])
    model = getattr(importlib.import_module(entry.module), entry.config)
    return validated(cast("type[TaskConfig]", model), table)


# A field of this type in another config takes a `[task]` table and holds the task's own validated config.
TaskField = Annotated[SerializeAsAny[TaskConfig], BeforeValidator(parse_task)]


def load_task(config: TaskConfig) -> Task:
    """Builds the task a config asks for; a TaskError where it would have no problems."""
    entry = _entry(config.name)
    build = getattr(importlib.import_module(entry.module), entry.build)
    return cast("Callable[[TaskConfig], Task]", build)(config)


def _entry(name: str) -> Entry:
    prefix, colon, _ = name.partition(":")
    found = PREFIXES.get(prefix) if colon else TASKS.get(name)
    if found is None:
        raise ConfigError(f"no task is called {name!r}; {nearest(name, task_names())}")
    return found

"""A task of your own: `name = "file:my_task.py"`, a Python file with `build(options) -> Task`.

Every other key of the `[task]` table is passed to `build` in a dict. The file's checker runs in a child process under a
time limit (the child loads the file itself), so one that raises, hangs or crashes leaves answers unscored and the run
alive.
"""

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from pydantic import ConfigDict

from deadheat.errors import TaskError
from deadheat.tasks.config import TaskConfig
from deadheat.tasks.task import Check, Task
from deadheat.types import Problem, Score


class FileTaskConfig(TaskConfig):
    """`file:PATH` plus whatever the file's `build` wants; unknown keys are the file's to refuse."""

    model_config = ConfigDict(frozen=True, extra="allow")


@dataclass(frozen=True, kw_only=True)
class FileCheck:
    """The checker of a task file, as something a child can be sent: it loads the file where it is first used."""

    path: Path  # absolute
    options: Mapping[str, object]  # what `build` is called with
    loaded: list[Check] = field(default_factory=list, compare=False)  # the checker once it is loaded; never pickled

    def prepare(self) -> None:
        """Loads the file."""
        if not self.loaded:
            self.loaded.append(build_from(self.path, self.options).check)

    def __call__(self, problem: Problem, text: str) -> Score:
        """What the file's checker says."""
        self.prepare()
        return self.loaded[0](problem, text)

    def __reduce__(self) -> tuple[Callable[..., "FileCheck"], tuple[Path, dict[str, object]]]:
        return _file_check, (self.path, dict(self.options))


def _file_check(path: Path, options: dict[str, object]) -> FileCheck:
    return FileCheck(path=path, options=options)


def build_file(config: FileTaskConfig) -> Task:
    """The task of a file, its checker under guard."""
    path = Path(config.name.partition(":")[2]).expanduser().absolute()
    options = dict(config.model_extra or {})
    task = build_from(path, options)
    return replace(task, check=FileCheck(path=path, options=options), trusted_checker=False)


def build_from(path: Path, options: Mapping[str, object]) -> Task:
    """Runs a task file's `build`."""
    if not path.is_file():
        raise TaskError(f"task file {path} is not there; wanted a Python file with build(options) -> Task")
    spec = importlib.util.spec_from_file_location(f"deadheat_task_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise TaskError(f"task file {path} is no Python file; wanted a name ending in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        build = cast("Callable[[dict[str, object]], object]", module.build)
        task = build(dict(options))
    except Exception as error:  # a task file is foreign code: its fault is named, and raised as ours
        raise TaskError(f"task file {path}: {type(error).__name__}: {error}; wanted build(options) -> Task") from error
    if not isinstance(task, Task):
        raise TaskError(f"task file {path}: build returned {type(task).__name__}; wanted a deadheat.tasks.Task")
    return task

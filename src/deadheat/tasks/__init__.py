"""Problems and their checkers: `load_task` builds a task from its config, `problem_order` says what each step sees."""

from deadheat.tasks.config import TaskConfig
from deadheat.tasks.registry import TaskField, load_task, parse_task, task_names
from deadheat.tasks.task import Check, GoldReport, Task, validate_checker

__all__ = [
    "Check",
    "GoldReport",
    "Task",
    "TaskConfig",
    "TaskField",
    "load_task",
    "parse_task",
    "task_names",
    "validate_checker",
]

"""Problems and their checkers: `load_task` builds a task from its config, `problem_order` says what each step sees."""

from deadheat.tasks.config import TaskConfig
from deadheat.tasks.order import Curriculum, Order, ProblemOrder, problem_order
from deadheat.tasks.registry import TaskField, load_task, parse_task, task_names
from deadheat.tasks.task import Check, GoldReport, SubSkill, Task, validate_checker
from deadheat.tasks.timed import CheckOutcome, InProcessChecker, TimedChecker, open_checker

__all__ = [
    "Check",
    "CheckOutcome",
    "Curriculum",
    "GoldReport",
    "InProcessChecker",
    "Order",
    "ProblemOrder",
    "SubSkill",
    "Task",
    "TaskConfig",
    "TaskField",
    "TimedChecker",
    "load_task",
    "open_checker",
    "parse_task",
    "problem_order",
    "task_names",
    "validate_checker",
]

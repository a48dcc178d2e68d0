"""Deadheat: race reinforcement-learning recipes for language models and never call a tie a win.

The names below are imported when they are first used: `import deadheat` loads no torch, and a user of the statistics never
does.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_ROOMS = {
    "archive": ("Archive", "ReadOptions", "read", "read_table", "read_tables"),
    "errors": ("DeadheatError",),
    "hooks": ("GroupBatch", "GroupMonitor", "MonitorConfig"),
    "policy": ("LanguageModel", "PolicyConfig", "load_policy"),
    "race": ("RaceConfig", "load_race", "parse_race", "run_race", "verify_race"),
    "sides": ("verdict",),
    "stats": ("detection_floor", "judge", "paired_floor", "two_part_rule", "votes_from_scores", "wilson"),
    "tasks": ("Task", "load_task", "parse_task"),
    "train": ("RunConfig", "train_run"),
    "types": ("Completion", "Draw", "Group", "Problem", "Rollout", "SamplingParams", "Score", "StopReason"),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'deadheat' has no attribute {name!r}")
    return getattr(import_module(f"deadheat.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

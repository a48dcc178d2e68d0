"""Deadheat: race reinforcement-learning recipes for language models and never call a tie a win.

The names below are imported when they are first used: `import deadheat` loads no torch, and a user of the statistics never
does.
"""

from deadheat.lazy import lookups

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
__all__ = sorted(name for names in _ROOMS.values() for name in names)
__getattr__, __dir__ = lookups(__name__, _ROOMS, also=("__version__",))

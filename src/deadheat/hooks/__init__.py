"""Watch the groups of somebody else's training loop while it runs: `GroupMonitor` for any loop, `hooks.trl` for TRL."""

from deadheat.hooks.batch import GroupBatch
from deadheat.hooks.counts import StepCounts, WindowReading
from deadheat.hooks.monitor import GroupMonitor, MonitorConfig

__all__ = ["GroupBatch", "GroupMonitor", "MonitorConfig", "StepCounts", "WindowReading"]

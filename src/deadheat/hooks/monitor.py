"""Watch the groups of any training loop: counts over a window, numbers for a logger, a line now and then, an archive.

    monitor = GroupMonitor(MonitorConfig(archive=Path("groups")))
    for step in range(1, 1001):
        …
        wandb.log(monitor.observe(GroupBatch(step=step, rewards=rewards_PG)), step=step)

A batch is in the archive before it is counted. Where the disk refuses, the monitor says so once, stops writing and goes
on counting: watching a run does not end it.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from deadheat.errors import ConfigError, RunFolderError, StatsError
from deadheat.hooks.batch import GroupBatch, flattened
from deadheat.hooks.counts import StepCounts, WindowReading, add, count_step, metrics_of, read_window
from deadheat.hooks.recorder import Recorder
from deadheat.sampling.keys import Purpose


@dataclass(frozen=True, kw_only=True)
class MonitorConfig:
    """What is watched, said and kept."""

    window: int = 50  # steps that the window's figures cover
    every: int = 10  # steps between two lines; 0: no line
    cap: int | None = None  # tokens: a rollout of this length was cut; None: batches say it, or nothing does
    archive: Path | None = None  # a new folder for the rollouts; None: none are kept
    resume: bool = False  # go on with the archive of a run that was stopped
    run: str = ""  # name of the run in the archive; empty: the folder's name
    arm: str = ""  # name of the arm in the archive; empty: there are none
    seed: int = 0  # seed in the archive
    level: float = 0.95  # of the intervals
    prefix: str = "deadheat/"  # of the metrics' names

    def __post_init__(self) -> None:
        if self.window < 1 or self.every < 0:
            raise ConfigError(f"window={self.window}, every={self.every}; wanted at least 1 step, and 0 or more")
        if self.cap is not None and self.cap < 1:
            raise ConfigError(f"cap is {self.cap}; wanted at least 1 token, or None")


class GroupMonitor:
    """Counts what the groups of a run teach while it runs."""

    def __init__(self, config: MonitorConfig | None = None, *, say: Callable[[str], None] = print) -> None:
        self.config = config or MonitorConfig()
        self._say = say
        self._steps: deque[StepCounts] = deque(maxlen=self.config.window)
        self._num_steps = 0
        self._fresh: StepCounts | None = None
        self._recorder = self._opened()

    def observe(self, batch: GroupBatch) -> dict[str, float]:
        """Record a batch; the metrics of it and of the window, ready for a logger."""
        self.record(batch)
        return self.metrics()

    def record(self, batch: GroupBatch) -> None:
        """Write and count a batch. What is no training batch is written only."""
        rows = flattened(batch, cap=self.config.cap)
        counts, kinds = count_step(rows)
        if self._recorder is not None:
            try:
                self._recorder.write(rows, kinds)
            except RunFolderError as error:
                self._say(f"step {batch.step}: the archive ends here, counting goes on. {error}")
                self.close()
        if batch.purpose is not Purpose.TRAIN:
            return
        bare = replace(
            counts, by_group=()
        )  # what came since the last metrics has no interval, and may never be asked for
        self._fresh = bare if self._fresh is None else add(self._fresh, bare)
        if self._steps and self._steps[-1].step == counts.step:
            self._steps[-1] = add(self._steps[-1], counts)
            return
        self._steps.append(counts)
        self._num_steps += 1
        if self.config.every and self._num_steps % self.config.every == 0:
            self._say(self.reading().sentence)

    def metrics(self) -> dict[str, float]:
        """The window's numbers, and those of the batches since this was last asked; empty before the first batch."""
        if not self._steps:
            return {}
        fresh, self._fresh = self._fresh, None
        return metrics_of(self.reading(), fresh, prefix=self.config.prefix)

    def reading(self) -> WindowReading:
        """The window as a record with intervals."""
        if not self._steps:
            raise StatsError("no training batch was recorded; wanted at least one before a reading")
        return read_window(tuple(self._steps), level=self.config.level)

    def close(self) -> None:
        """Let go of the archive's folder; what was recorded is on disk already."""
        if self._recorder is not None:
            self._recorder.close()
            self._recorder = None

    def __enter__(self) -> "GroupMonitor":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _opened(self) -> Recorder | None:
        folder = self.config.archive
        if folder is None:
            return None
        run = self.config.run or Path(folder).resolve().name
        return Recorder(Path(folder), run=run, arm=self.config.arm, seed=self.config.seed, resume=self.config.resume)

"""Progress of long work: a bar with M of N, elapsed and expected time; plain lines where there is no terminal.

    ETA = elapsed · (total − done) / (done − done at the start)

so what a resumed run found already done does not make it look faster. In a log file or a pipe a line is written at the
start, at the end and at most every `every_s` seconds, without control codes.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from deadheat.reports.formats import format_seconds, printable

Clock = Callable[[], float]


class Tracker:
    """What the work reports to. `track` makes one; it shows what it is told, as a bar or as lines."""

    def __init__(self, *, total: int, done: int, clock: Clock, show: Callable[["Tracker"], None]) -> None:
        if total < 0 or not 0 <= done <= total:
            raise ValueError(f"{done} of {total} done; wanted 0 <= done <= total")
        self.total = total
        self.done = done
        self.note = ""
        self._done_at_start = done
        self._clock = clock
        self._started_s = clock()
        self._show = show

    def advance(self, amount: int = 1, *, note: str | None = None) -> None:
        """Reports `amount` more done; `note` says what is being done now and stays until the next one."""
        self.done = min(self.total, self.done + amount)
        self.say(self.note if note is None else note)

    def say(self, note: str) -> None:
        """Says what is being done now, without progress."""
        self.note = " ".join(printable(note).split())
        self._show(self)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._started_s

    @property
    def eta_s(self) -> float | None:
        """Seconds still expected; None before anything was done."""
        return remaining_s(self.elapsed_s, done=self.done - self._done_at_start, left=self.total - self.done)


def remaining_s(elapsed_s: float, *, done: int, left: int) -> float | None:
    """elapsed · left / done; None before anything was done.

    Example:
        >>> remaining_s(30.0, done=10, left=40), remaining_s(30.0, done=0, left=40)
        (120.0, None)
    """
    if left == 0:
        return 0.0
    return elapsed_s * left / done if done > 0 else None


@contextmanager
def track(
    what: str,
    *,
    total: int,
    done: int = 0,
    console: Console | None = None,
    every_s: float = 15.0,
    clock: Clock = time.monotonic,
) -> Iterator[Tracker]:
    """Shows progress while the block runs; `done` is what a resumed run found finished.

    Writes to standard error unless given a console, so that piped output stays clean.
    """
    screen = Console(stderr=True) if console is None else console
    show = _bar if screen.is_terminal and not screen.is_dumb_terminal else _log
    with show(" ".join(printable(what).split()), screen, total, done, every_s, clock) as tracker:
        yield tracker


@contextmanager
def _bar(what: str, console: Console, total: int, done: int, every_s: float, clock: Clock) -> Iterator[Tracker]:
    progress = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        _Times(),
        TextColumn("{task.fields[note]}", markup=False, style="dim"),
        console=console,
        expand=True,
        refresh_per_second=4,
    )

    def show(tracker: Tracker) -> None:
        progress.update(task, completed=tracker.done, note=tracker.note[:40], tracker=tracker)

    tracker = Tracker(total=total, done=done, clock=clock, show=show)
    task = progress.add_task(what, total=total, completed=done, note="", tracker=tracker)
    with progress:
        yield tracker


class _Times(ProgressColumn):
    """Elapsed and expected time, by the module's formula."""

    def render(self, task: Task) -> Text:
        return Text(times(task.fields["tracker"]))


@contextmanager
def _log(what: str, console: Console, total: int, done: int, every_s: float, clock: Clock) -> Iterator[Tracker]:
    last_s = float("-inf")

    def show(tracker: Tracker) -> None:
        nonlocal last_s
        if tracker.done == tracker.total or clock() - last_s >= every_s:
            _write(what, console, tracker)
            last_s = clock()

    tracker = Tracker(total=total, done=done, clock=clock, show=show)
    show(tracker)
    yield tracker


def _write(what: str, console: Console, tracker: Tracker) -> None:
    share = f" ({100 * tracker.done // tracker.total}%)" if tracker.total else ""
    note = f" · {tracker.note}" if tracker.note else ""
    line = f"{what}: {tracker.done:,} of {tracker.total:,}{share} · {times(tracker)}{note}"
    console.print(Text(line), soft_wrap=True)


def times(tracker: Tracker) -> str:
    """Elapsed and expected time in words."""
    elapsed = f"{_coarse(tracker.elapsed_s)} elapsed"
    if tracker.done == tracker.total:
        return elapsed
    return f"{elapsed}, ETA {'unknown' if tracker.eta_s is None else _coarse(tracker.eta_s)}"


def _coarse(seconds: float) -> str:
    return f"{max(0.0, seconds):.0f} s" if seconds < 59.5 else format_seconds(seconds)

"""Running checkers so that nothing they do can hurt a run: what raises, hangs or dies is unscored, never zero.

Cheap built-in checkers run in process. Every other one runs in a child process that is killed when an answer takes
longer than its limit: this works for endless loops and for C code that holds the interpreter's lock, where an alarm or
a thread in the same process does not. The child starts fresh (it inherits no state and imports no torch) and is
restarted after a kill. Starting and importing do not count against the limit.
"""

import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from collections import Counter
from enum import StrEnum
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Self

from deadheat.errors import CheckerError
from deadheat.tasks.task import Check, Task
from deadheat.tasks.timed_child import Started, Verdict, guarded
from deadheat.types import Problem, Score

_CHILD = "from deadheat.tasks.timed_child import main; main()"


class CheckOutcome(StrEnum):
    """How one call of a checker ended."""

    SCORED = "scored"  # it returned a score (which may itself be unscored)
    RAISED = "raised"  # it raised, or returned something that is no Score or no finite number
    TIMED_OUT = "timed_out"  # it ran past the limit and was killed
    DIED = "died"  # its process ended by itself: a crash in C code, os._exit, out of memory


class InProcessChecker:
    """Runs a trusted checker here; what it raises becomes unscored."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self.counts: Counter[CheckOutcome] = Counter()

    def __call__(self, problem: Problem, text: str) -> Score:
        """The checker's score, or unscored with the reason."""
        verdict = guarded(self._check, problem, text)
        self.counts[CheckOutcome.RAISED if verdict.raised else CheckOutcome.SCORED] += 1
        return verdict.score

    def close(self) -> None:
        """Nothing to release."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


class TimedChecker:
    """Runs a checker in a child process, `limit_s` seconds per answer; threads that share it take turns."""

    def __init__(self, check: Check, *, limit_s: float = 5.0, start_limit_s: float = 120.0) -> None:
        if not limit_s > 0:
            raise ValueError(f"limit_s is {limit_s}; wanted > 0")
        self._payload = _pickled(check)
        self._limit_s = limit_s
        self._start_limit_s = start_limit_s
        self._child: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None
        self._lock = threading.Lock()
        self.counts: Counter[CheckOutcome] = Counter()

    def __call__(self, problem: Problem, text: str) -> Score:
        """The checker's score, or unscored with the reason: raised, over the limit, or its process died."""
        with self._lock:
            score, outcome = self._ask(problem, text)
            self.counts[outcome] += 1
            return score

    def close(self) -> None:
        """Ends the child process."""
        child, pipe = self._child, self._pipe
        self._child = self._pipe = None
        if pipe is not None:
            pipe.close()
        if child is not None:
            child.kill()
            child.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _ask(self, problem: Problem, text: str) -> tuple[Score, CheckOutcome]:
        pipe = self._pipe if self._pipe is not None else self._start()
        try:
            pipe.send((problem, text))
            if not pipe.poll(self._limit_s):
                self.close()
                why = f"checker ran past its limit of {self._limit_s:g} s and was stopped"
                return Score(value=None, unscored=why), CheckOutcome.TIMED_OUT
            verdict = pipe.recv()
        except (EOFError, ConnectionError):
            code = self._exit_code()
            self.close()
            return Score(value=None, unscored=f"checker process died (exit status {code})"), CheckOutcome.DIED
        if not isinstance(verdict, Verdict):
            raise CheckerError(f"checker process sent {type(verdict).__name__}; wanted a Verdict")
        return verdict.score, CheckOutcome.RAISED if verdict.raised else CheckOutcome.SCORED

    def _start(self) -> Connection:
        ours, theirs = multiprocessing.Pipe()
        with theirs:
            self._child = subprocess.Popen(
                [sys.executable, "-c", _CHILD, str(theirs.fileno()), str(self._limit_s)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # a Ctrl-C is the parent's to handle
                env=os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
            )
        self._pipe = ours
        ours.send_bytes(self._payload)
        self._await_start(ours)
        return ours

    def _await_start(self, pipe: Connection) -> None:
        try:
            started = pipe.recv() if pipe.poll(self._start_limit_s) else None
        except (EOFError, ConnectionError):
            started = Started(error=f"its process ended with status {self._exit_code()}")
        if started is None:
            started = Started(error=f"it was not ready after {self._start_limit_s:g} s")
        if started.error is not None:
            self.close()
            raise CheckerError(f"the checker did not start: {started.error}")

    def _exit_code(self) -> int | None:
        if self._child is None:
            return None
        try:
            return self._child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return None


def open_checker(task: Task, *, limit_s: float | None = None) -> InProcessChecker | TimedChecker:
    """The task's checker, guarded: in process where trusted, else in a child under `limit_s` or the task's limit."""
    if task.trusted_checker:
        return InProcessChecker(task.check)
    return TimedChecker(task.check, limit_s=task.check_limit_s if limit_s is None else limit_s)


def _pickled(check: Check) -> bytes:
    try:
        return pickle.dumps(check)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise CheckerError(
            f"the checker {check!r} cannot be sent to a child process ({error}); wanted a function of an importable "
            "module, a functools.partial of one, or a task file given as file:PATH"
        ) from None

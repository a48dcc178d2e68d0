"""The child of `TimedChecker`: receives a checker, then grades (problem, text) pairs until its pipe closes.

The one place where foreign exceptions of a checker are turned into a recorded outcome (`guarded`). A timer of the
operating system ends a child whose parent was killed while an answer was being graded.
"""

import os
import pickle
import signal
import sys
from dataclasses import dataclass
from multiprocessing.connection import Connection

from deadheat.errors import NotFiniteError
from deadheat.tasks.task import Check
from deadheat.types import Problem, Score

_ORPHAN_GRACE_S = 5.0
_MAX_REASON_CHARS = 300


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One answer, graded or not."""

    score: Score  # unscored where the checker raised
    raised: bool  # whether it raised, or returned something that is no Score or no finite number


@dataclass(frozen=True, kw_only=True)
class Started:
    """The child's first word."""

    error: str | None  # why the checker could not be loaded; None: it is ready


def guarded(check: Check, problem: Problem, text: str) -> Verdict:
    """The checker's score; unscored with the reason where it raises or returns no Score."""
    try:
        score: object = check(problem, text)
    except NotFiniteError as error:
        return Verdict(
            score=Score(value=None, unscored=_reason("checker gave a score that is no number,", error)), raised=True
        )
    except Exception as error:  # noqa: BLE001  a checker is foreign code: whatever it raises is data, not a crash
        return Verdict(score=Score(value=None, unscored=_reason("checker raised", error)), raised=True)
    if not isinstance(score, Score):
        why = f"checker returned {type(score).__name__}; wanted a Score"
        return Verdict(score=Score(value=None, unscored=why), raised=True)
    return Verdict(score=score, raised=False)


def serve(pipe: Connection, *, limit_s: float) -> None:
    """Loads the checker, says so, and answers until the parent closes the pipe."""
    try:
        check = pickle.loads(pipe.recv_bytes())
        prepare = getattr(check, "prepare", None)  # slow set-up that must not count against the first answer
        if prepare is not None:
            prepare()
    except Exception as error:  # noqa: BLE001  unpickling imports foreign modules
        pipe.send(Started(error=_reason("loading it raised", error)))
        return
    pipe.send(Started(error=None))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    while True:
        try:
            problem, text = pipe.recv()
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_REAL, limit_s + _ORPHAN_GRACE_S)
        verdict = guarded(check, problem, text)
        signal.setitimer(signal.ITIMER_REAL, 0)
        pipe.send(verdict)


def _reason(what: str, error: Exception) -> str:
    return f"{what} {type(error).__name__}: {error}"[:_MAX_REASON_CHARS]


def main() -> None:
    """Entry of the child: the pipe's descriptor and the limit in seconds are its arguments."""
    descriptor = int(sys.argv[1])
    os.set_inheritable(descriptor, False)
    serve(Connection(descriptor), limit_s=float(sys.argv[2]))

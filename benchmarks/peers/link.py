"""Two processes that take turns: the driver writes a line, the side does one piece of work and answers with a line of JSON.

A side is a process of its own, so that its peak memory is its own, and it idles while the other one works. Standard
library only: both environments import this file.
"""

import json
import os
import resource
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any


class Link:
    """A side's end. What libraries print goes to standard error, so that answers stay readable."""

    def __init__(self) -> None:
        self._answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def wait(self) -> None:
        """Until it is this side's turn; the process ends when the driver has left."""
        if not sys.stdin.readline():
            raise SystemExit(0)

    def answer(self, **facts: Any) -> None:
        """The end of a turn, with the peak memory so far."""
        facts["peak_gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(json.dumps(facts), file=self._answers, flush=True)


class Side:
    """The driver's end: a running side."""

    def __init__(self, name: str, command: list[str], *, log: Path, threads: int) -> None:
        self.name = name
        self._log = log
        environment = os.environ | {"OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1"}
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
                cwd=Path(__file__).parents[1],
            )

    def turn(self) -> dict[str, Any]:
        """Let the side do its next piece of work; what it answered."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with suppress(BrokenPipeError):  # it ended by itself: the missing answer below says so
            print(file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            last = "\n".join(self._log.read_text(errors="replace").splitlines()[-12:])
            raise SystemExit(f"{self.name} ended with status {self._process.wait()} before it answered:\n{last}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> "Side":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdout.close()
        if kind is not None:
            self._process.kill()
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()

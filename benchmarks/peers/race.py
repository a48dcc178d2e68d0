"""A race of six runs by one worker and by two: the same files either way, and what the second worker saves."""

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from deadheat import __version__
from deadheat.archive.files import sha256_file
from peers.rows import Measured, Row

RACE = "tiny"  # two arms × three seeds, one thread a process
SMALL = """
name = "small"
seeds = 1
threads = 1
policy = { model = "tiny:above", adapter = { kind = "full" } }
task = { name = "above", held_out = 200 }
rollouts = { questions_per_step = 2, group_size = 4 }
eval = { pool = 20, every = 2 }
stop = { steps = 2 }

[[arm]]
name = "checker"

[[arm]]
name = "plant"
scorer.kind = "plant"
"""
OF_THE_MACHINE = {"clock.jsonl", "timing.json", "environment.json", "report.html", "manifest.json", ".lock"}


@dataclass(frozen=True, kw_only=True)
class Raced:
    """One race."""

    seconds: float
    peak_gib: float  # of the largest process
    digests: dict[str, str]  # SHA-256 of every file but those that name the machine or the time


def race_once(race: str, folder: Path, *, workers: int) -> Raced:
    """Run it in a process of its own."""
    command = [
        str(Path(sys.executable).parent / "deadheat"),
        "race",
        race,
        "--workers",
        str(workers),
        "--out",
        str(folder),
    ]
    with tempfile.TemporaryFile("w+") as printed:
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=printed, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        if status:
            printed.seek(0)
            raise SystemExit(
                f"the race ended with status {os.waitstatus_to_exitcode(status)}:\n{printed.read()[-2000:]}"
            )
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name not in OF_THE_MACHINE)
    digests = {str(p.relative_to(folder)): sha256_file(p) for p in files}
    return Raced(seconds=seconds, peak_gib=usage.ru_maxrss / 2**20, digests=digests)


def race_row(folder: Path, *, smoke: bool, num_turns: int) -> Row:
    """One worker and two, in turn."""
    small = folder / "small.toml"
    small.write_text(SMALL, encoding="utf-8")
    race_once(str(small), folder / "warm-up", workers=1)  # the tiny policy's warm start is cached from here on
    race = str(small) if smoke else RACE
    one, two = [], []
    for turn in range(num_turns):
        one.append(race_once(race, folder / f"one-{turn}", workers=1))
        two.append(race_once(race, folder / f"two-{turn}", workers=2))
    changed = sorted({p for raced in (*one, *two) for p, _ in raced.digests.items() ^ one[0].digests.items()})
    if changed:
        raise SystemExit(f"one worker and two left other files: {', '.join(changed[:5])}")
    runs = 2 if smoke else 6
    return Row(
        name=f"race: {runs} runs, 2 workers against 1 on {os.cpu_count()} cores",
        ours=measured("2 workers", two),
        theirs=measured("1 worker", one),
        num_tokens=None,
        target=None,
        same=f"{len(one[0].digests)} files byte-equal in all {len(one) + len(two)} races",
    )


def measured(name: str, races: list[Raced]) -> Measured:
    """A side of the row."""
    return Measured(
        name=name,
        versions=f"deadheat {__version__}",
        seconds=[raced.seconds for raced in races],
        peak_gib=max(raced.peak_gib for raced in races),
    )

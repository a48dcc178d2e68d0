"""One small race that ran to its end, for many tests to read or copy."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch

from deadheat.race import RaceConfig, RaceResult, parse_race, run_race

SMALL = """
name = "small"
question = "Does the checker's reward teach more than the same rewards shuffled?"
seeds = 2
threads = 1

[policy]
model = "tiny:addition"
adapter = { kind = "lora", rank = 4, alpha = 8 }

[task]
name = "addition"
limit = 20
held_out = 100

[rollouts]
questions_per_step = 3
group_size = 4

[update]
learning_rate = 5e-3

[eval]
pool = 16
every = 2
samples = 2
draw = "gumbel_max"

[stop]
steps = 4

[verdict]
resamples = 200

[[arm]]
name = "checker"

[[arm]]
name = "plant"
scorer.kind = "plant"
"""

# What a clock decides, and what is made from it.
TIMED = {"clock.jsonl", "timing.json", "report.html", "manifest.json"}


@pytest.fixture(autouse=True)
def one_thread():
    """Float sums depend on the number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def small_text() -> str:
    return SMALL


@pytest.fixture(scope="session")
def small(small_text: str) -> RaceConfig:
    return parse_race(small_text, source="small.toml")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, small: RaceConfig, small_text: str) -> RaceResult:
    """The small race, run in this process without a stop. Not to be changed: copy it."""
    folder = tmp_path_factory.mktemp("finished") / "small"
    return run_race(small, small_text, folder, observe=lambda progress: None)


@pytest.fixture
def copied(finished: RaceResult, tmp_path: Path) -> Path:
    """A copy of the finished race, to be tampered with."""
    return Path(shutil.copytree(finished.folder, tmp_path / "small"))


@pytest.fixture(scope="session")
def lasting_bytes() -> Callable[[Path], Mapping[str, bytes]]:
    """Every file of a run folder that no clock decides, by its name."""

    def read(folder: Path) -> Mapping[str, bytes]:
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name not in TIMED
        }

    return read

"""An audit whose shards are counted by Ray workers prints the bytes of one that counts here."""

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from deadheat.archive import write_table
from deadheat.cli.app import app

ROWS = [
    {"group_id": f"g{group}", "sample": sample, "arm": "ab"[group % 2], "step": group // 4, "run": "r", "seed": 1,
     "purpose": "train", "problem_id": f"p{group % 3}", "key": 10 * group + sample, "completion": f"{sample % 3} {group}",
     "prompt": f"question {group % 3}", "length": 3 + sample, "stop": "stop" if sample else "cap",
     "correct": (group * sample) % 4 == 1, "reward": float((group * sample) % 4 == 1)}
    for group in range(20) for sample in range(4)
]  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """80 rollouts in groups of 4, in files of 18 rows: four of the five files end inside a group or after 72 = 18·4."""
    folder = tmp_path / "log"
    folder.mkdir()
    for start in range(0, len(ROWS), 18):
        write_table(folder / f"file-{start}.parquet", pl.DataFrame(ROWS[start : start + 18]))
    return folder


def test_the_command_prints_the_same_bytes_from_a_ray_cluster(log: Path, ray_cluster: None) -> None:
    command = ["audit", str(log), "--json", "--by", "arm", "--first-draws", "2", "--noise-floor", "0.1"]
    local, ray = (CliRunner().invoke(app, [*command, "--executor", name]) for name in ("local", "ray"))
    assert local.exit_code == ray.exit_code == 0, ray.output
    assert ray.stdout == local.stdout
    printed = json.loads(ray.stdout)
    # Right where group · sample is 1 modulo 4 (sample 0 to 3): group mod 4 is 1 (sample 1) or 3 (sample 3) for half of the
    # groups; the others have none right.
    assert (printed["gate"]["shut_rate"]["value"], printed["gate"]["shut_rate"]["n"]) == (0.5, 20)
    assert [part["where"]["arm"] for part in printed["parts"]] == ["a", "b"]

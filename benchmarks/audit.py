"""A big archive audited: gate, dilution, clones and lengths of 1.88 million groups of 16 rollouts.

    python benchmarks/audit.py                     1/50 of it, in seconds
    python benchmarks/audit.py --scale 1           the whole: about 1.4 GB of disk, a minute to write, 4 GB of memory
    python benchmarks/audit.py --keep FOLDER       where the archive is written, and left

The archive is drawn by a keyed generator, shard by shard: success odds from a beta distribution, lengths that go with
being wrong, 8 token ids a rollout, one rollout in a hundred a copy. The audits run as `deadheat audit` runs them, in a
process of its own whose peak memory is read afterwards. The same questions by pandas on a tenth of it are timed in
another process; the ratio is per rollout.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from deadheat.archive import write_table
from deadheat.sampling.keys import generator, stream_key

NUM_GROUPS = 1_880_000
GROUP_SIZE = 16
SHARD_GROUPS = 10_000
STEP_GROUPS = 1_000
TOKENS = 8
AUDITS = ("gate", "dilution", "clones", "lengths")


def write_archive(folder: Path, num_groups: int) -> int:
    """Shards of the synthetic archive; its size in bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    for shard, start in enumerate(range(0, num_groups, SHARD_GROUPS)):
        path = folder / f"shard-{shard:04d}.parquet"
        if not path.exists():
            write_table(path, draw_shard(shard, start, min(SHARD_GROUPS, num_groups - start)))
    return sum(path.stat().st_size for path in folder.iterdir())


def draw_shard(shard: int, start: int, num_groups: int) -> pl.DataFrame:
    """The rollouts of some groups, drawn from the shard's own key."""
    draw = generator(stream_key(shard, "benchmarks/audit"))
    group = np.repeat(np.arange(start, start + num_groups), GROUP_SIZE)
    odds = np.repeat(draw.beta(0.3, 0.4, size=num_groups), GROUP_SIZE)
    right = draw.random(group.size) < odds
    length = np.minimum(draw.gamma(2.0, np.where(right, 120.0, 200.0)).astype(np.int32) + 1, 1024)
    tokens = draw.integers(0, 64, size=(group.size, TOKENS), dtype=np.int32)
    copies = np.flatnonzero((draw.random(group.size) < 0.01) & (np.arange(group.size) % GROUP_SIZE > 0))
    tokens[copies] = tokens[copies - 1]
    return pl.DataFrame(
        {
            "run": pl.Series(["big"], dtype=pl.String).new_from_index(0, group.size),
            "purpose": pl.Series(["train"], dtype=pl.String).new_from_index(0, group.size),
            "step": group // STEP_GROUPS,
            "group_id": "g" + pl.Series(group).cast(pl.String),
            "sample": np.tile(np.arange(GROUP_SIZE), num_groups),
            "length": length.astype(np.int64),
            "stop": np.where(length == 1024, "cap", "stop"),
            "token_ids": pl.Series(tokens).cast(pl.List(pl.Int32)),
            "correct": right,
            "reward": right.astype(np.float64),
        }
    )


AUDIT_CODE = """
import json, sys, time
from pathlib import Path
start = time.perf_counter()
from deadheat.archive import read
from deadheat.audit import AuditOptions, as_json, audit
from deadheat.audit.questions import ask
archive = read(Path(sys.argv[1]))
seconds = {"read": time.perf_counter() - start}
found = {}
for name in sys.argv[2:]:
    start = time.perf_counter()
    record = ask(name, archive, AuditOptions())
    seconds[name] = time.perf_counter() - start
    found[name] = record.sentence
print(json.dumps({"seconds": seconds, "found": found}))
"""

PANDAS_CODE = """
import json, sys, time
import pandas as pd
start = time.perf_counter()
rows = pd.concat([pd.read_parquet(path) for path in sys.argv[1:]], ignore_index=True)
groups = rows.groupby("group_id")
table = groups.agg(n=("reward", "size"), low=("reward", "min"), high=("reward", "max"), step=("step", "first"))
tied = table.low == table.high
live = (~tied).groupby(table.step).mean()
rows["tokens"] = [ids.tobytes() for ids in rows.token_ids]
copies = table.n - rows.groupby("group_id").tokens.nunique()
lengths = rows.groupby(["correct", "stop"]).length.describe(percentiles=[0.1, 0.5, 0.9, 0.99])
print(json.dumps({"seconds": {"all": time.perf_counter() - start}, "shut": tied.mean(), "copies": int(copies.sum())}))
"""


def measured(code: str, arguments: list[str], *, python: str = sys.executable) -> dict[str, Any]:
    """What a fresh process printed, its wall time and its peak memory."""
    start = time.perf_counter()
    child = subprocess.Popen([python, "-c", code, *arguments], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    printed = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"the measured process ended with status {status}")
    return json.loads(printed) | {"wall_s": time.perf_counter() - start, "peak_gib": usage.ru_maxrss / 2**20}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.02)
    parser.add_argument("--pandas", metavar="PYTHON", help="interpreter that has pandas and pyarrow")
    parser.add_argument("--keep", type=Path, default=None)
    asked = parser.parse_args()
    num_groups = max(SHARD_GROUPS, round(NUM_GROUPS * asked.scale))
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.keep or Path(scratch) / "archive"
        start = time.perf_counter()
        num_bytes = write_archive(folder, num_groups)
        print(
            f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}, Polars {pl.__version__}"
        )
        print(
            f"{num_groups:,} groups × {GROUP_SIZE} = {num_groups * GROUP_SIZE:,} rollouts, {num_bytes / 2**30:.2f} GiB, "
            f"written in {time.perf_counter() - start:.1f} s"
        )
        ours = measured(AUDIT_CODE, [str(folder), *AUDITS])
        for name, seconds in ours["seconds"].items():
            print(f"  {name:10s} {seconds:7.2f} s")
        for name, sentence in ours["found"].items():
            print(f"  {name}: {sentence}")
        print(
            f"deadheat: {ours['wall_s']:.1f} s, peak {ours['peak_gib']:.2f} GiB (wanted: under 60 s and 4 GiB at scale 1)"
        )
        if asked.pandas is not None:
            against_pandas(asked.pandas, folder, num_groups, ours["wall_s"])


def against_pandas(python: str, folder: Path, num_groups: int, our_s: float) -> None:
    """The same questions by pandas on a tenth of the shards."""
    shards = sorted(folder.glob("shard-*.parquet"))
    tenth = shards[: max(1, len(shards) // 10)]
    theirs = measured(PANDAS_CODE, [str(path) for path in tenth], python=python)
    share = min(1.0, len(tenth) * SHARD_GROUPS / num_groups)
    times = theirs["wall_s"] / share / our_s
    print(
        f"pandas: {theirs['wall_s']:.1f} s and {theirs['peak_gib']:.2f} GiB on {share:.0%} of it, {times:.1f} times as long "
        "per rollout"
    )


if __name__ == "__main__":
    main()

"""Small runs of every kind of setting, and the digest of what each leaves behind.

    python tests/spine/golden.py record FILE     run them and write their digests
    python tests/spine/golden.py check FILE      run them again and say which digests differ

Float sums depend on the processor and on the library's build, so digests are compared on the machine that recorded them.
Every column has a digest of its own: a column that is added or renamed leaves the others comparable.
"""

import hashlib
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from deadheat.race import parse_race
from deadheat.train import RunIdentity, train_run

BASE = """
name = "golden"
seeds = 1
threads = 1
[policy]
model = "tiny:addition"
adapter = { kind = "lora", rank = 4, alpha = 8 }
[task]
name = "addition"
limit = 20
held_out = 100
[rollouts]
PROMPTS = 4
group_size = 4
[update]
learning_rate = 5e-3
[eval]
pool = 16
every = 2
samples = 2
draw = "gumbel_max"
[stop]
steps = 3
[[arm]]
name = "flat"
[[arm]]
name = "full-plant"
policy.adapter = { kind = "full" }
scorer.kind = "plant"
update.learning_rate = 1e-3
[[arm]]
name = "before-sum"
update.weighting = "before_sum"
update.loss = "token_mean"
credit.denominator = "signal_groups"
[[arm]]
name = "loo-shaped"
credit.estimator = "leave_one_out"
scorer.length_cost = 0.25
scorer.length_cost_of = "all"
scorer.overlong_buffer = 3
update.loss = "fixed_length"
[[arm]]
name = "batch"
credit.estimator = "batch_relative"
credit.ddof = 1
update.loss = "sequence_mean"
[[arm]]
name = "ratio-kl"
credit.zero_signal = "backward"
update.importance = "token"
update.kl_coef = 0.05
update.EPOCHS = 2
update.dual_clip = 3.0
[[arm]]
name = "sequence-inverse"
sampling.draw = "inverse_cdf"
sampling.temperature = 0.8
update.importance = "sequence"
update.scored_under = "warped"
update.EPOCHS = 2
[[arm]]
name = "cut"
sampling.top_k = 20
sampling.top_p = 0.95
update.scored_under = "warped"
credit.normalise_by = "task"
[[arm]]
name = "adaptive"
rollouts.drawing = ADAPTIVE
scorer.kind = "plant"
[[arm]]
name = "dynamic"
rollouts.drawing = DYNAMIC
credit.estimator = "centred"
"""

# How this version spells what other versions spell otherwise.
SPELLING = {
    "PROMPTS": "questions_per_step",
    "EPOCHS": "updates_per_batch",
    "ADAPTIVE": '{ name = "adaptive", max_rounds = 3 }',
    "DYNAMIC": '{ name = "dynamic", max_rounds = 2, max_refills = 1 }',
}
VALUES = {"capped": "truncated"}  # of text columns, that another version spells otherwise


def digests() -> dict[str, str]:
    """One digest per column of every record, and one per adapter."""
    text = BASE
    for name, spelling in SPELLING.items():
        text = text.replace(name, spelling)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "golden"
        for arm, config in parse_race(text, source="golden.toml").arms.items():
            identity = RunIdentity(race="golden", arm=arm, seed=1)
            train_run(config, identity, folder, observe=lambda progress: None)
        return folder_digests(folder)


def folder_digests(folder: Path) -> dict[str, str]:
    """One digest per column of every record below a race's folder, and per adapter."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*.parquet")):
        frame = pl.read_parquet(path)
        for column in frame.columns:
            found[f"{path.relative_to(folder)}:{column}"] = _digest(json.dumps(frame[column].to_list()).encode())
    for path in sorted(folder.rglob("*.safetensors")):
        found[str(path.relative_to(folder))] = _digest(path.read_bytes())
    return found


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Records whose bytes changed; those that only one side has are left out."""
    return [name for name, digest in before.items() if now.get(name, digest) != digest]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def main(arguments: list[str]) -> int:
    """Record or check."""
    verb, path = arguments[0], Path(arguments[1])
    now = digests() if len(arguments) == 2 else folder_digests(Path(arguments[2]))
    if verb == "record":
        path.write_text(json.dumps(now, indent=0))
        print(f"{len(now)} digests")
        return 0
    before: dict[str, Any] = json.loads(path.read_text())
    changed = differences(before, now)
    print(f"{len(before)} digests, {len(changed)} differ; gone: {sorted(set(before) - set(now))[:20]}")
    print("\n".join(changed[:30]))
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

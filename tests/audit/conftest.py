"""Synthetic archives whose truth is built in."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from deadheat.sampling.keys import generator, stream_key

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def groups(*rewards: list[float | None], **shared: object) -> pl.LazyFrame:
    """One group per list of rewards; a reward of 1 is right, of 0 wrong, None unscored. Ids g0, g1, …"""
    rows = [
        {
            "group_id": f"g{g}",
            "problem_id": f"p{g}",
            "sample": i,
            "reward": r,
            "correct": None if r is None else r == 1.0,
        }
        | {name: (value[g] if isinstance(value, list) else value) for name, value in shared.items()}
        for g, members in enumerate(rewards)
        for i, r in enumerate(members)
    ]
    return pl.LazyFrame(rows, schema_overrides={"reward": pl.Float64, "correct": pl.Boolean}, infer_schema_length=None)


def archive(seed: int, *, num_groups: int = 24, size: int = 4) -> pl.DataFrame:
    """A training log with every column an audit reads, its values drawn from a keyed generator."""
    draw = generator(stream_key(seed, "tests/audit"))
    rows = []
    for g in range(num_groups):
        odds, step, arm = draw.random(), g // 4 + 1, "ab"[g % 2]
        for i in range(size):
            right = bool(draw.random() < odds)
            answer = str(int(draw.integers(3))) if not right else "7"
            tokens = [int(x) for x in draw.integers(0, 3, size=int(draw.integers(1, 6)))]
            rows.append(
                {
                    "arm": arm, "seed": 1, "purpose": "train", "step": step, "task": "t", "temperature": 1.0,
                    "problem_id": f"p{g % 8}", "group_id": f"{arm}/{step}/{g}", "sample": i, "key": 1000 * g + i,
                    "prompt": f"question {g % 5}", "reference": "7", "completion": " ".join(map(str, tokens)),
                    "prompt_length": 5, "length": len(tokens), "token_ids": tokens,
                    "stop": "cap" if len(tokens) == 5 else "stop", "answer": answer, "parsed": answer != "0",
                    "correct": right, "reward": float(right), "part:style": round(float(draw.random()), 1),
                }
            )  # fmt: skip
    return pl.DataFrame(rows)


def shuffled(frame: pl.DataFrame, seed: int) -> pl.DataFrame:
    """The same rows in another order."""
    order = generator(stream_key(seed, "tests/audit/order")).permutation(frame.height)
    return frame[np.asarray(order)]


def needs(*parts: str) -> Path:
    """A file of the public data, or a skip that says which is missing."""
    path = DATA.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"shared/data/{'/'.join(parts)} is not on this machine")
    return path


@pytest.fixture(scope="session", name="groups")
def _groups():
    return groups


@pytest.fixture(scope="session", name="archive")
def _archive():
    return archive


@pytest.fixture(scope="session", name="shuffled")
def _shuffled():
    return shuffled


@pytest.fixture(scope="session", name="needs")
def _needs():
    return needs

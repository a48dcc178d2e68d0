"""Logs as other tools write them, small."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

Writer = Callable[[str, Iterable[Mapping[str, Any]]], Path]


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    return path


def write_trl(folder: Path, step: int, prompts: list[str], rewards: Mapping[str, list[float]], **extra: Any) -> Path:
    """One step's completions as TRL lays them out."""
    path = folder / "completions" / f"completions_{step:05d}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    size = len(prompts)
    columns = {
        "step": [step] * size,
        "prompt": prompts,
        "completion": [f"answer {index} of step {step}" for index in range(size)],
        **rewards,
        **extra,
        "advantage": [0.0] * size,
    }
    pl.DataFrame(columns).write_parquet(path)
    return path


def rewards_by_group(rows: pl.LazyFrame) -> dict[str, list[float | None]]:
    """Each group's rewards in sample order."""
    frame = rows.sort("group_id", "sample").group_by("group_id", maintain_order=True).agg("reward").collect()
    return dict(frame.iter_rows())

"""One step of real attempts through verl's own writer: `python with_verl.py OUT ray|v1 ATTEMPTS.jsonl.gz`.

The trainers need a cluster; the function that writes their rollouts needs none, so it is taken out of the installed package
and run. The attempts are 100 problems × 8 of a real model. `ray` deals the rows over eight workers by length, as balancing
does, and names no group; `v1` writes them by `uid`.
"""

import ast
import gzip
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

FILES = {"ray": "trainer/ppo/ray_trainer.py", "v1": "trainer/ppo/v1/trainer_base.py"}
WORKERS = 8


def writer(form: str) -> Any:
    """verl's `_write_generations`."""
    (folder,) = importlib.util.find_spec("verl").submodule_search_locations
    tree = ast.parse((Path(folder) / FILES[form]).read_text(encoding="utf-8"))
    named = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    (found,) = [node for node in named if node.name == "_write_generations"]
    found.decorator_list = []
    scope = {"os": os, "json": json, "np": np}
    exec(compile(ast.Module(body=[found], type_ignores=[]), FILES[form], "exec"), scope)
    return scope["_write_generations"]


def attempts(path: str) -> list[dict[str, Any]]:
    """One row per attempt, in the order of the file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        problems = [json.loads(line) for line in file]
    return [
        {"uid": f"{problem['idx']}_0_{place}", "input": problem["question"], "output": text, "gts": problem["gt"],
         "score": float(right), "acc": right, "pred": pred, "rm": rm}
        for problem in problems
        for place, (text, right, pred, (rm,)) in enumerate(
            zip(problem["code"], problem["score"], problem["pred"], problem["pred_score"], strict=True)
        )
    ]  # fmt: skip


def main(out: str, form: str, path: str) -> None:
    rows = attempts(path)
    if form == "ray":
        by_length = sorted(rows, key=lambda row: len(row["output"]))
        rows = [row for worker in range(WORKERS) for row in by_length[worker::WORKERS]]
    besides = ("acc", "pred", "rm") if form == "ray" else ("uid",)
    columns = {name: [row[name] for row in rows] for name in ("input", "output", "gts", "score")}
    extra = {name: [row[name] for row in rows] for name in besides}
    writer(form)(*columns.values(), extra, out, 1)


if __name__ == "__main__":
    main(*sys.argv[1:])

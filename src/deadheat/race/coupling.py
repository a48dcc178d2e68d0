"""Are the arms coupled? Within a seed, rollouts with the same address must be the same tokens before the first update.

At step one every arm still has the same weights. Two rollouts with equal key, prompt and sampler settings must then be
token-identical; where only the token cap differs, the shorter is a prefix of the longer. A race in which they are not is
refused: something other than the overridden keys differs between its arms. Arms whose drawing settings differ are
*partly coupled*, and the report says in what.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl

from deadheat.archive import read_table
from deadheat.errors import UncoupledError
from deadheat.train import ROLLOUTS, RunConfig, RunIdentity, step_file

_DRAWING = ("policy", "task", "sampling", "rollouts")
_SAMPLER = ("temperature", "top_k", "top_p", "draw")


@dataclass(frozen=True, kw_only=True)
class Coupling:
    """How two arms share their draws under one seed."""

    arm_a: str
    arm_b: str
    seed: int
    num_shared: int  # step-one rollouts with a shared address and equal settings, all identical
    differing: tuple[str, ...]  # drawing settings in which the arms differ; empty: fully coupled


def drawing_differences(a: RunConfig, b: RunConfig) -> tuple[str, ...]:
    """Dotted names of the drawing settings in which two arms differ; grading options of a task do not count."""
    left, right = _drawing_settings(a), _drawing_settings(b)
    return tuple(sorted(name for name in left.keys() | right.keys() if left.get(name) != right.get(name)))


def check_step_one(race_folder: Path, race: str, arms: Mapping[str, RunConfig], seed: int) -> list[Coupling]:
    """Compare the step-one rollouts of every pair of arms that has them; raise `UncoupledError` at the first mismatch."""
    batches = {}
    for arm in arms:
        path = step_file(race_folder / RunIdentity(race=race, arm=arm, seed=seed).folder, ROLLOUTS, 1)
        if path.exists():
            batches[arm] = read_table(path)
    return [
        Coupling(
            arm_a=a,
            arm_b=b,
            seed=seed,
            num_shared=_compare((a, arms[a], batches[a]), (b, arms[b], batches[b]), seed),
            differing=drawing_differences(arms[a], arms[b]),
        )
        for a, b in combinations(batches, 2)
    ]


def _compare(left: tuple[str, RunConfig, pl.DataFrame], right: tuple[str, RunConfig, pl.DataFrame], seed: int) -> int:
    (a, config_a, rows_a), (b, config_b, rows_b) = left, right
    if config_a.policy != config_b.policy or not _same_sampler(config_a, config_b):
        return 0
    shared = rows_a.join(rows_b, on=["key", "problem_digest", "sample"], how="inner", suffix="_b")
    for row in shared.iter_rows(named=True):
        tokens_a, tokens_b = row["token_ids"], row["token_ids_b"]
        capped = row["stop"] == "cap" or row["stop_b"] == "cap"
        length = min(len(tokens_a), len(tokens_b)) if capped else max(len(tokens_a), len(tokens_b))
        if tokens_a[:length] != tokens_b[:length]:
            raise UncoupledError(
                f"seed {seed}, step 1, problem {row['problem_id']}, sample {row['sample']}: arm {a!r} drew "
                f"{row['completion']!r} and arm {b!r} drew {row['completion_b']!r} from the same key. Wanted identical "
                "tokens before the first update; the race is refused. Check that nothing but the overridden keys differs "
                "(weights, adapter initialisation, thread count)."
            )
    return shared.height


def _same_sampler(a: RunConfig, b: RunConfig) -> bool:
    return all(getattr(a.sampling, name) == getattr(b.sampling, name) for name in _SAMPLER)


def _drawing_settings(config: RunConfig) -> dict[str, Any]:
    dump = config.model_dump(mode="json", include=set(_DRAWING))
    grading = config.task.grading_options
    flat = flat_settings(dump)
    return {name: value for name, value in flat.items() if name not in {f"task.{option}" for option in grading}}


def flat_settings(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as dotted names.

    Example:
        >>> flat_settings({"update": {"loss": "token_mean"}, "threads": 1})
        {'update.loss': 'token_mean', 'threads': 1}
    """
    flat: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{prefix}{key}"
        flat.update(flat_settings(value, f"{name}.") if isinstance(value, dict) else {name: value})
    return flat

"""The record: one Parquet row per rollout, with everything needed to recompute what is said from it.

`reward` is what was learned from (after a gate or a control); `raw_reward` is what the scorer said. Unscored rollouts
have null rewards and a reason. Group membership of our own archives is `explicit`. The schema's version stands in the
file's metadata; a reader refuses a newer version than it knows.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from deadheat.archive.files import system_errors, write_atomic
from deadheat.errors import ArchiveError
from deadheat.types import Completion, Fork, Group, Origin, Problem, Rollout, Score, StopReason

SCHEMA_VERSION = 1
VERSION_KEY = "deadheat.schema"  # of the file metadata

_COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "run": pl.String,  # race or sample name
    "arm": pl.String,
    "seed": pl.Int64,
    "purpose": pl.String,  # train, not-kept (drawn in training, nothing learned from it), eval, sample, top-up
    "step": pl.Int64,  # step it was drawn at; for eval, the number of updates made before it
    "task": pl.String,
    "problem_id": pl.String,
    "problem_digest": pl.String,  # SHA-256 of the prompt
    "group_id": pl.String,  # one problem under one policy state
    "recovered": pl.String,  # how the group is known: explicit, prompt tokens, prompt text, consecutive
    "sample": pl.Int64,  # index within problem and step
    "key": pl.UInt64,  # address of its randomness
    "temperature": pl.Float64,
    "prompt": pl.String,
    "reference": pl.String,
    "columns": pl.String,  # the problem's sub-skill columns, JSON
    "completion": pl.String,
    "prompt_length": pl.Int64,  # tokens
    "length": pl.Int64,  # tokens drawn, stop token included
    "stop": pl.String,  # stop, cap
    "token_ids": pl.List(pl.Int32),
    "logprobs": pl.List(pl.Float32),  # under the warped distribution drawn from
    "plain_logprobs": pl.List(pl.Float32),  # under the model's own distribution
    "answer": pl.String,  # extracted; null when nothing parsed
    "parsed": pl.Boolean,
    "correct": pl.Boolean,  # the checker's grade; null when it does not grade
    "raw_reward": pl.Float64,  # the scorer's value; null when unscored
    "reward": pl.Float64,  # after gate and controls: what was learned from
    "parts": pl.String,  # named components of the raw reward, JSON
    "unscored": pl.String,  # why there is no reward; null when there is
    "advantage": pl.Float64,  # mean over the completion's tokens; null outside training, and where nothing is learned
    "prompt_ids": pl.List(pl.Int32),  # tokens of the prompt; null: not recorded
    "num_forced": pl.Int64,  # leading tokens of the completion that were given and not drawn
    "origin": pl.String,  # pair, branch, prefix and fork of a branched completion, JSON; null: drawn from the prompt alone
    "token_advantages": pl.List(pl.Float64),  # per token; null: `advantage` is every token's
    "kind": pl.String,  # the group's composition: live, all_right, all_wrong, tied_other, unscored
}
ROLLOUT_SCHEMA = pl.Schema(_COLUMNS)


@dataclass(frozen=True, kw_only=True)
class RolloutSource:
    """Where a batch of rollouts came from: the columns all its rows share."""

    run: str
    arm: str
    seed: int
    purpose: str  # train, not-kept, eval, sample, top-up
    step: int
    temperature: float


@dataclass(frozen=True, kw_only=True)
class Credited:
    """A rollout with what credit assignment made of it."""

    rollout: Rollout
    prompt_length: int  # tokens
    reward: float | None  # learned from; None: unscored
    advantage: float | None  # None outside training
    kind: str  # its group's composition
    prompt_tokens: tuple[int, ...] | None = None  # None: not recorded
    token_advantages: tuple[float, ...] | None = None  # [T]; None: `advantage` is every token's
    apart: str = ""  # tells groups of one problem, purpose and step apart; empty: there is one


def rollout_frame(source: RolloutSource, credited: Iterable[Credited]) -> pl.DataFrame:
    """The rows of one batch, in the given order."""
    return pl.DataFrame([_row(source, item) for item in credited], schema=ROLLOUT_SCHEMA, orient="row")


def _row(source: RolloutSource, item: Credited) -> dict[str, object]:
    problem, completion, score = item.rollout.problem, item.rollout.completion, item.rollout.score
    digest = problem.digest
    return {
        "run": source.run,
        "arm": source.arm,
        "seed": source.seed,
        "purpose": source.purpose,
        "step": source.step,
        "task": problem.task,
        "problem_id": problem.problem_id,
        "problem_digest": digest,
        "group_id": "/".join(map(str, (*_group(source, digest), *filter(None, (item.apart,))))),
        "recovered": "explicit",
        "sample": item.rollout.sample,
        "key": completion.key,
        "temperature": source.temperature,
        "prompt": problem.prompt,
        "reference": problem.reference,
        "columns": _json(problem.columns),
        "completion": completion.text,
        "prompt_length": item.prompt_length,
        "length": len(completion.tokens),
        "stop": completion.stop.value,
        "token_ids": list(completion.tokens),
        "logprobs": list(completion.logprobs),
        "plain_logprobs": list(completion.plain_logprobs),
        "answer": score.answer,
        "parsed": score.parsed,
        "correct": score.correct,
        "raw_reward": score.value,
        "reward": item.reward,
        "parts": _json(score.parts),
        "unscored": score.unscored,
        "advantage": item.advantage,
        "prompt_ids": None if item.prompt_tokens is None else list(item.prompt_tokens),
        "num_forced": completion.num_forced,
        "origin": None if item.rollout.origin is None else _json(asdict(item.rollout.origin)),
        "token_advantages": None if item.token_advantages is None else list(item.token_advantages),
        "kind": item.kind,
    }


def _group(source: RolloutSource, digest: str) -> tuple[object, ...]:
    return source.arm, source.seed, source.purpose, source.step, digest[:16], f"{source.temperature:g}"


def _json(mapping: Mapping[str, object]) -> str:
    return json.dumps(dict(mapping), sort_keys=True, ensure_ascii=False)


def write_table(path: Path, frame: pl.DataFrame) -> None:
    """Write a frame as Parquet, atomically, with the schema version in its metadata."""

    def fill(partial: Path) -> None:
        with system_errors(pl.exceptions.PolarsError):
            frame.write_parquet(partial, metadata={VERSION_KEY: str(SCHEMA_VERSION)})

    write_atomic(path, fill)


def read_table(path: Path) -> pl.DataFrame:
    """Read one of our Parquet files; a torn or newer file is an `ArchiveError` that names it."""
    try:
        version = int(pl.read_parquet_metadata(path).get(VERSION_KEY, 0))
        frame = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise ArchiveError(
            f"{path} cannot be read as Parquet ({error}). Wanted a whole file; run the race again with --resume to "
            "rebuild it."
        ) from error
    if version > SCHEMA_VERSION:
        raise ArchiveError(f"{path} has schema version {version}, newer than {SCHEMA_VERSION}. Upgrade deadheat.")
    return frame


def read_tables(paths: Sequence[Path]) -> pl.DataFrame:
    """Several files as one frame, in the given order."""
    if not paths:
        raise ArchiveError("there is no Parquet file to read; wanted at least one. Check the folder's path.")
    return pl.concat([read_table(path) for path in paths])


def problem_of(row: Mapping[str, Any]) -> Problem:
    """The problem a row was drawn for."""
    return Problem(
        task=row["task"],
        problem_id=row["problem_id"],
        prompt=row["prompt"],
        reference=row["reference"],
        columns=json.loads(row["columns"]),
    )


def groups_of(frame: pl.DataFrame) -> list[Group]:
    """The groups of explicit rows, in order of first appearance."""
    groups = []
    for _, rows in frame.group_by("group_id", maintain_order=True):
        first = rows.row(0, named=True)
        problem = problem_of(first)
        groups.append(
            Group(
                problem=problem,
                prompt_tokens=tuple(first.get("prompt_ids") or ()),
                rollouts=tuple(_rollout_of(problem, row) for row in rows.iter_rows(named=True)),
            )
        )
    return groups


def _rollout_of(problem: Problem, row: dict[str, Any]) -> Rollout:
    completion = Completion(
        tokens=tuple(row["token_ids"]),
        logprobs=tuple(row["logprobs"]),
        plain_logprobs=tuple(row["plain_logprobs"]),
        margins=None,
        text=row["completion"],
        stop=StopReason(row["stop"]),
        key=row["key"],
        num_forced=row.get("num_forced") or 0,
    )
    score = Score(
        value=row["raw_reward"],
        correct=row["correct"],
        answer=row["answer"],
        parsed=row["parsed"],
        parts=json.loads(row["parts"]),
        unscored=row["unscored"],
    )
    origin = row.get("origin")
    return Rollout(
        problem=problem,
        sample=row["sample"],
        completion=completion,
        score=score,
        origin=None if origin is None else _origin(json.loads(origin)),
    )


def _origin(held: dict[str, Any]) -> Origin:
    fork = held.pop("fork")
    return Origin(**held, fork=None if fork is None else Fork(**fork))

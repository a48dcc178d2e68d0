"""What reading somebody's log gives back: rows in our columns, and a report of what was read, recovered and refused."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

import polars as pl

from deadheat.archive.rollouts import ROLLOUT_SCHEMA

PART = "part:"  # prefix of a column that holds one component of the reward

_EXTRA: dict[str, pl.DataType | type[pl.DataType]] = {
    "category": pl.String,  # what kind of row it is, where the tool says: duplicate, winner, validation …
    "checkpoint": pl.String,  # name of the policy state
    "policy_version": pl.Int64,  # updates made before the draw, where the tool counts them itself
    "pair": pl.String,  # rollouts forked at one place
    "branch": pl.String,  # path of a branched rollout in its tree
    "prefix_length": pl.Int64,  # tokens shared with the siblings of a branch
    "fork_position": pl.Int64,  # token index of the fork
    "source_file": pl.String,  # relative to the path that was read
    "source_row": pl.Int64,  # line or row in that file, counted from 1
}
ARCHIVE_SCHEMA = pl.Schema({**ROLLOUT_SCHEMA, **_EXTRA})
SUMMARY_SCHEMA = pl.Schema(
    {
        "run": pl.String,
        "arm": pl.String,
        "step": pl.Int64,
        "problem_id": pl.String,
        "group_id": pl.String,
        "k": pl.Int64,  # right answers
        "mean_reward": pl.Float64,
        "group_size": pl.Int64,
        "loss": pl.Float64,  # of the step the group was, where one group is a step
        "kl": pl.Float64,  # the KL term of that loss, unweighted
        "source_file": pl.String,
        "source_row": pl.Int64,
    }
)


class Recovered(StrEnum):
    """How it is known which rollouts are one group."""

    EXPLICIT = "explicit"  # the log names the group
    PROMPT_TOKENS = "prompt tokens"  # equal prompt tokens within a step
    PROMPT_TEXT = "prompt text"  # equal prompt text within a step
    CONSECUTIVE = "consecutive"  # equal prompts next to each other, in lots of the group size


class LogFormat(StrEnum):
    """What wrote a log."""

    OWN = "deadheat"
    TRL = "trl"
    VERL = "verl"
    PRIME_RL = "prime-rl"
    VERIFIERS = "verifiers"
    OPENRLHF = "openrlhf"
    NEMO_RL = "nemo-rl"
    SKYRL = "skyrl"
    SLIME = "slime"
    AREAL = "areal"
    OPEN_INSTRUCT = "open-instruct"
    MS_SWIFT = "ms-swift"
    INSPECT = "inspect"
    LM_EVAL = "lm-eval"
    REASONING_GYM = "reasoning-gym"  # evaluation dumps: problems with several completions each
    PACKED = "packed"  # one record per problem, its attempts in lists
    SUMMARY = "summary"  # one row per group: how many were right, or their mean
    PLAIN = "plain"  # any table with named columns


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How a log is read. Defaults find everything that can be found."""

    map: Mapping[str, str] = field(default_factory=dict)  # our column -> the log's column; "group" is group_id
    format: str | None = None  # force a format by its name; None: by content
    filter: str | None = None  # which filter of an lm-evaluation-harness log; None: there is only one
    group_size: int | None = None  # G, where the log does not say it; None: declared by the log, or inferred
    line_limit_bytes: int = 256 * 2**20  # a longer line or JSON document is refused, with bounded memory
    scratch: Path | None = None  # where shards are kept until this process ends; None: the system's temporary folder

    def __post_init__(self) -> None:
        if self.group_size is not None and self.group_size < 1:
            raise ValueError(f"group_size is {self.group_size}; wanted at least 1, or None")
        if self.line_limit_bytes < 1:
            raise ValueError(f"line_limit_bytes is {self.line_limit_bytes}; wanted at least 1")


@dataclass(frozen=True, kw_only=True)
class Refused:
    """One piece that was not read."""

    where: str  # file, with its line, row or group
    reason: str  # what was seen, what was wanted, what to do


@dataclass(frozen=True, kw_only=True)
class ReadReport:
    """What was read, how groups are known, and what was refused."""

    path: str  # what was asked for
    format: LogFormat
    num_files: int  # files that gave rows
    num_rows: int  # rollouts, or group summaries where that is what the log holds
    num_groups: int
    recovered: Mapping[str, int]  # groups by how they are known
    group_sizes: Mapping[int, int]  # size -> number of groups of that size
    declared_size: int | None  # G as the log or the reader's options say; None: nothing says it
    inferred_size: int | None  # G as the commonest size of recovered groups; None: declared, or explicit groups
    num_refused: int  # pieces not read
    refused: tuple[Refused, ...]  # the first of them
    warnings: tuple[str, ...]  # sentences

    def lines(self) -> list[str]:
        """The report in sentences, as the commands print it."""
        how = ", ".join(f"{count:,} {name}" for name, count in sorted(self.recovered.items())) or "none"
        sizes = sorted(self.group_sizes.items(), key=lambda item: -item[1])
        shown = ", ".join(f"{count:,} of {size}" for size, count in sizes[:4]) + (" …" if len(sizes) > 4 else "")
        said = (
            f"G = {self.declared_size} declared"
            if self.declared_size is not None
            else f"G = {self.inferred_size} inferred"
            if self.inferred_size is not None
            else "no G declared"
        )
        what = "group summaries" if self.format is LogFormat.SUMMARY else "rollouts"
        return [
            f"{self.path}: {self.format.value}, {self.num_files:,} files, {self.num_rows:,} {what}, "
            f"{self.num_groups:,} groups",
            f"groups: {how}; sizes {shown or 'none'}; {said}",
            *(f"refused {piece.where}: {piece.reason}" for piece in self.refused),
            *(
                [f"… {self.num_refused - len(self.refused):,} more refused"]
                if self.num_refused > len(self.refused)
                else []
            ),
            *self.warnings,
        ]


@dataclass(frozen=True, kw_only=True)
class Scan:
    """Files of equal columns, some of which can be read without the others."""

    paths: tuple[Path, ...]  # absolute
    table: Callable[[Sequence[Path]], pl.LazyFrame]  # some of them, as rows in our columns

    def then(self, step: Callable[[pl.LazyFrame], pl.LazyFrame]) -> "Scan":
        """The same files, their rows put through one more step; it must treat each row by itself."""
        return Scan(paths=self.paths, table=lambda paths: step(self.table(paths)))


@dataclass(frozen=True, kw_only=True)
class Shard:
    """Some files of an archive as rows with all its columns. A group may have rows in several shards."""

    rows: pl.LazyFrame
    paths: tuple[Path, ...]  # what whoever reads the rows must be able to see


@dataclass(frozen=True, kw_only=True)
class Archive:
    """A log in our columns. Columns that the source lacks are absent."""

    rows: pl.LazyFrame  # one row per rollout; ARCHIVE_SCHEMA's names, and `part:<name>` columns
    summaries: pl.LazyFrame | None  # one row per group (SUMMARY_SCHEMA's names) where that is all there is; else None
    report: ReadReport
    scans: tuple[Scan, ...]  # the files of which `rows` is made, each with all its columns

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns there are."""
        return tuple(self.rows.collect_schema().names())

    def where(self, chosen: pl.Expr) -> "Archive":
        """The part of it that an expression chooses; the report stays that of the whole."""
        if self.summaries is not None:
            return replace(self, summaries=self.summaries.filter(chosen))
        scans = tuple(scan.then(lambda rows: rows.filter(chosen)) for scan in self.scans)
        return replace(self, rows=self.rows.filter(chosen), scans=scans)

    def shards(self, num: int) -> list[Shard]:
        """The rows in about `num` shards of whole files; a file is the smallest shard."""
        num_files = sum(len(scan.paths) for scan in self.scans)
        size = max(1, -(-num_files // num))
        return [
            Shard(rows=scan.table(paths), paths=paths)
            for scan in self.scans
            for start in range(0, len(scan.paths), size)
            for paths in (scan.paths[start : start + size],)
        ]

"""Counts that add up: what an audit keeps of a shard, so that shards can be counted anywhere and merged.

A shard's counts are one small table: key columns, and columns of sums. Merging adds the sums of equal keys; it does not
depend on order. Every shard leaves a fingerprint, so that counting one twice is refused. The rows of one group must lie
in one shard.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import polars as pl

from deadheat.errors import ArchiveError


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Sums by key, and which shards they are of."""

    table: pl.DataFrame  # one row per key, sorted by it
    keys: tuple[str, ...]  # its key columns; every other column adds up
    shards: frozenset[str] = frozenset()  # fingerprints of what was counted; empty: not known

    def total(self, column: str) -> int:
        """The sum of one column over all keys."""
        return int(self.table[column].sum())

    def rolled_up(self, keys: Sequence[str]) -> pl.DataFrame:
        """The sums by fewer keys, sorted; a key that is not there is left out."""
        kept = [key for key in keys if key in self.keys]
        return _summed(self.table.drop([key for key in self.keys if key not in kept]), kept)


def counted(frame: pl.DataFrame, keys: Sequence[str], *, shards: frozenset[str] = frozenset()) -> Counts:
    """Counts of a frame whose key columns may repeat: equal keys are added up.

    Example:
        >>> counted(pl.DataFrame({"step": [1, 1, 2], "n": [3, 4, 5]}), ["step"]).table["n"].to_list()
        [7, 5]
    """
    return Counts(table=_summed(frame, list(keys)), keys=tuple(keys), shards=shards)


def merge(parts: Iterable[Counts]) -> Counts:
    """All parts added up; a shard that occurs twice is refused."""
    return reduce(_merge, parts)


def _merge(left: Counts, right: Counts) -> Counts:
    twice = left.shards & right.shards
    if twice:
        raise ArchiveError(
            f"shard {min(twice)} is counted twice: two files hold the same rollouts. Wanted each rollout once; remove "
            "the copy."
        )
    keys = [*left.keys, *(key for key in right.keys if key not in left.keys)]
    both = pl.concat([left.table, right.table], how="diagonal_relaxed")
    return counted(both, keys, shards=left.shards | right.shards)


def fingerprint(rows: pl.LazyFrame) -> str:
    """What a shard holds, whatever the order of its rows: the number of rollouts and a sum of hashes of their places."""
    names = rows.collect_schema().names()
    place = [pl.col(name) for name in ("group_id", "sample", "source_row", "reward", "correct") if name in names]
    hashed = pl.struct(place).hash() % 2**40  # sums of 2^23 such hashes stay below 2^63
    found = rows.select(n=pl.len(), sum=hashed.sum()).collect(engine="streaming").row(0)
    return f"{found[0]}-{found[1]:x}"


def _summed(frame: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    if not keys:
        return frame.sum()
    sums = [pl.col(name).sum() for name in frame.columns if name not in keys]
    return frame.group_by(keys).agg(sums).sort(keys, nulls_last=True)

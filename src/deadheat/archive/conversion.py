"""Any log as an archive of ours: Parquet shards in our schema, each whole or absent, and a record of where they come from.

    <out>/rows-00000.parquet …     one row per rollout          (or groups-00000.parquet: one row per group)
    <out>/source.json              written last: format, files, how groups are known, what was refused

Memory is bounded by one shard, whatever the log's size. A folder without source.json is a conversion that was cut short.
"""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from deadheat.archive.files import system_errors, write_json
from deadheat.archive.plain_data import plain
from deadheat.archive.readers.record import Archive, ReadReport
from deadheat.archive.rollouts import write_table
from deadheat.errors import RunFolderError

SOURCE = "source.json"
SHARD_ROWS = 250_000

Transform = Callable[[pl.DataFrame], pl.DataFrame]
Observe = Callable[[int], None]  # rows written


@dataclass(frozen=True, kw_only=True)
class Converted:
    """An archive that was written."""

    out: str
    num_shards: int
    num_rows: int  # rollouts, or group summaries
    num_bytes: int  # of all shards
    report: ReadReport  # what was read


def convert(
    archive: Archive,
    out: Path,
    *,
    shard_rows: int = SHARD_ROWS,
    transform: Transform | None = None,
    observe: Observe | None = None,
) -> Converted:
    """Write an archive's rows (or summaries) below `out`, a new or empty folder; `transform` changes each shard."""
    _require_empty(out)
    table, stem = (archive.rows, "rows") if archive.summaries is None else (archive.summaries, "groups")
    paths: list[Path] = []
    num_rows = 0
    for shard in shards_of(table, shard_rows=shard_rows, scratch=out):
        path = out / f"{stem}-{len(paths):05d}.parquet"
        write_table(path, shard if transform is None else transform(shard))
        paths.append(path)
        num_rows += shard.height
        if observe is not None:
            observe(shard.height)
    write_json(out / SOURCE, plain(archive.report))
    return Converted(
        out=str(out),
        num_shards=len(paths),
        num_rows=num_rows,
        num_bytes=sum(path.stat().st_size for path in paths),
        report=archive.report,
    )


def shards_of(table: pl.LazyFrame, *, shard_rows: int, scratch: Path) -> Iterator[pl.DataFrame]:
    """A lazy table in pieces of `shard_rows`, run once: streamed to one file beside the result and read from there."""
    if shard_rows < 1:
        raise ValueError(f"shard_rows is {shard_rows}; wanted at least 1")
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".whole-", dir=scratch) as folder:
        whole = Path(folder) / "whole.parquet"
        with system_errors(pl.exceptions.PolarsError):
            table.sink_parquet(whole)
        scan = pl.scan_parquet(whole)
        total = int(scan.select(pl.len()).collect().item())
        for start in range(0, total, shard_rows):
            yield scan.slice(start, shard_rows).collect()


def _require_empty(out: Path) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RunFolderError(f"{out} is not an empty folder. Wanted a new one; choose another --to")

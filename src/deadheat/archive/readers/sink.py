"""Where readers put what they find: rows in our columns, written as Parquet shards once enough are held.

Memory is bounded by one shard. Shards stay on disk until the process ends, since the lazy table reads them; a column that
no row has a value for is in no shard, and so is absent (the reward excepted).
"""

import atexit
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from deadheat.archive.readers.record import ARCHIVE_SCHEMA, PART, SUMMARY_SCHEMA, ReadOptions, Refused, Scan
from deadheat.archive.readers.values import integer_of, number_of, text_of

SHARD_ROWS = 50_000
_SHARD_BYTES = 128 * 2**20  # of text and token lists held as Python objects
_CHUNK_ROWS = 2_000
_SHOWN_REFUSED = 20
_SHOWN_WARNINGS = 20


class Sink:
    """Collects the rows, refusals and warnings of one reading."""

    def __init__(self, options: ReadOptions) -> None:
        held = tempfile.TemporaryDirectory(prefix="deadheat-", dir=options.scratch)
        atexit.register(held.cleanup)
        self._folder = Path(held.name)
        self._rows: list[Mapping[str, object]] = []
        self._summaries: list[Mapping[str, object]] = []
        self._frames: list[pl.DataFrame] = []
        self._num_held = self._num_bytes = 0
        self._shards: list[tuple[Path, frozenset[str]]] = []
        self._scans: list[Scan] = []
        self._files: set[str] = set()
        self._refused: list[Refused] = []
        self._warnings: dict[str, None] = {}
        self.num_refused = 0
        self._asked_size, self._declared = options.group_size, set[int]()

    def add(self, row: Mapping[str, object]) -> None:
        """One rollout; keys are our column names, values may still be the log's own."""
        self._files.add(str(row.get("source_file")))
        self._rows.append(row)
        self._num_bytes += sum(len(value) for value in row.values() if isinstance(value, (str, list)))
        if len(self._rows) >= _CHUNK_ROWS or self._num_bytes >= _SHARD_BYTES:
            self._frame_rows()

    def add_frame(self, frame: pl.DataFrame) -> None:
        """Many rollouts at once."""
        kept = [column.name for column in frame.get_columns() if _is_told(column)]
        if not frame.height:
            return
        self._frame_rows()
        self._files.update(frame["source_file"].unique().to_list())
        self._hold(frame.select(_cast(name, frame.schema[name]) for name in kept))

    def add_scan(self, scan: Scan, files: Sequence[str]) -> None:
        """Files that are read where they lie, already in our columns."""
        self._scans.append(scan)
        self._files.update(files)

    def summary(self, row: Mapping[str, object]) -> None:
        """One group's summary."""
        self._files.add(str(row.get("source_file")))
        self._summaries.append(row)

    def refuse(self, where: str, reason: str) -> None:
        """A piece that is not read."""
        self.num_refused += 1
        if len(self._refused) < _SHOWN_REFUSED:
            self._refused.append(Refused(where=where, reason=reason))

    def warn(self, sentence: str) -> None:
        """What a reader of the audit should know; said once."""
        if len(self._warnings) < _SHOWN_WARNINGS:
            self._warnings.setdefault(sentence)

    def declare(self, size: int | None) -> None:
        """A group size that the log states."""
        if size is not None:
            self._declared.add(size)

    @property
    def declared_size(self) -> int | None:
        """G as the options or the log state it; None: nothing does, or files state different ones."""
        if self._asked_size is not None:
            return self._asked_size
        return next(iter(self._declared)) if len(self._declared) == 1 else None

    @property
    def refused(self) -> tuple[Refused, ...]:
        """The first refusals."""
        return tuple(self._refused)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences, in order of first appearance."""
        return tuple(self._warnings)

    @property
    def num_files(self) -> int:
        """Files that gave rows."""
        return len(self._files)

    def scans(self) -> tuple[Scan, ...]:
        """Everything added, by the files in which it lies."""
        self._frame_rows()
        self._write_shard()
        by_columns: dict[frozenset[str], list[Path]] = {}
        for path, columns in self._shards:
            by_columns.setdefault(columns, []).append(path)
        return (*(Scan(paths=tuple(paths), table=_shard_rows) for paths in by_columns.values()), *self._scans)

    def summaries(self) -> pl.LazyFrame | None:
        """Group summaries, where there are any."""
        if not self._summaries:
            return None
        frame = pl.DataFrame([_series(name, self._summaries, kind) for name, kind in SUMMARY_SCHEMA.items()])
        return frame.select(name for name in frame.columns if frame[name].null_count() < frame.height).lazy()

    def _frame_rows(self) -> None:
        if not self._rows:
            return
        rows, self._rows, self._num_bytes = self._rows, [], 0
        names = dict.fromkeys(name for row in rows for name in row)
        columns = [_series(name, rows, _kind(name)) for name in names]
        self._hold(pl.DataFrame([column for column in columns if _is_told(column)]))

    def _hold(self, frame: pl.DataFrame) -> None:
        self._frames.append(frame)
        self._num_held += frame.height
        if self._num_held >= SHARD_ROWS or sum(f.estimated_size() for f in self._frames) >= _SHARD_BYTES:
            self._write_shard()

    def _write_shard(self) -> None:
        if not self._frames:
            return
        frame = pl.concat(self._frames, how="diagonal")
        path = self._folder / f"shard-{len(self._shards):05d}.parquet"
        frame.write_parquet(path)
        self._shards.append((path, frozenset(frame.columns)))
        self._frames, self._num_held = [], 0


def alike(scans: tuple[Scan, ...]) -> tuple[Scan, ...]:
    """The scans with every column that any of them has, null where one has it not."""
    if len(scans) < 2:
        return scans
    schema = rows_of(scans).collect_schema()
    return tuple(scan.then(lambda rows: _widened(rows, schema)) for scan in scans)


def _widened(rows: pl.LazyFrame, schema: pl.Schema) -> pl.LazyFrame:
    """The rows under a wider schema, null where they have no such column."""
    have = rows.collect_schema()
    return rows.select(
        pl.lit(None, kind).alias(name)
        if name not in have
        else pl.col(name)
        if have[name] == kind
        else pl.col(name).cast(kind)
        for name, kind in schema.items()
    )


def rows_of(scans: Sequence[Scan]) -> pl.LazyFrame:
    """All scans as one lazy table."""
    tables = [scan.table(scan.paths) for scan in scans]
    if not tables:
        return pl.LazyFrame(schema={name: ARCHIVE_SCHEMA[name] for name in ("group_id", "recovered", "reward")})
    return pl.concat(tables, how="diagonal_relaxed") if len(tables) > 1 else tables[0]


def _shard_rows(paths: Sequence[Path]) -> pl.LazyFrame:
    return pl.scan_parquet(list(paths))


def _is_told(column: pl.Series) -> bool:
    """Whether a column says anything. The reward does even when it is missing everywhere: nothing was scored."""
    return column.name == "reward" or column.null_count() < len(column)


def _kind(name: str) -> pl.DataType:
    if name.startswith(PART):
        return pl.Float64()
    if name not in ARCHIVE_SCHEMA:
        raise KeyError(f"{name!r} is no column of the archive; wanted one of {', '.join(ARCHIVE_SCHEMA)}")
    return ARCHIVE_SCHEMA[name]


def _cast(name: str, dtype: pl.DataType) -> pl.Expr:
    kind = _kind(name)
    return pl.col(name) if dtype == kind else pl.col(name).cast(kind, strict=False)


def _series(name: str, rows: Sequence[Mapping[str, object]], kind: pl.DataType) -> pl.Series:
    convert = _CONVERTERS.get(kind, _as_is)
    return pl.Series(name, [convert(row.get(name)) for row in rows], dtype=kind, strict=False)


def _boolean(value: Any) -> bool | None:
    number = number_of(value)
    return None if number is None else number > 0


def _as_is(value: Any) -> Any:
    return value


_CONVERTERS: dict[pl.DataType, Any] = {
    pl.String(): text_of,
    pl.Int64(): integer_of,
    pl.UInt64(): integer_of,
    pl.Float64(): number_of,
    pl.Boolean(): _boolean,
}

"""Our own archives: run folders of `deadheat race`, and what `deadheat convert` and `deadheat sample` wrote.

Nothing is copied: the Parquet files are scanned where they lie. Components of the reward stand in one JSON column of a
run folder's rows and become a `part:` column each.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from deadheat.archive.readers.head import Container, Head
from deadheat.archive.readers.record import PART, Scan
from deadheat.archive.readers.sink import Sink
from deadheat.archive.readers.source import Source
from deadheat.archive.rollouts import SCHEMA_VERSION, VERSION_KEY
from deadheat.errors import ArchiveError

_PART_ROWS = 1_000  # rows of each file in which the names of components are looked for


def is_own(head: Head) -> bool:
    """Whether a file is a Parquet file in our schema with one rollout, or one group summary, per row."""
    return head.container is Container.PARQUET and VERSION_KEY in head.metadata and "group_id" in head.columns


def read_own(source: Source, sink: Sink) -> None:
    """Scan every file, those of equal columns together."""
    alike: dict[tuple[tuple[str, str], ...], list[Head]] = {}
    for head in source.heads:
        version = int(head.metadata[VERSION_KEY])
        if version > SCHEMA_VERSION:
            raise ArchiveError(
                f"{head.name} has schema version {version}, newer than {SCHEMA_VERSION}. Upgrade deadheat."
            )
        with head.path.open("rb") as file:
            schema = pl.read_parquet_schema(file)
        alike.setdefault(tuple((name, str(kind)) for name, kind in schema.items()), []).append(head)
    for heads in alike.values():
        _scan(heads, sink)


def _scan(heads: list[Head], sink: Sink) -> None:
    paths, columns = tuple(head.path for head in heads), heads[0].columns
    if "reward" not in columns:
        for row in pl.scan_parquet(list(paths), glob=False).collect().iter_rows(named=True):
            sink.summary(row)
        return
    added = []
    if "source_file" not in columns:
        added.append(pl.col("_path").replace({str(head.path): head.name for head in heads}).alias("source_file"))
    if "recovered" not in columns:
        added.append(pl.lit("explicit").alias("recovered"))
    if "parts" in columns:
        added += [
            pl.col("parts").str.json_path_match(f'$["{name}"]').cast(pl.Float64, strict=False).alias(f"{PART}{name}")
            for name in _part_names(list(paths))
            if f"{PART}{name}" not in columns
        ]

    def table(some: Sequence[Path]) -> pl.LazyFrame:
        frame = pl.scan_parquet(list(some), include_file_paths="_path", glob=False)
        return frame.with_columns(added).drop("_path")

    sink.add_scan(Scan(paths=paths, table=table), [head.name for head in heads])


def _part_names(paths: list[Path]) -> list[str]:
    found: dict[str, None] = {}
    for path in paths:
        texts = (
            pl.scan_parquet(path, glob=False).select("parts").head(_PART_ROWS).collect()["parts"].drop_nulls().unique()
        )
        for text in texts:
            found.update(dict.fromkeys(json.loads(text)))
    return [name for name in found if '"' not in name]

"""What a file is, by its first bytes: its container, and the columns or keys of its first record.

Nothing is unpickled. A `.pt` file is a zip archive with a pickle inside and a bare pickle starts with its protocol;
both are recognised by their bytes alone.
"""

import csv
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import polars as pl
import zstandard

from deadheat.archive.readers.stream import blocks_of, json_document, lines_of, open_bytes
from deadheat.errors import ArchiveError

_PARQUET_MAGIC = b"PAR1"
_ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
_PICKLE_PROTOCOLS = b"\x02\x03\x04\x05"
_LOOK_LINES = 5  # lines looked at for a first record


class Container(StrEnum):
    """How a file is laid out."""

    EMPTY = "an empty file"
    PARQUET = "Parquet"
    JSON_LINES = "JSON lines"
    JSON = "a JSON document"
    ZIP = "a zip archive"
    CSV = "a table of text"
    TORCH = "a torch file"
    PICKLE = "a pickle"
    OTHER = "of an unknown kind"


@dataclass(frozen=True, kw_only=True)
class Head:
    """What the start of a file says."""

    path: Path
    name: str  # relative to the path that was read
    container: Container
    columns: frozenset[str] = frozenset()  # of the table, or keys of the first record or document
    first: Mapping[str, Any] = field(default_factory=dict)  # the first JSON record or document; empty: none
    listed: bool = False  # a JSON document that is a list of records
    metadata: Mapping[str, str] = field(default_factory=dict)  # of a Parquet file
    members: frozenset[str] = frozenset()  # of a zip archive
    separator: str = ","  # of a table of text
    problem: str | None = None  # why it cannot be read; None: it can


def head_of(path: Path, name: str, *, limit_bytes: int) -> Head:
    """Look at the start of a file."""
    try:
        return _head(path, name, limit_bytes)
    except (OSError, EOFError, zstandard.ZstdError) as error:
        return Head(path=path, name=name, container=Container.OTHER, problem=f"cannot be read ({error})")


def _head(path: Path, name: str, limit_bytes: int) -> Head:
    with open_bytes(path) as stream:
        start = next(blocks_of(stream), b"")[:4096]
    if not start:
        return Head(path=path, name=name, container=Container.EMPTY)
    if start[:4] == _PARQUET_MAGIC:
        return _parquet(path, name)
    if start[:4] in _ZIP_MAGIC:
        return _zip(path, name)
    if start[:1] == b"\x80" and start[1:2] in _PICKLE_PROTOCOLS:
        reason = "a pickle, which could run any code and is never loaded"
        return Head(path=path, name=name, container=Container.PICKLE, problem=reason)
    opening = start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if opening == b"{":
        return _object(path, name, limit_bytes)
    if opening == b"[":
        return _document(path, name, limit_bytes)
    if _suffix(path) in (".jsonl", ".ndjson"):
        return _object(path, name, limit_bytes)
    if _suffix(path) in (".csv", ".tsv", ".txt") and b"\0" not in start:
        return _table(path, name, start)
    return Head(path=path, name=name, container=Container.OTHER)


def _suffix(path: Path) -> str:
    left = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in (".gz", ".zst")]
    return left[-1] if left else ""


def _parquet(path: Path, name: str) -> Head:
    try:
        with path.open("rb") as file:  # a path may hold what would be read as a pattern
            metadata = pl.read_parquet_metadata(file)
            file.seek(0)
            columns = frozenset(pl.read_parquet_schema(file))
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = f"no whole Parquet file ({error}); its writer died or is still writing"
        return Head(path=path, name=name, container=Container.PARQUET, problem=reason)
    return Head(path=path, name=name, container=Container.PARQUET, columns=columns, metadata=metadata)


def _zip(path: Path, name: str) -> Head:
    try:
        with zipfile.ZipFile(path) as archive:
            members = frozenset(archive.namelist())
    except (zipfile.BadZipFile, OSError) as error:
        reason = f"no whole zip archive ({error}); its writer died or is still writing"
        return Head(path=path, name=name, container=Container.ZIP, problem=reason)
    torch = any(member.endswith("data.pkl") for member in members)
    return Head(path=path, name=name, container=Container.TORCH if torch else Container.ZIP, members=members)


def _object(path: Path, name: str, limit_bytes: int) -> Head:
    """JSON lines if one of the first lines is a whole object, else a document."""
    lines = 0
    with open_bytes(path) as stream:
        for line in lines_of(stream, limit_bytes=limit_bytes):
            first = _whole(line.text)
            if first is not None:
                return Head(path=path, name=name, container=Container.JSON_LINES, columns=frozenset(first), first=first)
            lines += 1
            if lines == _LOOK_LINES:
                break
    if _suffix(path) in (".jsonl", ".ndjson"):
        reason = f"none of its first {lines} lines is a JSON object"
        return Head(path=path, name=name, container=Container.JSON_LINES, problem=reason)
    return _document(path, name, limit_bytes)


def _whole(text: str | None) -> dict[str, Any] | None:
    try:
        value = json.loads(text) if text else None
    except (json.JSONDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _document(path: Path, name: str, limit_bytes: int) -> Head:
    try:
        value = json_document(path, limit_bytes=limit_bytes)
    except ArchiveError as error:
        return Head(path=path, name=name, container=Container.JSON, problem=str(error))
    if not value:
        return Head(path=path, name=name, container=Container.EMPTY)
    listed = isinstance(value, list)
    first = next((item for item in value if isinstance(item, dict)), {}) if listed else value
    first = first if isinstance(first, dict) else {}
    return Head(path=path, name=name, container=Container.JSON, columns=frozenset(first), first=first, listed=listed)


def _table(path: Path, name: str, start: bytes) -> Head:
    header = start.decode("utf-8-sig", errors="replace").splitlines()[0]
    separator = "\t" if header.count("\t") > header.count(",") else ","
    columns = frozenset(next(csv.reader(io.StringIO(header), delimiter=separator), []))
    return Head(path=path, name=name, container=Container.CSV, columns=columns, separator=separator)

"""Lines and documents of JSON in bounded memory, plain, gzipped or zstd-compressed.

A line longer than the limit is passed over block by block and refused by its number: a file of one 2 GB line costs no
more memory than one of short lines. Bytes that are no UTF-8 are replaced and counted, so that one bad byte does not
take a rollout out of its group. A last line without an end that does not parse is a log cut off while it was written.
"""

import gzip
import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import zstandard

from deadheat.errors import ArchiveError

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_BLOCK_BYTES = 2**20

Refuse = Callable[[str, str], None]  # (where, reason)


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of a file."""

    number: int  # from 1
    text: str | None  # None: longer than the limit
    num_bytes: int
    replaced: bool  # some bytes were no UTF-8
    ended: bool  # a newline followed


@dataclass(frozen=True, kw_only=True)
class Record:
    """One JSON object of a file."""

    number: int  # line, or position in the document, from 1
    value: dict[str, Any]


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """A file's bytes, decompressed by what they start with."""
    with path.open("rb") as raw:
        magic = raw.read(4)
        raw.seek(0)
        if magic[:2] == GZIP_MAGIC:
            with gzip.GzipFile(fileobj=raw, mode="rb") as unzipped:
                yield cast("IO[bytes]", unzipped)
        elif magic == ZSTD_MAGIC:
            with zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True) as unpacked:
                yield cast("IO[bytes]", unpacked)
        else:
            yield raw


def blocks_of(stream: IO[bytes]) -> Iterator[bytes]:
    """A stream's bytes as they come: what stands before a damaged place is given before the error is raised."""
    read = getattr(stream, "read1", stream.read)
    return iter(lambda: read(_BLOCK_BYTES), b"")


def lines_of(stream: IO[bytes], *, limit_bytes: int) -> Iterator[Line]:
    """The lines of a stream; memory stays below the limit plus one block."""
    held, size, number = bytearray(), 0, 1
    for block in blocks_of(stream):
        pieces = block.split(b"\n")
        for piece in pieces[:-1]:
            held, size = _extended(held, size, piece, limit_bytes)
            yield _line(number, held, size, limit_bytes, ended=True)
            held, size, number = bytearray(), 0, number + 1
        held, size = _extended(held, size, pieces[-1], limit_bytes)
    if size:
        yield _line(number, held, size, limit_bytes, ended=False)


def _extended(held: bytearray, size: int, piece: bytes, limit_bytes: int) -> tuple[bytearray, int]:
    size += len(piece)
    if size > limit_bytes:
        return bytearray(), size
    held += piece
    return held, size


def _line(number: int, held: bytearray, size: int, limit_bytes: int, *, ended: bool) -> Line:
    if size > limit_bytes:
        return Line(number=number, text=None, num_bytes=size, replaced=False, ended=ended)
    try:
        text, replaced = held.decode("utf-8-sig" if number == 1 else "utf-8"), False
    except UnicodeDecodeError:
        text, replaced = held.decode("utf-8", errors="replace"), True
    return Line(number=number, text=text, num_bytes=size, replaced=replaced, ended=ended)


def json_lines(
    path: Path, name: str, *, limit_bytes: int, refuse: Refuse, warn: Callable[[str], None]
) -> Iterator[Record]:
    """The objects of a file of JSON lines; lines that are none are refused by number, and the rest is read."""
    num_replaced = 0
    try:
        with open_bytes(path) as stream:
            for line in lines_of(stream, limit_bytes=limit_bytes):
                if line.text is None:
                    refuse(
                        f"{name}, line {line.number}",
                        f"{line.num_bytes:,} bytes long; wanted at most {limit_bytes:,}. Raise the line limit to read it",
                    )
                    continue
                num_replaced += line.replaced
                if line.text.strip():
                    yield from _object(line, line.text, name, refuse)
    except (OSError, EOFError, zstandard.ZstdError) as error:
        refuse(name, f"the compressed file is cut off or damaged ({error}); what came before was read")
    if num_replaced:
        warn(f"{name}: {num_replaced:,} lines hold bytes that are no UTF-8; they were read with those replaced")


def _object(line: Line, text: str, name: str, refuse: Refuse) -> Iterator[Record]:
    where = f"{name}, line {line.number}"
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        cut = (
            "the last line is cut off: the log was read while it was written, or its writer died"
            if not line.ended
            else "not JSON"
        )
        refuse(where, f"{cut} ({error})")
        return
    if isinstance(value, dict):
        yield Record(number=line.number, value=value)
    else:
        refuse(where, f"a JSON {type(value).__name__}; wanted one object per line")


def json_document(path: Path, *, limit_bytes: int) -> Any:
    """The one JSON value of a file."""
    with open_bytes(path) as stream:
        return parse_document(stream, str(path), limit_bytes=limit_bytes)


def parse_document(stream: IO[bytes], where: str, *, limit_bytes: int) -> Any:
    """The one JSON value of a stream; too long, cut off or no JSON is an `ArchiveError`."""
    held = io.BytesIO()
    try:
        for block in blocks_of(stream):
            held.write(block)
            if held.tell() > limit_bytes:
                raise ArchiveError(f"{where} is longer than {limit_bytes:,} bytes. Raise the line limit to read it")
        return json.loads(held.getvalue().decode("utf-8-sig", errors="replace"))
    except (json.JSONDecodeError, RecursionError, OSError, EOFError, zstandard.ZstdError) as error:
        raise ArchiveError(f"{where} is not whole JSON ({error}); the file may be torn or of another kind") from error

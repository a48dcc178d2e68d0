"""Members of a zip archive as logs write them: appended to while a run goes on, compressed by deflate or zstd.

A writer that flushes as it goes appends a member again under the same name; the later one is the member. The standard
library of this Python cannot decompress zstd members (method 93), so their bytes are found and decompressed here.
"""

import io
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import zstandard

from deadheat.archive.readers.stream import parse_document
from deadheat.errors import ArchiveError

_ZSTD_METHODS = (20, 93)
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")  # signature … compressed and plain size, length of name and of extra field


@dataclass(frozen=True, kw_only=True)
class Member:
    """One JSON member."""

    name: str
    value: Any


def json_members(path: Path, prefix: str, *, limit_bytes: int) -> Iterator[Member | ArchiveError]:
    """The JSON members under a prefix, each once, in name order; one that cannot be read is its error."""
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as raw:
            latest = {info.filename: info for info in archive.infolist() if info.filename.startswith(prefix)}
            for name in sorted(name for name in latest if name.endswith(".json")):
                try:
                    with _open(archive, raw, latest[name]) as stream:
                        yield Member(
                            name=name, value=parse_document(stream, f"{path}: {name}", limit_bytes=limit_bytes)
                        )
                except ArchiveError as error:
                    yield error
    except (zipfile.BadZipFile, OSError) as error:
        raise ArchiveError(f"{path} is not a whole zip archive: {error}") from error


def num_repeated(path: Path) -> int:
    """Members that a later one of the same name replaces."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    return len(names) - len(set(names))


def _open(archive: zipfile.ZipFile, raw: IO[bytes], info: zipfile.ZipInfo) -> IO[bytes]:
    if info.compress_type not in _ZSTD_METHODS:
        return archive.open(info)
    raw.seek(info.header_offset)
    header = _LOCAL_HEADER.unpack(raw.read(_LOCAL_HEADER.size))
    raw.seek(info.header_offset + _LOCAL_HEADER.size + header[9] + header[10])
    packed = io.BytesIO(raw.read(info.compress_size))
    return cast("IO[bytes]", zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True))

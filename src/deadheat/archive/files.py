"""Files that are either whole or absent: write beside, flush to disk, rename.

A crash at any instant leaves the old file, the new file, or a `*.partial` beside it; never a torn one. What the system
refuses (a full disk, a folder without write permission) becomes a `RunFolderError` that says what to do.
"""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deadheat.errors import RunFolderError

PARTIAL = ".partial"

_HINTS = {
    errno.ENOSPC: "the disk is full; free some space and run again with --resume",
    errno.EDQUOT: "the disk quota is used up; free some space and run again with --resume",
    errno.EACCES: "no permission to write here; choose another --out or fix the folder's permissions",
    errno.EPERM: "no permission to write here; choose another --out or fix the folder's permissions",
    errno.EROFS: "the file system is read-only; choose another --out",
    errno.EFBIG: "files may not grow this large here; raise the limit (ulimit -f) and run again with --resume",
}
_OS_ERROR = re.compile(r"\(os error (\d+)\)")  # how libraries written in Rust quote the system's refusal


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn an `OSError` of a write to `path` into a `RunFolderError` with its remedy."""
    try:
        yield
    except RunFolderError:
        raise
    except OSError as error:
        hint = _HINTS.get(error.errno or 0, "nothing was overwritten; run again with --resume")
        raise RunFolderError(f"cannot write {path}: {error.strerror or error}. {hint[0].upper()}{hint[1:]}.") from error


@contextmanager
def system_errors(*foreign: type[Exception]) -> Iterator[None]:
    """Within it, a `foreign` error that quotes a refusal of the system becomes that `OSError`; others stay as they are."""
    try:
        yield
    except foreign as error:
        quoted = _OS_ERROR.search(str(error))
        if quoted is None:
            raise
        code = int(quoted[1])
        raise OSError(code, os.strerror(code)) from error


def write_atomic(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a file beside `path`, flush it to disk and rename it over `path`."""
    partial = path.with_name(path.name + PARTIAL)
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            write(partial)
            _flush(partial)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
        _flush(path.parent)


def write_folder_atomic(folder: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a folder beside `folder`, flush every file and rename it; an existing folder is replaced."""
    partial = folder.with_name(folder.name + PARTIAL)
    with disk_errors(folder):
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        try:
            write(partial)
            for file in partial.iterdir():
                _flush(file)
            if folder.exists():
                shutil.rmtree(folder)
            partial.replace(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        _flush(folder.parent)


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 text file atomically."""
    write_atomic(path, lambda partial: _write_text(partial, text))


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically: keys in the order given, two spaces, no NaN, a final newline."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def append_line(path: Path, line: str) -> None:
    """Append one line to a log whose last line may be lost in a crash (wall-clock records only)."""
    with disk_errors(path), path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's bytes, hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sweep_partials(folder: Path) -> list[Path]:
    """Delete what a crash left half written below `folder`; returns what was deleted, sorted."""
    leftovers = sorted(folder.rglob(f"*{PARTIAL}"))
    for path in leftovers:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    return leftovers


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""Files are whole or absent, whatever interrupts the writing."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from deadheat.archive import (
    append_line,
    read_json,
    sha256_file,
    write_folder_atomic,
    write_json,
    write_table,
    write_text,
)
from deadheat.archive.files import PARTIAL, sweep_partials, write_atomic
from deadheat.errors import RunFolderError

FULL = Path("/dev/full")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("error", [OSError("disk"), ValueError("program"), KeyboardInterrupt()])
def test_a_writer_that_raises_midway_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, error: BaseException
) -> None:
    path = tmp_path / "verdict.json"
    write_json(path, {"words": "called(A)"})

    def half(partial: Path) -> None:
        partial.write_text('{"words": "cal')
        raise error

    with pytest.raises((RunFolderError, ValueError, KeyboardInterrupt)):
        write_atomic(path, half)
    assert read_json(path) == {"words": "called(A)"}
    assert names(tmp_path) == ["verdict.json"]


@pytest.mark.parametrize("error", [OSError("disk"), ValueError("program")])
def test_a_folder_half_written_leaves_the_old_folder_and_nothing_beside_it(tmp_path: Path, error: Exception) -> None:
    folder = tmp_path / "step-00002"
    write_folder_atomic(folder, lambda partial: write_text(partial / "state", "old"))

    def half(partial: Path) -> None:
        (partial / "state").write_text("ne")
        raise error

    with pytest.raises((RunFolderError, ValueError)):
        write_folder_atomic(folder, half)
    assert (folder / "state").read_text() == "old"
    assert names(tmp_path) == ["step-00002"]


def test_a_finished_folder_replaces_the_old_one_whole(tmp_path: Path) -> None:
    folder = tmp_path / "step-00002"
    write_folder_atomic(folder, lambda partial: write_text(partial / "old", "1"))
    write_folder_atomic(folder, lambda partial: write_text(partial / "new", "2"))
    assert names(folder) == ["new"]


def test_what_a_killed_writer_leaves_is_swept_and_named(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / f"step-00001.parquet{PARTIAL}").write_text("torn")
    (tmp_path / f"step-00002{PARTIAL}").mkdir()
    (tmp_path / f"step-00002{PARTIAL}" / "state.json").write_text("torn")
    (tmp_path / "kept").write_text("whole")
    assert [path.name for path in sweep_partials(tmp_path)] == [f"step-00001.parquet{PARTIAL}", f"step-00002{PARTIAL}"]
    assert names(tmp_path) == ["a", "kept"]
    assert names(tmp_path / "a") == []


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("kind", ["text", "table", "append"])
def test_a_full_disk_is_said_and_the_old_file_stands(tmp_path: Path, kind: str) -> None:
    # The file beside the target is a link to the device that is always full: the system itself refuses the write.
    path = tmp_path / "file"
    path.write_text("old")
    (tmp_path / f"file{PARTIAL}").symlink_to(FULL)
    with pytest.raises(RunFolderError, match=r"The disk is full; free some space and run again with --resume"):
        if kind == "text":
            write_text(path, "new")
        elif kind == "table":
            write_table(path, pl.DataFrame({"n": list(range(1000))}))
        else:
            append_line(tmp_path / f"file{PARTIAL}", "{}")
    assert path.read_text() == "old"
    assert kind == "append" or names(tmp_path) == ["file"]


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("no mount command here")
    if done.returncode:
        pytest.skip("this user may not mount a small file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_checkpoint_that_does_not_fit_on_the_disk_leaves_the_one_before(tiny_disk: Path) -> None:
    folder = tiny_disk / "step-00001"
    write_folder_atomic(folder, lambda partial: write_text(partial / "adapter", "old"))
    with pytest.raises(RunFolderError, match=r"disk is full"):
        write_folder_atomic(folder, lambda partial: write_text(partial / "adapter", "x" * 200_000))
    assert (folder / "adapter").read_text() == "old"
    assert names(tiny_disk) == ["step-00001"]


def test_the_libraries_that_hide_a_refusal_of_the_system_are_read_by_its_number(tmp_path: Path) -> None:
    # A file may grow to 20,000 bytes here; Polars and safetensors answer with errors of their own that quote errno 27.
    script = """
import resource, signal, sys, tempfile
from pathlib import Path
import polars as pl, torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from deadheat.archive import system_errors, write_folder_atomic, write_table
from deadheat.errors import RunFolderError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
folder = Path(sys.argv[1])
def fill(partial):
    with system_errors(SafetensorError):
        save_file({"w": torch.arange(100_000.0)}, partial / "w")
for write in (lambda: write_table(folder / "t", pl.DataFrame({"n": [i * i for i in range(100_000)]})),
              lambda: write_folder_atomic(folder / "c", fill)):
    try:
        write()
    except RunFolderError as error:
        print(str(error).partition(": ")[2])
print(sorted(p.name for p in folder.iterdir()))
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)
    said = (
        "File too large. Files may not grow this large here; raise the limit (ulimit -f) and run again with --resume."
    )
    assert done.stdout.splitlines() == [said, said, "[]"], done.stderr


def test_a_folder_without_write_permission_says_what_to_do(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir()
    (locked / "old").write_text("old")
    is_root = os.geteuid() == 0
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)  # the way to it is open to the user below
    locked.chmod(0o555)
    if is_root:
        os.seteuid(65534)
    try:
        with pytest.raises(RunFolderError, match=r"No permission to write here; choose another --out"):
            write_text(locked / "old", "new")
        with pytest.raises(RunFolderError, match=r"No permission to write here; choose another --out"):
            write_folder_atomic(locked / "step", lambda partial: None)
    finally:
        if is_root:
            os.seteuid(0)
        locked.chmod(0o755)
    assert (locked / "old").read_text() == "old"
    assert names(locked) == ["old"]


def test_json_keeps_order_and_any_character_and_refuses_nan(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "value.json"
    write_json(path, {"b": "é\u2028\0", "a": [1, None]})
    assert path.read_bytes() == '{\n  "b": "é\u2028\\u0000",\n  "a": [\n    1,\n    null\n  ]\n}\n'.encode()
    with pytest.raises(ValueError, match=r"not JSON compliant"):
        write_json(path, {"x": float("nan")})
    assert list(read_json(path)) == ["b", "a"]


def test_the_digest_is_that_of_sha_256(tmp_path: Path) -> None:
    # FIPS 180-2, appendix B.1: SHA-256 of "abc".
    (tmp_path / "abc").write_bytes(b"abc")
    assert sha256_file(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

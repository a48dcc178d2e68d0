"""Run folders: claimed by one process, resumable under one digest, sealed by a manifest.

<run>/
  race.toml  resolved.json  environment.json       what was asked, what it resolved to, on what
  <arm>/seed-<s>/
    rollouts/step-00001.parquet  …                 one file per step, whole or absent
    evals/step-00000.parquet  …                    one file per evaluation
    steps.parquet                                  the step ledger, up to the last checkpoint
    checkpoints/step-00025/                        adapter; the newest also holds the optimiser's state
    clock.jsonl                                    wall-clock seconds: the only records that may differ after a crash
    outcome.json                                   how the run ended
  verdict.json  timing.json  report.html  manifest.json
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deadheat.archive.files import disk_errors, read_json, sha256_file, sweep_partials, write_json
from deadheat.archive.plain_data import differences
from deadheat.errors import ArchiveError, RunFolderError

RESOLVED = "resolved.json"
MANIFEST = "manifest.json"
LOCK = ".lock"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A run folder held by this process."""

    folder: Path
    resumed: bool  # the folder held an earlier attempt at the same run
    swept: tuple[Path, ...]  # half-written files of a crash, deleted


@contextmanager
def claim_folder(folder: Path, resolved: dict[str, Any], *, resume: bool) -> Iterator[Claim]:
    """Hold `folder` for the run that `resolved` describes; refuse a used folder, another run, or a second process."""
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _lock(handle, folder)
        os.ftruncate(handle, 0)  # what a race on a cluster wrote into it before it was killed
        used = (folder / RESOLVED).exists()
        refuse_used(folder, resolved, resume=resume)
        swept = tuple(sweep_partials(folder))
        if not used:
            write_json(folder / RESOLVED, resolved)
        yield Claim(folder=folder, resumed=used, swept=swept)
    finally:
        os.close(handle)


def refuse_used(folder: Path, resolved: dict[str, Any], *, resume: bool) -> None:
    """A `RunFolderError` where `claim_folder` would refuse what the folder holds; claims and writes nothing."""
    if (folder / RESOLVED).exists():
        _refuse_other_run(folder, resolved, resume=resume)
    elif folder.is_dir() and any(p.name != LOCK and not p.name.endswith(".partial") for p in folder.iterdir()):
        raise RunFolderError(
            f"{folder} holds files that are not a run of ours. Wanted an empty or new folder; choose another --out."
        )


def _lock(handle: int, folder: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise RunFolderError(
            f"{folder} is being written by another process. Wait for it, or choose another --out."
        ) from error


def _refuse_other_run(folder: Path, resolved: dict[str, Any], *, resume: bool) -> None:
    if not resume:
        raise RunFolderError(
            f"{folder} already holds a run. Pass --resume to continue it, or choose another --out for a new one."
        )
    held = read_json(folder / RESOLVED)
    if held != resolved:
        changed = [path for path, _, _ in differences(held, resolved)]
        raise RunFolderError(
            f"{folder} holds another run: {', '.join(changed[:6])} differ. Wanted the same config to --resume; restore "
            "it, or choose another --out."
        )


def seal(folder: Path) -> None:
    """Write manifest.json: size and SHA-256 of every file below `folder`, itself and the lock excepted."""
    files = {
        str(path.relative_to(folder)): {"bytes": path.stat().st_size, "sha256": sha256_file(path)}
        for path in _contents(folder)
    }
    write_json(folder / MANIFEST, {"files": files})


def check_manifest(folder: Path) -> list[str]:
    """Every file that is missing, added or changed since `seal`, in words; empty when the folder is as sealed."""
    if not (folder / MANIFEST).exists():
        raise ArchiveError(f"{folder} has no {MANIFEST}: the run never finished. Run it again with --resume.")
    sealed: dict[str, dict[str, Any]] = read_json(folder / MANIFEST)["files"]
    found = {str(path.relative_to(folder)): path for path in _contents(folder)}
    problems = [f"{name}: missing" for name in sorted(sealed.keys() - found.keys())]
    problems += [f"{name}: not in the manifest" for name in sorted(found.keys() - sealed.keys())]
    for name in sorted(sealed.keys() & found.keys()):
        if sha256_file(found[name]) != sealed[name]["sha256"]:
            problems.append(f"{name}: bytes differ from the manifest")
    return problems


def _contents(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and p.name not in {MANIFEST, LOCK})

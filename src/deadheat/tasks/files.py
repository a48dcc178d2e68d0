"""Reading problem sets: rows of JSON from a local file, gzipped or not, or of Parquet from a hub."""

import gzip
import importlib
import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from deadheat.errors import TaskError

Row = dict[str, object]


def read_rows(path: Path, *, fields: Sequence[str]) -> list[Row]:
    """The rows of a .json (a list), .jsonl or .parquet file, .gz allowed; each must have `fields`."""
    if not path.is_file():
        raise TaskError(f"{path} is not there; wanted a .jsonl, .json or .parquet file with {', '.join(fields)}")
    try:
        rows = pl.read_parquet(path).to_dicts() if path.suffix == ".parquet" else _read_json(path)
    except (UnicodeDecodeError, json.JSONDecodeError, gzip.BadGzipFile, pl.exceptions.PolarsError) as error:
        raise TaskError(f"{path} cannot be read as {''.join(path.suffixes)}: {error}") from error
    for number, row in enumerate(rows, start=1):
        missing = [name for name in fields if not isinstance(row, dict) or name not in row]
        if missing:
            raise TaskError(f"{path}, row {number}: no field {missing[0]!r}; wanted {', '.join(fields)} in every row")
    if not rows:
        raise TaskError(f"{path} holds no rows; wanted at least one problem")
    return rows


def _read_json(path: Path) -> list[Row]:
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    if ".jsonl" in path.suffixes:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    rows = json.loads(text)
    if not isinstance(rows, list):
        raise TaskError(f"{path} holds one {type(rows).__name__}; wanted a list of rows")
    return rows


def fetch(reference: str, filename: str) -> Path:
    """A file of a data set on the Hugging Face hub, `hf:ORG/NAME[@REV]`, in the hub's own cache."""
    name, _, revision = reference.removeprefix("hf:").partition("@")
    try:
        hub = importlib.import_module("huggingface_hub")
    except ImportError as error:
        raise TaskError(
            f"{reference} needs huggingface-hub: pip install 'deadheat[train]', or give a local folder"
        ) from error
    try:
        return Path(hub.hf_hub_download(name, filename, repo_type="dataset", revision=revision or None))
    except (OSError, ValueError) as error:  # the hub's errors are OSErrors; a malformed name is a ValueError
        raise TaskError(
            f"{reference}: {filename} cannot be fetched ({type(error).__name__}); check the name and the network, or "
            "download the files and give their folder as data"
        ) from error

"""Per-item results of any tool as one long table: seed, item, value.

Read: CSV and TSV, JSON lines, a JSON list, Parquet (ours included), lm-evaluation-harness samples, Inspect logs
(`.eval` and `.json`); text files may be compressed by gzip or zstd. A value without a score is missing, never zero.
Epochs and repeats stay rows of their own: whoever aligns two sides averages them within their item.

Records of one item that differ in a column such as model, judge, step or filter are refused until one value is
chosen: averaging over it in silence would compare something that nobody asked about.
"""

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import polars as pl
import zstandard

from deadheat.archive.readers.inspect import open_log, scores_by_name
from deadheat.archive.readers.lm_eval import item_of, metrics_of
from deadheat.archive.readers.record import ReadOptions as ReadLimits
from deadheat.archive.readers.stream import open_bytes
from deadheat.archive.readers.values import WORDS
from deadheat.errors import ArchiveError

ITEM_NAMES = (
    "item", "item_id", "problem_id", "question_id", "prompt_id", "sample_id", "task_id", "doc_id", "prompt_idx",
    "example_id", "idx", "index", "id", "question", "prompt",
)  # fmt: skip
VALUE_NAMES = ("value", "correct", "score", "grade", "acc", "accuracy", "exact_match", "passed", "reward", "preference")
SEED_NAMES = ("seed", "run_seed", "seed_id")
TELLING_NAMES = (
    "arm", "checkpoint", "dataset", "filter", "judge", "metric", "model", "purpose", "scorer", "split", "step", "task",
)  # fmt: skip
_SHOWN = 6


class ResultFormat(StrEnum):
    """What wrote a file."""

    TABLE = "table"  # CSV, TSV, JSON or Parquet with one row per record
    LM_EVAL = "lm-evaluation-harness samples"
    INSPECT = "Inspect log"


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How columns are found. None: by their usual names."""

    item: str | None = None  # column that names the item
    value: str | None = None  # column that holds the score; for logs, the metric or scorer
    seed: str | None = None  # column that holds the training seed
    where: tuple[tuple[str, str], ...] = ()  # keep rows whose column has this value, as text
    keep: tuple[str, ...] = ()  # further columns to carry along, such as the one that tells two sides apart


@dataclass(frozen=True, kw_only=True)
class Results:
    """One file's records."""

    name: str  # file name, for messages and pages
    format: ResultFormat
    frame: pl.DataFrame  # seed and item as text, value as float (null: missing), then the columns kept
    item_column: str
    value_column: str
    seed_column: str | None  # None: one seed, called "0"
    num_missing: int  # records without a score
    notes: tuple[str, ...] = ()  # what a reader of the verdict should know


def read_results(path: Path, options: ReadOptions = ReadOptions()) -> Results:
    """The records of a file."""
    rows, kind, notes = _load(path)
    if not rows.height:
        raise ArchiveError(f"{path} has no records; wanted one row per item and seed")
    for column, wanted in options.where:
        rows = _only(rows, column, wanted, path)
    item, value = _item_column(rows, kind, options, path), _value_column(rows, kind, options, path)
    seed = _seed_column(rows, options, path)
    chosen = {item, value, seed, *options.keep, *(column for column, _ in options.where)}
    frame = pl.DataFrame(
        {
            "seed": _text(rows[seed]) if seed else pl.Series(["0"] * rows.height, dtype=pl.String),
            "item": _text(rows[item]),
            "value": scores_of(rows[value], path),
            **{name: _text(_column(rows, name, path)) for name in options.keep},
        }
    )
    _refuse_untold(rows, frame, chosen, path)
    return Results(
        name=path.name,
        format=kind,
        frame=frame,
        item_column=item,
        value_column=value,
        seed_column=seed,
        num_missing=frame["value"].null_count(),
        notes=tuple(notes),
    )


def scores_of(column: pl.Series, path: Path) -> pl.Series:
    """Numbers, booleans or words such as "true" and "C" as floats; empty and NaN become null.

    Example:
        >>> scores_of(pl.Series("x", ["true", "0.5", "", "I"]), Path("a.csv")).to_list()
        [1.0, 0.5, None, 0.0]
    """
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return column.cast(pl.Float64).fill_nan(None)
    if column.dtype == pl.Null:
        return column.cast(pl.Float64)
    return pl.Series(column.name, [_score(text, column.name, path) for text in _text(column)], dtype=pl.Float64)


def _score(text: str | None, column: str, path: Path) -> float | None:
    if text is None or not text.strip():
        return None
    word = text.strip().lower()
    if word in WORDS:
        return WORDS[word]
    try:
        number = float(word)
    except ValueError:
        raise ArchiveError(
            f"{path}: column {column!r} holds {text[:40]!r}; wanted numbers, true/false or right/wrong. "
            "Name the score column with --value"
        ) from None
    return None if number != number else number


def _load(path: Path) -> tuple[pl.DataFrame, ResultFormat, list[str]]:
    if not path.is_file():
        hint = " It is a folder: a checkpoint of a run is written RUN:arm@final." if path.is_dir() else ""
        raise ArchiveError(
            f"{path} is not a file.{hint} Wanted a results file, or RUN:arm@peak|final|converged|step-75"
        )
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in (".gz", ".zst")]
    suffix = suffixes[-1] if suffixes else ""
    if suffix == ".parquet":
        try:
            return pl.read_parquet(path), ResultFormat.TABLE, []
        except pl.exceptions.PolarsError as error:
            raise ArchiveError(f"{path} is not a readable Parquet file: {error}") from error
    if suffix == ".eval":
        return _inspect_zip(path)
    text = _read_text(path)
    if suffix in (".csv", ".tsv"):
        try:
            frame = pl.read_csv(
                io.StringIO(text), separator="\t" if suffix == ".tsv" else ",", infer_schema_length=None
            )
        except pl.exceptions.PolarsError as error:
            raise ArchiveError(f"{path} is not a readable table: {error}") from error
        return frame, ResultFormat.TABLE, []
    if suffix in (".jsonl", ".ndjson", ".json"):
        return _from_json(text, path, lines=suffix != ".json")
    raise ArchiveError(
        f"{path}: {suffix or 'no'} suffix; wanted .csv, .tsv, .jsonl, .json, .parquet (each may end in .gz or .zst) or .eval"
    )


def _read_text(path: Path) -> str:
    try:
        with open_bytes(path) as stream:
            return stream.read().decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError, zstandard.ZstdError) as error:
        raise ArchiveError(
            f"{path} cannot be read as text: {error}. The file may be torn or of another kind"
        ) from error


def _from_json(text: str, path: Path, *, lines: bool) -> tuple[pl.DataFrame, ResultFormat, list[str]]:
    if not lines:
        value = _parsed(text, f"{path}")
        if isinstance(value, dict) and "samples" in value and "eval" in value:
            return _inspect(value["samples"] or [], value, path)
        if not isinstance(value, list):
            raise ArchiveError(
                f"{path} holds a JSON {type(value).__name__}; wanted a list of records, or an Inspect log"
            )
        records = value
    else:
        numbered = enumerate(text.splitlines(), start=1)
        records = [_parsed(line, f"{path}, line {number}") for number, line in numbered if line.strip()]
    if not all(isinstance(record, dict) for record in records):
        raise ArchiveError(f"{path}: some records are no JSON objects; wanted one object per record")
    lm_eval = bool(records) and {"doc_id", "resps"} <= records[0].keys()
    if lm_eval:
        records = [_lm_eval(record) for record in records]
    return _frame(records), ResultFormat.LM_EVAL if lm_eval else ResultFormat.TABLE, []


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ArchiveError(f"{where} is not JSON ({error}); the file may be torn or of another kind") from error


def _lm_eval(record: Mapping[str, Any]) -> dict[str, Any]:
    """A sample's scalars: its item, its filter and its metrics."""
    kept = {"filter": record["filter"]} if "filter" in record else {}
    metrics = {name: value for name, value in metrics_of(record).items() if _scalar(value) is not None}
    return {"item": item_of(record), **kept, **metrics}


def _inspect_zip(path: Path) -> tuple[pl.DataFrame, ResultFormat, list[str]]:
    try:
        log = open_log(path, limit_bytes=ReadLimits.line_limit_bytes)
        samples = [_whole(sample) for sample in log.samples]
    except ArchiveError as error:
        raise ArchiveError(f"{path} is not a whole Inspect log: {error}") from error
    return _inspect(samples, log.header, path)


def _whole(sample: Mapping[str, Any] | ArchiveError) -> Mapping[str, Any]:
    if isinstance(sample, ArchiveError):
        raise sample
    return sample


def _inspect(
    samples: Sequence[Mapping[str, Any]], header: Mapping[str, Any], path: Path
) -> tuple[pl.DataFrame, ResultFormat, list[str]]:
    """One row per sample and epoch, a column per scorer (and per key of a scorer that gives several values)."""
    rows = []
    for sample in samples:
        rows.append({"item": str(sample["id"]), "epoch": sample.get("epoch", 1)} | scores_by_name(sample))
    status = header.get("status", "success")
    notes = [] if status == "success" else [f"{path.name}: the log's status is {status!r}, so samples may be missing"]
    return _frame(rows), ResultFormat.INSPECT, notes


def _frame(records: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Columns of scalars; a list of one scalar is that scalar, anything deeper is left out."""
    names = list(dict.fromkeys(key for record in records for key in record))
    columns = {name: [_scalar(record.get(name)) for record in records] for name in names}
    return pl.DataFrame(
        [_series(name, values) for name, values in columns.items() if any(v is not None for v in values)]
    )


def _scalar(value: Any) -> str | float | bool | None:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, (str, bool, int, float)) else None


def _series(name: str, values: list[Any]) -> pl.Series:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pl.Series(name, values, dtype=pl.Boolean)
    if kinds == {int}:
        return pl.Series(name, values, dtype=pl.Int64)
    if kinds <= {bool, int, float}:
        return pl.Series(name, [None if value is None else float(value) for value in values], dtype=pl.Float64)
    return pl.Series(name, [None if value is None else str(value) for value in values], dtype=pl.String)


def _column(rows: pl.DataFrame, name: str, path: Path) -> pl.Series:
    if name not in rows.columns:
        raise ArchiveError(f"{path} has no column {name!r}; it has {_few(rows.columns)}")
    return rows[name]


def _only(rows: pl.DataFrame, column: str, wanted: str, path: Path) -> pl.DataFrame:
    found = _text(_column(rows, column, path))
    kept = rows.filter(found.eq(wanted).fill_null(False))
    if not kept.height:
        raise ArchiveError(
            f"{path}: no row has {column} = {wanted}; it holds {_few(found.drop_nulls().unique().sort())}"
        )
    return kept


def _item_column(rows: pl.DataFrame, kind: ResultFormat, options: ReadOptions, path: Path) -> str:
    if options.item is not None:
        return _column(rows, options.item, path).name
    names = ("item",) if kind is not ResultFormat.TABLE else ITEM_NAMES
    found = next((name for name in names if name in rows.columns), None)
    if found is None:
        raise ArchiveError(
            f"{path} has no column that names the item; it has {_few(rows.columns)}. Name it with --item"
        )
    return found


def _value_column(rows: pl.DataFrame, kind: ResultFormat, options: ReadOptions, path: Path) -> str:
    if options.value is not None:
        return _column(rows, options.value, path).name
    if kind is ResultFormat.TABLE:
        found = [name for name in VALUE_NAMES if name in rows.columns][:1]
    else:
        found = [name for name in rows.columns if name not in {"item", "epoch", "filter"}]
    if len(found) != 1:
        seen = f"the scores {_few(found)}" if found else f"no score by a usual name among {_few(rows.columns)}"
        raise ArchiveError(f"{path} has {seen}. Name one with --value")
    return found[0]


def _seed_column(rows: pl.DataFrame, options: ReadOptions, path: Path) -> str | None:
    if options.seed is not None:
        return _column(rows, options.seed, path).name
    return next((name for name in SEED_NAMES if name in rows.columns), None)


def _refuse_untold(rows: pl.DataFrame, frame: pl.DataFrame, chosen: Iterable[str | None], path: Path) -> None:
    """Refuses records of one seed and item that differ in a column nobody chose a value of."""
    told = ["seed", "item", *(name for name in frame.columns if name not in ("seed", "item", "value"))]
    keys = frame.select(told)
    for name in TELLING_NAMES:
        if name not in rows.columns or name in chosen:
            continue
        mixed = keys.with_columns(rows[name].alias("told apart")).group_by(told).agg(pl.col("told apart").n_unique())
        if mixed["told apart"].max() != 1:
            values = _few(_text(rows[name].drop_nulls()).unique().sort())
            raise ArchiveError(
                f"{path}: records of one item differ in column {name!r} ({values}), and one reading would mix them. "
                f"Keep one with --where {name}=VALUE, or make them the two sides with --side {name}=FIRST,SECOND"
            )


def _text(column: pl.Series) -> pl.Series:
    return column.cast(pl.String)


def _few(values: Iterable[str]) -> str:
    shown = list(values)
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return ", ".join(map(str, shown[:_SHOWN])) + more

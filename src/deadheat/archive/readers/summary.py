"""Group summaries: one row per group with how many were right, or their mean, as many public logs keep.

Three shapes: a table with named columns; a table of training steps whose one group is the step (`reward_avg`); a document of
problem -> mean per epoch. Where G is nowhere, it is the smallest size of which every mean is a whole multiple, and that is
said. Only the gate, composition and T can be read from summaries.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import polars as pl

from deadheat.archive.readers.head import Container, Head
from deadheat.archive.readers.record import ReadOptions
from deadheat.archive.readers.sink import Sink
from deadheat.archive.readers.source import Source, records_of
from deadheat.archive.readers.stream import json_document, lines_of, open_bytes
from deadheat.archive.readers.values import integer_of, number_of
from deadheat.errors import ArchiveError

_USUAL = {
    "mean_reward": ("mean_reward", "reward_mean", "reward_avg", "avg_reward", "group_mean", "accuracy_mean"),
    "k": ("k", "num_correct", "n_correct"),
    "group_size": ("group_size", "num_samples", "num_generations", "G"),
    "step": ("step", "global_step", "epoch"),
    "problem_id": ("problem_id", "problem", "question_id", "prompt_id"),
    "group_id": ("group_id", "group"),
    "loss": ("loss",),
    "kl": ("kl", "kl_loss"),
    "arm": ("arm",),
    "run": ("run",),
}
_OURS = {"group": "group_id", "problem": "problem_id"}
_MAX_SIZE = 128  # largest G looked for
_NEAR = 1e-6  # how far a mean may be from k/G: logs round to six digits


def is_summary(head: Head) -> bool:
    """Whether a file summarises groups."""
    if head.container is Container.JSON or (head.container is Container.JSON_LINES and _is_history(head.first)):
        return not head.listed and _is_history(head.first)
    found = _found(head.columns, {})
    named = bool({"mean_reward", "k"} & found.keys()) and bool({"step", "problem_id", "group_id"} & found.keys())
    return named and not {"reward", "correct", "completion"} & head.columns


def _is_history(document: Mapping[str, Any]) -> bool:
    return bool(document) and all(
        isinstance(values, list) and all(isinstance(value, (int, float)) for value in values)
        for values in document.values()
    )


def read_summary(source: Source, sink: Sink) -> None:
    """Every file."""
    for head in source.heads:
        rows = list(_rows(head, source, sink))
        if not rows:
            sink.warn(f"{head.name} has no rows")
            continue
        size = _size(rows, head, source.options, sink)
        for row in rows:
            sink.summary(_completed(row, size) | {"source_file": head.name})


def _rows(head: Head, source: Source, sink: Sink) -> Iterator[dict[str, Any]]:
    if _is_history(head.first):
        document = json_document(head.path, limit_bytes=source.options.line_limit_bytes)
        for problem, means in document.items():
            for epoch, mean in enumerate(means):
                yield {
                    "group_id": f"{problem}/{epoch}",
                    "problem_id": problem,
                    "step": epoch,
                    "mean_reward": float(mean),
                }
        return
    found = _found(head.columns, source.options.map)
    if not {"mean_reward", "k"} & found.keys():
        raise ArchiveError(f"{head.name} has neither k nor a mean; name one with --map k=COLUMN or mean_reward=COLUMN")
    for number, record in enumerate(_records(head, source, sink), start=1):
        row = {ours: record.get(theirs) for ours, theirs in found.items()}
        place = [str(row[name]) for name in ("run", "arm", "step", "problem_id") if row.get(name) not in (None, "")]
        yield {"group_id": "/".join(place) or str(number), "source_row": number} | {
            name: value for name, value in row.items() if value not in (None, "")
        }


def _records(head: Head, source: Source, sink: Sink) -> Iterable[Mapping[str, Any]]:
    if head.container is Container.PARQUET:
        return pl.read_parquet(head.path, glob=False).iter_rows(named=True)
    if head.container is Container.CSV:
        return _csv(head, source.options)
    return (record.value for record in records_of(head, source, sink))


def _csv(head: Head, options: ReadOptions) -> Iterator[Mapping[str, Any]]:
    with open_bytes(head.path) as stream:
        text = "\n".join(line.text or "" for line in lines_of(stream, limit_bytes=options.line_limit_bytes))
    yield from csv.DictReader(io.StringIO(text), delimiter=head.separator)


def _found(columns: Iterable[str], asked: Mapping[str, str]) -> dict[str, str]:
    there, named = set(columns), {_OURS.get(ours, ours): theirs for ours, theirs in asked.items()}
    found = {ours: named.get(ours) or next((n for n in usual if n in there), None) for ours, usual in _USUAL.items()}
    return {ours: theirs for ours, theirs in found.items() if theirs is not None}


def _size(rows: list[dict[str, Any]], head: Head, options: ReadOptions, sink: Sink) -> int | None:
    if all("group_size" in row for row in rows):
        return None
    if options.group_size is not None:
        return options.group_size
    means = {mean for row in rows if (mean := number_of(row.get("mean_reward"))) is not None}
    size = smallest_size(means)
    if size is None:
        raise ArchiveError(f"{head.name} says no group size, and its means fit none; give it with --group-size")
    sink.warn(f"{head.name} says no group size: {size} is the smallest of which all {len(rows):,} means are multiples")
    return size


def smallest_size(means: Iterable[float]) -> int | None:
    """The smallest G of at least 2 with every mean a whole number of G-ths; None: there is none up to 128, or no mean.

    Example:
        >>> smallest_size([0.0, 0.125, 0.5]), smallest_size([0.333333, 0.5]), smallest_size([0.1234])
        (8, 6, None)
    """
    values = list(means)
    sizes = range(2, _MAX_SIZE + 1) if values else range(0)
    return next((g for g in sizes if all(abs(v * g - round(v * g)) <= _NEAR * g for v in values)), None)


def _completed(row: dict[str, Any], size: int | None) -> dict[str, Any]:
    g = integer_of(row.get("group_size", size))
    k, mean = integer_of(row.get("k")), number_of(row.get("mean_reward"))
    if mean is None and k is not None and g:
        mean = k / g
    if k is None and mean is not None and g and 0 <= mean <= 1 and abs(mean * g - round(mean * g)) <= _NEAR * g:
        k = round(mean * g)
    return row | {"k": k, "mean_reward": mean, "group_size": g}

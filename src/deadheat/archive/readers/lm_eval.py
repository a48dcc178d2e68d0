"""lm-evaluation-harness: `samples_<task>_<date>.jsonl`, one row per document and filter.

The group is the document: its index and hash, so that runs pair by content. Repeats stand inside `resps`; the metric is of
the document, so that the repeats of one are a group without single grades, unless the log lists one grade for each. Two
filters of one log are two gradings of the same answers: one must be chosen. Of several metrics `exact_match` or `acc` is
the reward, or the one that is named; all are parts.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from deadheat.archive.readers.head import Head
from deadheat.archive.readers.record import Recovered
from deadheat.archive.readers.records import Place, Row, read_file
from deadheat.archive.readers.sink import Sink
from deadheat.archive.readers.source import Source, parts_of, scored, text_digest
from deadheat.archive.readers.values import chat_text, number_of
from deadheat.errors import ArchiveError

_FIELDS = {
    "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash", "prompt_hash",
    "target_hash", "hallucination",
}  # fmt: skip
_USUAL = ("exact_match", "acc")
_TASK = re.compile(r"samples_(.+?)(?:_\d{4}-\d\d-\d\dT.*)?\.jsonl")


def is_lm_eval(head: Head) -> bool:
    """Whether records are the harness's samples."""
    return {"doc_id", "resps"} <= head.columns


def item_of(record: Mapping[str, Any]) -> str:
    """A document's index and hash: another document is another item, whatever its index.

    Example:
        >>> item_of({"doc_id": 3, "doc_hash": "0123456789abcdef"}), item_of({"doc_id": 3})
        ('3-0123456789ab', '3')
    """
    return str(record["doc_id"]) + (f"-{record['doc_hash'][:12]}" if record.get("doc_hash") else "")


def metrics_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record's metrics, as it names them, or (in older logs) what is left after its known fields."""
    named = record.get("metrics")
    names = named if isinstance(named, list) else [name for name in record if name not in _FIELDS]
    return {name: record[name] for name in names if name in record}


def read_lm_eval(source: Source, sink: Sink) -> None:
    """Every file; refused where a filter or a metric must be chosen first."""
    filters: set[str] = set()

    def rows(record: Mapping[str, Any], place: Place) -> Iterable[Row]:
        kept = str(record.get("filter", "none"))
        filters.add(kept)
        return _rows(record, place) if source.options.filter in (None, kept) else []

    for head in source.heads:
        filters.clear()
        read_file(head, rows, source, sink)
        _refuse_choice(filters, head, source)


def _refuse_choice(filters: set[str], head: Head, source: Source) -> None:
    asked, found = source.options.filter, ", ".join(sorted(filters))
    if asked is None and len(filters) > 1:
        raise ArchiveError(
            f"{head.name} holds the filters {found}: each grades the same answers. Choose one with --filter"
        )
    if asked is not None and filters and asked not in filters:
        raise ArchiveError(f"{head.name} has no filter {asked!r}; it has {found}")


def _rows(record: Mapping[str, Any], place: Place) -> Iterator[Row]:
    metrics = metrics_of(record)
    name = _chosen(metrics, place)
    value = metrics.get(name) if name else None
    texts = _texts(record)
    grades = value if isinstance(value, list) and len(value) == len(texts) else [value]
    if len(grades) < len(texts):
        place.sink.warn("the log grades each document, not its repeats: they are read without rewards")
    named = _TASK.search(place.name.rpartition("/")[2])
    prompt = _prompt(record)
    common: Row = {
        "task": named[1] if named else None,
        "purpose": "eval",
        "problem_id": item_of(record),
        "problem_digest": text_digest(prompt or ""),
        "group_id": f"{place.name}/{item_of(record)}",
        "recovered": Recovered.EXPLICIT.value,
        "prompt": prompt,
        "reference": record.get("target"),
    }
    if len(grades) < len(texts):
        ungraded: Row = {"reward": None, "unscored": "the log grades the document, not this repeat"}
        yield from (common | ungraded | {"sample": sample, "completion": text} for sample, text in enumerate(texts))
        return
    for sample, (text, grade) in enumerate(zip(texts, grades, strict=True)):
        attempt: Row = {"sample": sample, "completion": text, "correct": _correct(name, grade), **scored(grade)}
        alone = {"answer": _answer(record), **parts_of(metrics)} if len(texts) == 1 else {}
        yield common | attempt | alone


def _correct(metric: str | None, grade: Any) -> bool | None:
    number = number_of(grade)
    return bool(number) if metric in _USUAL and number in (0.0, 1.0) else None


def _chosen(metrics: Mapping[str, Any], place: Place) -> str | None:
    asked = place.options.map.get("reward")
    if asked is not None and asked not in metrics:
        raise ArchiveError(f"{place.name} has no metric {asked!r}; it has {', '.join(metrics)}")
    usual = next((name for name in _USUAL if name in metrics), None)
    name = asked or usual or (next(iter(metrics)) if len(metrics) == 1 else None)
    if name is None and metrics:
        raise ArchiveError(f"{place.name} has the metrics {', '.join(metrics)}. Name one with --map reward=METRIC")
    return name


def _texts(record: Mapping[str, Any]) -> list[str | None]:
    """The answers of one request; several requests are the choices of one question, answered once."""
    answers = record["resps"]
    if isinstance(answers, list) and len(answers) == 1 and isinstance(answers[0], list) and answers[0]:
        repeats = answers[0]
        if all(isinstance(text, str) for text in repeats):
            return [chat_text(text) for text in repeats]
    return [_answer(record)]


def _answer(record: Mapping[str, Any]) -> str | None:
    """What the filter made of it."""
    filtered = record.get("filtered_resps", record["resps"])
    return chat_text(filtered[0] if isinstance(filtered, list) and len(filtered) == 1 else filtered)


def _prompt(record: Mapping[str, Any]) -> str | None:
    arguments = record.get("arguments")
    if isinstance(arguments, Mapping):
        first = next(iter(arguments.values()), None)
        return chat_text(first.get("arg_0") if isinstance(first, Mapping) else first)
    if isinstance(arguments, list) and arguments:
        return chat_text(arguments[0][0] if isinstance(arguments[0], list) else arguments[0])
    return None

"""Inspect: `.eval` logs (a zip with header.json and samples/<id>_epoch_<n>.json) and the older `.json` logs.

The group is a sample's id across epochs. Grades are numbers, or the letters C, I, P and N; a grade that is NaN was not
given. A log with several scorers wants one named; each is a part as well. A log that was cancelled or is still being
written holds what was finished by then, and says so.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deadheat.archive.readers.head import Container, Head
from deadheat.archive.readers.record import Recovered
from deadheat.archive.readers.records import Row
from deadheat.archive.readers.sink import Sink
from deadheat.archive.readers.source import Source, parts_of, scored, text_digest
from deadheat.archive.readers.stream import json_document
from deadheat.archive.readers.values import answer_text, chat_text, integer_of, reward_of
from deadheat.archive.readers.zipped import Member, json_members, num_repeated
from deadheat.errors import ArchiveError


@dataclass(frozen=True, kw_only=True)
class InspectLog:
    """One log."""

    header: Mapping[str, Any]
    samples: Iterator[Mapping[str, Any] | ArchiveError]  # read one by one; an error stands for one that is damaged


def is_inspect(head: Head) -> bool:
    """Whether a file is an Inspect log."""
    if head.container is Container.ZIP:
        return any(
            name.startswith("samples/") or name in ("header.json", "_journal/start.json") for name in head.members
        )
    return head.container in (Container.JSON, Container.JSON_LINES) and {"eval", "samples"} <= head.columns


def open_log(path: Path, *, limit_bytes: int) -> InspectLog:
    """A log of either form; its samples come in name order."""
    with path.open("rb") as file:
        zipped = file.read(2) == b"PK"
    if not zipped:
        value = json_document(path, limit_bytes=limit_bytes)
        return InspectLog(header=value, samples=iter(value.get("samples") or []))
    return InspectLog(header=_header(path, limit_bytes), samples=_samples(path, limit_bytes))


def _header(path: Path, limit_bytes: int) -> Mapping[str, Any]:
    """header.json, which is written last; before it, what the journal's start says."""
    for prefix in ("header.json", "_journal/start.json"):
        for member in json_members(path, prefix, limit_bytes=limit_bytes):
            if isinstance(member, Member):
                return {"status": "started", **member.value}
    return {"status": "started"}


def _samples(path: Path, limit_bytes: int) -> Iterator[Mapping[str, Any] | ArchiveError]:
    for member in json_members(path, "samples/", limit_bytes=limit_bytes):
        yield member.value if isinstance(member, Member) else member


def scores_by_name(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Every value a sample was given: one per scorer, or per key of a scorer that gives several.

    Example:
        >>> scores_by_name({"scores": {"match": {"value": "C"}, "rubric": {"value": {"a": 1, "b": 0}}}})
        {'match': 'C', 'rubric.a': 1, 'rubric.b': 0}
    """
    found: dict[str, Any] = {}
    for scorer, score in (sample.get("scores") or {}).items():
        value = score.get("value")
        found |= (
            {f"{scorer}.{key}": part for key, part in value.items()} if isinstance(value, dict) else {scorer: value}
        )
    return found


def read_inspect(source: Source, sink: Sink) -> None:
    """Every log."""
    for head in source.heads:
        log = open_log(head.path, limit_bytes=source.options.line_limit_bytes)
        if head.container is Container.ZIP and num_repeated(head.path):
            sink.warn(
                f"{head.name}: {num_repeated(head.path):,} members were written again later; the later ones are read"
            )
        if log.header.get("status") != "success":
            sink.warn(f"{head.name}: the log's status is {log.header.get('status')!r}, so samples may be missing")
        told = log.header.get("eval") or {}
        sink.declare(integer_of((told.get("config") or {}).get("epochs")))
        number = 0
        for number, sample in enumerate(log.samples, start=1):
            if isinstance(sample, ArchiveError):
                sink.refuse(head.name, str(sample))
                continue
            sink.add(_row(sample, told, head, source) | {"source_file": head.name, "source_row": number})
        if not number:
            sink.warn(f"{head.name} has no samples")


def _row(sample: Mapping[str, Any], told: Mapping[str, Any], head: Head, source: Source) -> Row:
    scores = scores_by_name(sample)
    prompt, output = chat_text(sample.get("input")) or "", sample.get("output") or {}
    choice: Mapping[str, Any] = next(iter(output.get("choices") or []), {})
    completion = output.get("completion") or answer_text([choice["message"]] if "message" in choice else None)
    stop = choice.get("stop_reason")
    config = told.get("model_generate_config") or {}
    name = _asked(scores, head, source)
    answers = [score.get("answer") for score in (sample.get("scores") or {}).values() if score.get("answer")]
    return {
        "task": told.get("task"),
        "run": told.get("run_id"),
        "checkpoint": told.get("model"),
        "purpose": "eval",
        "temperature": config.get("temperature"),
        "problem_id": str(sample.get("id")),
        "problem_digest": text_digest(prompt),
        "group_id": f"{head.name}/{sample.get('id')}",
        "recovered": Recovered.EXPLICIT.value,
        "sample": (integer_of(sample.get("epoch")) or 1) - 1,
        "prompt": prompt,
        "reference": sample.get("target"),
        "completion": completion,
        "answer": answers[0] if answers else None,
        "length": (output.get("usage") or {}).get("output_tokens"),
        "stop": {"max_tokens": "cap", "model_length": "cap", None: None}.get(stop, "stop"),
        "category": "error" if sample.get("error") else None,
        **scored(scores.get(name) if name else None),
        **parts_of({key: reward_of(value).value for key, value in scores.items()}),
    }


def _asked(scores: Mapping[str, Any], head: Head, source: Source) -> str | None:
    name = source.options.map.get("reward")
    if name is None and len(scores) > 1:
        raise ArchiveError(f"{head.name} has the scores {', '.join(scores)}. Name one with --map reward=SCORER")
    if name is not None and scores and name not in scores:
        raise ArchiveError(f"{head.name} has no score {name!r}; it has {', '.join(scores)}")
    return name if name is not None else next(iter(scores), None)

"""verifiers: `results.jsonl` beside `metadata.json`, and the rollout files of older prime-rl in the same layout.

Fields: example_id (older: id), prompt and completion as messages, reward, answer, task, and the rubric's components,
either in `metrics` (and then repeated flat at the top level) or only flat. The group is the example within its file.
`metadata.json` says how many rollouts an example has.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from deadheat.archive.readers.head import Container, Head, head_of
from deadheat.archive.readers.record import Recovered
from deadheat.archive.readers.records import Place, Row, read_file
from deadheat.archive.readers.sink import Sink
from deadheat.archive.readers.source import Source, parts_of, scored, text_digest
from deadheat.archive.readers.values import answer_text, chat_text, integer_of

_META = {"env_id", "rollouts_per_example"}
_NO_PART = {
    "example_id", "id", "reward", "generation_ms", "scoring_ms", "total_ms", "is_completed", "is_truncated", "env_seed",
    "step_index", "advantage", "step", "seed", "rollout_id", "answer",
}  # fmt: skip


def is_verifiers(head: Head) -> bool:
    """Whether records are verifiers' results."""
    return (
        {"prompt", "completion", "reward"} <= head.columns
        and bool({"example_id", "id"} & head.columns)
        and isinstance(head.first.get("completion"), list)
    )


def read_verifiers(source: Source, sink: Sink) -> None:
    """Every results file, with the metadata beside them."""
    metadata = _metadata(source)
    if len(source.heads) > len({head.path.parent for head in source.heads}):
        metadata = []  # several results in one folder: nothing says whose the metadata are
    for head in metadata:
        sink.declare(integer_of(head.first["rollouts_per_example"]))
    by_folder = {head.path.parent: head.first for head in metadata}
    for head in source.heads:
        told = by_folder.get(head.path.parent, {})
        sampling = told.get("sampling_args") or {}
        common = {
            "task": told.get("env_id"),
            "checkpoint": told.get("model"),
            "temperature": sampling.get("temperature"),
        }
        read_file(head, partial(_rows, common), source, sink)


def _metadata(source: Source) -> list[Head]:
    beside = list(source.beside)
    for folder in {head.path.parent for head in source.heads}:
        path = Path(folder) / "metadata.json"
        if path.is_file() and path not in {head.path for head in beside}:
            beside.append(head_of(path, path.name, limit_bytes=source.options.line_limit_bytes))
    wanted = (Container.JSON, Container.JSON_LINES)
    return [head for head in beside if head.container in wanted and head.columns >= _META]


def _rows(common: Mapping[str, Any], record: Mapping[str, Any], place: Place) -> Iterable[Row]:
    """One rollout per record."""
    prompt = chat_text(record["prompt"]) or ""
    task = record.get("task")
    task = task if isinstance(task, str) and task != "default" else common.get("task")
    example = record.get("example_id", record.get("id"))
    step = integer_of(record.get("step_index"))
    step = place.step if step is None else step
    metrics = record.get("metrics")
    flat = {name: value for name, value in record.items() if name not in _NO_PART and not isinstance(value, str)}
    usage = record.get("token_usage") or {}
    yield {
        "step": step,
        "purpose": place.purpose,
        "task": task,
        "checkpoint": common.get("checkpoint"),
        "temperature": common.get("temperature"),
        "problem_id": str(example),
        "problem_digest": text_digest(prompt),
        "group_id": "/".join(str(part) for part in (place.name, task, step, example) if part is not None),
        "recovered": Recovered.EXPLICIT.value,
        "prompt": prompt,
        "reference": record.get("answer"),
        "completion": answer_text(record["completion"]),
        "length": usage.get("output_tokens"),
        "stop": "cap" if record.get("is_truncated") else "stop" if "is_truncated" in record else None,
        "advantage": record.get("advantage"),
        "category": "error" if record.get("error") else None,
        **scored(record["reward"]),
        **parts_of(metrics if isinstance(metrics, dict) else flat),
    }

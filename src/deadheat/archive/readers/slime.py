"""slime: `rollout_data/{rollout_id}.pt`, a torch file of one dictionary: rollout_id and a list of samples.

It is opened with `weights_only`, which builds tensors and plain containers and nothing else: a file that holds more is
refused, with the conversion to run where it is trusted. Needs torch, which this package loads for nothing else here.
"""

import importlib
import pickle
from collections.abc import Iterable, Mapping
from typing import Any

from deadheat.archive.readers.head import Container, Head
from deadheat.archive.readers.record import Recovered
from deadheat.archive.readers.records import Place, Row, place_of
from deadheat.archive.readers.sink import Sink
from deadheat.archive.readers.source import Samples, Source, parts_of, records_of, scored, text_digest
from deadheat.archive.readers.values import answer_text, chat_text
from deadheat.errors import ArchiveError

_CONVERSION = (
    'Where you trust the file, rewrite it as JSON lines: python -c "import torch, json; '
    "[print(json.dumps(s, default=str)) for s in torch.load('{name}', weights_only=False)['samples']]\" > {stem}.jsonl"
)


def is_slime(head: Head) -> bool:
    """Whether a file is a torch file, or the JSON lines its conversion gives."""
    return head.container is Container.TORCH or {"group_index", "response", "reward", "status"} <= head.columns


def read_slime(source: Source, sink: Sink) -> None:
    """Every rollout's file."""
    for head in source.heads:
        _read(head, source, sink)


def _read(head: Head, source: Source, sink: Sink) -> None:
    place, samples = place_of(head, source, sink), Samples()
    for number, sample in enumerate(_samples(head, source, sink), start=1):
        row = _row(sample, place)
        row["sample"] = samples.next(row["group_id"])
        sink.add(row | {"source_file": head.name, "source_row": number})


def _samples(head: Head, source: Source, sink: Sink) -> Iterable[Mapping[str, Any]]:
    if head.container is not Container.TORCH:
        return (record.value for record in records_of(head, source, sink))
    try:
        torch = importlib.import_module("torch")
    except ModuleNotFoundError as error:
        raise ArchiveError(f"{head.name} is a torch file; to read it, pip install 'deadheat[train]'") from error
    try:
        held = torch.load(head.path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, OSError, EOFError, ValueError) as error:
        hint = _CONVERSION.format(name=head.name, stem=head.path.stem)
        sink.refuse(
            head.name, f"it holds more than tensors and plain values, and is not loaded. {hint} ({error!s:.80})"
        )
        return []
    found = held.get("samples") if isinstance(held, dict) else None
    if not isinstance(found, list):
        sink.refuse(head.name, "a torch file without a list of samples; wanted what slime's rollout writes")
        return []
    return [sample for sample in found if isinstance(sample, dict)]


def _row(sample: Mapping[str, Any], place: Place) -> Row:
    prompt = chat_text(sample.get("prompt")) or ""
    digest = text_digest(prompt)
    tokens = [int(token) for token in sample.get("tokens") or []]
    length = int(sample.get("response_length") or 0)
    reward = sample.get("reward")
    parts = parts_of(reward) if isinstance(reward, dict) else {}
    value = reward.get("score", reward.get("reward")) if isinstance(reward, dict) else reward
    start = len(tokens) - length
    return {
        "step": place.step,
        "purpose": place.purpose,
        "group_id": f"{place.name}/{sample.get('group_index')}",
        "recovered": Recovered.EXPLICIT.value,
        "problem_id": digest[:16],
        "problem_digest": digest,
        "prompt": prompt,
        "completion": answer_text(sample.get("response")),
        "reference": sample.get("label"),
        "token_ids": tokens[start:] if length and tokens else None,
        "logprobs": sample.get("rollout_log_probs"),
        "prompt_length": start if tokens else None,
        "length": length or None,
        "stop": {"truncated": "cap", "completed": "stop"}.get(str(sample.get("status"))),
        "category": "aborted" if sample.get("status") == "aborted" else None,
        **scored(value),
        **parts,
    }

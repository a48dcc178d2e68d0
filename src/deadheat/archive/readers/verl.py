"""verl: `rollout_data_dir/{step}.jsonl`, and the same in `validation_data_dir`.

Fields: input, output, gts, score, step, and whatever the reward function returned besides (acc, pred, …). Newer versions
write `uid`, whose part before the last two underscores names the group; older ones balance the batch over workers before
they write, so a group's rows are apart from each other, and only their equal input text tells them. Those may also write
numbers as strings. No stop reason and no token ids are kept.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from deadheat.archive.readers.head import Head
from deadheat.archive.readers.record import Recovered
from deadheat.archive.readers.records import Place, Row
from deadheat.archive.readers.source import by_prompt, parts_of, scored, text_digest
from deadheat.archive.readers.values import chat_text, integer_of, number_of

_KNOWN = {"input", "output", "gts", "score", "step", "uid", "pred", "request_id", "data_source", "index"}
_NUMERIC_ENDINGS = ("score", "reward", "acc", "correct")  # names whose numbers may be written as text


def is_verl(head: Head) -> bool:
    """Whether records are verl's."""
    return {"input", "output", "score"} <= head.columns


def verl_rows(record: Mapping[str, Any], place: Place) -> Iterable[Row]:
    """One rollout per record."""
    prompt = chat_text(record["input"]) or ""
    step = integer_of(record.get("step"))
    step = place.step if step is None else step
    group = _named(record, step) if record.get("uid") else by_prompt(f"{place.name}/{step}", prompt)
    digest = text_digest(prompt)
    acc = number_of(record.get("acc"))
    yield {
        "step": step,
        "purpose": place.purpose,
        "prompt": prompt,
        "problem_id": digest[:16],
        "problem_digest": digest,
        "reference": record.get("gts"),
        "completion": record["output"],
        "answer": record.get("pred"),
        "correct": bool(acc) if acc in (0.0, 1.0) else None,
        "task": record.get("data_source"),
        **group,
        **scored(record["score"]),
        **parts_of({name: value for name, value in record.items() if _is_part(name, value)}),
    }


def _named(record: Mapping[str, Any], step: int | None) -> Row:
    uid = str(record["uid"])
    return {"group_id": f"{step}/{uid.rsplit('_', 2)[0]}", "recovered": Recovered.EXPLICIT.value}


def _is_part(name: str, value: Any) -> bool:
    return name not in _KNOWN and (not isinstance(value, str) or name.endswith(_NUMERIC_ENDINGS))

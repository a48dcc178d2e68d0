"""OpenRLHF: records of {input, output, reward}.

The trainer itself writes no such file; scripts around it do. The group is the input text within one file.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from deadheat.archive.readers.head import Head
from deadheat.archive.readers.records import Place, Row
from deadheat.archive.readers.source import by_prompt, scored
from deadheat.archive.readers.values import answer_text, chat_text, integer_of


def is_openrlhf(head: Head) -> bool:
    """Whether records have this shape."""
    return {"input", "output", "reward"} <= head.columns and "uid" not in head.columns


def openrlhf_rows(record: Mapping[str, Any], place: Place) -> Iterable[Row]:
    """One rollout per record."""
    prompt = chat_text(record["input"]) or ""
    step = integer_of(record.get("step"))
    step = place.step if step is None else step
    yield {
        "step": step,
        "purpose": place.purpose,
        "prompt": prompt,
        "completion": answer_text(record["output"]),
        "reference": record.get("label"),
        **by_prompt(f"{place.name}/{step}", prompt),
        **scored(record["reward"]),
    }

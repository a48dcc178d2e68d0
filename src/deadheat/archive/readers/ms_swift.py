"""ms-swift: `completions.jsonl`, one line per logged step with a list in every field (or one line per sample).

Fields: step or gen_step, prompt, completion, one per reward function, advantages, and what was asked for besides. The
group is the prompt within the step. As in TRL the reward itself is not written: its components are summed.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from deadheat.archive.readers.head import Head
from deadheat.archive.readers.records import Place, Row
from deadheat.archive.readers.source import by_prompt, parts_of, scored
from deadheat.archive.readers.values import answer_text, chat_text, integer_of, number_of

_KNOWN = {
    "step", "gen_step", "prompt", "completion", "advantages", "image", "images", "entropy", "solution", "prompt_id",
    "request_id", "messages",
}  # fmt: skip


def is_ms_swift(head: Head) -> bool:
    """Whether records are ms-swift's."""
    return {"prompt", "completion", "advantages"} <= head.columns and not {"reward", "group_id"} & head.columns


def ms_swift_rows(record: Mapping[str, Any], place: Place) -> Iterable[Row]:
    """One rollout per element of a record's lists."""
    for sample in _samples(record):
        step = integer_of(sample.get("step", sample.get("gen_step")))
        prompt = chat_text(sample["prompt"]) or ""
        asked = place.options.map.get("reward")
        components = {n: v for n, v in sample.items() if n not in _KNOWN and not isinstance(v, (str, list, dict))}
        values = [number_of(value) for name, value in components.items() if asked in (None, name)]
        known = [value for value in values if value is not None]
        if len(components) > 1 and asked is None:
            place.sink.warn(
                f"the reward is the plain sum of {', '.join(components)}; name one with --map reward=COLUMN"
            )
        yield {
            "step": step,
            "purpose": place.purpose,
            "prompt": prompt,
            "completion": answer_text(sample["completion"]),
            "advantage": sample["advantages"],
            **by_prompt(f"{place.name}/{step}", prompt),
            **scored(sum(known) if known else None),
            **parts_of(components),
        }


def _samples(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if not isinstance(record["advantages"], list):
        yield record
        return
    size = len(record["advantages"])
    columns = {name: value for name, value in record.items() if isinstance(value, list) and len(value) == size}
    for index in range(size):
        yield {name: value[index] for name, value in columns.items()}

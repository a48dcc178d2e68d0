"""What a reader of one tool is given, and the pieces that several of them share: places, steps, records, rewards."""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deadheat.archive.readers.head import Container, Head
from deadheat.archive.readers.record import PART, ReadOptions, Recovered
from deadheat.archive.readers.sink import Sink
from deadheat.archive.readers.stream import Record, json_document, json_lines
from deadheat.archive.readers.values import number_of, reward_of
from deadheat.errors import ArchiveError

_DIGITS = re.compile(r"\d+")
_STEP = re.compile(r"step[_-]?(\d+)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Source:
    """The files of one log, and how they are to be read."""

    heads: tuple[Head, ...]  # files of this format, in natural order of their names
    beside: tuple[Head, ...]  # readable files of other kinds in the same folder: metadata
    options: ReadOptions


Read = Callable[[Source, Sink], None]


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """A sort key under which step 10 follows step 9.

    Example:
        >>> sorted(["10.jsonl", "9.jsonl"], key=natural)
        ['9.jsonl', '10.jsonl']
    """
    return tuple((int(piece), "") if piece.isdigit() else (-1, piece) for piece in re.split(r"(\d+)", name) if piece)


def step_of(name: str) -> int | None:
    """The step a file's name states: after "step", else the last number of the name.

    Example:
        >>> step_of("run-7/step_12/rollouts.jsonl"), step_of("rollouts/340.jsonl"), step_of("results.jsonl")
        (12, 340, None)
    """
    named = _STEP.findall(name)
    numbers = named or _DIGITS.findall(name.rpartition("/")[2])
    return int(numbers[-1]) if numbers else None


def records_of(head: Head, source: Source, sink: Sink) -> Iterator[Record]:
    """The JSON objects of a file, whether lines or a list."""
    limit = source.options.line_limit_bytes
    if head.container is Container.JSON_LINES:
        yield from json_lines(head.path, head.name, limit_bytes=limit, refuse=sink.refuse, warn=sink.warn)
        return
    try:
        value = json_document(head.path, limit_bytes=limit)
    except ArchiveError as error:
        sink.refuse(head.name, str(error))
        return
    for number, item in enumerate(value if isinstance(value, list) else [value], start=1):
        if isinstance(item, dict):
            yield Record(number=number, value=item)
        else:
            sink.refuse(f"{head.name}, record {number}", f"a JSON {type(item).__name__}; wanted an object")


def text_digest(text: str) -> str:
    """SHA-256 of a prompt, hex."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def scored(value: Any) -> dict[str, object]:
    """A reward and, where there is none, why.

    Example:
        >>> scored("1"), scored(None)
        ({'reward': 1.0, 'unscored': None}, {'reward': None, 'unscored': 'there is no reward'})
    """
    reward = reward_of(value)
    return {"reward": reward.value, "unscored": reward.unscored}


def parts_of(values: Mapping[str, Any]) -> dict[str, float]:
    """Named numbers as components of the reward; what is no number is left out."""
    found = {f"{PART}{name}": number_of(value) for name, value in values.items()}
    return {name: value for name, value in found.items() if value is not None}


def by_prompt(place: str, prompt: str | None) -> dict[str, object]:
    """A group recovered from equal prompt text at one place (a file, a step)."""
    digest = text_digest(prompt or "")
    return {
        "group_id": f"{place}/{digest[:16]}",
        "recovered": Recovered.PROMPT_TEXT.value,
        "problem_id": digest[:16],
        "problem_digest": digest,
    }


class Samples:
    """Numbers the attempts of each group in order of appearance; one for each file or step."""

    def __init__(self) -> None:
        self._seen: dict[object, int] = {}

    def next(self, group: object) -> int:
        """0, 1, 2 … for one group."""
        self._seen[group] = self._seen.get(group, -1) + 1
        return self._seen[group]

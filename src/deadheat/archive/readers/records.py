"""From a tool's records to rows: the loop that every reader of JSON shares.

A reader gives a function from one record to its rows. Places, numbering of attempts and records out of shape are handled
here: such a record is refused by its line, and the rest of the file is read.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from deadheat.archive.readers.head import Head
from deadheat.archive.readers.record import ReadOptions
from deadheat.archive.readers.sink import Sink
from deadheat.archive.readers.source import Read, Samples, Source, records_of, step_of
from deadheat.errors import ArchiveError

_EVAL_WORDS = ("eval", "val", "valid", "validation")
_FOLDERS = 3  # above a file that was named alone, looked at for its step and purpose

Row = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a record stands."""

    head: Head
    sink: Sink
    options: ReadOptions
    step: int | None  # as the file's name states it
    purpose: str | None  # train or eval, as the path states it

    @property
    def name(self) -> str:
        """The file's name, relative to what was read."""
        return self.head.name


Rows = Callable[[Mapping[str, Any], Place], Iterable[Row]]


def purpose_of(name: str) -> str | None:
    """What a path says its rollouts were drawn for.

    Example:
        >>> purpose_of("step_3/eval/all/traces.jsonl"), purpose_of("train_rollouts.jsonl"), purpose_of("7.jsonl")
        ('eval', 'train', None)
    """
    parts = name.lower().replace(".", "/").split("/")
    words = [word for part in parts for word in part.replace("-", "_").split("_")]
    if "test" in parts or any(word.removesuffix("s") in _EVAL_WORDS for word in words):
        return "eval"
    return "train" if "train" in words else None


def place_of(head: Head, source: Source, sink: Sink) -> Place:
    """A file as the place of its records."""
    where = head.name if "/" in head.name else "/".join(head.path.absolute().parts[-1 - _FOLDERS :])
    return Place(head=head, sink=sink, options=source.options, step=step_of(where), purpose=purpose_of(where))


def by_record(rows: Rows) -> Read:
    """A reader from a function of one record."""

    def read(source: Source, sink: Sink) -> None:
        for head in source.heads:
            read_file(head, rows, source, sink)

    return read


def read_file(head: Head, rows: Rows, source: Source, sink: Sink) -> None:
    """All records of one file."""
    place, samples, number = place_of(head, source, sink), Samples(), 0
    for record in records_of(head, source, sink):
        number = record.number
        try:
            found = list(rows(record.value, place))
        except ArchiveError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            sink.refuse(f"{head.name}, record {record.number}", f"not in this tool's layout ({error!r})")
            continue
        for row in found:
            row.setdefault("sample", samples.next(row["group_id"]))
            row |= {"source_file": head.name, "source_row": record.number}
            sink.add(row)
    if not number:
        sink.warn(f"{head.name} has no rows")

"""NeMo-RL: `train_data_step{N}.jsonl`, one record per sample, every field a list of one.

Rows are padded to the longest of the batch: tokens and log-probs count only up to `input_lengths`. Where token ids and the
loss mask are logged, the prompt is what comes before the first masked-in token, and the group is equal prompt tokens next
to each other; older versions log only the text of prompt and answer together, and then the group is every G lines, which
the log does not say: it must be given.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deadheat.archive.readers.head import Head
from deadheat.archive.readers.record import Recovered
from deadheat.archive.readers.records import Row, place_of
from deadheat.archive.readers.sink import Sink
from deadheat.archive.readers.source import Samples, Source, parts_of, records_of, scored, text_digest
from deadheat.archive.readers.values import integer_of, text_of
from deadheat.errors import ArchiveError

_MASKS = ("token_loss_mask", "token_mask", "loss_mask")


@dataclass(frozen=True, kw_only=True)
class _Tokens:
    """A row's tokens without its padding."""

    prompt: tuple[int, ...]
    drawn: tuple[int, ...]  # from the first masked-in token on
    logprobs: tuple[float, ...]  # of `drawn`; empty: not logged


def is_nemo_rl(head: Head) -> bool:
    """Whether records are NeMo-RL's."""
    return {"rewards", "input_lengths"} <= head.columns or {"content", "rewards", "idx"} <= head.columns


def read_nemo_rl(source: Source, sink: Sink) -> None:
    """Every step's file."""
    for head in source.heads:
        place, samples = place_of(head, source, sink), Samples()
        run, previous, empty = -1, None, True
        for record in records_of(head, source, sink):
            empty = False
            try:
                row, prompt = _row(record.value)
            except (KeyError, TypeError, ValueError, IndexError) as error:
                sink.refuse(f"{head.name}, record {record.number}", f"not in this tool's layout ({error!r})")
                continue
            if prompt is None:
                run = (record.number - 1) // _declared(head, sink)
            elif prompt != previous:
                run, previous = run + 1, prompt
            group = f"{head.name}/{run}"
            sink.add(
                row
                | {
                    "step": place.step,
                    "purpose": place.purpose,
                    "group_id": group,
                    "recovered": Recovered.CONSECUTIVE.value,
                    "sample": samples.next(group),
                    "source_file": head.name,
                    "source_row": record.number,
                }
            )
        if empty:
            sink.warn(f"{head.name} has no rows")


def _declared(head: Head, sink: Sink) -> int:
    if sink.declared_size is None:
        raise ArchiveError(
            f"{head.name} holds no token ids, so nothing tells one group from the next. Give num_generations_per_prompt "
            "with --group-size"
        )
    return sink.declared_size


def _row(record: Mapping[str, Any]) -> tuple[Row, tuple[int, ...] | None]:
    tokens = _tokens(record)
    row: Row = {**scored(_one(record["rewards"])), "advantage": _advantage(record)}
    content = _one(record.get("content"))
    row["completion"] = text_of("".join(content) if _is_texts(content) else content)
    row |= parts_of({name: _one(value) for name, value in record.items() if name.endswith("_reward")})
    if tokens is None:
        return row, None
    return row | {
        "problem_id": text_digest(str(tokens.prompt))[:16],
        "prompt_length": len(tokens.prompt),
        "token_ids": list(tokens.drawn),
        "logprobs": list(tokens.logprobs) or None,
        "length": len(tokens.drawn),
    }, tokens.prompt


def _tokens(record: Mapping[str, Any]) -> _Tokens | None:
    ids, mask = _one(record.get("token_ids")), next((_one(record[name]) for name in _MASKS if name in record), None)
    if not isinstance(ids, list) or not isinstance(mask, list):
        return None
    size = integer_of(_one(record.get("input_lengths")))
    size = len(ids) if size is None else size
    start = next((at for at, drawn in enumerate(mask[:size]) if drawn), size)
    logprobs = _one(record.get("generation_logprobs"))
    return _Tokens(
        prompt=tuple(ids[:start]),
        drawn=tuple(ids[start:size]),
        logprobs=tuple(logprobs[start:size]) if isinstance(logprobs, list) else (),
    )


def _advantage(record: Mapping[str, Any]) -> Any:
    """One number, or the number that every token of the row was given."""
    value = _one(record.get("advantages"))
    if not isinstance(value, list):
        return value
    told = {number for number in value if number}
    return told.pop() if len(told) == 1 else None if told else 0.0


def _one(value: Any) -> Any:
    """The element of a list of one."""
    return value[0] if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 1 else value


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(piece, str) for piece in value)

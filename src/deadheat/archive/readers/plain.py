"""Any table with named columns: CSV, JSON lines, a JSON list, Parquet.

Columns are found by their usual names or named with `--map ours=theirs`. The group is the log's own group column, else
its problem column within arm, seed and step, else equal prompt text within those. Parquet and CSV are scanned where they
lie; JSON is read through shards.

A record whose reward and completion are both lists of one length holds a whole group: one rollout per element. A list of
rewards beside one completion is per token, and is summed.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from deadheat.archive.readers.head import Container, Head
from deadheat.archive.readers.record import ARCHIVE_SCHEMA, PART, ReadOptions, Recovered, Scan
from deadheat.archive.readers.sink import Sink
from deadheat.archive.readers.source import Samples, Source, records_of, scored, text_digest
from deadheat.archive.readers.values import answer_text, chat_text, number_of
from deadheat.errors import ArchiveError

USUAL: dict[str, tuple[str, ...]] = {
    "run": ("run", "run_id", "run_name"),
    "arm": ("arm",),
    "seed": ("seed", "run_seed"),
    "step": ("step", "global_step", "training_step", "train_step", "iteration"),
    "task": ("task", "data_source", "dataset"),
    "purpose": ("purpose", "mode", "split"),
    "group_id": ("group_id", "group", "uid", "group_index"),
    "problem_id": ("problem_id", "question_id", "prompt_id", "task_id", "doc_id", "example_id", "prompt_idx", "idx"),
    "sample": ("sample", "sample_id", "attempt", "rollout_index", "epoch"),
    "prompt": ("prompt", "question", "input", "query", "problem"),
    "completion": ("completion", "response", "output", "generation", "text"),
    "reference": ("reference", "ground_truth", "gold", "target"),
    "reward": ("reward", "score", "total_reward", "rewards"),
    "raw_reward": ("raw_reward",),
    "correct": ("correct", "is_correct", "passed", "acc", "accuracy", "exact_match"),
    "advantage": ("advantage", "advantages"),
    "answer": ("answer", "pred", "prediction", "extracted_answer"),
    "length": ("length", "completion_length", "response_length", "num_tokens", "completion_tokens"),
    "stop": ("stop", "stop_reason", "finish_reason"),
    "category": ("category",),
    "checkpoint": ("checkpoint",),
    "policy_version": ("policy_version",),
    "temperature": ("temperature",),
    "token_ids": ("token_ids",),
    "unscored": ("unscored",),
}
TABLES = (Container.PARQUET, Container.CSV, Container.JSON_LINES, Container.JSON)
_OURS = {"group": "group_id", "problem": "problem_id"}  # short names that --map takes
_PLACE = ("run", "arm", "seed", "step", "temperature")  # one policy state
_STOPS = {
    "length": "cap",
    "max_tokens": "cap",
    "max_length": "cap",
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
}


def is_plain(head: Head) -> bool:
    """Whether a table says enough by usual names."""
    if head.container not in TABLES:
        return False
    found = columns_of(head.columns, {})
    return bool({"reward", "correct"} & found.keys()) and bool({"group_id", "problem_id", "prompt"} & found.keys())


def columns_of(columns: Iterable[str], asked: Mapping[str, str]) -> dict[str, str]:
    """Our column -> the table's, what was asked for first.

    Example:
        >>> columns_of(["uid", "score", "speed"], {"reward": "speed"})
        {'group_id': 'uid', 'reward': 'speed'}
    """
    there = set(columns)
    named = {_OURS.get(ours, ours): theirs for ours, theirs in asked.items()}
    wanted = {**dict.fromkeys(ARCHIVE_SCHEMA, ()), **USUAL}
    found: dict[str, str] = {}
    for ours, usual in wanted.items():
        theirs = named.get(ours) or next((name for name in (ours, *usual) if name in there), None)
        if theirs is not None:
            found[ours] = theirs
    return {ours: theirs for ours, theirs in found.items() if ours in named or theirs not in named.values()}


def read_plain(source: Source, sink: Sink) -> None:
    """Every file."""
    for head in source.heads:
        found = _checked(head, source.options)
        if head.container in (Container.PARQUET, Container.CSV):
            _scan(head, found, sink)
        else:
            _records(head, found, source, sink)


def _checked(head: Head, options: ReadOptions) -> dict[str, str]:
    for ours, theirs in options.map.items():
        if _OURS.get(ours, ours) not in ARCHIVE_SCHEMA and not ours.startswith(PART):
            raise ArchiveError(
                f"--map {ours}={theirs}: we have no column {ours!r}; wanted one of {', '.join(ARCHIVE_SCHEMA)}"
            )
        if theirs not in head.columns:
            raise ArchiveError(
                f"--map {ours}={theirs}: {head.name} has no such column; it has {', '.join(sorted(head.columns))}"
            )
    found = columns_of(head.columns, options.map)
    if not {"reward", "correct"} & found.keys():
        raise ArchiveError(
            f"{head.name} has no reward by a usual name; it has {', '.join(sorted(head.columns))}. "
            "Name it with --map reward=COLUMN"
        )
    if not {"group_id", "problem_id", "prompt"} & found.keys():
        raise ArchiveError(
            f"{head.name} has nothing that tells its groups; it has {', '.join(sorted(head.columns))}. "
            "Name the group, problem or prompt with --map group=COLUMN"
        )
    return found | {ours: theirs for ours, theirs in options.map.items() if ours.startswith(PART)}


def _scan(head: Head, found: Mapping[str, str], sink: Sink) -> None:
    if head.container is Container.PARQUET:
        frame = pl.scan_parquet(head.path, glob=False, row_index_name="_row", row_index_offset=1)
    else:
        frame = pl.scan_csv(
            head.path, separator=head.separator, infer_schema=False, encoding="utf8-lossy", truncate_ragged_lines=True,
            row_index_name="_row", row_index_offset=1, glob=False,
        )  # fmt: skip
    frame = _unpacked(frame, found)
    schema = frame.collect_schema()
    frame = frame.select(
        *(_typed(ours, theirs, schema[theirs]) for ours, theirs in found.items()),
        source_file=pl.lit(head.name),
        source_row=pl.col("_row").cast(pl.Int64),
    )
    if "reward" not in found:
        sink.warn("there is no reward column: the grade stands for it, 1 for right and 0 for wrong")
        frame = frame.with_columns(reward=pl.col("correct").cast(pl.Float64))
    if "unscored" not in found:
        missing = pl.col("reward").is_null()
        frame = frame.with_columns(unscored=pl.when(missing).then(pl.lit("there is no reward, or it is no number")))
    whole = frame.with_columns(**_grouped(found))
    sink.add_scan(Scan(paths=(head.path,), table=lambda paths: whole), [head.name])


def _unpacked(frame: pl.LazyFrame, found: Mapping[str, str]) -> pl.LazyFrame:
    """One row per attempt, where a row holds a group."""
    schema = frame.collect_schema()
    lists = [theirs for theirs in dict.fromkeys(found.values()) if schema[theirs].base_type() is pl.List]
    packed = {found.get("reward", found.get("correct")), found.get("completion")}
    if not packed <= set(lists):
        return frame
    return frame.explode(lists)


def _typed(ours: str, theirs: str, dtype: pl.DataType) -> pl.Expr:
    column = pl.col(theirs)
    kind = ARCHIVE_SCHEMA.get(ours, pl.Float64())
    if dtype == pl.String and kind == pl.Boolean:
        word = column.str.strip_chars().str.to_lowercase()
        column = (
            pl.when(word.is_in(["true", "yes", "correct"]))
            .then(True)
            .when(word.is_in(["false", "no", "incorrect"]))
            .then(False)
            .otherwise(word.cast(pl.Float64, strict=False) > 0)
        )
    elif dtype == pl.String and kind.is_numeric():
        column = column.str.strip_chars().cast(pl.Float64, strict=False)
    if dtype.base_type() is pl.List and kind == pl.Float64():
        column = column.list.sum()
    elif dtype.is_nested() and not kind.is_nested():
        column = column.map_elements(_as_text, return_dtype=pl.String)
    if kind == pl.Float64():
        column = column.cast(pl.Float64, strict=False)
        column = pl.when(column.is_finite()).then(column)
    if ours == "stop":
        column = column.cast(pl.String).replace(_STOPS)
    return column.cast(kind, strict=False).alias(ours)


def _as_text(value: Any) -> str | None:
    return chat_text(value.to_list() if isinstance(value, pl.Series) else value)


def _grouped(found: Mapping[str, str]) -> dict[str, pl.Expr]:
    """The group's address: policy state, then the log's name for it, else its problem, else its prompt's digest."""
    place = [pl.col(name).cast(pl.String).fill_null("?") for name in _PLACE if name in found]
    digest = pl.col("prompt").map_elements(text_digest, return_dtype=pl.String)
    told = {"problem_digest": digest} if "prompt" in found and "problem_digest" not in found else {}
    named = next((name for name in ("group_id", "problem_id") if name in found), None)
    if named is not None:
        address = pl.concat_str([*place, pl.col(named)], separator="/")
        return {"group_id": address, "recovered": pl.lit(Recovered.EXPLICIT.value), **told}
    return {
        "group_id": pl.concat_str([*place, digest.str.slice(0, 16)], separator="/"),
        "recovered": pl.lit(Recovered.PROMPT_TEXT.value),
        "problem_id": digest.str.slice(0, 16),
        **told,
    }


def _records(head: Head, found: Mapping[str, str], source: Source, sink: Sink) -> None:
    samples = Samples()
    if "reward" not in found:
        sink.warn("there is no reward column: the grade stands for it, 1 for right and 0 for wrong")
    for record in records_of(head, source, sink):
        for row in _attempts({ours: record.value.get(theirs) for ours, theirs in found.items()}):
            row |= scored(row["reward"] if "reward" in found else row["correct"])
            row |= _address(row, found)
            if "stop" in row:
                row["stop"] = _STOPS.get(str(row["stop"]), row["stop"])
            row.setdefault("sample", samples.next(row["group_id"]))
            row |= {"source_file": head.name, "source_row": record.number}
            sink.add(row | _texts(row))


def _attempts(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The row itself, or one for each element where reward and completion are lists of one length."""
    rewards, texts = row.get("reward", row.get("correct")), row.get("completion")
    if not isinstance(rewards, list) or not isinstance(texts, list) or len(rewards) != len(texts):
        return [row]
    if texts and isinstance(texts[0], Mapping):  # one conversation, with a reward per message
        return [row]
    size = len(rewards)
    lists = {name: value for name, value in row.items() if isinstance(value, list) and len(value) == size}
    return [row | {name: value[index] for name, value in lists.items()} for index in range(size)]


def _texts(row: Mapping[str, Any]) -> dict[str, Any]:
    texts = {"prompt": chat_text, "completion": answer_text}
    return {name: as_text(row[name]) for name, as_text in texts.items() if name in row}


def _address(row: Mapping[str, Any], found: Mapping[str, str]) -> dict[str, Any]:
    place = [_short(row[name]) for name in _PLACE if name in found]
    digest = text_digest(chat_text(row.get("prompt")) or "")
    told = {"problem_digest": digest} if "prompt" in found and "problem_digest" not in found else {}
    named = next((name for name in ("group_id", "problem_id") if row.get(name) is not None), None)
    if named is not None:
        address = "/".join([*place, _short(row[named])])
        return {"group_id": address, "recovered": Recovered.EXPLICIT.value, **told}
    return {
        "group_id": "/".join([*place, digest[:16]]),
        "recovered": Recovered.PROMPT_TEXT.value,
        "problem_id": digest[:16],
        **told,
    }


def _short(value: Any) -> str:
    """A part of an address: whole numbers without a decimal point, so that 3 and 3.0 are one step."""
    number = number_of(value) if isinstance(value, float) else None
    return str(int(number)) if number is not None and number == int(number) else str(value)

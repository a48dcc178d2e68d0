"""`read`: find what wrote a log by its content, read it, settle its groups, and report.

The table below names every format with the test that knows its files and the function that reads them; the first whose
test holds wins, so narrow ones stand before wide ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from deadheat.archive.readers.areal import areal_rows, is_areal
from deadheat.archive.readers.groups import settle_groups
from deadheat.archive.readers.head import Container, Head, head_of
from deadheat.archive.readers.inspect import is_inspect, read_inspect
from deadheat.archive.readers.lm_eval import is_lm_eval, read_lm_eval
from deadheat.archive.readers.ms_swift import is_ms_swift, ms_swift_rows
from deadheat.archive.readers.nemo_rl import is_nemo_rl, read_nemo_rl
from deadheat.archive.readers.open_instruct import is_open_instruct, open_instruct_rows
from deadheat.archive.readers.openrlhf import is_openrlhf, openrlhf_rows
from deadheat.archive.readers.own import is_own, read_own
from deadheat.archive.readers.packed import is_packed, packed_rows
from deadheat.archive.readers.plain import TABLES, is_plain, read_plain
from deadheat.archive.readers.prime_rl import is_prime_rl, read_prime_rl
from deadheat.archive.readers.reasoning_gym import is_reasoning_gym, reasoning_gym_rows
from deadheat.archive.readers.record import Archive, LogFormat, ReadOptions, ReadReport
from deadheat.archive.readers.records import by_record
from deadheat.archive.readers.sink import Sink, alike, rows_of
from deadheat.archive.readers.skyrl import is_skyrl, skyrl_rows
from deadheat.archive.readers.slime import is_slime, read_slime
from deadheat.archive.readers.source import Read, Source, natural
from deadheat.archive.readers.summary import is_summary, read_summary
from deadheat.archive.readers.trl import is_trl, read_trl
from deadheat.archive.readers.verifiers import is_verifiers, read_verifiers
from deadheat.archive.readers.verl import is_verl, verl_rows
from deadheat.errors import ArchiveError

DEFAULTS = ReadOptions()
_SHOWN = 6
_OPAQUE = (Container.OTHER, Container.EMPTY)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One format."""

    knows: Callable[[Head], bool]
    read: Read


FORMATS: dict[LogFormat, Entry] = {
    LogFormat.OWN: Entry(knows=is_own, read=read_own),
    LogFormat.TRL: Entry(knows=is_trl, read=read_trl),
    LogFormat.INSPECT: Entry(knows=is_inspect, read=read_inspect),
    LogFormat.LM_EVAL: Entry(knows=is_lm_eval, read=read_lm_eval),
    LogFormat.PRIME_RL: Entry(knows=is_prime_rl, read=read_prime_rl),
    LogFormat.SKYRL: Entry(knows=is_skyrl, read=by_record(skyrl_rows)),
    LogFormat.NEMO_RL: Entry(knows=is_nemo_rl, read=read_nemo_rl),
    LogFormat.AREAL: Entry(knows=is_areal, read=by_record(areal_rows)),
    LogFormat.OPEN_INSTRUCT: Entry(knows=is_open_instruct, read=by_record(open_instruct_rows)),
    LogFormat.SLIME: Entry(knows=is_slime, read=read_slime),
    LogFormat.VERL: Entry(knows=is_verl, read=by_record(verl_rows)),
    LogFormat.VERIFIERS: Entry(knows=is_verifiers, read=read_verifiers),
    LogFormat.MS_SWIFT: Entry(knows=is_ms_swift, read=by_record(ms_swift_rows)),
    LogFormat.OPENRLHF: Entry(knows=is_openrlhf, read=by_record(openrlhf_rows)),
    LogFormat.REASONING_GYM: Entry(knows=is_reasoning_gym, read=by_record(reasoning_gym_rows)),
    LogFormat.PACKED: Entry(knows=is_packed, read=by_record(packed_rows)),
    LogFormat.PLAIN: Entry(knows=is_plain, read=read_plain),
    LogFormat.SUMMARY: Entry(knows=is_summary, read=read_summary),
}
_WIDE = (
    LogFormat.PLAIN,
    LogFormat.SUMMARY,
)  # tables by their column names: what they know, a tool's own file may be too


def read(path: str | Path, *, options: ReadOptions = DEFAULTS) -> Archive:
    """A log of any known tool, or a table with named columns, as one row per rollout in our columns."""
    place = Path(path)
    heads = _heads(place, options)
    format = _forced(options.format) if options.format else _found(heads, place, options)
    own = tuple(head for head in heads if _belongs(head, format, options))
    if not own and format is LogFormat.PLAIN and options.map:
        own = tuple(head for head in heads if head.problem is None and head.container in TABLES)[
            :1
        ]  # to say what it lacks
    if not own:
        raise ArchiveError(_nothing(heads, place))
    sink = Sink(options)
    for head in heads:
        if head.problem is not None:
            sink.refuse(head.name, head.problem)
        elif head.container is Container.EMPTY:
            sink.warn(f"{head.name} is empty")
    beside = tuple(head for head in heads if head not in own and head.problem is None)
    FORMATS[format].read(Source(heads=own, beside=beside, options=options), sink)
    return _archive(place, format, sink)


def _archive(place: Path, format: LogFormat, sink: Sink) -> Archive:
    scans = alike(sink.scans())
    grouped = settle_groups(rows_of(scans), sink)
    settled = tuple(scan.then(grouped.settle) for scan in scans)
    summaries = sink.summaries()
    num_summaries, summary_sizes = _summed(summaries)
    if not grouped.num_rows and not num_summaries and sink.num_refused:
        first = "; ".join(f"{piece.where}: {piece.reason}" for piece in sink.refused[:3])
        raise ArchiveError(f"{place} gave no rollout: {sink.num_refused:,} pieces were refused. First ones: {first}")
    report = ReadReport(
        path=str(place),
        format=format,
        num_files=sink.num_files,
        num_rows=grouped.num_rows or num_summaries,
        num_groups=grouped.num_groups or num_summaries,
        recovered=grouped.recovered or ({"explicit": num_summaries} if num_summaries else {}),
        group_sizes=grouped.sizes or summary_sizes,
        declared_size=sink.declared_size,
        inferred_size=grouped.inferred_size,
        num_refused=sink.num_refused,
        refused=sink.refused,
        warnings=sink.warnings,
    )
    return Archive(rows=rows_of(settled), summaries=summaries, report=report, scans=settled)


def _summed(summaries: pl.LazyFrame | None) -> tuple[int, dict[int, int]]:
    """How many groups are summarised, and of which sizes."""
    if summaries is None:
        return 0, {}
    groups = summaries.collect()
    if "group_size" not in groups.columns:
        return groups.height, {}
    sizes = groups.drop_nulls("group_size").group_by("group_size").len().sort("group_size")
    return groups.height, dict(sizes.iter_rows())


def _heads(place: Path, options: ReadOptions) -> list[Head]:
    if not place.exists():
        raise ArchiveError(f"{place} does not exist; wanted a log file or a folder of them")
    if place.is_file():
        return [head_of(place.absolute(), place.name, limit_bytes=options.line_limit_bytes)]
    names = sorted((str(file.relative_to(place)) for file in place.rglob("*") if _is_data(file, place)), key=natural)
    if not names:
        raise ArchiveError(f"{place} holds no file; wanted a log file or a folder of them")
    return [head_of(place.absolute() / name, name, limit_bytes=options.line_limit_bytes) for name in names]


def _is_data(file: Path, place: Path) -> bool:
    hidden = any(part.startswith(".") for part in file.relative_to(place).parts)
    return file.is_file() and not hidden and not file.name.endswith(".partial")


def _forced(name: str) -> LogFormat:
    try:
        return LogFormat(name)
    except ValueError:
        raise ArchiveError(f"no format is called {name!r}; wanted one of {', '.join(LogFormat)}") from None


def _knower(head: Head) -> LogFormat | None:
    return next((format for format, entry in FORMATS.items() if entry.knows(head)), None)


def _found(heads: list[Head], place: Path, options: ReadOptions) -> LogFormat:
    counts: dict[LogFormat, list[str]] = {}
    for head in heads:
        format = _knower(head) if head.problem is None else None
        if format is not None:
            counts.setdefault(format, []).append(head.name)
    if LogFormat.OWN in counts:
        return LogFormat.OWN  # a run folder also holds ledgers and reports, which are no logs of another tool
    tools = {format: names for format, names in counts.items() if format not in _WIDE} or counts
    if len(tools) > 1:
        seen = "; ".join(f"{format.value}: {len(names)} files such as {names[0]}" for format, names in tools.items())
        raise ArchiveError(
            f"{place} holds logs of several tools ({seen}). Name one with --format, or one of its folders"
        )
    if tools:
        return next(iter(tools))
    if options.map:
        return LogFormat.PLAIN
    raise ArchiveError(_nothing(heads, place))


def _belongs(head: Head, format: LogFormat, options: ReadOptions) -> bool:
    if head.problem is not None or head.container in _OPAQUE:
        return False
    if FORMATS[format].knows(head):
        return True
    return format is LogFormat.PLAIN and set(options.map.values()) <= head.columns and bool(options.map)


def _nothing(heads: list[Head], place: Path) -> str:
    seen = [
        f"{head.name}: {head.problem or head.container.value}"
        + (f" with {', '.join(sorted(head.columns)[:8])}" if head.columns else "")
        for head in heads[:_SHOWN]
    ]
    more = f" and {len(heads) - _SHOWN} more files" if len(heads) > _SHOWN else ""
    return (
        f"{place} holds no log that is known: {'; '.join(seen)}{more}. Wanted one of {', '.join(LogFormat)}; "
        "any table is read with --map group=COLUMN reward=COLUMN"
    )

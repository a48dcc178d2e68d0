"""A ledger of dated predictions: append-only JSON lines, each holding the hash of the one before.

    hash = SHA-256 of the entry as canonical JSON (sorted keys, no spaces, UTF-8) without its own hash

A prediction says what would refute it; an outcome points to the prediction it settles. Editing, removing or
reordering lines breaks the chain at a line that `check_ledger` names. A chain proves order and integrity inside one
file, not when it was written: publish the last hash somewhere dated.
"""

import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib import resources
from pathlib import Path

from deadheat.errors import StatsError

GENESIS = "0" * 64
_DATE = re.compile(r"^\d{4}-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?$")


class EntryKind(StrEnum):
    """What a line is."""

    PREDICTION = "prediction"  # a claim about a future reading
    FORECAST = "forecast"  # a prediction of one's own run, locked before training
    OUTCOME = "outcome"  # what was found, pointing to an earlier entry


class Result(StrEnum):
    """What an outcome says of its prediction."""

    HIT = "hit"  # came out as predicted
    REFUTED = "refuted"  # came out as what would refute it
    UNDECIDED = "undecided"  # read, and neither


class Damage(StrEnum):
    """What is wrong with a line of a ledger."""

    UNREADABLE = "unreadable"  # not a complete JSON entry: torn or overwritten
    ALTERED = "altered"  # its contents do not give its hash
    REORDERED = "reordered"  # its predecessor is elsewhere in the file
    PREDECESSOR_MISSING = "predecessor missing"  # its predecessor is not in the file: a line was removed or replaced


@dataclass(frozen=True, kw_only=True)
class Number:
    """A named number of an entry."""

    name: str
    value: float
    unit: str  # "points", "items", "ratio", …


@dataclass(frozen=True, kw_only=True)
class Draft:
    """An entry before it is chained."""

    kind: EntryKind
    entry_id: str  # unique in the file
    date: str  # YYYY-MM or YYYY-MM-DD, as stated by the writer
    claim: str  # what is predicted, or what was found
    numbers: tuple[Number, ...] = ()  # margin, floor, ratio, …
    refuted_by: str = ""  # what would refute it; required of predictions and forecasts
    about: str | None = None  # entry an outcome settles; None for predictions
    result: Result | None = None  # of an outcome; None for predictions
    source: str = ""  # where the claim or the finding is written
    digest: str = ""  # SHA-256 of a plan or data file it rests on; empty: none
    after_the_fact: bool = False  # a rule decided after the reading was seen


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A chained entry."""

    draft: Draft
    previous: str  # hash of the entry before; sixty-four zeros for the first
    hash: str  # of this entry


@dataclass(frozen=True, kw_only=True)
class LedgerDamage:
    """The first broken line."""

    line: int  # 1-based
    damage: Damage
    detail: str


@dataclass(frozen=True, kw_only=True)
class Settled:
    """A prediction with what was found."""

    prediction: Entry
    outcomes: tuple[Entry, ...]  # in file order; the last one stands
    result: Result | None  # None: open


@dataclass(frozen=True, kw_only=True)
class LedgerScore:
    """Predictions by how they came out; hits and refutations side by side."""

    hits: tuple[Settled, ...]
    refuted: tuple[Settled, ...]
    undecided: tuple[Settled, ...]
    open: tuple[Settled, ...]
    n: int  # predictions and forecasts
    after_the_fact: int  # outcomes whose rule was decided afterwards


def append_entry(path: Path, draft: Draft) -> Entry:
    """Chain a draft to the end of the file, made if absent; refused where the file is damaged."""
    entries = read_ledger(path) if path.exists() else ()
    _check_draft(draft, entries)
    previous = entries[-1].hash if entries else GENESIS
    entry = Entry(draft=draft, previous=previous, hash=entry_hash(draft, previous))
    with path.open("ab") as file:
        file.write(_canonical({**_fields(draft, previous), "hash": entry.hash}) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    return entry


def read_ledger(path: Path) -> tuple[Entry, ...]:
    """All entries of an undamaged ledger."""
    damage = check_ledger(path)
    if damage is not None:
        raise StatsError(
            f"{path}, line {damage.line}: {damage.damage.value}. {damage.detail} "
            "Restore the file from a copy; a ledger is never repaired in place"
        )
    return tuple(_parse(line) for line in _lines(path))


def check_ledger(path: Path) -> LedgerDamage | None:
    """The first broken line, or None."""
    entries: list[Entry] = []
    lines = _lines(path)
    for number, line in enumerate(lines, start=1):
        try:
            entries.append(_parse(line))
        except (ValueError, KeyError, TypeError) as error:
            return LedgerDamage(line=number, damage=Damage.UNREADABLE, detail=f"Not a complete entry: {error}.")
    hashes = {entry.hash for entry in entries}
    previous = GENESIS
    for number, entry in enumerate(entries, start=1):
        found = _damage_of(entry, previous, hashes)
        if found is not None:
            return LedgerDamage(line=number, damage=found, detail=f"Entry {entry.draft.entry_id!r}.")
        previous = entry.hash
    return None


def bundled_ledger() -> tuple[Entry, ...]:
    """The ledger shipped with the package: one open prediction about a published margin.

    Example:
        >>> [number.value for number in bundled_ledger()[0].draft.numbers][:2]
        [6.7, 35.4]
    """
    with resources.as_file(resources.files("deadheat.stats").joinpath("data", "ledger.jsonl")) as path:
        return read_ledger(path)


def score_ledger(entries: Sequence[Entry]) -> LedgerScore:
    """Hits, refutations, undecided and open predictions."""
    outcomes = [entry for entry in entries if entry.draft.kind is EntryKind.OUTCOME]
    settled = []
    for entry in entries:
        if entry.draft.kind is not EntryKind.OUTCOME:
            mine = tuple(outcome for outcome in outcomes if outcome.draft.about == entry.draft.entry_id)
            settled.append(Settled(prediction=entry, outcomes=mine, result=mine[-1].draft.result if mine else None))

    def with_result(result: Result | None) -> tuple[Settled, ...]:
        return tuple(item for item in settled if item.result is result)

    return LedgerScore(
        hits=with_result(Result.HIT),
        refuted=with_result(Result.REFUTED),
        undecided=with_result(Result.UNDECIDED),
        open=with_result(None),
        n=len(settled),
        after_the_fact=sum(outcome.draft.after_the_fact for outcome in outcomes),
    )


def entry_hash(draft: Draft, previous: str) -> str:
    """SHA-256 of the canonical entry, hex."""
    return hashlib.sha256(_canonical(_fields(draft, previous))).hexdigest()


def _damage_of(entry: Entry, previous: str, hashes: set[str]) -> Damage | None:
    if entry_hash(entry.draft, entry.previous) != entry.hash:
        return Damage.ALTERED
    if entry.previous == previous:
        return None
    if entry.previous in hashes or entry.previous == GENESIS:
        return Damage.REORDERED
    return Damage.PREDECESSOR_MISSING


def _check_draft(draft: Draft, entries: Sequence[Entry]) -> None:
    ids = {entry.draft.entry_id: entry.draft.kind for entry in entries}
    if not draft.entry_id or draft.entry_id in ids:
        raise StatsError(f"entry id {draft.entry_id!r} is empty or taken; wanted a new one")
    if not _DATE.match(draft.date):
        raise StatsError(f"date is {draft.date!r}; wanted YYYY-MM or YYYY-MM-DD")
    if draft.kind is EntryKind.OUTCOME:
        if draft.about not in ids or ids[draft.about] is EntryKind.OUTCOME or draft.result is None:
            raise StatsError(
                f"outcome {draft.entry_id!r} is about {draft.about!r} with result {draft.result}; wanted the id of an "
                f"earlier prediction, one of {sorted(i for i, kind in ids.items() if kind is not EntryKind.OUTCOME)}, "
                "and a result"
            )
    elif not draft.refuted_by or draft.about is not None or draft.result is not None:
        raise StatsError(
            f"{draft.kind.value} {draft.entry_id!r} must say what would refute it, and carries no result yet"
        )


def _fields(draft: Draft, previous: str) -> dict[str, object]:
    return {**asdict(draft), "previous": previous}


def _canonical(fields: dict[str, object]) -> bytes:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _lines(path: Path) -> list[bytes]:
    data = path.read_bytes()
    if not data:
        return []
    lines = data.split(b"\n")
    return lines[:-1] if lines[-1] == b"" else lines


def _parse(line: bytes) -> Entry:
    fields = json.loads(line)
    previous, own = fields.pop("previous"), fields.pop("hash")
    fields["kind"] = EntryKind(fields["kind"])
    fields["result"] = None if fields["result"] is None else Result(fields["result"])
    fields["numbers"] = tuple(Number(**number) for number in fields["numbers"])
    return Entry(draft=Draft(**fields), previous=previous, hash=own)

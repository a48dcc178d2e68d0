"""Forecasts as TOML: a `[forecast]` table of its own, or inside the race file whose plan it foretells.

    [forecast]
    id = "addition-1"
    date = "2026-07-01"
    words = "the checker leads by 2 points"
    gap_pp = 2.0
    low_pp = -1.0
    high_pp = 5.0
    refuted_by = "an interval below 0 at the final step"
    rescore = [{ trigger = "the interval excludes 0", scoring = "converged" }]

The plan's digest is the SHA-256 of everything else in the file as canonical JSON, or of a plan file named apart.
"""

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deadheat.errors import StatsError
from deadheat.stats.forecast import Forecast, PoolReading, Rescore, draft_of
from deadheat.stats.ledger import EntryKind, read_ledger

_TEXT = ("id", "date", "words", "refuted_by")
_NUMBERS = ("gap_pp", "low_pp", "high_pp")


def read_forecast(path: Path, *, plan: Path | None = None) -> Forecast:
    """The forecast of a TOML file; with `plan`, about that file instead of the rest of this one."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise StatsError(f"cannot read {path}: {error.strerror}; wanted a TOML file with a [forecast] table") from error
    digest = None if plan is None else hashlib.sha256(plan.read_bytes()).hexdigest()
    forecast = parse_forecast(text, source=str(path), plan_digest=digest)
    if forecast is None:
        raise StatsError(f"{path} has no [forecast] table; wanted {', '.join((*_TEXT, *_NUMBERS))} in it")
    return forecast


def parse_forecast(text: str, *, source: str, plan_digest: str | None = None) -> Forecast | None:
    """The forecast of a TOML text, None where it has none; refused where nothing is left to be the plan."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StatsError(f"{source} is not valid TOML: {error}") from error
    stated = table.pop("forecast", None)
    if stated is None:
        return None
    if plan_digest is None and not table:
        raise StatsError(f"{source} holds a forecast and no plan; wanted it inside a race file, or a plan named apart")
    return _forecast(stated, source, plan_digest or _digest(table))


def check_locked(ledger: Path, forecast: Forecast) -> None:
    """Refuses a forecast that is not, word for word, the one in the ledger."""
    entries = {entry.draft.entry_id: entry.draft for entry in read_ledger(ledger)} if ledger.is_file() else {}
    held = entries.get(forecast.forecast_id)
    if held is None or held.kind is not EntryKind.FORECAST:
        raise StatsError(f"{ledger} holds no forecast {forecast.forecast_id!r}; lock it before the first step")
    if held != draft_of(forecast):
        changed = [
            name for name in ("date", "claim", "numbers", "refuted_by", "digest")
            if getattr(held, name) != getattr(draft_of(forecast), name)
        ]  # fmt: skip
        raise StatsError(
            f"forecast {forecast.forecast_id!r} differs from the locked one in {', '.join(changed)}; "
            "score the one that was locked, or record yours as an outcome with after_the_fact"
        )


def readings_of_verdict(verdict: Mapping[str, Any]) -> list[PoolReading]:
    """The readings of the first pair in a race's `verdict.json`: the final one is primary, others are named scorings."""
    if not verdict.get("pairs"):
        raise StatsError("the verdict holds no pair of arms; wanted a finished race of at least two")
    found = []
    for contrast in verdict["pairs"][0]["contrasts"]:
        gap = contrast["difference"]
        found.append(
            PoolReading(
                name=contrast["reading"],
                gap_pp=100 * gap["estimate"],
                low_pp=100 * gap["low"],
                high_pp=100 * gap["high"],
                num_items=gap["n"],
                scoring="primary" if contrast["reading"] == "final" else contrast["reading"],
            )
        )
    return found


def _forecast(stated: object, source: str, digest: str) -> Forecast:
    known = {*_TEXT, *_NUMBERS, "rescore"}
    if not isinstance(stated, dict) or set(stated) - known or {*_TEXT, *_NUMBERS} - set(stated):
        seen = sorted(stated) if isinstance(stated, dict) else stated
        raise StatsError(
            f"{source}: [forecast] has {seen}; wanted {', '.join((*_TEXT, *_NUMBERS))}, and rescore if any"
        )
    wrong = [name for name in _TEXT if not isinstance(stated[name], str) or not stated[name]]
    wrong += [name for name in _NUMBERS if not isinstance(stated[name], (int, float)) or isinstance(stated[name], bool)]
    if wrong:
        raise StatsError(f"{source}: [forecast] {wrong[0]} is {stated[wrong[0]]!r}; wanted text, or a number of points")
    return Forecast(
        forecast_id=stated["id"],
        date=stated["date"],
        plan_digest=digest,
        words=stated["words"],
        gap_pp=float(stated["gap_pp"]),
        low_pp=float(stated["low_pp"]),
        high_pp=float(stated["high_pp"]),
        refuted_by=stated["refuted_by"],
        rescores=_rescores(stated.get("rescore", []), source),
    )


def _rescores(stated: Sequence[Mapping[str, Any]], source: str) -> tuple[Rescore, ...]:
    for one in stated:
        if set(one) != {"trigger", "scoring"}:
            raise StatsError(f"{source}: a rescore has {sorted(one)}; wanted trigger and scoring")
    return tuple(Rescore(trigger=one["trigger"], scoring=one["scoring"]) for one in stated)


def _digest(table: Mapping[str, Any]) -> str:
    text = json.dumps(table, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()

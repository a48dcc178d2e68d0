"""A forecast of one's own comparison, locked before training and scored after.

A forecast states a gap, an interval and words, and the re-scorings it will apply should a stated trigger occur. It is
a ledger entry that carries the plan's digest; it is refused once step one has run. Every later reading is scored the
same way: does its interval contain zero, does it contain the prediction, on which side does it fall, at which pool
size. A rule decided after the reading was seen is allowed and marked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from deadheat.errors import StatsError
from deadheat.stats.ledger import Draft, Entry, EntryKind, Number, append_entry


class Side(StrEnum):
    """Where a reading's point estimate falls."""

    PREDICTED = "predicted side"  # the sign of the predicted gap
    OPPOSITE = "opposite side"
    ZERO = "zero"  # the estimate is exactly zero
    TIE_PREDICTED = "a tie was predicted"  # a gap of 0 has no side


@dataclass(frozen=True, kw_only=True)
class Rescore:
    """A further scoring that a stated outcome will trigger."""

    trigger: str  # such as "the interval excludes zero on strict scoring"
    scoring: str  # such as "content-tolerant match"


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What is expected of a comparison."""

    forecast_id: str
    date: str  # YYYY-MM or YYYY-MM-DD
    plan_digest: str  # SHA-256 of the resolved plan, hex
    words: str  # the expectation in a sentence
    gap_pp: float  # expected A − B, percentage points
    low_pp: float  # expected interval
    high_pp: float
    refuted_by: str  # reading that would refute it
    rescores: tuple[Rescore, ...] = ()  # contingent re-scorings, fixed now


@dataclass(frozen=True, kw_only=True)
class PoolReading:
    """One reading of the trained comparison."""

    name: str
    gap_pp: float  # A − B, percentage points
    low_pp: float
    high_pp: float
    num_items: int  # pool size
    scoring: str = "primary"
    after_the_fact: bool = False  # the scoring rule was decided once results were seen


@dataclass(frozen=True, kw_only=True)
class ForecastReading:
    """A reading held against the forecast."""

    reading: PoolReading
    contains_zero: bool
    contains_prediction: bool
    side: Side
    planned: bool  # the scoring is the primary one or a locked re-scoring, and not after the fact


@dataclass(frozen=True, kw_only=True)
class ForecastScore:
    """All readings, in the order of their pool sizes."""

    forecast: Forecast
    readings: tuple[ForecastReading, ...]


def lock_forecast(path: Path, forecast: Forecast, *, steps_run: int) -> Entry:
    """Write the forecast into a ledger; refused once a training step has run."""
    if steps_run > 0:
        raise StatsError(
            f"{steps_run} training steps have run; a forecast is locked before the first. "
            "Record it as an outcome with after_the_fact, or start a new run"
        )
    _check(forecast)
    return append_entry(path, draft_of(forecast))


def draft_of(forecast: Forecast) -> Draft:
    """The forecast as an entry of a ledger."""
    rescores = "".join(f" If {rescore.trigger}: {rescore.scoring}." for rescore in forecast.rescores)
    return Draft(
        kind=EntryKind.FORECAST,
        entry_id=forecast.forecast_id,
        date=forecast.date,
        claim=forecast.words + rescores,
        numbers=(
            Number(name="gap", value=forecast.gap_pp, unit="points"),
            Number(name="low", value=forecast.low_pp, unit="points"),
            Number(name="high", value=forecast.high_pp, unit="points"),
        ),
        refuted_by=forecast.refuted_by,
        digest=forecast.plan_digest,
    )


def score_forecast(forecast: Forecast, readings: Sequence[PoolReading]) -> ForecastScore:
    """Hold readings against a forecast.

    Example:
        >>> plan = Forecast(forecast_id="f", date="2026-07", plan_digest="0" * 64, words="a lead of 2", gap_pp=2.0,
        ...                 low_pp=0.0, high_pp=4.0, refuted_by="an interval below 0")
        >>> reading = PoolReading(name="pool", gap_pp=0.65, low_pp=-1.6, high_pp=2.9, num_items=2000)
        >>> scored = score_forecast(plan, [reading]).readings[0]
        >>> scored.contains_zero, scored.contains_prediction, scored.side.value
        (True, True, 'predicted side')
    """
    _check(forecast)
    locked = {"primary"} | {rescore.scoring for rescore in forecast.rescores}
    scored = [
        ForecastReading(
            reading=reading,
            contains_zero=reading.low_pp <= 0 <= reading.high_pp,
            contains_prediction=reading.low_pp <= forecast.gap_pp <= reading.high_pp,
            side=_side(forecast.gap_pp, reading.gap_pp),
            planned=reading.scoring in locked and not reading.after_the_fact,
        )
        for reading in sorted(readings, key=lambda reading: reading.num_items)
    ]
    return ForecastScore(forecast=forecast, readings=tuple(scored))


def _side(predicted: float, seen: float) -> Side:
    if predicted == 0:
        return Side.TIE_PREDICTED
    if seen == 0:
        return Side.ZERO
    return Side.PREDICTED if predicted * seen > 0 else Side.OPPOSITE


def _check(forecast: Forecast) -> None:
    if not forecast.low_pp <= forecast.gap_pp <= forecast.high_pp:
        raise StatsError(
            f"the gap {forecast.gap_pp} lies outside [{forecast.low_pp}, {forecast.high_pp}]; wanted it inside"
        )
    if len(forecast.plan_digest) != 64 or set(forecast.plan_digest) - set("0123456789abcdef"):
        raise StatsError(
            f"plan digest is {forecast.plan_digest!r}; wanted the SHA-256 of the resolved plan, 64 hex digits"
        )

"""Published claims held against their own benchmarks' floors.

A claim file is a CSV, one row per claim; columns as in `Claim`. Floors are `detection_floor(N, baseline)`, margins
the headline against its stated baseline. Rows whose status is not `scored` are kept apart and never enter the totals.

Claims are chosen by hand. Totals are counts of the rows given and their median ratio; they carry no interval, because
there is no population that the rows were drawn from.

Bundled: five claims, each with a source, the words or the table that hold its numbers, and a date; how many of 29 papers
state seeds and spread; what six reward-model releases report. A census elsewhere counts 12 of 15 margins below their floor
with a median ratio of .20; its rows are not all named, and none rests here on memory, so the totals are the bundle's own.
"""

import csv
import io
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from pathlib import Path

from deadheat.errors import StatsError
from deadheat.stats.floors import MarginReading, Zone, detection_floor, read_margin

REQUIRED = (
    "status",
    "paper",
    "version",
    "benchmark",
    "num_items",
    "baseline",
    "baseline_kind",
    "baseline_pct",
    "ours_pct",
)


class ClaimStatus(StrEnum):
    """What is done with a claim."""

    SCORED = "scored"  # its margin is held against its floor and enters the totals
    TIE = "tie"  # the paper calls it a tie itself; set aside
    ASIDE = "aside"  # no method-against-baseline margin to score
    CANDIDATE = "candidate"  # plausible row whose numbers are not pinned
    EXCLUDED = "excluded"  # left out, with the reason in its note


class BaselineKind(StrEnum):
    """What the headline is compared with."""

    CLOSEST_METHOD = "closest method"
    UNTRAINED = "untrained"  # the same model before this training


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One published headline."""

    status: ClaimStatus
    paper: str
    version: str  # arXiv id, with its version where it matters
    benchmark: str
    num_items: int
    baseline: str  # what the headline is compared with, by name
    baseline_kind: BaselineKind
    baseline_pct: float  # baseline accuracy, percent
    ours_pct: float  # headline accuracy, percent
    attempts: int | None = None  # k of avg@k or pass@k; None: not stated
    date: str = ""
    confidence: str = ""  # how sure the values are, in words
    source: str = ""  # where the values stand
    quote: str = ""  # the paper's own words, or the table that holds the values
    note: str = ""

    @property
    def margin_pp(self) -> float:
        """Ours − baseline, percentage points."""
        return self.ours_pct - self.baseline_pct


@dataclass(frozen=True, kw_only=True)
class CensusRow:
    """A claim with its floor."""

    claim: Claim
    reading: MarginReading
    upper_bound: bool  # averaged over several attempts: the true floor is lower, the ratio higher


@dataclass(frozen=True, kw_only=True)
class CensusTotals:
    """Counts over the scored rows, which nobody drew at random: no interval."""

    n: int  # scored rows
    left_out: int  # rows kept apart
    clear: int  # at or above the floor
    significant_only: int  # between the significance bar and the floor
    below: int  # under the significance bar
    median_ratio: float
    method: str = "unpooled floor from N and the baseline accuracy, α = .05, power .80"


@dataclass(frozen=True, kw_only=True)
class Census:
    """A table of claims."""

    rows: tuple[CensusRow, ...]  # scored, largest ratio first
    apart: tuple[CensusRow, ...]  # not scored; the same arithmetic, for the record
    totals: CensusTotals


@dataclass(frozen=True, kw_only=True)
class SeedsCensus:
    """How many papers state seeds and spread at their headline."""

    neither: int
    seeds_only: int
    spread_only: int
    both: int
    n: int  # papers
    source: str
    date: str


@dataclass(frozen=True, kw_only=True)
class Release:
    """What one reward-model release reports. Empty text: not recorded."""

    release: str
    benchmarks: str
    num_seeds: int | None  # None: not stated
    horizon: str  # training horizon of any downstream reading
    interval_at_headline: bool
    by_category: str
    downstream_validation: str
    downstream_n: int | None  # trained or sampled configurations; None: not stated
    variation_elsewhere: str  # variation disclosed away from the headline
    confidence: str
    note: str
    date: str
    source: str
    quote: str  # the words that the row rests on


def read_claims(path: Path) -> tuple[Claim, ...]:
    """Claims of a CSV file."""
    return _claims(path.read_text(encoding="utf-8"), str(path))


def census(claims: Iterable[Claim]) -> Census:
    """Floors, ratios, zones and totals.

    Example:
        >>> totals = bundled_census().totals
        >>> totals.n, totals.clear, round(totals.median_ratio, 2)
        (5, 1, 0.29)
    """
    given = tuple(claims)
    rows = sorted((_row(c) for c in given if c.status is ClaimStatus.SCORED), key=lambda row: -row.reading.ratio)
    if not rows:
        raise StatsError(f"none of {len(given)} claims has status 'scored'; wanted at least one")
    zones = [row.reading.zone for row in rows]
    return Census(
        rows=tuple(rows),
        apart=tuple(_row(claim) for claim in given if claim.status is not ClaimStatus.SCORED),
        totals=CensusTotals(
            n=len(rows),
            left_out=len(given) - len(rows),
            clear=zones.count(Zone.CLEAR),
            significant_only=zones.count(Zone.SIGNIFICANT_NOT_REPEATABLE),
            below=zones.count(Zone.BELOW),
            median_ratio=statistics.median(row.reading.ratio for row in rows),
        ),
    )


def bundled_census() -> Census:
    """The census shipped with the package."""
    return census(_claims(_bundled("census.csv"), "bundled census.csv"))


def seeds_census() -> SeedsCensus:
    """The bundled count of papers stating seeds and spread.

    Example:
        >>> seeds = seeds_census()
        >>> seeds.neither, seeds.both, seeds.n
        (27, 2, 29)
    """
    rows = _rows(_bundled("seeds_census.csv"))
    counts = {(row["states_seeds"], row["states_spread"]): int(row["num_papers"]) for row in rows}
    return SeedsCensus(
        neither=counts["no", "no"],
        seeds_only=counts["yes", "no"],
        spread_only=counts["no", "yes"],
        both=counts["yes", "yes"],
        n=sum(counts.values()),
        source=rows[0]["source"],
        date=rows[0]["date"],
    )


def releases_census() -> tuple[Release, ...]:
    """The bundled reading of six reward-model releases."""
    return tuple(
        Release(
            release=row["release"],
            benchmarks=row["benchmarks"],
            num_seeds=int(row["num_seeds"]) if row["num_seeds"] else None,
            horizon=row["horizon"],
            interval_at_headline=row["interval_at_headline"] == "yes",
            by_category=row["by_category"],
            downstream_validation=row["downstream_validation"],
            downstream_n=int(row["downstream_n"]) if row["downstream_n"] else None,
            variation_elsewhere=row["variation_elsewhere"],
            confidence=row["confidence"],
            note=row["note"],
            date=row["date"],
            source=row["source"],
            quote=row["quote"],
        )
        for row in _rows(_bundled("releases_census.csv"))
    )


def _row(claim: Claim) -> CensusRow:
    floor = detection_floor(claim.num_items, claim.baseline_pct / 100)
    return CensusRow(
        claim=claim,
        reading=read_margin(claim.margin_pp / 100, floor),
        upper_bound=(claim.attempts or 1) > 1,
    )


def _claims(text: str, name: str) -> tuple[Claim, ...]:
    rows = _rows(text)
    missing = [column for column in REQUIRED if rows and column not in rows[0]]
    if not rows or missing:
        raise StatsError(
            f"{name}: {'no rows' if not rows else f'columns {missing} are missing'}; wanted {list(REQUIRED)}"
        )
    return tuple(_claim(row, f"{name}, row {number}") for number, row in enumerate(rows, start=2))


def _claim(row: Mapping[str, str], where: str) -> Claim:
    try:
        claim = Claim(
            status=ClaimStatus(row["status"]),
            paper=row["paper"],
            version=row["version"],
            benchmark=row["benchmark"],
            num_items=int(row["num_items"]),
            baseline=row["baseline"],
            baseline_kind=BaselineKind(row["baseline_kind"]),
            baseline_pct=float(row["baseline_pct"]),
            ours_pct=float(row["ours_pct"]),
            attempts=int(row["attempts"]) if row.get("attempts") else None,
            date=row.get("date") or "",
            confidence=row.get("confidence") or "",
            source=row.get("source") or "",
            quote=row.get("quote") or "",
            note=row.get("note") or "",
        )
    except (ValueError, TypeError) as error:
        raise StatsError(
            f"{where}: {error}; statuses are {[s.value for s in ClaimStatus]}, kinds "
            f"{[k.value for k in BaselineKind]}, accuracies are percentages"
        ) from error
    if claim.num_items < 1 or not (0 <= claim.baseline_pct <= 100 and 0 <= claim.ours_pct <= 100):
        raise StatsError(
            f"{where}: {claim.num_items} items, {claim.baseline_pct} and {claim.ours_pct} percent; wanted "
            "a positive N and percentages within 0 to 100"
        )
    return claim


def _rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def _bundled(name: str) -> str:
    return resources.files("deadheat.stats").joinpath("data", name).read_text(encoding="utf-8")

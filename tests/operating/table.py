"""The counted cells as a table on disk: docs/statistics/operating.csv, one row a cell, worst cells of a claim marked."""

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .cells import TABLES, Count

PATH = Path(__file__).parents[2] / "docs" / "statistics" / "operating.csv"
COLUMNS = ("claim", "reader", "design", "counted", "tables", "rate", "se", "bound", "holds", "worst")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One cell as counted."""

    claim: str
    reader: str
    design: str
    counted: str
    tables: int
    rate: float
    se: float  # of the rate
    bound: str  # "at most 0.0650", "at least …", "0.77 to 0.83", "none"
    holds: bool | None  # None: there is no bound

    @property
    def name(self) -> tuple[str, str, str]:
        return self.claim, self.reader, self.design

    @property
    def excess(self) -> float:
        """How far the rate lies beyond its bound, in three standard errors of 2,000 tables; negative: inside."""
        numbers = [float(word) for word in self.bound.split() if word[0].isdigit()]
        if len(numbers) == 2:
            slack = (numbers[1] - numbers[0]) / 2
            return (abs(self.rate - sum(numbers) / 2) - slack) / slack
        beyond = self.rate - numbers[0] if "most" in self.bound else numbers[0] - self.rate
        return beyond / (3 * math.sqrt(numbers[0] * (1 - numbers[0]) / TABLES))


def row_of(count: Count) -> Row:
    cell = count.cell
    return Row(
        claim=cell.claim,
        reader=cell.reader,
        design=cell.design,
        counted=cell.counted,
        tables=count.tables,
        rate=count.rate,
        se=count.se,
        bound=count.bound.words,
        holds=None if count.bound.target is None else count.holds,
    )


def worst_of(rows: Iterable[Row]) -> dict[str, Row]:
    """The row of each bounded claim that is nearest to its bound, or furthest beyond; the first of equals."""
    worst: dict[str, Row] = {}
    for row in rows:
        if row.holds is not None and (row.claim not in worst or row.excess > worst[row.claim].excess):
            worst[row.claim] = row
    return worst


def write(rows: Sequence[Row], path: Path = PATH) -> None:
    worst = {row.name for row in worst_of(rows).values()}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows:
            holds = "" if row.holds is None else "yes" if row.holds else "no"
            marked = "worst" if row.name in worst else ""
            figures = (row.tables, f"{row.rate:.4f}", f"{row.se:.4f}")
            writer.writerow([row.claim, row.reader, row.design, row.counted, *figures, row.bound, holds, marked])


def load(path: Path = PATH) -> list[Row]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Row(
                claim=line["claim"],
                reader=line["reader"],
                design=line["design"],
                counted=line["counted"],
                tables=int(line["tables"]),
                rate=float(line["rate"]),
                se=float(line["se"]),
                bound=line["bound"],
                holds=None if line["holds"] == "" else line["holds"] == "yes",
            )
            for line in csv.DictReader(file)
        ]


def worst_lines(rows: Iterable[Row]) -> list[str]:
    """The page's table of claims: claim, worst rate, what it must keep to, where, n."""
    worst = worst_of(rows).values()
    return [
        f"| {row.claim} | {percent(row.rate)} | {_bound(row)} | {row.reader}, {row.design} | {row.tables:,} |"
        for row in worst
    ]


def side_lines(rows: Sequence[Row], claim: str, designs: Sequence[str]) -> list[str]:
    """A line per rule, a column per design: how often each calls on the same tables."""
    readers = dict.fromkeys(row.reader for row in rows if row.claim == claim)
    rates = {(row.reader, row.design): percent(row.rate) for row in rows if row.claim == claim}
    return [
        f"| {reader} | " + " | ".join(rates.get((reader, design), "–") for design in designs) + " |"
        for reader in readers
    ]


def percent(rate: float) -> str:
    """A rate to a tenth of a point, halves up: .0605 is 6.1%, never 6.0%."""
    return f"{math.floor(1000 * rate + 0.5 + 1e-9) / 10:.1f}%"


def _bound(row: Row) -> str:
    words = [percent(float(word)) if word[0].isdigit() else word for word in row.bound.split()]
    return " ".join(words)

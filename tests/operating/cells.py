"""Every level that the verdict side prints, as cells: a claim, a design, what is counted on each drawn table, a bound.

A bound is the claim plus or minus three standard errors of 2,000 tables, whatever the number drawn:

    5%     false calls at α = .05                     at most 6.5%
    95%    tables whose interval holds the truth      at least 93.5%
    80%    calls at the smallest gap                  77.3 to 82.7%
    rate   a simulated rate that is printed           within 3·√(rate·(1 − rate)/2,000)

Cells without a bound say how other rules and tools fare on the same tables. Every cell reads its tables one by one with
the functions a user calls; `test_operating.py` runs those marked `small`, `make operating` all of them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from deadheat.sampling.keys import derive, generator
from deadheat.stats.effect import Effect, leaves_zero, paired_effect
from deadheat.stats.resampling import bootstrap
from deadheat.stats.rules import read_votes
from deadheat.stats.significance import paired_t
from deadheat.stats.verdict import Terms
from deadheat.stats.votes import Rule

from .designs import Design, Table

DOMAIN, TABLES, KEY, ALPHA = "deadheat/operating/v1", 2000, 1, 0.05
ONCE = Terms(reruns=1)  # a verdict's own rates are not what is counted
RESAMPLES = 400  # of a bootstrap; a thousand moves no rate here by its standard error
RULE = "seeds and items"


@dataclass(frozen=True, kw_only=True)
class Bound:
    """What a rate must keep to."""

    low: float = 0.0
    high: float = 1.0
    target: float | None = None  # what is claimed; None: nothing is

    @property
    def words(self) -> str:
        if self.target is None:
            return "none"
        if self.low and self.high < 1:
            return f"{self.low:.4f} to {self.high:.4f}"
        return f"at least {self.low:.4f}" if self.low else f"at most {self.high:.4f}"


def three_se(rate: float) -> float:
    """Three standard errors of a rate over 2,000 tables, to a tenth of a point: 1.5 points of 5%, 2.7 of 80%."""
    return round(3 * math.sqrt(rate * (1 - rate) / TABLES), 3)


def at_most(rate: float) -> Bound:
    return Bound(high=rate + three_se(rate), target=rate)


def at_least(rate: float) -> Bound:
    return Bound(low=rate - three_se(rate), target=rate)


def around(rate: float) -> Bound:
    slack = max(3 * math.sqrt(rate * (1 - rate) / TABLES), 3 / TABLES)  # of a rate near 0, three tables
    return Bound(low=max(rate - slack, 0.0), high=rate + slack, target=rate)


NO_CLAIM = Bound()


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One claim at one design."""

    claim: str
    reader: str  # the rule, interval or test
    design: str
    counted: str
    hit: Callable[[np.random.Generator], bool]  # draws one table, reads it, says whether it is counted
    bound: Callable[[], Bound]  # lazily: some are rates that take a simulation themselves
    small: bool = False  # run by every test
    most: int | None = None  # tables drawn at most: slow readers; None: as many as asked for

    @property
    def name(self) -> str:
        return f"{self.claim}: {self.reader}, {self.design}"


@dataclass(frozen=True, kw_only=True)
class Count:
    """What came out."""

    cell: Cell
    tables: int
    rate: float
    bound: Bound

    @property
    def se(self) -> float:
        return math.sqrt(self.rate * (1 - self.rate) / self.tables)

    @property
    def holds(self) -> bool:
        return self.bound.low <= self.rate <= self.bound.high


def count(cell: Cell, tables: int = TABLES) -> Count:
    """Draw and read the tables of a cell; readers of one design see the same tables."""
    rng = generator(derive(DOMAIN, cell.design))
    tables = min(tables, cell.most or tables)
    hits = sum(bool(cell.hit(rng)) for _ in range(tables))
    return Count(cell=cell, tables=tables, rate=hits / tables, bound=cell.bound())


# Readers: one table to one answer.


def effect_of(table: Table, *, grades: bool) -> Effect:
    return paired_effect(table.differences_SN, grades=grades, clusters=table.clusters_N)


def calls(table: Table, grades: bool) -> bool:
    return effect_of(table, grades=grades).called


def two_part_calls(table: Table, grades: bool) -> bool:
    return read_votes(Rule.TWO_PART, table.differences_SN).called


def paired_t_calls(table: Table, grades: bool) -> bool:
    mean_N = table.differences_SN.mean(axis=0)
    return paired_t(mean_N, np.zeros_like(mean_N)).p_value < ALPHA


def crossed_calls(table: Table, grades: bool) -> bool:
    found = bootstrap(table.differences_SN, "crossed", key=KEY, resamples=RESAMPLES)
    return leaves_zero(found.low, found.high)


def flat_calls(table: Table, grades: bool) -> bool:
    cells_M = table.differences_SN.ravel()
    return paired_t(cells_M, np.zeros_like(cells_M)).p_value < ALPHA


OTHERS = {
    RULE: calls,
    "two-part rule": two_part_calls,
    "paired t over items": paired_t_calls,
    "crossed bootstrap": crossed_calls,
    "flat t over all cells": flat_calls,
}


def read(claim: str, design: Design, said: Callable[[Table], bool], counted: str, bound: Bound, **more: object) -> Cell:
    """A cell that reads the tables of one design."""
    cell = Cell(
        claim=claim,
        reader=RULE,
        design=design.label,
        counted=counted,
        hit=lambda rng: said(design.draw(rng)),
        bound=lambda: bound,
    )
    return replace(cell, **more)  # type: ignore[arg-type]


def false_calls(claim: str, design: Design, *, small: bool = False) -> Cell:
    return read(claim, design, lambda table: calls(table, design.grades), "called", at_most(ALPHA), small=small)


def covers(claim: str, design: Design, *, alpha: float = ALPHA, small: bool = False) -> Cell:
    def holds(table: Table) -> bool:
        found = effect_of(table, grades=design.grades).at(alpha)
        return found.low <= design.gap <= found.high

    return read(
        claim,
        design,
        holds,
        "the interval holds the gap",
        at_least(1 - alpha),
        reader=f"{100 * (1 - alpha):g}% interval",
        small=small,
    )


def worded(claim: str, reader: str, design: str, hit: Callable[[np.random.Generator], bool], **more: object) -> Cell:
    cell = Cell(claim=claim, reader=reader, design=design, counted="called", hit=hit, bound=lambda: at_most(ALPHA))
    return replace(cell, **more)  # type: ignore[arg-type]

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np

from deadheat.sampling.keys import derive, generator
from deadheat.stats.clusters import clustered_mean
from deadheat.stats.effect import Effect, leaves_zero, paired_effect, side_mean, uncoupled_effect
from deadheat.stats.floors import averaged_floor, detection_floor, paired_floor
from deadheat.stats.gains import nothing_learned, paired_gain
from deadheat.stats.groups import pass_at_k
from deadheat.stats.holm import benjamini_hochberg, holm
from deadheat.stats.intervals import clopper_pearson, mean_score, wilson
from deadheat.stats.looks import nominal_levels
from deadheat.stats.neighbours import neighbours
from deadheat.stats.power import catch_rate, smallest_gap
from deadheat.stats.resampling import bootstrap
from deadheat.stats.rules import VoteWords, read_votes
from deadheat.stats.significance import binomial_two_sided, paired_t, permutation_test
from deadheat.stats.spend import Prices, spend
from deadheat.stats.variance import Allocation, split_from_se
from deadheat.stats.verdict import CALLED, THESE_RUNS, Fixed, Terms, family, judge
from deadheat.stats.vote_models import Components, IidVotes, MixtureVotes, Model, SeedEffects, vote_components
from deadheat.stats.vote_models import Design as Shape
from deadheat.stats.votes import Rule

from .designs import Arms, Clustered, Design, Floats, Holes, Scores, Table, Votes, equal_arms, graded, points

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
    slack = 3 * math.sqrt(rate * (1 - rate) / TABLES)
    return Bound(low=max(rate - slack, 1e-9), high=rate + slack, target=rate)


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


# Claims: false calls.

FEW = {(2, 200, 0.10), (2, 1319, 0.10), (3, 200, 0.05), (3, 200, 0.10), (3, 1319, 0.10), (8, 200, 0.0), (16, 200, 0.05)}


def complete() -> Iterator[Cell]:
    """Seeds that differ, many seeds, ties, item effects, real-valued scores."""
    claim = "false calls, complete tables"
    for seeds in (2, 3, 5, 8, 16):
        for items in (30, 200, 1319):
            for tau in (0.0, 0.05, 0.10):
                yield false_calls(claim, Votes(seeds=seeds, items=items, tau=tau), small=(seeds, items, tau) in FEW)
            for tau in (0.0, 0.02):
                ties = Votes(seeds=seeds, items=items, d=0.05, tau=tau)
                yield false_calls(claim, ties, small=items == 200 and seeds in (2, 3, 8) and tau > 0)
        for items in (30, 200):
            for tau in (0.0, 0.05):
                uneven = Votes(seeds=seeds, items=items, tau=tau, item_sd=0.15)
                yield false_calls(claim, uneven, small=items == 200 and seeds in (3, 8))
    for seeds in (2, 3, 8, 20):
        for items in (30, 200):
            for tau, item_sd in ((0.0, 0.0), (0.1, 0.0), (0.1, 1.0), (0.3, 1.0)):
                scores = Scores(seeds=seeds, items=items, tau=tau, item_sd=item_sd)
                yield false_calls(claim, scores, small=items == 30 and seeds in (3, 8) and item_sd > 0)
        yield false_calls(claim, Scores(seeds=seeds, items=60, tau=0.1, item_sd=0.5, heavy=False))


def missing() -> Iterator[Cell]:
    claim = "false calls, missing cells"
    for seeds in (2, 3, 8):
        for items in (60, 200):
            for tau in (0.0, 0.05):
                whole = Votes(seeds=seeds, items=items, tau=tau)
                for share, first in ((0.1, False), (0.3, False), (0.3, True)):
                    holes = Holes(whole=whole, missing=share, first_seed_only=first)
                    yield false_calls(claim, holes, small=items == 60 and seeds != 2 and tau == 0.05 and share == 0.3)
    yield false_calls(claim, Holes(whole=Scores(seeds=3, items=60, tau=0.1, item_sd=1.0), missing=0.3), small=True)


def clusters() -> Iterator[Cell]:
    claim = "false calls, clusters"
    for num in (6, 10, 20, 40):
        for log_sd in (0.5, 1.0):
            for seeds in (3, 8):
                for tau in (0.0, 0.03):
                    design = Clustered(clusters=num, log_sd=log_sd, seeds=seeds, tau=tau)
                    yield false_calls(claim, design, small=num in (6, 20) and seeds == 3 and tau > 0)
    for num in (10, 40):
        one = Clustered(clusters=num, log_sd=1.0, seeds=1)
        yield read(
            "these runs only, one seed", one, lambda t: effect_of(t, grades=True).called_runs, "said", at_most(ALPHA)
        )


ARM_SEEDS = ((2, 2), (2, 5), (2, 16), (3, 3), (3, 16), (5, 8), (5, 16))


def apart(claim: str, design: Arms, *, small: bool = False) -> Cell:
    def said(rng: np.random.Generator) -> bool:
        sides = design.draw(rng)
        return uncoupled_effect(sides.a_SN, sides.b_TN, grades=True).called

    return Cell(
        claim=claim,
        reader=RULE,
        design=design.label,
        counted="called",
        hit=said,
        bound=lambda: at_most(ALPHA),
        small=small,
    )


def uncoupled() -> Iterator[Cell]:
    for a, b in ARM_SEEDS:
        for sd in (0.0, 0.05, 0.10):
            design = Arms(a_seeds=a, b_seeds=b, items=200, a_sd=sd, b_sd=sd)
            yield apart("false calls, uncoupled seeds", design, small=sd == 0.10 and (a, b) in ((2, 5), (3, 16)))
        for a_sd, b_sd in ((0.10, 0.0), (0.0, 0.10), (0.05, 0.0), (0.0, 0.05)):
            design = Arms(a_seeds=a, b_seeds=b, items=200, a_sd=a_sd, b_sd=b_sd)
            small = (a, b, a_sd) == (2, 16, 0.10)
            yield apart("false calls, uncoupled seeds, one side alone spreads", design, small=small)


def worded(claim: str, reader: str, design: str, hit: Callable[[np.random.Generator], bool], **more: object) -> Cell:
    cell = Cell(claim=claim, reader=reader, design=design, counted="called", hit=hit, bound=lambda: at_most(ALPHA))
    return replace(cell, **more)  # type: ignore[arg-type]


def by_judge() -> Iterator[Cell]:
    """The words themselves, on two sides of right/wrong grades."""
    for design in (Votes(seeds=3, items=200, tau=0.10), Votes(seeds=8, items=200, tau=0.03)):

        def coupled(rng: np.random.Generator, design: Votes = design) -> bool:
            sides = graded(rng, design.draw(rng).differences_SN)
            return judge(sides.a_SN, sides.b_TN, ONCE, key=KEY).words in CALLED

        yield worded("false calls, complete tables", "judge", f"{design.label}, both sides graded", coupled)
    arms = Arms(a_seeds=3, b_seeds=5, items=200, a_sd=0.05, b_sd=0.05)

    def apart_said(rng: np.random.Generator) -> bool:
        sides = arms.draw(rng)
        return judge(sides.a_SN, sides.b_TN, replace(ONCE, coupled=False), key=KEY).words in CALLED

    yield worded("false calls, uncoupled seeds", "judge", arms.label, apart_said)
    for seeds in (2, 3, 8):
        for sd in (0.0, 0.05, 0.10):
            fixed = Arms(a_seeds=seeds, b_seeds=1, items=200, a_sd=sd)

            def against(rng: np.random.Generator, design: Arms = fixed) -> bool:
                sides = design.draw(rng)
                return judge(sides.a_SN, sides.b_TN, replace(ONCE, fixed=Fixed.B), key=KEY).words in CALLED

            def against_fast(rng: np.random.Generator, design: Arms = fixed) -> bool:
                sides = design.draw(rng)
                return paired_effect(sides.a_SN - sides.b_TN, grades=True).called

            label = f"one fixed B, {fixed.label}"
            if (seeds, sd) == (3, 0.05):
                yield worded("false calls, fixed baseline", "judge", label, against)
            yield worded("false calls, fixed baseline", RULE, label, against_fast, small=(seeds, sd) == (3, 0.10))


def gains() -> Iterator[Cell]:
    """Learned or lost, against a step 0 that is one model."""
    for seeds in (1, 2, 3, 8):
        for sd in (0.0, 0.05) if seeds > 1 else (0.0,):
            design = Arms(a_seeds=seeds, b_seeds=1, items=100, a_sd=sd)

            def moved(rng: np.random.Generator, design: Arms = design) -> bool:
                sides = design.draw(rng)
                gain = paired_gain(sides.a_SN, sides.b_TN[0])
                return gain.learned or gain.lost

            yield worded(
                "false gains",
                "learned or lost",
                f"step 0, {design.label}",
                moved,
                counted="said",
                small=(seeds, sd) == (3, 0.05),
            )

    def something(rng: np.random.Generator) -> bool:
        sides, others = (Arms(a_seeds=3, b_seeds=1, items=100, a_sd=0.05).draw(rng) for _ in range(2))
        found = [paired_gain(part.a_SN, part.b_TN[0]) for part in (sides, others)]
        return not nothing_learned(found)

    yield worded(
        "false gains",
        "either of two arms learned",
        "step 0, 2 arms, 3 seeds × 100, SD 5 pp",
        something,
        counted="said",
        small=True,
    )


def these_runs() -> Iterator[Cell]:
    """Over items alone: one seed, and several seeds about their own gap."""
    one, several = "these runs only, one seed", "these runs only, several seeds"
    for items in (20, 30, 60, 200, 1319):
        for d in (0.05, 0.3, 0.6):
            design = Votes(seeds=1, items=items, d=d)
            yield read(
                one,
                design,
                lambda t: effect_of(t, grades=True).called_runs,
                "said",
                at_most(ALPHA),
                small=items == 60 and d != 0.6,
            )
    for items in (30, 200):
        scores = Scores(seeds=1, items=items)
        yield read(one, scores, lambda t: effect_of(t, grades=False).called_runs, "said", at_most(ALPHA))
    for seeds in (2, 3, 8):
        for tau, item_sd in ((0.0, 0.0), (0.05, 0.0), (0.05, 0.15)):
            design = Votes(seeds=seeds, items=200, tau=tau, item_sd=item_sd)

            def own(table: Table) -> bool:
                found = effect_of(table, grades=True)
                return abs(found.estimate - table.own_gap) <= found.half_items

            yield read(
                several,
                design,
                own,
                "the interval over items holds these seeds' own gap",
                at_least(1 - ALPHA),
                reader="95% interval over items",
                small=(seeds, item_sd) == (3, 0.15),
            )


def dead_heats() -> Iterator[Cell]:
    """Said at a true gap of exactly δ; and how often it is said where there is no gap."""
    for seeds, items, d, tau, delta in (
        (2, 1319, 0.1, 0.0, 0.02),
        (3, 1319, 0.1, 0.0, 0.02),
        (3, 1319, 0.1, 0.01, 0.03),
        (5, 1319, 0.1, 0.0, 0.02),
        (5, 1319, 0.3, 0.01, 0.03),
        (8, 1319, 0.1, 0.0, 0.02),
        (8, 200, 0.3, 0.0, 0.05),
        (16, 200, 0.3, 0.02, 0.05),
    ):
        design = Votes(seeds=seeds, items=items, d=d, tau=tau, gap=delta)

        def said(table: Table, delta: float = delta) -> bool:
            return effect_of(table, grades=True).within(delta)

        within = f"within ±{points(delta)}"
        yield read(
            "dead heat at a true gap of δ",
            design,
            said,
            "said",
            at_most(ALPHA),
            reader=within,
            small=(seeds, items) in ((3, 1319), (8, 200)),
        )
        yield read("dead heat without a gap", replace(design, gap=0.0), said, "said", NO_CLAIM, reader=within)


def families() -> Iterator[Cell]:
    """Any call among all pairs of arms that are alike."""
    for arms, seeds in ((3, 3), (6, 3), (6, 8)):
        for sd in (0.0, 0.03, 0.05):
            label = f"{arms} equal arms, {seeds} × 200, arm-seed SD {points(sd)}"

            def any_call(
                rng: np.random.Generator, arms: int = arms, seeds: int = seeds, sd: float = sd, adjusted: bool = True
            ) -> bool:
                grades_KSN = equal_arms(rng, arms=arms, seeds=seeds, items=200, sd=sd)
                found = [paired_effect(a - b, grades=True).p_value for a, b in combinations(grades_KSN, 2)]
                return min(holm(found) if adjusted else found) < ALPHA

            small = (arms, sd) == (3, 0.05)
            yield worded("family of contrasts", "Holm", label, any_call, counted="any pair called", small=small)
            if (arms, seeds) == (6, 3):
                plain = partial(any_call, adjusted=False)
                more = {"counted": "any pair called", "bound": lambda: NO_CLAIM}
                yield worded("family of contrasts, unadjusted", RULE, label, plain, **more)

    def worded_family(rng: np.random.Generator, wanted: Sequence[object] = CALLED, sd: float = 0.05) -> bool:
        grades_KSN = equal_arms(rng, arms=3, seeds=3, items=200, sd=sd)
        decided = family([judge(a, b, ONCE, key=KEY) for a, b in combinations(grades_KSN, 2)])
        return any(verdict.words in wanted for verdict in decided)

    label = "3 equal arms, 3 × 200, arm-seed SD {}, judged"
    yield worded("family of contrasts", "family", label.format("5 pp"), worded_family, counted="any pair called")
    yield worded(
        "family of contrasts",
        "family",
        label.format("0 pp"),
        lambda rng: worded_family(rng, (*CALLED, *THESE_RUNS), 0.0),
        counted="any pair called, or these runs only",
    )


def looks() -> Iterator[Cell]:
    """Called at any look; each look's p against its nominal level."""
    for seeds, step_seeds, items, step_items in ((3, 3, 1000, 200), (8, 8, 1000, 200), (10, 2, 200, 200)):
        num = seeds // step_seeds if step_seeds < seeds else items // step_items
        levels = nominal_levels([(look + 1) / num for look in range(num)])
        for tau in (0.0, 0.05, 0.10):
            design = Votes(seeds=seeds, items=items, tau=tau)
            after = f"after each {step_items} questions" if step_seeds == seeds else f"after each {step_seeds} seeds"

            def any_look(
                table: Table,
                levels: Sequence[float] = levels,
                rows: int = step_seeds,
                columns: int = step_items,
                growing: bool = step_seeds == seeds,
            ) -> bool:
                return any(
                    paired_effect(
                        table.differences_SN[:, : columns * (k + 1)]
                        if growing
                        else table.differences_SN[: rows * (k + 1)],
                        grades=True,
                    ).p_value
                    < level
                    for k, level in enumerate(levels)
                )

            yield read(
                "looks",
                design,
                any_look,
                "called at any look",
                at_most(ALPHA),
                reader=f"{num} looks {after}, spent",
                small=tau == 0.05 and items == 1000 and seeds == 3,
            )
            yield read(
                "looks, unadjusted",
                design,
                lambda t, look=any_look, num=num: look(t, levels=[ALPHA] * num),
                "called at any look",
                NO_CLAIM,
                reader=f"{num} looks {after}",
            )


# Claims: intervals.


def intervals() -> Iterator[Cell]:
    claim = "interval of a difference"
    for seeds in (2, 3, 5, 8, 16):
        for tau in (0.0, 0.05):
            yield covers(claim, Votes(seeds=seeds, items=200, tau=tau, gap=0.06), small=seeds in (3, 8) and tau > 0)
        yield covers(claim, Votes(seeds=seeds, items=200, d=0.05, gap=0.02))
        yield covers(claim, Votes(seeds=seeds, items=200, tau=0.03, item_sd=0.08, gap=0.03), small=seeds == 3)
    for seeds in (1, 3, 8):
        yield covers(claim, Votes(seeds=seeds, items=30, d=0.3, gap=0.15))
        yield covers(claim, Scores(seeds=seeds, items=30, tau=0.1 if seeds > 1 else 0.0, item_sd=1.0, gap=0.5))
        design = Clustered(clusters=10, log_sd=1.0, seeds=seeds, tau=0.02 if seeds > 1 else 0.0, gap=0.06)
        yield covers(claim, design, small=seeds == 3)
    for seeds in (2, 3, 8):
        holes = Holes(whole=Votes(seeds=seeds, items=60, tau=0.05, gap=0.06), missing=0.3)
        yield covers(claim, holes, small=seeds == 3)
    for alpha in (0.01, 0.10, 0.20):
        yield covers(claim, Votes(seeds=3, items=200, tau=0.03, gap=0.06), alpha=alpha)
    for a, b in ((2, 5), (3, 3), (3, 16)):
        for a_sd, b_sd in ((0.05, 0.05), (0.10, 0.0)):
            arms = Arms(a_seeds=a, b_seeds=b, items=200, a_sd=a_sd, b_sd=b_sd, gap=0.05)

            def holds(rng: np.random.Generator, design: Arms = arms) -> bool:
                sides = design.draw(rng)
                found = uncoupled_effect(sides.a_SN, sides.b_TN, grades=True)
                return found.low <= design.gap <= found.high

            yield worded(
                claim,
                "95% interval",
                arms.label,
                holds,
                counted="the interval holds the gap",
                bound=lambda: at_least(1 - ALPHA),
                small=(a, b, b_sd) == (3, 3, 0.05),
            )


def spreads() -> Iterator[Cell]:
    """τ̂'s own interval."""
    for seeds in (2, 3, 8, 16):
        for tau in (0.0, 0.03, 0.10):
            design = Votes(seeds=seeds, items=200, tau=tau)

            def holds(table: Table, tau: float = tau) -> bool:
                spread = effect_of(table, grades=True).spread
                return spread is not None and spread.low <= tau <= spread.high

            yield read(
                "interval of τ",
                design,
                holds,
                "the interval holds τ",
                at_least(1 - ALPHA),
                reader="95% interval of τ",
                small=(seeds, tau) == (3, 0.10),
            )
    for a, b in ((2, 5), (3, 3), (3, 16)):
        for sd in (0.0, 0.05):
            arms = Arms(a_seeds=a, b_seeds=b, items=200, a_sd=sd, b_sd=sd)
            true = math.sqrt(min(a, b) * (sd**2 / a + sd**2 / b))

            def holds_apart(rng: np.random.Generator, design: Arms = arms, true: float = true) -> bool:
                sides = design.draw(rng)
                spread = uncoupled_effect(sides.a_SN, sides.b_TN, grades=True).spread
                return spread is not None and spread.low <= true <= spread.high

            yield worded(
                "interval of τ",
                "95% interval of τ",
                arms.label,
                holds_apart,
                counted="the interval holds τ",
                bound=lambda: at_least(1 - ALPHA),
            )


def means() -> Iterator[Cell]:
    """Intervals of one side: accuracies, means of scores, shares, pass@k."""

    def cell(claim: str, reader: str, design: str, hit: Callable[[np.random.Generator], bool], **more: object) -> Cell:
        made = worded(claim, reader, design, hit, counted="the interval holds the truth")
        return replace(made, **{"bound": lambda: at_least(1 - ALPHA), **more})  # type: ignore[arg-type]

    for seeds in (2, 3, 8):
        for p in (0.1, 0.5):
            for sd in (0.0, 0.03):

                def side(rng: np.random.Generator, seeds: int = seeds, p: float = p, sd: float = sd) -> bool:
                    own_N = rng.beta(5 * p, 5 * (1 - p), size=200)
                    logits = sd * rng.standard_normal((seeds, 1))
                    own_SN = own_N + logits * 4 * own_N * (1 - own_N)  # mean p whatever the seeds' SD; inside [0, 1]
                    found = side_mean((rng.random((seeds, 200)) < own_SN).astype(float))
                    return found.low <= p <= found.high

                label = f"{seeds} × 200, accuracy {p:.0%}, seeds' SD {points(4 * sd * (p * (1 - p)) * 5 / 6)}"
                yield cell("interval of one side's mean", "side_mean", label, side, small=(seeds, p) == (3, 0.1))
    for n in (30, 200, 1319):

        def any_share(rng: np.random.Generator, n: int = n) -> bool:
            p = rng.random()
            found = wilson(int(rng.binomial(n, p)), n)
            return found.low <= p <= found.high

        yield cell("interval of a share", "Wilson", f"n = {n}, share uniform on [0, 1]", any_share, small=n == 200)
        for p in (0.01, 0.1, 0.5):

            def one_share(rng: np.random.Generator, n: int = n, p: float = p) -> bool:
                found = wilson(int(rng.binomial(n, p)), n)
                return found.low <= p <= found.high

            def exact_share(rng: np.random.Generator, n: int = n, p: float = p) -> bool:
                found = clopper_pearson(int(rng.binomial(n, p)), n)
                return found.low <= p <= found.high

            label = f"n = {n}, share {p:g}"
            yield cell("interval of a share, one share", "Wilson", label, one_share, bound=lambda: NO_CLAIM)
            yield cell("interval of a share, one share", "Clopper–Pearson", label, exact_share)
    for num in (6, 10, 40):
        for log_sd in (0.5, 1.0):
            design = Clustered(clusters=num, log_sd=log_sd, seeds=1, gap=0.06)

            def clustered(rng: np.random.Generator, design: Clustered = design) -> bool:
                table = design.draw(rng)
                found = clustered_mean(table.differences_SN[0], table.clusters_N or [])
                return found.low <= design.gap <= found.high

            yield cell(
                "interval of a mean over clusters",
                "clustered_mean",
                design.label,
                clustered,
                small=(num, log_sd) == (10, 1.0),
            )
    for n in (30, 200):

        def mean(rng: np.random.Generator, n: int = n) -> bool:
            found = mean_score(0.5 + rng.standard_t(3, size=n)).interval
            return found.low <= 0.5 <= found.high

        yield cell("interval of a mean score", "mean_score", f"{n} scores, t₃", mean, small=n == 30)

    def passes(rng: np.random.Generator) -> bool:
        p_P = rng.beta(0.5, 1.0, size=100)
        found = pass_at_k(rng.binomial(16, p_P), np.full(100, 16), 4).interval
        return found.low <= PASS_AT_4 <= found.high

    yield cell("interval of pass@k", "pass_at_k", "100 problems × 16 samples, k = 4", passes, small=True)


PASS_AT_4 = 1 - (1 * 2 * 3 * 4) / (1.5 * 2.5 * 3.5 * 4.5)  # E[(1−p)⁴] for p ~ Beta(½, 1): Γ(5)/Γ(1)·Γ(3/2)/Γ(11/2)


# Claims: power, and the rates that are printed.


def at_gap(design: Design, gap: float) -> Design:
    return replace(design, gap=gap)  # type: ignore[type-var]


def searched(claim: str, reader: str, design: Votes | Scores, model: Model, rule: Rule, *, small: bool = False) -> Cell:
    """Calls of A at the smallest gap that the product names for this model."""
    shape = Shape(num_items=design.items, num_seeds=design.seeds, rule=rule)
    found: list[float] = []

    def gap() -> float:
        if not found:
            found.append(smallest_gap(model, shape, key=KEY, reruns=50_000).gap or math.nan)
        return found[0]

    def said(rng: np.random.Generator) -> bool:
        table = at_gap(design, gap()).draw(rng)
        if rule is not Rule.SEEDS_AND_ITEMS:
            return read_votes(rule, table.differences_SN).words is VoteWords.CALLED_A
        effect = effect_of(table, grades=design.grades)
        return (effect.called_runs if design.seeds == 1 else effect.called) and effect.estimate > 0

    return Cell(
        claim=claim,
        reader=reader,
        design=f"{design.label}, at the smallest gap",
        counted="the better side called",
        hit=said,
        bound=lambda: around(0.80),
        small=small,
    )


def power() -> Iterator[Cell]:
    claim = "smallest gap, 80% power"
    for seeds, items, d, tau, item_sd in (
        (1, 500, 0.226, 0.0, 0.0),
        (2, 1319, 0.3, 0.0, 0.0),
        (3, 500, 0.226, 0.0, 0.0),
        (8, 200, 0.05, 0.0, 0.0),
        (3, 1319, 0.3, 0.03, 0.0),
        (3, 200, 0.3, 0.0, 0.15),
        (5, 500, 0.3, 0.03, 0.0),
        (8, 200, 0.3, 0.02, 0.1),
        (16, 1319, 0.3, 0.05, 0.0),
    ):
        design = Votes(seeds=seeds, items=items, d=d, tau=tau, item_sd=item_sd)
        model = vote_components(d, tau_frac=tau, item_sd=item_sd)
        small = (seeds, items) in ((3, 500), (3, 200), (5, 500), (1, 500))
        yield searched(claim, RULE, design, model, Rule.SEEDS_AND_ITEMS, small=small)
    for seeds, items, tau, item_sd, heavy in (
        (3, 200, 0.1, 0.5, False),
        (8, 60, 0.0, 1.0, False),
        (3, 200, 0.0, 0.5, True),
    ):
        scores = Scores(seeds=seeds, items=items, tau=tau, item_sd=item_sd, heavy=heavy)
        parts = Components(seed_var=tau**2, item_var=item_sd**2, residual_var=1.0, grades=False)
        yield searched(claim, RULE, scores, parts, Rule.SEEDS_AND_ITEMS, small=heavy)
    for rule in (Rule.TWO_PART, Rule.STRICT_MAJORITY, Rule.PER_SEED, Rule.POOLED):
        votes = Votes(seeds=3, items=500, d=0.226)
        yield searched(
            claim, f"{rule.value} rule", votes, IidVotes(discordance_frac=0.226), rule, small=rule is Rule.TWO_PART
        )
    yield bought()


def bought() -> Cell:
    """The smallest gap that `spend` names for what is there, behind a stated standard error; each seed has its own items."""
    split = split_from_se(7.25, 12.4, Allocation(num_seeds=3, num_pairs=975))
    plan = spend(0.0, Prices(seed=3.5, pair=0.005, judge=0.3), split, key=KEY, reruns=50_000)
    gap = plan.now.smallest.gap if plan.now.smallest else None

    def said(rng: np.random.Generator) -> bool:
        seeds_S, cells_SN = rng.standard_normal((3, 1)), rng.standard_normal((3, 325))
        table_SN = (gap or math.nan) + split.seed_var**0.5 * seeds_S + split.residual_var**0.5 * cells_SN
        found = paired_effect(table_SN, grades=False)
        return found.called and found.estimate > 0

    return Cell(
        claim="smallest gap, 80% power",
        reader="spend",
        design="3 × 325, SE 7.25, seed term 12.4 times the pair term, at the smallest gap",
        counted="the better side called",
        hit=said,
        bound=lambda: around(0.80),
        small=True,
    )


def printed_rates() -> Iterator[Cell]:
    """catch_rate against a count of tables: false calls and power, every rule, every model of votes."""

    def cell(rule: Rule, design: Votes, model: Model, *, small: bool = False) -> Cell:
        shape = Shape(num_items=design.items, num_seeds=design.seeds, rule=rule)

        def said(table: Table) -> bool:
            if rule is Rule.SEEDS_AND_ITEMS:
                found = effect_of(table, grades=True)
                runs = found.called_runs if design.seeds == 1 else found.called
                return runs and (not design.gap or found.estimate > 0)
            words = read_votes(rule, table.differences_SN).words
            return words is VoteWords.CALLED_A or (not design.gap and words is VoteWords.CALLED_B)

        def bound() -> Bound:
            rate = catch_rate(design.gap, model, shape, key=KEY)
            return around(rate.rate_frac if design.gap else rate.false_call_frac)

        name = "printed rate of false calls" if not design.gap else "printed power"
        return Cell(
            claim=name,
            reader=RULE if rule is Rule.SEEDS_AND_ITEMS else f"{rule.value} rule",
            design=design.label,
            counted="called" if not design.gap else "the better side called",
            hit=lambda rng: said(design.draw(rng)),
            bound=bound,
            small=small,
        )

    for seeds, items, d, tau in (
        (1, 200, 0.3, 0.0),
        (2, 200, 0.3, 0.10),
        (3, 200, 0.3, 0.0),
        (3, 200, 0.3, 0.10),
        (3, 1319, 0.3, 0.05),
        (3, 200, 0.05, 0.02),
        (8, 200, 0.3, 0.05),
        (16, 200, 0.3, 0.0),
    ):
        model = SeedEffects(discordance_frac=d, tau_frac=tau)
        design = Votes(seeds=seeds, items=items, d=d, tau=tau)
        yield cell(Rule.SEEDS_AND_ITEMS, design, model, small=(seeds, items, tau) == (3, 200, 0.10))
        yield cell(Rule.TWO_PART, design, model, small=(seeds, items, tau) == (3, 200, 0.10))
    spread = SeedEffects(discordance_frac=0.3, tau_frac=0.05)
    for rule in (Rule.STRICT_MAJORITY, Rule.PER_SEED, Rule.POOLED):
        yield cell(rule, Votes(seeds=3, items=200, tau=0.05), spread)
    for rule in (Rule.SEEDS_AND_ITEMS, Rule.TWO_PART):
        yield cell(rule, Votes(seeds=3, items=500, d=0.226, gap=0.03), IidVotes(discordance_frac=0.226), small=True)
        yield cell(
            rule, Votes(seeds=3, items=200, tau=0.02, gap=0.06), SeedEffects(discordance_frac=0.3, tau_frac=0.02)
        )
        few = MixtureVotes(discordance_frac=0.2, share_frac=0.4)
        yield cell(rule, Votes(seeds=3, items=200, d=0.2, voting=0.4), few)
        yield cell(rule, Votes(seeds=3, items=200, d=0.2, voting=0.4, gap=0.06), few)


def pilots() -> Iterator[Cell]:
    """A verdict's own figures: the smallest gap a table prints, held against fresh tables with that gap."""
    whole = Votes(seeds=3, items=200)
    passages = Clustered(clusters=40, log_sd=0.5, seeds=3)
    apart_ = Arms(a_seeds=3, b_seeds=5, items=200)

    def printed(design: Votes | Clustered) -> Callable[[np.random.Generator], bool]:
        def said(rng: np.random.Generator) -> bool:
            pilot = design.draw(rng)
            sides = graded(rng, pilot.differences_SN)
            verdict = judge(sides.a_SN, sides.b_TN, Terms(reruns=1000), key=KEY, clusters=pilot.clusters_N)
            gap = verdict.instrument.smallest.gap if verdict.instrument.smallest else None
            fresh = effect_of(at_gap(design, gap or math.nan).draw(rng), grades=True)
            return fresh.called and fresh.estimate > 0

        return said

    def printed_apart(rng: np.random.Generator) -> bool:
        pilot = apart_.draw(rng)
        verdict = judge(pilot.a_SN, pilot.b_TN, Terms(reruns=1000, coupled=False), key=KEY)
        gap = verdict.instrument.smallest.gap if verdict.instrument.smallest else None
        sides = replace(apart_, gap=gap or math.nan).draw(rng)
        fresh = uncoupled_effect(sides.a_SN, sides.b_TN, grades=True)
        return fresh.called and fresh.estimate > 0

    more = {"counted": "the better side called", "bound": lambda: around(0.80)}
    claim = "a verdict's smallest gap, on fresh tables"
    yield worded(claim, "judge", f"{whole.label}, gap from a pilot", printed(whole), **more)
    yield worded(claim, "judge", f"{passages.label}, gap from a pilot", printed(passages), **more)
    yield worded(claim, "judge", f"{apart_.label}, gap from a pilot", printed_apart, **more)


def floors() -> Iterator[Cell]:
    """A true gap as large as the floor is significant in four of five reruns, by the z-test the floor stands for."""

    def z_test(a_N: Floats, b_N: Floats, *, paired: bool) -> bool:
        parts = [a_N - b_N] if paired else [a_N, b_N]
        se = math.sqrt(sum(part.var(ddof=1) / part.size for part in parts))
        return a_N.mean() - b_N.mean() > 1.959964 * se

    def cell(reader: str, design: str, hit: Callable[[np.random.Generator], bool], small: bool = False) -> Cell:
        return worded(
            "floor, 80% power",
            reader,
            design,
            hit,
            counted="significant for the better side",
            bound=lambda: at_least(0.80),
            small=small,
        )

    for n, p in ((30, 0.4), (500, 0.5), (1319, 0.87)):
        floor = detection_floor(n, p).floor_frac
        sign = 1 if p + floor < 1 else -1

        def two(rng: np.random.Generator, n: int = n, p: float = p, floor: float = floor, sign: int = sign) -> bool:
            high, low = (p + floor, p) if sign > 0 else (p, p - floor)
            a_N, b_N = (rng.random(n) < high).astype(float), (rng.random(n) < low).astype(float)
            return z_test(a_N, b_N, paired=False)

        label = f"n = {n}, baseline {p:g}, {'gain' if sign > 0 else 'loss'} of {100 * floor:.2f} pp"
        yield cell("two accuracies", label, two, small=n == 500)
    for n, d in ((500, 0.226), (1319, 0.0895)):
        design = Votes(seeds=1, items=n, d=d, gap=paired_floor(n, d).floor_frac)

        def pairs(rng: np.random.Generator, design: Votes = design) -> bool:
            row_N = design.draw(rng).differences_SN[0]
            return z_test(row_N, np.zeros_like(row_N), paired=True)

        yield cell("paired", f"n = {n}, d {d:g}, gap {100 * design.gap:.2f} pp", pairs, small=n == 500)
    k, n = 4, 200
    floor = averaged_floor(n, 0.5, k, 0.05).floor_frac

    def averaged(rng: np.random.Generator) -> bool:
        a_N, b_N = (
            rng.binomial(k, np.clip(rng.beta(2, 2, size=n) + shift, 0, 1)) / k for shift in (floor / 2, -floor / 2)
        )
        return z_test(a_N, b_N, paired=False)

    yield cell(f"average of {k}", f"n = {n}, baseline 0.5, item variance 0.05, gap {100 * floor:.2f} pp", averaged)


# Claims: tests and rankings.


def tests() -> Iterator[Cell]:
    claim = "tests by name"
    for n, d in ((30, 0.3), (200, 0.3)):
        design = Votes(seeds=1, items=n, d=d)

        def t_said(table: Table) -> bool:
            row_N = table.differences_SN[0]
            return paired_t(row_N, np.zeros_like(row_N)).p_value < ALPHA

        def exact(table: Table) -> bool:
            row_N = table.differences_SN[0]
            return binomial_two_sided(int((row_N > 0).sum()), int((row_N < 0).sum())).p_value < ALPHA

        def flips(table: Table) -> bool:
            row_N = table.differences_SN[0]
            return permutation_test(row_N, np.zeros_like(row_N), key=KEY, resamples=999).p_value < ALPHA

        for reader, said in (("paired t", t_said), ("exact binomial (McNemar)", exact), ("permutation", flips)):
            yield read(claim, design, said, "p < α", at_most(ALPHA), reader=reader, small=n == 30)
    for models, items in ((6, 200), (20, 200), (20, 805)):

        def ranked(rng: np.random.Generator, models: int = models, items: int = items) -> bool:
            p_N = rng.uniform(0.2, 0.8, size=items)
            scores_MN = (rng.random((models, items)) < p_N).astype(float)
            return neighbours(scores_MN, [str(m) for m in range(models)]).num_separated > 0

        yield worded(
            "ranking's neighbours",
            "Holm over neighbours",
            f"{models} equal models × {items}",
            ranked,
            counted="any pair separated",
            small=(models, items) == (6, 200),
        )

    def discoveries(rng: np.random.Generator) -> bool:
        gaps_K = np.array([0.0] * 5 + [0.5] * 5)
        ps = [paired_effect(gap + rng.standard_normal((1, 40)), grades=False).p_items for gap in gaps_K]
        found = np.array(benjamini_hochberg(ps)) < ALPHA
        return bool(rng.random() < found[:5].sum() / max(found.sum(), 1))  # true with the share of false ones

    yield worded(
        "share of false discoveries",
        "Benjamini–Hochberg",
        "10 contrasts × 40 items, half without a gap",
        discoveries,
        counted="share of discoveries that are false",
        small=True,
    )


# The rules side by side.

TAUS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.075, 0.10)
SIZES = (200, 1319)
SEEDS = (2, 3, 5, 8, 12, 16)


def side_by_side() -> Iterator[Cell]:
    for reader, said in OTHERS.items():
        for items in SIZES:
            for tau in TAUS:
                design = Votes(seeds=3, items=items, tau=tau)
                yield read(
                    "rules side by side, no gap",
                    design,
                    lambda t, said=said: said(t, True),
                    "called",
                    NO_CLAIM,
                    reader=reader,
                    most=500 if items > 200 and said is crossed_calls else None,
                )
        for seeds in SEEDS:
            if reader != "crossed bootstrap":
                design = Votes(seeds=seeds, items=500, tau=0.03, gap=0.06)
                yield read(
                    "rules side by side, gap of 6 pp",
                    design,
                    lambda t, said=said: said(t, True),
                    "called",
                    NO_CLAIM,
                    reader=reader,
                )
    for items, tau in ((200, 0.0), (200, 0.05), (200, 0.10), (1319, 0.05)):
        design = Votes(seeds=3, items=items, tau=tau, gap=0.06)

        def crossed(table: Table) -> bool:
            found = bootstrap(table.differences_SN, "crossed", key=KEY, resamples=RESAMPLES)
            return found.low <= 0.06 <= found.high

        yield read(
            "interval by name, no level promised",
            design,
            crossed,
            "the interval holds the gap",
            NO_CLAIM,
            reader="crossed bootstrap, 95%",
            most=500 if items > 200 else None,
        )


GROUPS = (
    complete,
    missing,
    clusters,
    uncoupled,
    by_judge,
    gains,
    these_runs,
    dead_heats,
    families,
    looks,
    intervals,
    spreads,
    means,
    power,
    printed_rates,
    pilots,
    floors,
    tests,
    side_by_side,
)


def all_cells() -> list[Cell]:
    """Every cell, in the order of the table."""
    return [cell for group in GROUPS for cell in group()]

"""Cells of what is said where there is no gap: calls, these runs only, dead heats, families of contrasts, looks."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np

from deadheat.stats.effect import paired_effect, uncoupled_effect
from deadheat.stats.gains import nothing_learned, paired_gain
from deadheat.stats.holm import holm
from deadheat.stats.looks import nominal_levels
from deadheat.stats.verdict import CALLED, THESE_RUNS, Fixed, family, judge

from .cells import ALPHA, KEY, NO_CLAIM, ONCE, RULE, Cell, at_least, at_most, effect_of, false_calls, read, worded
from .designs import Arms, Clustered, Holes, Scores, Table, Votes, equal_arms, graded, points

FEW = {(2, 200, 0.10), (3, 200, 0.10), (3, 1319, 0.10), (8, 200, 0.0), (16, 200, 0.05)}


def complete() -> Iterator[Cell]:
    """Seeds that differ, many seeds, ties, item effects, real-valued scores."""
    claim = "false calls, complete tables"
    for seeds in (2, 3, 5, 8, 16):
        for items in (30, 200, 1319):
            for tau in (0.0, 0.05, 0.10):
                yield false_calls(claim, Votes(seeds=seeds, items=items, tau=tau), small=(seeds, items, tau) in FEW)
            for tau in (0.0, 0.02):
                ties = Votes(seeds=seeds, items=items, d=0.05, tau=tau)
                yield false_calls(claim, ties, small=items == 200 and seeds in (3, 8) and tau > 0)
        for items in (30, 200):
            for tau in (0.0, 0.05):
                uneven = Votes(seeds=seeds, items=items, tau=tau, item_sd=0.15)
                yield false_calls(claim, uneven, small=items == 200 and seeds in (3, 8) and tau > 0)
    for seeds in (2, 3, 8, 20):
        for items in (30, 200):
            for tau, item_sd in ((0.0, 0.0), (0.1, 0.0), (0.1, 1.0), (0.3, 1.0)):
                scores = Scores(seeds=seeds, items=items, tau=tau, item_sd=item_sd)
                yield false_calls(claim, scores, small=items == 30 and seeds in (3, 8) and tau == 0.3)
        yield false_calls(claim, Scores(seeds=seeds, items=60, tau=0.1, item_sd=0.5, heavy=False))


def missing() -> Iterator[Cell]:
    claim = "false calls, missing cells"
    for seeds in (2, 3, 8):
        for items in (60, 200):
            for tau in (0.0, 0.05):
                whole = Votes(seeds=seeds, items=items, tau=tau)
                for share, first in ((0.1, False), (0.3, False), (0.3, True)):
                    holes = Holes(whole=whole, missing=share, first_seed_only=first)
                    yield false_calls(claim, holes, small=items == 60 and seeds == 3 and tau == 0.05 and share == 0.3)
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

"""Cells of power and of the rates that commands print: smallest gaps, catch rates, floors."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from deadheat.stats.effect import paired_effect, uncoupled_effect
from deadheat.stats.floors import averaged_floor, detection_floor, paired_floor
from deadheat.stats.power import catch_rate, smallest_gap
from deadheat.stats.rules import VoteWords, read_votes
from deadheat.stats.spend import Prices, spend
from deadheat.stats.variance import Allocation, split_from_se
from deadheat.stats.verdict import Terms, judge
from deadheat.stats.vote_models import Components, IidVotes, MixtureVotes, Model, SeedEffects, vote_components
from deadheat.stats.vote_models import Design as Shape
from deadheat.stats.votes import Rule

from .cells import KEY, RULE, Bound, Cell, around, at_least, effect_of, worded
from .designs import Arms, Clustered, Design, Floats, Scores, Table, Votes, graded


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
        (3, 200, 0.6, 0.0, 0.15),
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

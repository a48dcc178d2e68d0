"""Cells of 95% intervals: of a difference, of τ, of one side's mean, of shares and scores; and of tests by name."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from deadheat.stats.clusters import clustered_mean
from deadheat.stats.effect import paired_effect, side_mean, uncoupled_effect
from deadheat.stats.groups import pass_at_k
from deadheat.stats.holm import benjamini_hochberg
from deadheat.stats.intervals import clopper_pearson, mean_score, wilson
from deadheat.stats.neighbours import neighbours
from deadheat.stats.significance import binomial_two_sided, paired_t, permutation_test

from .cells import ALPHA, KEY, NO_CLAIM, Cell, at_least, at_most, covers, effect_of, read, worded
from .designs import Arms, Clustered, Holes, Scores, Table, Votes, points


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
        for p in (0.17 / n, 0.01, 0.1, 0.5):  # just below the lower bound of one in n: the worst there is

            def one_share(rng: np.random.Generator, n: int = n, p: float = p) -> bool:
                found = wilson(int(rng.binomial(n, p)), n)
                return found.low <= p <= found.high

            def exact_share(rng: np.random.Generator, n: int = n, p: float = p) -> bool:
                found = clopper_pearson(int(rng.binomial(n, p)), n)
                return found.low <= p <= found.high

            label = f"n = {n}, share {p:.2g}"
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

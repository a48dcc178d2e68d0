"""What the page *How often is Deadheat wrong?* promises, counted again on 2,000 tables of each cell marked small."""

from itertools import combinations

import numpy as np
import pytest

from deadheat.sampling.keys import derive, generator
from deadheat.stats.effect import paired_effect
from deadheat.stats.holm import holm
from deadheat.stats.power import parts_of
from deadheat.stats.verdict import CALLED, Terms, family, judge
from deadheat.stats.vote_models import Layouts

from .cells import DOMAIN, TABLES, around, at_least, at_most, count
from .claims import all_cells
from .designs import Clustered, Holes, Scores, Votes, equal_arms, graded

CELLS = all_cells()
SMALL = [cell for cell in CELLS if cell.small]


@pytest.mark.parametrize("cell", SMALL, ids=[cell.name for cell in SMALL])
def test_a_claim_holds_on_2000_tables(cell):
    counted = count(cell)
    assert counted.tables == TABLES
    assert counted.holds, f"{counted.rate:.2%} ± {counted.se:.2%}; wanted {counted.bound.words}"


def test_bounds_are_three_standard_errors_of_2000_tables_from_the_claim():
    # √(.05·.95/2000) = .00487, √(.8·.2/2000) = .00894; three of them to a tenth of a point: 1.5 and 2.7 points
    assert at_most(0.05).high == pytest.approx(0.065)
    assert at_least(0.95).low == pytest.approx(0.935)
    assert at_least(0.80).low == pytest.approx(0.773)
    assert (around(0.5).low, around(0.5).high) == pytest.approx((0.5 - 3 * 0.01118, 0.5 + 3 * 0.01118), abs=1e-4)


@pytest.mark.parametrize(
    "design",
    [
        Votes(seeds=3, items=200, tau=0.10),
        Votes(seeds=8, items=60, item_sd=0.15),
        Votes(seeds=2, items=30, d=0.05),
        Scores(seeds=3, items=30, tau=0.3, item_sd=1.0),
    ],
    ids=lambda design: design.label,
)
def test_the_rates_of_many_tables_at_once_are_those_of_the_tables_one_by_one(design):
    """`catch_rate` reads sums of squares of many tables; `paired_effect` one table. The same p-values, to rounding."""
    rng = generator(derive(DOMAIN, "slow twin", design.label))
    tables = np.stack([design.draw(rng).differences_SN for _ in range(200)])
    num_seeds, num_items = tables.shape[1:]
    mean_R, rows_RS, columns_RN = tables.mean(axis=(1, 2)), tables.mean(axis=2), tables.mean(axis=1)
    residuals = tables - rows_RS[:, :, None] - columns_RN[:, None, :] + mean_R[:, None, None]
    layouts = Layouts(
        mean_R=mean_R,
        row_ss_R=((rows_RS - mean_R[:, None]) ** 2).sum(axis=1),
        column_ss_R=((columns_RN - mean_R[:, None]) ** 2).sum(axis=1),
        residual_ss_R=(residuals**2).sum(axis=(1, 2)),
        grades=design.grades,
    )
    at_once = parts_of(layouts, num_seeds, num_items).p_value(mean_R)
    one_by_one = [paired_effect(table, grades=design.grades).p_value for table in tables]
    np.testing.assert_allclose(at_once, one_by_one, rtol=1e-9)


def test_the_words_of_a_verdict_are_those_that_the_cells_count():
    """Cells read differences by `paired_effect`; `judge` reads two sides of grades. One decision."""
    rng = generator(derive(DOMAIN, "judge"))
    for design in (Votes(seeds=3, items=200, tau=0.10, gap=0.15), Clustered(clusters=10, log_sd=1.0, seeds=3, gap=0.2)):
        seen = set()
        for _ in range(30):
            table = design.draw(rng)
            sides = graded(rng, table.differences_SN)
            verdict = judge(sides.a_SN, sides.b_TN, Terms(reruns=1), key=1, clusters=table.clusters_N)
            effect = paired_effect(table.differences_SN, grades=True, clusters=table.clusters_N)
            assert verdict.effect.p_value == effect.p_value
            assert (verdict.words in CALLED) == effect.called
            seen.add(effect.called)
        assert seen == {True, False}


def test_the_smallest_gap_of_grades_in_clusters_is_no_larger_than_the_largest_there_is():
    table = Clustered(clusters=6, log_sd=1.0, seeds=2, cluster_sd=0.2).draw(generator(derive(DOMAIN, "largest")))
    sides = graded(generator(derive(DOMAIN, "grades")), table.differences_SN)
    smallest = judge(sides.a_SN, sides.b_TN, Terms(reruns=1000), key=1, clusters=table.clusters_N).instrument.smallest
    assert smallest.most_gap == 1
    assert smallest.gap is None or smallest.gap <= 1


def test_a_family_calls_what_holm_of_its_p_values_calls():
    rng = generator(derive(DOMAIN, "family"))
    for _ in range(10):
        grades_KSN = equal_arms(rng, arms=3, seeds=3, items=200, sd=0.05)
        grades_KSN[0, :, :60] = 1.0  # the first arm is better
        pairs = list(combinations(grades_KSN, 2))
        adjusted = holm([paired_effect(a - b, grades=True).p_value for a, b in pairs])
        decided = family([judge(a, b, Terms(reruns=1), key=1) for a, b in pairs])
        assert [verdict.words in CALLED for verdict in decided] == [p < 0.05 for p in adjusted]


def test_drawn_tables_have_the_truth_they_name():
    rng = generator(derive(DOMAIN, "truth"))
    votes = np.stack(
        [
            Votes(seeds=2, items=500, d=0.3, tau=0.05, item_sd=0.08, gap=0.06).draw(rng).differences_SN
            for _ in range(400)
        ]
    )
    # SE of the mean: √(.05²/2 + .08²/500 + (.3 − .0125)/1000)/√400 = .002; rows spread by √(.05² + .29/500 …) about .056
    assert votes.mean() == pytest.approx(0.06, abs=0.006)
    assert (votes != 0).mean() == pytest.approx(0.3, abs=0.005)
    assert votes.mean(axis=2).std() == pytest.approx((0.05**2 + 0.08**2 / 500 + 0.29 / 500) ** 0.5, abs=0.005)
    holes = Holes(whole=Votes(seeds=3, items=1000), missing=0.3, first_seed_only=True).draw(rng).differences_SN
    assert np.isnan(holes).mean(axis=1) == pytest.approx([0.3, 0, 0], abs=0.05)
    silent = Votes(seeds=5, items=4000, d=0.2, voting=0.4, gap=0.06).draw(rng).differences_SN
    assert (silent != 0).any(axis=0).mean() == pytest.approx(
        0.4 * (1 - 0.5**5), abs=0.03
    )  # half of their votes are cast
    assert silent.mean() == pytest.approx(0.06, abs=0.015)


def test_the_same_key_counts_the_same_and_another_design_draws_others():
    cell = next(cell for cell in SMALL if cell.claim.startswith("false calls"))
    assert count(cell, 100).rate == count(cell, 100).rate
    first, other = (generator(derive(DOMAIN, label)).random(4) for label in (cell.design, cell.design + " "))
    assert not np.array_equal(first, other)

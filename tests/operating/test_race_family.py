"""How often a race between equal recipes calls anything: a family of six arms, and looks at a growing folder.

2,000 tables under fixed keys. The p-values of all tables come from the arrays behind `catch_rate` at once; a sample of
them is held against `judge` and `family`, the functions a race calls. Bounds are 5% and 3 SE of 2,000 tables: 6.5%.
"""

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from deadheat.race.looks import level_of
from deadheat.stats import Terms, judge
from deadheat.stats.holm import holm
from deadheat.stats.looks import nominal_levels
from deadheat.stats.power import parts_of
from deadheat.stats.verdict import family
from deadheat.stats.vote_models import Layouts

TABLES, ITEMS = 2000, 200
BOUND = 0.065
QUICK = Terms(reruns=1)  # the rates beside a verdict are not read here
Floats = NDArray[np.float64]


def answers(rng: np.random.Generator, num_arms: int, num_seeds: int, *, seed_sd: float, item_sd: float) -> Floats:
    """[arms, S, N] grades of equal arms: every arm's seeds spread, all arms share the items."""
    chance = 0.6 + item_sd * rng.standard_normal(ITEMS) + seed_sd * rng.standard_normal((num_arms, num_seeds, 1))
    return (rng.random((num_arms, num_seeds, ITEMS)) < chance).astype(np.float64)


def p_values(gaps: list[Floats]) -> Floats:
    """The effect's p-value of many tables of one shape."""
    gap_RSN = np.stack(gaps)
    mean_R = gap_RSN.mean(axis=(1, 2))
    rows_RS, columns_RN = gap_RSN.mean(axis=2), gap_RSN.mean(axis=1)
    row_ss_R = ((rows_RS - mean_R[:, None]) ** 2).sum(axis=1)
    column_ss_R = ((columns_RN - mean_R[:, None]) ** 2).sum(axis=1)
    total_R = ((gap_RSN - mean_R[:, None, None]) ** 2).sum(axis=(1, 2))
    num_seeds, num_items = gap_RSN.shape[1:]
    layouts = Layouts(
        mean_R=mean_R,
        row_ss_R=row_ss_R,
        column_ss_R=column_ss_R,
        residual_ss_R=np.maximum(total_R - num_items * row_ss_R - num_seeds * column_ss_R, 0.0),
        grades=True,
    )
    return np.asarray(parts_of(layouts, num_seeds, num_items).p_value(mean_R))


# The worst cell of a family is quoted in docs/decisions/008.
@pytest.mark.parametrize(("seed_sd", "item_sd"), [(0.0, 0.0), (0.03, 0.15), (0.05, 0.0), (0.05, 0.15)])
def test_of_races_between_six_equal_arms_at_most_six_in_a_hundred_call_anything(seed_sd: float, item_sd: float) -> None:
    pairs = list(combinations(range(6), 2))
    called = 0
    for table in range(TABLES):
        arms = answers(np.random.default_rng([8, table]), 6, 3, seed_sd=seed_sd, item_sd=item_sd)
        ps = p_values([arms[a] - arms[b] for a, b in pairs]).tolist()
        called += min(holm(ps)) < 0.05
        if table < 3:
            verdicts = family([judge(arms[a], arms[b], QUICK, key=1) for a, b in pairs])
            assert [verdict.effect.p_value for verdict in verdicts] == pytest.approx(ps)
            assert any(verdict.called for verdict in verdicts) == (min(holm(ps)) < 0.05)
    assert called / TABLES <= BOUND


@pytest.mark.parametrize("seed_sd", [0.0, 0.05])
def test_three_declared_looks_together_call_a_winner_at_most_six_times_in_a_hundred(seed_sd: float) -> None:
    # Two seeds, four, six; a look is a race whose first seeds have ended in both arms.
    tables = [
        answers(np.random.default_rng([9, table]), 2, 6, seed_sd=seed_sd, item_sd=0.15) for table in range(TABLES)
    ]
    ps_LR = np.stack([p_values([a[:seeds] - b[:seeds] for a, b in tables]) for seeds in (2, 4, 6)])
    shares = [1 / 3, 2 / 3, 1.0]
    levels = [level_of(shares[:look], declared=3, alpha=0.05) for look in (1, 2, 3)]
    assert levels == pytest.approx(nominal_levels(shares), rel=1e-6)
    assert (ps_LR < np.array(levels)[:, None]).any(axis=0).mean() <= BOUND
    for (a, b), p, level in zip(tables[:5], ps_LR[1], levels[1:2] * 5, strict=False):
        (verdict,) = family([judge(a[:4], b[:4], QUICK, key=1)], alpha=level)
        assert (verdict.effect.p_value, verdict.called) == (pytest.approx(p), p < level)

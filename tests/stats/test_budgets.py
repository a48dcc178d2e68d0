"""Where the uncertainty comes from, and what the next budget should buy."""

import math

import numpy as np
import pytest

from deadheat.errors import StatsError
from deadheat.stats.spend import CatchTarget, Prices, scale_cost, spend
from deadheat.stats.variance import (
    Allocation,
    Items,
    effective_judges,
    split_from_se,
    variance_at,
    variance_split,
)
from deadheat.stats.votes import Rule

PRICES = Prices(seed=3.50, pair=0.005, judge=0.30)
MEASURED = split_from_se(7.25, 12.4, Allocation(num_seeds=3, num_pairs=975))


def layout(
    seed_sd: float, item_sd: float, judge_sd: float, jitter_sd: float, shape: tuple[int, int, int, int]
) -> np.ndarray:
    """Scores with known components: seed + item + judge-on-pair + scoring."""
    rng = np.random.Generator(np.random.Philox(key=21))
    s, n, j, r = shape
    parts = ((seed_sd, (s, 1, 1, 1)), (item_sd, (s, n, 1, 1)), (judge_sd, (s, n, j, 1)), (jitter_sd, (s, n, j, r)))
    return np.asarray(sum(sd * rng.standard_normal(size) for sd, size in parts))


def test_the_four_parts_of_a_known_layout_come_back() -> None:
    split = variance_split(layout(0.5, 1.0, 0.4, 0.3, (40, 400, 3, 4)))
    # Seed part: 40 seeds, SE of a variance sqrt(2/39) = 23%; the others rest on 16,000 pairs, SE about 1%.
    assert split.seed_var == pytest.approx(0.25, rel=0.6)
    # Every seed has items of its own here: nothing is common to the seeds.
    assert split.item_var == pytest.approx(0.0, abs=0.01)
    assert split.residual_var == pytest.approx(1.0, rel=0.05)
    assert split.judge_var == pytest.approx(0.16, rel=0.08)
    assert split.jitter_var == pytest.approx(0.09, rel=0.03)
    # r = 1/(1 + .16 + .09/4) = .8457
    assert split.judge_correlation == pytest.approx(0.8457, abs=0.01)


def test_an_items_difficulty_shared_by_all_seeds_is_not_seed_variance() -> None:
    rng = np.random.Generator(np.random.Philox(key=22))
    table = np.broadcast_to(rng.standard_normal(500), (3, 500)) + 0.01 * rng.standard_normal((3, 500))
    split = variance_split(table)
    assert split.seed_var < 1e-5
    assert (split.item_var, split.residual_var) == (pytest.approx(1.0, rel=0.15), pytest.approx(1e-4, rel=0.15))


def test_one_judge_and_one_scoring_say_what_they_cannot_see() -> None:
    split = variance_split(layout(0.0, 1.0, 0.0, 0.5, (3, 200, 1, 1)))
    assert (split.judge_var, split.jitter_var, split.judge_correlation) == (0.0, 0.0, None)
    disagreement, jitter = split.note.split("; ")
    assert disagreement == "one judge: disagreement is inside the residual part"
    assert jitter == "one scoring: jitter is inside the part above it"
    assert split.item_var + split.residual_var == pytest.approx(1.25, rel=0.15)


def test_items_with_a_missing_cell_are_left_out_whole() -> None:
    table = layout(0.5, 1.0, 0.0, 0.0, (3, 50, 1, 1))
    table[1, 7] = np.nan
    split = variance_split(table)
    assert (split.n, split.left_out) == (49, 1)


def test_the_standard_error_of_the_mean_follows_from_the_parts() -> None:
    # .25/40 + (1 + .16/3 + .09/12)/16000 = .00625 + .0000663; sqrt = .07947. With the estimated parts, the same formula.
    split = variance_split(layout(0.5, 1.0, 0.4, 0.3, (40, 400, 3, 4)))
    pair = split.residual_var + split.judge_var / 3 + split.jitter_var / 12
    by_hand = split.seed_var / 40 + split.item_var / 400 + pair / 16_000
    assert split.se == pytest.approx(math.sqrt(by_hand))


def test_two_judges_at_ninety_one_hundredths_are_one_and_a_twentieth() -> None:
    assert effective_judges(2, 0.91) == pytest.approx(1.047, abs=0.0005)
    assert effective_judges(5, 0.0) == 5.0
    with pytest.raises(StatsError):
        effective_judges(0, 0.5)


def test_five_dollars_buy_a_seed_and_seventy_five_questions() -> None:
    plan = spend(5.0, PRICES, MEASURED, key=1)
    best = plan.steps[0]
    # 3.50 + 75 questions × 4 seeds × .005 = 5.00; M = 975 + 325 + 300.
    assert (best.add_seeds, best.add_questions, best.cost) == (1, 75, pytest.approx(5.0))
    assert best.allocation.num_pairs == 1600
    assert best.se == pytest.approx(6.235, abs=0.0005)
    assert plan.now.se == pytest.approx(7.25)
    assert (plan.ranked_by, plan.power, plan.level) == ("smallest gap", 0.80, 0.95)


def test_the_same_five_dollars_on_questions_alone_barely_move_it() -> None:
    only = next(
        s for s in spend(5.0, PRICES, MEASURED, key=1).steps if s.add_seeds == 0 and s.add_judges == 0 and s.cost > 0
    )
    # 333 whole questions × 3 seeds = 999 pairs.
    assert only.add_questions == 333
    assert only.se == pytest.approx(7.112, abs=0.0005)


def shared(item_sd: float, seed_sd: float, noise_sd: float, num_seeds: int = 3, num_items: int = 100) -> np.ndarray:
    rng = np.random.Generator(np.random.Philox(key=23))
    parts = ((item_sd, (1, num_items)), (seed_sd, (num_seeds, 1)), (noise_sd, (num_seeds, num_items)))
    return np.asarray(sum(sd * rng.standard_normal(size) for sd, size in parts))


def test_where_items_differ_items_are_bought_and_where_seeds_differ_seeds_are() -> None:
    prices = Prices(seed=1.0, pair=0.01, judge=9.0)
    items = spend(5.0, prices, variance_split(shared(10.0, 0.0, 0.1)), key=1)
    # Item SD 10 over 100 items: SE 1; five more seeds leave it, 166 more questions do not.
    assert items.now.se == pytest.approx(1.0, abs=0.2)
    assert (items.steps[0].add_seeds, items.steps[0].add_questions) == (0, 166)
    more_seeds = next(step for step in items.steps if step.add_seeds == 5)
    assert more_seeds.se == pytest.approx(items.now.se, rel=0.01)
    seeds = spend(5.0, prices, variance_split(shared(0.5, 10.0, 0.1)), key=1)
    assert (seeds.steps[0].add_seeds, seeds.steps[0].add_questions) == (5, 0)


def test_more_copies_of_one_seed_do_not_shrink_the_standard_error() -> None:
    # 30 ahead and 20 behind of 200: (.2475·200/199)/200 + 2/200² = .0012937, SE 3.6 points; M pairs: 2.0, 1.6, 1.2.
    votes = np.array([1.0] * 30 + [-1.0] * 20 + [0.0] * 150)
    for num_seeds in (3, 5, 8):
        split = variance_split(np.tile(votes, (num_seeds, 1)), grades=True)
        assert 100 * split.se == pytest.approx(3.597, abs=0.001)
    own = [variance_split(np.tile(votes, (s, 1)), items=Items.OWN).se for s in (3, 5, 8)]
    assert [round(100 * se, 1) for se in own] == [2.0, 1.6, 1.2]


def test_under_the_two_part_rule_questions_beat_a_fourth_seed_at_equal_seeds() -> None:
    # d = .226, τ = 0, 500 questions: the same money buys a seed (500 pairs, 2.50) or 166 questions at 3 seeds.
    prices = Prices(seed=2.5, pair=0.005, judge=10.0)
    split = split_from_se(1.0, 0.0, Allocation(num_seeds=3, num_pairs=1500))
    target = CatchTarget(gap=0.03, discordance_frac=0.226, tau_frac=0.0, rule=Rule.TWO_PART)
    plan = spend(2.5, prices, split, target, key=1, reruns=4000)
    rates = {step.add_seeds: step.catch.rate_frac for step in plan.steps if step.catch and step.cost > 0}
    assert plan.steps[0].add_seeds == 0
    assert rates[0] > rates[1] + 0.05
    assert plan.ranked_by == "power"


def test_over_seeds_and_items_the_fourth_seed_is_worth_more_than_its_pairs() -> None:
    # The same money and votes: t on 3 seeds has 2 degrees of freedom (4.30), on 4 seeds 3 (3.18).
    prices = Prices(seed=2.5, pair=0.005, judge=10.0)
    split = variance_split(np.sign(np.round(shared(0.0, 0.0, 1.0, 3, 500) / 1.65)), grades=True)
    plan = spend(2.5, prices, split, CatchTarget(gap=0.05), key=1, reruns=2000)
    assert plan.steps[0].add_seeds == 1


def test_a_budget_for_nothing_leaves_things_as_they_are() -> None:
    plan = spend(0.001, PRICES, MEASURED, key=1)
    assert [step.cost for step in plan.steps] == [0.0]
    with pytest.raises(StatsError, match="positive prices"):
        spend(1.0, Prices(seed=0.0, pair=1.0, judge=1.0), MEASURED, key=1)


def test_seven_billion_parameters_cost_four_and_two_thirds_of_one_and_a_half() -> None:
    assert [round(scale_cost(cost, 1.5, 7), 1) for cost in (20, 60)] == [93.3, 280.0]


def test_an_allocation_of_nothing_is_refused() -> None:
    with pytest.raises(StatsError, match="at least one seed"):
        variance_at(MEASURED, Allocation(num_seeds=0, num_pairs=10))

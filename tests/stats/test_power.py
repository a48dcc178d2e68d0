"""Catch rates against an item-level simulation, and the smallest catchable gaps."""

import numpy as np
import pytest

from deadheat.errors import StatsError
from deadheat.stats.effect import paired_effect
from deadheat.stats.floors import detection_floor, pooled_votes_floor
from deadheat.stats.power import CatchRate, agreement_chance, catch_rate, critical_wins, smallest_gap
from deadheat.stats.significance import binomial_two_sided
from deadheat.stats.vote_models import (
    Design,
    EmpiricalVotes,
    IidVotes,
    MixtureVotes,
    SeedEffects,
    VoteModel,
    empirical_votes,
    vote_components,
)
from deadheat.stats.votes import Rule, expected_pooled_decided, pooled_votes


def slow_catch_rate(votes_RSN: np.ndarray, rule: Rule) -> float:
    """The rules item by item, straight from their sentences."""
    calls = 0
    for votes in votes_RSN:
        if rule is Rule.SEEDS_AND_ITEMS:
            found = paired_effect(votes, grades=True)
            calls += found.called and found.estimate > 0
            continue
        pooled = pooled_votes(votes, strict_majority=rule is Rule.STRICT_MAJORITY)
        test = binomial_two_sided(int((pooled > 0).sum()), int((pooled < 0).sum()))
        unanimous = bool((votes.sum(axis=1) > 0).all())
        if rule is Rule.PER_SEED:
            own = [binomial_two_sided(int((row > 0).sum()), int((row < 0).sum())).p_value for row in votes]
            calls += unanimous and 2 * sum(p < 0.05 for p in own) > len(own)
        else:
            significant = test.p_value < 0.05 and test.wins > test.losses
            calls += significant and (unanimous or rule is Rule.POOLED)
    return calls / len(votes_RSN)


def drawn(rng: np.random.Generator, shape: tuple[int, ...], d: float, gap: np.ndarray | float) -> np.ndarray:
    u = rng.random(shape)
    return np.where(u < (d + gap) / 2, 1.0, np.where(u < d, -1.0, 0.0))


@pytest.mark.parametrize("rule", list(Rule))
def test_counts_walked_through_the_seeds_agree_with_items_drawn_one_by_one(rule: Rule) -> None:
    # 4,000 item-level reruns: SE ≤ .008; .03 is under four of them, a false alarm of less than 1 in 10,000.
    rng = np.random.Generator(np.random.Philox(key=12))
    slow = slow_catch_rate(drawn(rng, (4000, 3, 120), 0.3, 0.1), rule)
    fast = catch_rate(
        0.1, IidVotes(discordance_frac=0.3), Design(num_items=120, num_seeds=3, rule=rule), key=3, reruns=40_000
    )
    assert fast.rate_frac == pytest.approx(slow, abs=0.03)


@pytest.mark.parametrize(
    ("model", "gap_of"),
    [
        (SeedEffects(discordance_frac=0.3, tau_frac=0.06), lambda rng: 0.1 + 0.06 * rng.standard_normal((4000, 3, 1))),
        (IidVotes(discordance_frac=0.3), lambda rng: 0.1),
    ],
    ids=["seed effects", "iid"],
)
def test_seed_effects_agree_with_items_drawn_at_each_seeds_own_gap(model: VoteModel, gap_of: object) -> None:
    rng = np.random.Generator(np.random.Philox(key=13))
    gaps = np.clip(gap_of(rng), -0.3, 0.3)  # type: ignore[operator]
    slow = slow_catch_rate(drawn(rng, (4000, 3, 120), 0.3, gaps), Rule.TWO_PART)
    fast = catch_rate(0.1, model, Design(num_items=120, num_seeds=3, rule=Rule.TWO_PART), key=3, reruns=40_000)
    assert fast.rate_frac == pytest.approx(slow, abs=0.03)


def test_the_mixture_agrees_with_items_of_which_a_share_votes() -> None:
    rng = np.random.Generator(np.random.Philox(key=14))
    hot = rng.random((4000, 1, 120)) < 0.4
    table = np.where(hot, drawn(rng, (4000, 3, 120), 0.2 / 0.4, 0.08 / 0.4), 0.0)
    slow = slow_catch_rate(table, Rule.TWO_PART)
    model = MixtureVotes(discordance_frac=0.2, share_frac=0.4)
    fast = catch_rate(0.08, model, Design(num_items=120, num_seeds=3, rule=Rule.TWO_PART), key=3, reruns=40_000)
    assert fast.rate_frac == pytest.approx(slow, abs=0.03)
    # Fewer pooled votes than evenly spread noise would give, the sign of concentration.
    assert (fast.pooled_decided or 0) < expected_pooled_decided(120, 3, 0.2) - 5


def test_the_empirical_model_of_iid_votes_is_the_iid_model() -> None:
    outcomes = [(0, 0.7), (1, 0.15), (-1, 0.15)]
    cells = [((a, b, c), p * q * r) for a, p in outcomes for b, q in outcomes for c, r in outcomes]
    empirical = EmpiricalVotes(columns=tuple(column for column, _ in cells), shares=tuple(p for _, p in cells))
    assert empirical.discordance_frac == pytest.approx(0.3)
    design = Design(num_items=200, num_seeds=3, rule=Rule.TWO_PART)
    ours = catch_rate(0.06, empirical, design, key=1, reruns=40_000)
    iid = catch_rate(0.06, IidVotes(discordance_frac=0.3), design, key=2, reruns=40_000)
    assert ours.rate_frac == pytest.approx(iid.rate_frac, abs=0.02)


def test_the_empirical_model_keeps_the_tables_silence_and_carries_the_gap_asked_for() -> None:
    table = np.array([[1.0] * 12 + [0.0] * 80 + [-1.0] * 8] * 3)
    model = empirical_votes(table)
    assert model.discordance_frac == pytest.approx(0.2)
    tilted = model.tilted(0.05)
    assert tilted.sum() == pytest.approx(1.0)
    assert tilted @ np.mean(model.columns, axis=1) == pytest.approx(0.05)
    assert tilted[model.columns.index((0, 0, 0))] == pytest.approx(0.8)
    with pytest.raises(StatsError, match=r"carry less than 0\.2"):
        model.tilted(0.25)


# Catch rates at d = .226, g = 3 points, τ = 2 points. An earlier study prints .49, .39, .72, .60; two independent
# simulators here (counts, and vote patterns) give .477, .400, .727, .606, so the figures are asserted to .015 of print
# and to .005 of these.
@pytest.mark.parametrize(
    ("num_items", "num_seeds", "printed", "computed"),
    [(500, 3, 0.49, 0.4775), (500, 5, 0.39, 0.3998), (2000, 3, 0.72, 0.7275), (2000, 5, 0.60, 0.6065)],
)
def test_seeds_that_differ_cost_the_rule_more_at_five_than_at_three(
    num_items: int, num_seeds: int, printed: float, computed: float
) -> None:
    model = SeedEffects(discordance_frac=0.226, tau_frac=0.02)
    design = Design(num_items=num_items, num_seeds=num_seeds, rule=Rule.TWO_PART)
    found = catch_rate(0.03, model, design, key=5, reruns=60_000)
    assert found.rate_frac == pytest.approx(printed, abs=0.015)
    assert found.rate_frac == pytest.approx(computed, abs=0.006)


def rate(key: int) -> CatchRate:
    return catch_rate(0.05, IidVotes(discordance_frac=0.3), Design(num_items=100, num_seeds=3), key=key, reruns=2000)


def test_the_same_key_gives_the_same_rate_and_another_key_another() -> None:
    assert rate(1) == rate(1)
    assert rate(1).rate_frac != rate(2).rate_frac


def test_the_record_names_reruns_key_and_model() -> None:
    assert (rate(9).reruns, rate(9).key, rate(9).model, rate(9).n) == (2000, 9, "iid(d=0.3)", 100)


def test_a_true_tie_is_called_for_either_side_at_most_at_the_stated_level() -> None:
    found = catch_rate(0.0, IidVotes(discordance_frac=0.3), Design(num_items=200, num_seeds=3), key=1, reruns=40_000)
    assert found.rate_frac + found.wrong_frac < 0.05
    assert found.rate_frac == pytest.approx(found.wrong_frac, abs=0.005)


def test_the_catchable_gap_is_caught_at_its_target() -> None:
    model, design = IidVotes(discordance_frac=0.3), Design(num_items=150, num_seeds=3, rule=Rule.TWO_PART)
    found = smallest_gap(model, design, key=4, reruns=40_000)
    assert found.gap is not None and found.win_share_gap_frac == pytest.approx(found.gap / 0.3)
    # Another key: SE .002 on both readings.
    assert catch_rate(found.gap, model, design, key=77, reruns=40_000).rate_frac == pytest.approx(0.8, abs=0.012)
    assert found.gap > pooled_votes_floor(150, 3, 0.3).floor_frac


def test_a_table_too_small_to_call_anything_has_no_catchable_gap() -> None:
    # Five items: at best 5–0, p = .0625.
    assert (
        smallest_gap(
            IidVotes(discordance_frac=0.5), Design(num_items=5, num_seeds=3, rule=Rule.TWO_PART), key=1, reruns=500
        ).gap
        is None
    )


def test_a_judged_gap_of_8_65_points_is_12_9_points_of_decided_win_share() -> None:
    found = smallest_gap(
        IidVotes(discordance_frac=0.672), Design(num_items=325, num_seeds=3, rule=Rule.TWO_PART), key=1, reruns=30_000
    )
    assert 100 * (found.win_share_gap_frac or 0) == pytest.approx(12.9, abs=0.1)


def test_twelve_seeds_are_walked_as_items_drawn_one_by_one() -> None:
    rng = np.random.Generator(np.random.Philox(key=15))
    slow = slow_catch_rate(drawn(rng, (2000, 12, 60), 0.3, 0.04), Rule.SEEDS_AND_ITEMS)
    design = Design(num_items=60, num_seeds=12)
    fast = catch_rate(0.04, IidVotes(discordance_frac=0.3), design, key=1, reruns=10_000)
    assert fast.rate_frac == pytest.approx(slow, abs=0.045)  # SE of the slow one .011


def test_critical_wins_are_the_fewest_whose_exact_p_is_below_alpha() -> None:
    bars = critical_wins(300, 0.05)
    for decided in (1, 6, 37, 190, 300):
        bar = int(bars[decided])
        assert bar > decided or binomial_two_sided(bar, decided - bar).p_value < 0.05
        assert binomial_two_sided(bar - 1, decided - bar + 1).p_value >= 0.05


def test_a_gap_larger_than_the_discordance_is_refused_and_so_are_percentages() -> None:
    with pytest.raises(StatsError, match="cannot exceed the share of items that differ"):
        catch_rate(0.4, IidVotes(discordance_frac=0.3), Design(num_items=100, num_seeds=3), key=1)
    with pytest.raises(StatsError, match=r"not 22\.6"):
        IidVotes(discordance_frac=22.6)
    with pytest.raises(StatsError, match="between the discordance and 1"):
        MixtureVotes(discordance_frac=0.3, share_frac=0.2)


def test_all_seeds_agree_with_chance_p_to_the_s() -> None:
    # .8² = .64, .8³ = .512, .8⁵ = .32768.
    assert [round(agreement_chance(0.8, s), 5) for s in (2, 3, 5)] == [0.64, 0.512, 0.32768]


def test_the_pooled_closed_form_is_below_the_rules_gap_and_below_the_unpaired_floor() -> None:
    assert 100 * pooled_votes_floor(500, 5, 0.226).floor_frac == pytest.approx(2.66, abs=0.005)
    assert pooled_votes_floor(500, 3, 0.226).floor_frac < detection_floor(500, 0.5).floor_frac


@pytest.mark.parametrize(("num_seeds", "tau"), [(2, 0.1), (3, 0.05), (8, 0.03)])
def test_normal_components_call_as_often_as_the_votes_they_stand_for(num_seeds: int, tau: float) -> None:
    # 40,000 reruns a side: SE of a difference at most .0035.
    design = Design(num_items=300, num_seeds=num_seeds)
    for gap in (0.0, 0.06):
        votes = catch_rate(gap, SeedEffects(discordance_frac=0.3, tau_frac=tau), design, key=1, reruns=40_000)
        parts = catch_rate(gap, vote_components(0.3, tau_frac=tau), design, key=2, reruns=40_000)
        assert parts.rate_frac == pytest.approx(votes.rate_frac, abs=0.014)


def test_the_smallest_gap_over_seeds_and_items_is_called_at_its_power_by_votes_too() -> None:
    design = Design(num_items=500, num_seeds=5)
    found = smallest_gap(vote_components(0.226, tau_frac=0.02), design, key=3, reruns=50_000)
    assert found.gap is not None and found.win_share_gap_frac == pytest.approx(found.gap / 0.226)
    model = SeedEffects(discordance_frac=0.226, tau_frac=0.02)
    assert catch_rate(found.gap, model, design, key=77, reruns=40_000).rate_frac == pytest.approx(0.8, abs=0.015)


def test_a_gap_of_zero_gives_both_sides_and_the_sources_rule_errs_where_seeds_differ() -> None:
    # Simulated apart, 1,500 to 2,000 tables a cell: 19.4% and 47.2%, SE 1.
    model = SeedEffects(discordance_frac=0.3, tau_frac=0.10)
    for num_seeds, num_items, printed in ((3, 200, 0.194), (2, 1319, 0.472)):
        design = Design(num_items=num_items, num_seeds=num_seeds, rule=Rule.TWO_PART)
        assert catch_rate(0.0, model, design, key=1, reruns=20_000).false_call_frac == pytest.approx(printed, abs=0.03)
        held = Design(num_items=num_items, num_seeds=num_seeds)
        assert catch_rate(0.0, model, held, key=1, reruns=20_000).false_call_frac < 0.06


def test_a_rule_on_votes_refuses_a_model_of_scores() -> None:
    with pytest.raises(StatsError, match="reads votes"):
        catch_rate(0.0, vote_components(0.3), Design(num_items=50, num_seeds=3, rule=Rule.POOLED), key=1)

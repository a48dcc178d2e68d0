"""Calling a winner: the rule's two parts, its words, and what stands beside them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from deadheat.errors import StatsError
from deadheat.stats.rules import (
    Reason,
    VoteReading,
    VoteWords,
    per_seed_rule,
    pooled_rule,
    read_votes,
    two_part_rule,
)
from deadheat.stats.votes import (
    Rule,
    Tally,
    expected_pooled_decided,
    homogeneity_of_tallies,
    pooled_votes,
    seed_homogeneity,
    votes_from_scores,
)


def votes(*seeds: tuple[int, int, int]) -> np.ndarray:
    """A table whose seeds have (wins, ties, losses), wins first; items line up across seeds."""
    return np.array([[1.0] * w + [0.0] * t + [-1.0] * n for w, t, n in seeds])


def judged(table: np.ndarray) -> VoteReading:
    return two_part_rule(table)


def test_one_vote_and_two_silences_is_a_vote_and_plus_minus_zero_abstains() -> None:
    table = np.array([[1.0, 1.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]])
    assert pooled_votes(table).tolist() == [1.0, 0.0, -1.0]


def test_a_strict_majority_wants_two_of_three() -> None:
    table = np.array([[1.0, 1.0, -1.0], [0.0, 1.0, -1.0], [0.0, 0.0, 1.0]])
    assert pooled_votes(table, strict_majority=True).tolist() == [0.0, 1.0, -1.0]


def test_significant_and_unanimous_is_called() -> None:
    # 20–5: 2·(1 + 25 + 300 + 2300 + 12650 + 53130)/2²⁵ = 2·68406/33554432.
    verdict = judged(votes((20, 15, 5), (20, 15, 5), (20, 15, 5)))
    assert verdict.words is VoteWords.CALLED_A
    assert verdict.test.p_value == pytest.approx(2 * 68_406 / 33_554_432, rel=1e-12)
    assert verdict.reasons == ()
    assert [seed.tally for seed in verdict.seeds] == [Tally(wins=20, ties=15, losses=5, missing=0)] * 3


def test_swapping_the_sides_calls_the_other() -> None:
    table = votes((20, 15, 5), (20, 15, 5), (20, 15, 5))
    assert judged(-table).words is VoteWords.CALLED_B


def test_a_significant_pool_with_one_dissenting_seed_is_not_called() -> None:
    verdict = judged(votes((35, 3, 2), (35, 3, 2), (5, 25, 10)))
    assert verdict.test.p_value < 0.05
    assert verdict.words is VoteWords.NOT_CALLED
    assert verdict.reasons == (Reason.SEED_DISAGREES,)
    assert pooled_rule(votes((35, 3, 2), (35, 3, 2), (5, 25, 10))).words is VoteWords.CALLED_A


def test_a_zero_net_is_not_agreement() -> None:
    verdict = judged(votes((35, 3, 2), (35, 3, 2), (4, 32, 4)))
    assert (verdict.words, verdict.reasons) == (VoteWords.NOT_CALLED, (Reason.SEED_DISAGREES,))


def test_agreement_without_significance_is_not_called() -> None:
    verdict = judged(votes((4, 35, 1), (3, 35, 2), (3, 35, 2)))
    assert verdict.words is VoteWords.NOT_CALLED
    assert verdict.reasons == (Reason.NOT_SIGNIFICANT,)


def test_no_decided_vote_is_no_information() -> None:
    verdict = judged(np.zeros((3, 10)))
    assert verdict.words is VoteWords.NOT_CALLED
    assert verdict.reasons == (Reason.NO_DECIDED_VOTE,)
    assert verdict.test.p_value == 1.0
    assert verdict.test.note == "no information: no decided vote"


def test_the_per_seed_rule_wants_most_seeds_significant_on_their_own() -> None:
    # 12–2: p = .0129; 5–4: p = 1. One of three significant is not most, two of three are.
    one, two = votes((12, 0, 2), (8, 0, 6), (8, 0, 6)), votes((12, 0, 2), (12, 0, 2), (8, 0, 6))
    first = per_seed_rule(one)
    assert (first.words, first.reasons) == (VoteWords.NOT_CALLED, (Reason.TOO_FEW_SEEDS_SIGNIFICANT,))
    assert per_seed_rule(two).words is VoteWords.CALLED_A
    assert per_seed_rule(-two).words is VoteWords.CALLED_B


def test_strict_majority_counts_far_fewer_items_than_the_sign_of_the_sum() -> None:
    table = np.zeros((3, 30))
    for item in range(30):
        table[item % 3, item] = 1.0  # one vote and two silences each
    assert judged(table).pooled.wins == 30
    strict = read_votes(Rule.STRICT_MAJORITY, table)
    assert (strict.pooled.decided, strict.words) == (0, VoteWords.NOT_CALLED)


def test_missing_votes_are_left_out_and_counted() -> None:
    table = votes((20, 15, 5), (20, 15, 5), (20, 15, 5))
    table[:, :3] = np.nan
    table[0, 3] = np.nan
    verdict = judged(table)
    assert (verdict.n, verdict.left_out) == (37, 3)
    assert (verdict.pooled.wins, verdict.seeds[0].tally.wins, verdict.seeds[1].tally.wins) == (17, 16, 17)


def test_a_seed_without_votes_cannot_agree_and_is_named_apart_from_a_dissenting_one() -> None:
    table = votes((20, 15, 5), (20, 15, 5), (20, 15, 5))
    table[2] = np.nan
    verdict = judged(table)
    assert (verdict.words, verdict.reasons) == (VoteWords.NOT_CALLED, (Reason.SEED_MISSING,))
    assert pooled_rule(table).words is VoteWords.CALLED_A


def test_the_gap_is_printed_over_all_items_and_over_decided_ones() -> None:
    # 20 − 5 of 40 items: .375; of 25 decided: .6.
    verdict = judged(votes((20, 15, 5), (20, 15, 5), (20, 15, 5)))
    assert verdict.gap_frac == 0.375
    assert verdict.win_share_gap_frac == pytest.approx(0.6)


@given(
    table=arrays(
        np.float64, st.tuples(st.integers(1, 4), st.integers(1, 9)), elements=st.sampled_from([-1.0, 0.0, 1.0])
    )
)
@settings(max_examples=25)
def test_swapping_sides_or_reordering_items_changes_no_number_but_the_sign(table: np.ndarray) -> None:
    ours, swapped, turned = (two_part_rule(t) for t in (table, -table, table[:, ::-1]))
    mirror = {VoteWords.CALLED_A: VoteWords.CALLED_B, VoteWords.CALLED_B: VoteWords.CALLED_A}
    assert swapped.words is mirror.get(ours.words, ours.words)
    assert swapped.test.p_value == ours.test.p_value == turned.test.p_value
    assert 0 < ours.test.p_value <= 1
    assert swapped.gap_frac == pytest.approx(-ours.gap_frac)
    assert turned == ours


def test_scores_are_not_votes_and_the_message_says_what_to_do() -> None:
    with pytest.raises(StatsError, match="votes_from_scores"):
        two_part_rule([[0.4, 0.9]])


def test_a_tie_band_silences_small_gaps() -> None:
    assert votes_from_scores([[0.5, 0.9, np.nan]], [[0.4, 0.4, 0.1]], tie_band=0.274).tolist()[0][:2] == [0.0, 1.0]
    assert np.isnan(votes_from_scores([[np.nan]], [[0.1]])).all()


def test_seed_homogeneity_of_the_raw_and_the_residualised_tallies() -> None:
    # Pearson χ² on 3 × 2, worked: raw 185–57, 106–109, 202–41 → 69.1; residualised 131–87, 83–108, 145–68 → 25.8.
    raw = homogeneity_of_tallies(
        [Tally(wins=w, losses=n, ties=325 - w - n, missing=0) for w, n in ((185, 57), (106, 109), (202, 41))]
    )
    corrected = homogeneity_of_tallies(
        [Tally(wins=w, losses=n, ties=325 - w - n, missing=0) for w, n in ((131, 87), (83, 108), (145, 68))]
    )
    assert (raw.chi2, raw.p_value, raw.dof) == (pytest.approx(69.1, abs=0.05), pytest.approx(9.9e-16, rel=0.01), 2)
    assert (corrected.chi2, corrected.p_value) == (pytest.approx(25.8, abs=0.05), pytest.approx(2.5e-6, rel=0.02))


def test_equal_seeds_have_no_spread_and_p_one() -> None:
    same = seed_homogeneity(votes((20, 15, 5), (20, 15, 5), (20, 15, 5)))
    assert (same.chi2, same.p_value, same.tau_frac) == (0.0, 1.0, 0.0)


def test_tau_is_what_the_seeds_spread_beyond_their_item_noise() -> None:
    # Gaps .5, 0, .5 at d = .5 on 100 items: var = .25/3 = .08333; noise (.25 + .5 + .25)/100/3 = .00333; τ = sqrt(.08).
    result = seed_homogeneity(votes((50, 50, 0), (25, 50, 25), (50, 50, 0)))
    assert result.tau_frac == pytest.approx(np.sqrt(0.25 / 3 - 0.01 / 3))


def test_expected_decided_items_are_238_where_190_and_174_were_seen() -> None:
    # N = 500, S = 3, d = .226: a zero sum needs three silences or one of each with a silence:
    # .774³ + 3·2·.113²·.774 = .4637 + .0593 = .5230; 500·.477 = 238.5.
    assert expected_pooled_decided(500, 3, 0.226) == pytest.approx(238.5, abs=0.6)

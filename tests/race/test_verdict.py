"""Verdicts of evaluations written by hand.

Twenty items, three seeds. In every seed one item of its own is answered alike by both arms in another way, so that no
seed repeats another score for score.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from deadheat.archive import plain
from deadheat.errors import StatsError
from deadheat.race import RaceConfig, as_record, judge, parse_race
from deadheat.race.readings import EQUAL_TOKENS
from deadheat.race.tables import share_of
from deadheat.race.verdict import PairVerdict
from deadheat.race.words import (
    fact_pairs,
    gain_lines,
    names_of,
    notes_of,
    pair_sentence,
    scope_of,
    warnings_of,
)
from deadheat.reports.verdict_words import false_call_words, smallest_words, spread_words, vote_words
from deadheat.stats import Words, paired_effect
from deadheat.stats.holm import holm

from .conftest import ALL, HAND, NONE, Grades, but, right

Write = Callable[..., None]


def clear_win(write: Write, seeds: tuple[int, ...] = (1, 2, 3), *, winner: str = "checker") -> None:
    """The winner is right on all items but one in each seed, the loser on none: +95 points in every seed."""
    loser = "plant" if winner == "checker" else "checker"
    for seed in seeds:
        write(winner, seed, {0: NONE, 4: but(seed)})
        write(loser, seed, {0: NONE, 4: NONE})


def pair_of(folder: Path, race: RaceConfig) -> PairVerdict:
    (pair,) = judge(folder, race).pairs
    return pair


def test_an_arm_that_wins_nearly_every_item_in_every_seed_is_called_for_these_recipes(
    write: Write, hand: RaceConfig, tmp_path: Path
) -> None:
    clear_win(write)
    verdict = judge(tmp_path, hand)
    (pair,) = verdict.pairs
    # Row means .95 each: v_s = 0. Column means: 17 ones and three of 2/3, SS about .95 = .28333; with +1 and −1 beside
    # them .28333 + 2 + 2·.9025·20/22 = 3.92424, /21/22·(22/20)² = .0102778; t₂₁ = 2.07961, half-width .210831.
    assert pair.verdict.words is Words.CALLED_A
    assert pair.verdict.effect.half == pytest.approx(0.210831, abs=1e-5)
    assert pair_sentence(pair) == (
        "Called: checker beats plant, for these recipes. checker − plant = +95.0 pp, 95% interval [+73.9, +116.1], "
        "n = 20 held-out items × 3 seeds."
    )
    # Pooled votes: an item that one seed ties has two votes for A. 20–0: p = 2·2⁻²⁰.
    assert vote_words(pair.verdict, names_of(pair)) == "called(checker): pooled votes 20–0, 0 tied, exact p = 1.91e-6"
    assert (pair.winner, scope_of(pair).value) == ("checker", "these recipes")
    assert [arm.gain.learned for arm in verdict.arms if arm.gain] == [True, False]
    assert gain_lines(verdict)[1] == "plant did not clear zero: 0.0% → 0.0%, gain 0.0 pp, 95% interval [−15.1, +15.1]"
    assert (verdict.missing, verdict.diverged, verdict.unjudged, warnings_of(verdict)) == ((), (), (), [])


def test_the_winner_may_be_the_second_arm(write: Write, hand: RaceConfig, tmp_path: Path) -> None:
    clear_win(write, winner="plant")
    pair = pair_of(tmp_path, hand)
    assert pair.verdict.words is Words.CALLED_B
    assert pair_sentence(pair).startswith(
        "Called: plant beats checker, for these recipes. checker − plant = −95.0 pp, 95% interval [−116.1, −73.9]"
    )


def test_where_one_seed_goes_the_other_way_only_these_runs_differ(
    write: Write, hand: RaceConfig, tmp_path: Path
) -> None:
    # Seed 1 wins items 0–9, seed 2 items 0–10, seed 3 loses item 0: gaps .5, .55, −.05, mean ⅓.
    # v_s = .110833/3, t₂·√v_s = 4.30265·.192209 = .82701, the widest. Columns: ⅔ nine times, ⅓ twice, 0 nine times,
    # SS 2; (2 + 2 + 2/9·20/22)/462·1.21 = .0110053, t₂₁·√ = .218165: over items alone the interval leaves 0.
    # Items 11–19 are right in both arms: both learn.
    learned = range(11, 20)
    for seed, own in ((1, range(10)), (2, range(11)), (3, ())):
        write("checker", seed, {0: NONE, 4: right(*own, *learned)})
        write("plant", seed, {0: NONE, 4: right(*((0,) if seed == 3 else ()), *learned)})
    pair = pair_of(tmp_path, hand)
    assert pair.verdict.words is Words.THESE_RUNS_A
    assert pair.over_items.high - 1 / 3 == pytest.approx(0.218165, abs=1e-5)
    assert pair_sentence(pair) == (
        "These runs only: checker is ahead; another seed may turn it. checker − plant = +33.3 pp, 95% interval "
        "[+11.5, +55.1] over these runs' items alone, 95% interval [−49.4, +116.0] over fresh seeds too, "
        "n = 20 held-out items × 3 seeds."
    )
    # Pooled 11–0: p = 2·2⁻¹¹ = .000977, and seed 3 is on the other side.
    assert vote_words(pair.verdict, names_of(pair)) == (
        "not called (at least one seed's own net is not on the pooled side): pooled votes 11–0, 9 tied, exact p = 0.000977"
    )
    assert (pair.winner, scope_of(pair).value) == ("checker", "these runs")


def test_one_seed_is_never_called_however_clear(write: Write, hand: RaceConfig, tmp_path: Path) -> None:
    clear_win(write, (1,))
    pair = pair_of(tmp_path, hand)
    assert pair.verdict.words is Words.THESE_RUNS_A
    # v_i of nineteen ones and a 0: SS .95 + 2 + 1.64091 over 462, times 1.21: .0120234; t₂₁·√ = .228033.
    assert pair_sentence(pair) == (
        "These runs only: checker is ahead; another seed may turn it. checker − plant = +95.0 pp, 95% interval "
        "[+72.2, +117.8], n = 20 held-out items × 1 seed."
    )
    assert spread_words(pair.verdict) == "one seed: nothing is said of others"
    assert "this rule says 'these runs only' in " in false_call_words(pair.verdict, names_of(pair))
    assert smallest_words(pair.verdict).endswith(
        " shows in these runs at 80% power; one seed calls nothing for the recipes"
    )


def test_a_small_gap_is_not_called_and_the_smallest_gap_stands_beside_it(
    write: Write, hand: RaceConfig, tmp_path: Path
) -> None:
    # Every seed: items 0, 1, 2 for checker, item 9 for plant, +10 points. Columns: three ones and a −1, SS 3.8;
    # (3.8 + 2 + 2·.01·20/22)/462·1.21 = .0152381; t₂₁·√ = .256713.
    for seed in hand.seeds:
        write("checker", seed, {0: NONE, 4: right(0, 1, 2, 10 + seed)})
        write("plant", seed, {0: NONE, 4: right(9, 10 + seed)})
    verdict = judge(tmp_path, hand)
    (pair,) = verdict.pairs
    assert pair.verdict.words is Words.NOTHING_TO_RANK, "no arm's gain clears zero here"
    assert pair_sentence(pair).endswith(
        "checker − plant = +10.0 pp, 95% interval [−15.7, +35.7], n = 20 held-out items × 3 seeds."
    )
    assert vote_words(pair.verdict, names_of(pair)) == (
        "not called (the pooled votes are not significant): pooled votes 3–1, 16 tied, exact p = 0.625"
    )
    facts = dict(fact_pairs(pair, always_smallest=False))
    assert list(facts) == ["difference", "two-part rule", "false calls", "these runs", "seeds", "smallest gap"]
    assert facts["difference"].startswith("+10.0 pp, 95% interval [−15.7, +35.7], p = ")
    # Equal gaps in all seeds leave a χ² interval of [0, 0], which is not printed as if it were knowledge.
    assert facts["seeds"] == (
        "their gaps differ less than item noise alone would have them: τ̂ = 0, which never means that seeds agree"
    )
    assert " is called at 80% power where seeds are alike (τ = 0)" in facts["smallest gap"]
    assert facts["false calls"].startswith("with equal recipes and this spread of seeds, this rule calls a winner in ")


def within(hand: RaceConfig, delta: float) -> RaceConfig:
    return hand.model_copy(update={"verdict": hand.verdict.model_copy(update={"within": delta})})


def level_gains(write: Write, hand: RaceConfig, items_of: Callable[[int], tuple[Grades, Grades]]) -> None:
    """Both arms learn, so that there is something to rank."""
    for seed in hand.seeds:
        checker, plant = items_of(seed)
        write("checker", seed, {0: NONE, 4: checker})
        write("plant", seed, {0: NONE, 4: plant})


def test_a_gap_that_lies_within_the_margin_asked_for_is_a_dead_heat(
    write: Write, hand: RaceConfig, tmp_path: Path
) -> None:
    # In seed s checker alone misses item s, plant alone item s + 3: gaps 0, six columns of ±⅓, SS ⅔;
    # (⅔ + 2)/462·1.21 = .00698413; t₂₁·√ is .173796 at 95% and .143803 at 90%, which two one-sided tests ask.
    level_gains(write, hand, lambda seed: (but(seed), but(seed + 3)))
    pair = pair_of(tmp_path, within(hand, 0.15))
    assert (pair.verdict.words, pair.words) == (Words.DEAD_HEAT, "dead heat within ±15 pp")
    assert pair_sentence(pair) == (
        "Dead heat within ±15 pp. checker − plant = 0.0 pp, 95% interval [−17.4, +17.4], n = 20 held-out items × 3 seeds."
    )
    assert scope_of(pair).value == "these recipes"
    said = dict(fact_pairs(pair, always_smallest=False))["dead heat"]
    assert said == "the 90% interval [−14.4, +14.4] lies within ±15 pp"
    narrow = pair_of(tmp_path, within(hand, 0.14))
    assert pair_sentence(narrow).startswith("Not called. checker − plant = 0.0 pp")
    assert scope_of(narrow).value == "nothing"


def test_a_call_within_the_margin_says_both(write: Write, hand: RaceConfig, tmp_path: Path) -> None:
    # Twelve of twenty items in every seed: SS 4.8, (4.8 + 2 + 2·.36·20/22)/462·1.21 = .0195238; ±.290580, 90% ±.240434.
    level_gains(write, hand, lambda seed: (right(*range(12), 12 + seed), right(12 + seed)))
    pair = pair_of(tmp_path, within(hand, 0.85))
    assert pair_sentence(pair).startswith(
        "Called: checker beats plant, for these recipes, and within ±85 pp. checker − plant = +60.0 pp, 95% interval "
        "[+30.9, +89.1]"
    )


def test_where_no_answer_tells_the_arms_apart_nothing_is_simulated(
    write: Write, hand: RaceConfig, tmp_path: Path
) -> None:
    level_gains(write, hand, lambda seed: (but(seed), but(seed)))
    verdict = judge(tmp_path, hand)
    (pair,) = verdict.pairs
    # Twenty columns of 0 with +1 and −1 beside them: 2/462·1.21 = .00523810; t₂₁·√ = .150511. No width is zero.
    assert pair_sentence(pair).startswith("Not called. checker − plant = 0.0 pp, 95% interval [−15.1, +15.1]")
    assert (
        false_call_words(pair.verdict, names_of(pair))
        == "nothing differs between the sides, so there is nothing to simulate"
    )
    assert smallest_words(pair.verdict).startswith("nothing differs between the sides")
    assert warnings_of(verdict) == ["checker − plant: checker and plant hold the same scores, item by item"]


def test_where_no_arm_gained_there_is_nothing_to_rank_whatever_the_votes_say(
    write: Write, hand: RaceConfig, tmp_path: Path
) -> None:
    for seed in hand.seeds:
        write("checker", seed, {0: ALL, 4: ALL})
        write("plant", seed, {0: ALL, 4: right(seed)})
    verdict = judge(tmp_path, hand)
    (pair,) = verdict.pairs
    assert pair.verdict.effect.called and pair.verdict.words is Words.NOTHING_TO_RANK
    assert pair_sentence(pair).startswith(
        "Nothing learned, nothing to rank: neither side's gain over its step 0 clears zero. che"
    )
    assert gain_lines(verdict)[1].startswith("plant lost: 100.0% → 5.0%, gain −95.0 pp, 95% interval [−116.1, −73.9]")
    assert (pair.winner, scope_of(pair).value) == (None, "nothing")


def test_a_seed_that_one_arm_has_not_finished_is_left_out_and_named(
    write: Write, hand: RaceConfig, tmp_path: Path
) -> None:
    clear_win(write, (1, 3))
    write("checker", 2, {0: NONE, 4: ALL})
    verdict = judge(tmp_path, hand)
    (pair,) = verdict.pairs
    assert (pair.seeds, pair.verdict.effect.num_seeds) == ((1, 3), 2)
    assert verdict.missing == ("plant/seed-2",)
    assert warnings_of(verdict) == ["plant/seed-2 has no outcome yet and is left out"]


def test_with_no_seed_in_common_there_is_no_verdict_and_an_arm_alone_keeps_its_gain(
    write: Write, hand: RaceConfig, tmp_path: Path
) -> None:
    write("checker", 1, {0: NONE, 4: ALL})
    write("plant", 2, {0: NONE, 4: NONE})
    verdict = judge(tmp_path, hand)
    assert (verdict.pairs, verdict.looks, as_record(verdict)["summary"]) == ((), None, None)
    assert [arm.gain.gain for arm in verdict.arms if arm.gain] == [1.0, 0.0]
    assert gain_lines(verdict)[0].startswith("checker learned in this run: 0.0% → 100.0%")
    assert "checker against plant cannot be judged yet: no seed that both have finished" in warnings_of(verdict)
    assert judge(tmp_path / "empty", hand).pairs == ()


def test_an_unscored_answer_is_left_out_of_both_arms_and_the_shares_still_differ_by_the_difference(
    write: Write, hand: RaceConfig, tmp_path: Path
) -> None:
    clear_win(write)
    write("checker", 1, {0: NONE, 4: [None, *but(1)[1:]]})
    verdict = judge(tmp_path, hand)
    (pair,) = verdict.pairs
    tally = pair.seed_gaps[0].votes.tally
    # Seed 1: eighteen won, item 1 tied, item 0 missing. Item 0 still has the votes of two seeds: twenty pooled.
    assert (tally.wins, tally.losses, tally.ties, tally.missing) == (18, 0, 1, 1)
    assert pair.verdict.votes.pooled.wins == 20
    first = verdict.arms[0].runs[0]
    assert first.share is not None
    assert (first.share.n, first.share.left_out, first.num_unscored) == (19, 1, 1)
    assert first.share.estimate == pytest.approx(18 / 19)  # as a zero the twentieth would have made it .9
    assert pair.verdict.effect.missing_cells == 1
    assert pair.share_a.estimate - pair.share_b.estimate == pytest.approx(pair.verdict.effect.estimate, abs=1e-12)
    assert pair.seed_gaps[0].share_a.estimate - pair.seed_gaps[0].share_b.estimate == pytest.approx(18 / 19)
    assert "1 of 120 final held-out answers are unscored and left out, never counted as wrong" in notes_of(
        verdict, hand
    )


def test_shares_are_over_the_seeds_and_items_of_the_difference(write: Write, hand: RaceConfig, tmp_path: Path) -> None:
    clear_win(write, (1, 3))
    write("checker", 2, {0: NONE, 4: NONE})  # its plant has not finished: it must not pull the share to 63%
    pair = pair_of(tmp_path, hand)
    assert (pair.share_a.estimate, pair.share_b.estimate) == (0.95, 0.0)
    assert pair.share_a.estimate - pair.share_b.estimate == pytest.approx(pair.verdict.effect.estimate)
    assert [gap.share_a.estimate for gap in pair.seed_gaps] == [0.95, 0.95]
    # A seed's own interval is over its items: nineteen ones and a 0, ±.228033 as in the test of one seed.
    assert pair.seed_gaps[0].difference.half == pytest.approx(0.228033, abs=1e-5)


def test_no_interval_of_a_race_has_width_zero(write: Write, hand: RaceConfig, tmp_path: Path) -> None:
    level_gains(write, hand, lambda seed: (ALL, NONE))

    def widths(value: object) -> list[float]:
        if isinstance(value, Mapping):
            own = [value["high"] - value["low"]] if {"low", "high", "method"} <= value.keys() else []
            return own + [width for part in value.values() for width in widths(part)]
        return [width for part in value for width in widths(part)] if isinstance(value, list) else []

    found = widths(plain(judge(tmp_path, hand)))
    assert len(found) > 20 and min(found) > 0.1


def test_a_seed_that_repeats_another_is_named_and_is_no_seed_of_its_own(
    write: Write, hand: RaceConfig, tmp_path: Path
) -> None:
    clear_win(write)
    write("checker", 3, {0: NONE, 4: but(1)})
    verdict = judge(tmp_path, hand)
    (pair,) = verdict.pairs
    assert [gap.is_copy for gap in pair.seed_gaps] == [False, False, True]
    assert (pair.verdict.effect.num_seeds, pair.verdict.votes.num_seeds) == (2, 2)
    assert warnings_of(verdict) == [
        "checker − plant: seed 3 repeats seed 1 score for score: it is left out, no seed of its own"
    ]
    assert pair.share_a.estimate - pair.share_b.estimate == pytest.approx(pair.verdict.effect.estimate)


def test_a_diverged_run_is_read_at_its_last_evaluation_and_named(
    write: Write, hand: RaceConfig, tmp_path: Path
) -> None:
    clear_win(write)
    write("plant", 2, {0: NONE, 2: right(0)}, ending="diverged", step=3, message="loss nan")
    verdict = judge(tmp_path, hand)
    assert verdict.diverged == ("plant/seed-2",)
    assert verdict.pairs[0].contrasts[0].steps_b == (4, 2, 4)
    assert "plant/seed-2 diverged and is read at its last evaluation" in warnings_of(verdict)
    # Steps that all six runs were evaluated at: only step 0.
    assert [point.reading for point in verdict.pairs[0].checkpoints] == ["step 0"]


def test_peak_and_converged_are_read_where_every_run_has_them_and_marked_as_selected(
    write: Write, hand: RaceConfig, tmp_path: Path
) -> None:
    for seed in hand.seeds:
        write("checker", seed, {0: NONE, 2: ALL, 4: right(0, 10 + seed)}, peak_step=2, converged_step=2)
        write("plant", seed, {0: NONE, 2: NONE, 4: right(1, 10 + seed)}, peak_step=4)
    pair = pair_of(tmp_path, hand)
    assert [reading.reading for reading in pair.contrasts] == ["final", "peak", EQUAL_TOKENS]
    final, peak, _ = pair.contrasts
    assert (final.selected_on, peak.selected_on) == (None, "the 20 items it is read on")
    assert (peak.steps_a, peak.steps_b) == ((2, 2, 2), (4, 4, 4))
    # Peak against peak: twenty right against two, so +90 points; at the end two each: 0.
    assert peak.difference.estimate == pytest.approx(0.9)
    assert (final.difference.estimate, final.difference) == (0.0, pair.verdict.effect)


def test_at_equal_tokens_the_spendthrift_arm_is_read_earlier(write: Write, hand: RaceConfig, tmp_path: Path) -> None:
    # checker: 10 tokens a step, 40 by step 4. plant: 20 a step, so within 40 tokens it stands at step 2.
    for seed in hand.seeds:
        write("checker", seed, {0: NONE, 2: right(0), 4: right(0, 1)})
        write("plant", seed, {0: NONE, 2: right(0), 4: ALL}, tokens=20)
    reading = pair_of(tmp_path, hand).contrasts[-1]
    assert reading.reading == EQUAL_TOKENS
    assert (reading.steps_a, reading.steps_b) == ((4, 4, 4), (2, 2, 2))
    assert reading.difference.estimate == pytest.approx(0.05)  # two right against one of twenty


def test_arms_with_different_pools_are_read_on_the_items_they_share(
    write: Write, hand: RaceConfig, tmp_path: Path
) -> None:
    for seed in hand.seeds:
        write("checker", seed, {0: NONE, 4: but(seed)})
        write("plant", seed, {0: NONE[:6], 4: NONE[:6]})
    pair = pair_of(tmp_path, hand)
    # Items 0 to 5: five of six right in each seed.
    assert (pair.verdict.effect.n, pair.share_a.estimate) == (6, pytest.approx(5 / 6))


def test_arms_without_a_common_item_cannot_be_compared(write: Write, hand: RaceConfig, tmp_path: Path) -> None:
    write("checker", 1, {0: ALL[:6], 4: ALL[:6]})
    write("plant", 1, {0: NONE, 4: NONE}, first_item=11)
    with pytest.raises(StatsError, match=r"no item in common. Wanted the same held-out pool in both arms"):
        judge(tmp_path, hand)


def three_arms(verdict: str = "") -> RaceConfig:
    return parse_race(f'{HAND}\n[[arm]]\nname = "flat"\n{verdict}', source="three.toml")


def write_three(write: Write) -> None:
    """checker wins 8 items of flat and 9 of plant in every seed, flat one of plant; ten others all arms learn."""
    for seed in (1, 2, 3):
        learned = [item for item in range(9, 20) if item != 12 + seed]
        write("checker", seed, {0: NONE, 4: right(*range(9), *learned)})
        write("flat", seed, {0: NONE, 4: right(8, *learned)})
        write("plant", seed, {0: NONE, 4: right(*learned)})


def test_all_contrasts_are_one_family_and_words_and_adjusted_intervals_agree(write: Write, tmp_path: Path) -> None:
    write_three(write)
    verdict = judge(tmp_path, three_arms())
    assert [(pair.arm_a, pair.arm_b) for pair in verdict.pairs] == [
        ("checker", "plant"),
        ("checker", "flat"),
        ("plant", "flat"),
    ]
    plain_p = [pair.verdict.effect.p_value for pair in verdict.pairs]
    assert [pair.verdict.decision.p_value for pair in verdict.pairs] == holm(plain_p)
    # +45, +40 and −5 points: the smallest p is held against α/3, the next against α/2, the last against α.
    assert [pair.verdict.words for pair in verdict.pairs] == [Words.CALLED_A, Words.CALLED_A, Words.NOT_CALLED]
    assert [pair.verdict.decision.interval.level for pair in verdict.pairs] == pytest.approx(
        [1 - 0.05 / 3, 0.975, 0.95]
    )
    sentence = pair_sentence(verdict.pairs[0])
    # SS 4.95: (4.95 + 2 + 2·.2025·20/22)/462·1.21 = .0191667; t₂₁ at 98.33% is 2.60135: ±.360140, at 95% ±.287909.
    assert "+45.0 pp, 98.33% interval [+9.0, +81.0] (adjusted for 3 contrasts), n = 20" in sentence
    facts = dict(fact_pairs(verdict.pairs[0], always_smallest=True))
    assert "95% interval [+16.2, +73.8], p = " in facts["difference"]
    assert facts["family"].startswith("of 3 contrasts, adjusted by Holm: 98.33% interval [+9.0, +81.0], p = ")
    for pair in verdict.pairs:
        interval = pair.verdict.decision.interval
        assert pair.verdict.called == (interval.low > 0 or interval.high < 0)


def test_named_contrasts_alone_are_judged_in_the_order_of_the_file(write: Write, tmp_path: Path) -> None:
    write_three(write)
    race = three_arms('[verdict]\ncontrasts = [["flat", "checker"]]\n')
    verdict = judge(tmp_path, race)
    assert [(pair.arm_a, pair.arm_b) for pair in verdict.pairs] == [("flat", "checker")]
    (pair,) = verdict.pairs
    assert (pair.verdict.decision.family, pair.verdict.decision.interval.level) == (1, 0.95)
    assert pair_sentence(pair).startswith(
        "Called: checker beats flat, for these recipes. flat − checker = −40.0 pp, 95% i"
    )


def test_intervals_and_the_smallest_gap_follow_alpha_and_power(write: Write, hand: RaceConfig, tmp_path: Path) -> None:
    level_gains(write, hand, lambda seed: (but(seed), but(seed + 3)))
    strict = hand.model_copy(update={"verdict": hand.verdict.model_copy(update={"alpha": 0.1, "power": 0.9})})
    pair = pair_of(tmp_path, strict)
    # .143803 at 90%, as worked for the dead heat.
    assert "90% interval [−14.4, +14.4]" in pair_sentence(pair)
    assert "at 90% power" in smallest_words(pair.verdict)
    assert {gap.difference.level for gap in pair.seed_gaps} == {0.9} and pair.share_a.level == 0.9


def test_the_record_opens_with_its_schema_and_a_flat_summary(write: Write, hand: RaceConfig, tmp_path: Path) -> None:
    clear_win(write)
    record = as_record(judge(tmp_path, hand))
    assert list(record)[:3] == ["schema", "version", "summary"]
    assert (record["schema"], record["version"]) == ("deadheat.race-verdict", 2)
    summary = record["summary"]
    assert summary["words"] == "called(checker)"
    assert (summary["winner"], summary["scope"], summary["two_part"]) == ("checker", "these recipes", "called(checker)")
    assert (summary["estimate_pp"], summary["level"], summary["n"], summary["seeds"]) == (
        pytest.approx(95),
        0.95,
        20,
        3,
    )
    assert (summary["low_pp"], summary["high_pp"]) == (
        pytest.approx(73.917, abs=1e-3),
        pytest.approx(116.083, abs=1e-3),
    )
    assert (summary["family"], summary["look"], summary["looks_planned"]) == (1, 1, 1)
    assert 0 <= summary["false_call_frac"] < 0.07 and summary["smallest_gap_pp"] > 0
    assert record["pairs"][0]["contrasts"][0]["difference"]["estimate"] == pytest.approx(0.95)
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_a_verdict_is_a_function_of_the_folder(write: Write, hand: RaceConfig, tmp_path: Path) -> None:
    level_gains(write, hand, lambda seed: (right(0, 1, seed), right(2, 3, seed)))
    assert as_record(judge(tmp_path, hand)) == as_record(judge(tmp_path, hand))


def covered(sampled: Callable[[np.random.Generator], np.ndarray], truth: float, *, tables: int = 2000) -> float:
    rng = np.random.default_rng(20261)
    shares = [share_of(sampled(rng), 0.05) for _ in range(tables)]
    return float(np.mean([share is not None and share.low <= truth <= share.high for share in shares]))


@pytest.mark.parametrize("truth", [0.02, 0.3, 0.5, 0.98])
def test_the_interval_of_one_seeds_share_covers_it(truth: float) -> None:
    # 95% less 3 SE of 2,000 tables: 93.5%.
    assert covered(lambda rng: (rng.random(200) < truth).astype(float), truth) >= 0.935


@pytest.mark.parametrize(("truth", "seed_sd", "item_sd"), [(0.6, 0.05, 0.0), (0.6, 0.1, 0.15), (0.9, 0.0, 0.05)])
def test_the_interval_of_a_share_over_seeds_and_items_covers_it(truth: float, seed_sd: float, item_sd: float) -> None:
    def sampled(rng: np.random.Generator) -> np.ndarray:
        chance_SN = truth + seed_sd * rng.uniform(-1, 1, (3, 1)) * 3**0.5 + item_sd * rng.uniform(-1, 1, 200) * 3**0.5
        return (rng.random((3, 200)) < chance_SN).astype(float)

    assert covered(sampled, truth) >= 0.935


def test_the_share_of_several_seeds_is_the_effect_cut_to_its_range() -> None:
    grades_SN = np.array([[1.0] * 19 + [0.0], [1.0] * 20])
    share, effect = share_of(grades_SN, 0.05), paired_effect(grades_SN, grades=True)
    assert share is not None
    assert (share.estimate, share.low, share.high) == (effect.estimate, effect.low, 1.0)
    assert share_of(np.full((2, 3), np.nan), 0.05) is None

"""What a verdict says, and how far it reaches."""

import math

import numpy as np
import pytest

from deadheat.errors import StatsError
from deadheat.stats.gains import nothing_learned, paired_gain
from deadheat.stats.looks import nominal_levels, spent
from deadheat.stats.rules import VoteWords
from deadheat.stats.verdict import Fixed, Terms, Verdict, Words, family, judge
from deadheat.stats.votes import Rule

QUICK = 500


def rng(key: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=key))


def sides(wins: list[int], losses: list[int], num_items: int = 60, *, key: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Right/wrong scores: seed s has wins[s] items for A and losses[s] for B, on its own shuffled items."""
    a, b = np.zeros((len(wins), num_items)), np.zeros((len(wins), num_items))
    for s, (w, n) in enumerate(zip(wins, losses, strict=True)):
        order = rng(1000 * key + s).permutation(num_items)
        a[s, order[:w]] = 1.0
        b[s, order[w : w + n]] = 1.0
    return a, b


def judged(wins: list[int], losses: list[int], **terms: object) -> Verdict:
    a, b = sides(wins, losses)
    return judge(a, b, Terms(reruns=QUICK, **terms), key=1)  # type: ignore[arg-type]


def test_seeds_that_agree_and_a_gap_beyond_items_are_called() -> None:
    verdict = judged([30, 31, 29], [3, 2, 4])
    assert (verdict.words, verdict.called, verdict.sentence) == (Words.CALLED_A, True, "called(A)")
    assert verdict.votes.words is VoteWords.CALLED_A
    assert judged([3, 2, 4], [30, 31, 29]).words is Words.CALLED_B


def test_runs_that_differ_where_seeds_may_not_are_these_runs_only() -> None:
    # Gaps 40, 20, 1 of 60: rows .667, .333, .017, SD .325, t₂·.325/√3 = .81 > .339; over items far from 0.
    verdict = judged([42, 22, 3], [2, 2, 2])
    assert verdict.effect.half_seeds == pytest.approx(
        4.3027 * np.std([40, 20, 1], ddof=1) / 60 / math.sqrt(3), rel=1e-4
    )
    assert (verdict.words, verdict.sentence) == (Words.THESE_RUNS_A, "these runs only(A)")
    # The two-part rule does call it: every seed is on A's side and the pooled votes are significant.
    assert verdict.votes.words is VoteWords.CALLED_A


def test_one_seed_is_never_called() -> None:
    verdict = judged([40], [1])
    assert (verdict.words, verdict.called) == (Words.THESE_RUNS_A, False)
    assert verdict.instrument.false_call is not None and verdict.instrument.false_call.these_runs_only


def test_five_to_nothing_of_a_hundred_and_of_twenty_are_not_called() -> None:
    for num_items in (20, 100):
        a, b = sides([5], [0], num_items)
        assert judge(a, b, Terms(reruns=QUICK), key=1).words is Words.NOT_CALLED


def test_a_dead_heat_within_delta_is_said_alone_and_beside_a_call() -> None:
    close = judged([5, 6, 5, 6], [6, 5, 5, 6], within=0.2)
    assert (close.words, close.within, close.sentence) == (Words.DEAD_HEAT, True, "dead heat within ±20 pp")
    ahead = judged([30, 31, 29, 30], [3, 2, 4, 3], within=0.7)
    assert (ahead.words, ahead.sentence) == (Words.CALLED_A, "called(A), and within ±70 pp")
    narrow = judged([5, 6, 5, 6], [6, 5, 5, 6], within=0.01)
    assert (narrow.words, narrow.within) == (Words.NOT_CALLED, False)
    assert judged([20], [20], within=0.9).within is False  # one seed


def test_not_called_carries_the_gap_this_design_calls_at_the_power_asked_for() -> None:
    verdict = judged([6, 7, 9], [5, 5, 4])
    assert verdict.words is Words.NOT_CALLED
    smallest, at_tau = verdict.instrument.smallest, verdict.instrument.smallest_at_spread
    assert smallest is not None and smallest.gap is not None and smallest.target_frac == 0.80
    assert at_tau is None or (at_tau.gap or 1.0) > smallest.gap
    lower = judged([6, 7, 9], [5, 5, 4], power=0.5).instrument.smallest
    assert lower is not None and lower.gap is not None and lower.gap < smallest.gap


def test_copied_seeds_are_found_named_and_not_counted() -> None:
    a, b = sides([30, 30, 29], [3, 3, 4])
    a[1], b[1] = a[0], b[0]
    verdict = judge(a, b, Terms(reruns=QUICK), key=1, seeds=("7", "8", "9"))
    assert verdict.effect.num_seeds == 2
    assert verdict.copies == ("seed 8 repeats seed 7 score for score: it is left out, no seed of its own",)
    # Rows of one value may recur by themselves: they stay.
    zeros = judge(np.zeros((3, 20)), np.zeros((3, 20)), Terms(reruns=QUICK), key=1)
    assert (zeros.effect.num_seeds, zeros.copies) == (3, ())
    same = judge(a, a, Terms(reruns=QUICK), key=1)
    assert same.copies[0] == "A and B hold the same scores, item by item"


def test_the_printed_rate_holds_where_seeds_spread_by_more_than_votes_can() -> None:
    # d = .1 and seeds of +10, −10 and 0 points: τ̂ is beyond d/2, where votes cut at ±d would say 8% and more.
    verdict = judged([6, 0, 3], [0, 6, 3])
    own = verdict.instrument.false_call
    assert own is not None and own.model.startswith("normal") and own.false_call_frac < 0.065 + 3 * own.se_frac


def test_a_fixed_baseline_has_no_seeds_and_is_named_in_the_words() -> None:
    a, _ = sides([30, 31, 29], [0, 0, 0])
    base = np.zeros((1, 60))
    base[0, :6] = 1.0
    verdict = judge(a, base, Terms(fixed=Fixed.B, reruns=QUICK), key=1)
    assert verdict.sentence == "called(A) against this very B"
    assert verdict.effect == judge(a, np.repeat(base, 3, axis=0), Terms(reruns=QUICK), key=1).effect
    with pytest.raises(StatsError, match="B is fixed and has 3 seeds; wanted the scores of one model"):
        judge(a, np.repeat(base, 3, axis=0), Terms(fixed=Fixed.B), key=1)


def test_uncoupled_sides_keep_all_their_seeds() -> None:
    a, b = sides([30, 31, 29], [0, 0, 0])[0], sides([0] * 5, [5, 6, 4, 5, 6], key=2)[1]
    verdict = judge(a, b, Terms(coupled=False, reruns=QUICK), key=1)
    assert (verdict.words, verdict.effect.num_seeds, verdict.effect.coupled) == (Words.CALLED_A, 3, False)
    with pytest.raises(StatsError, match="A has 3 seeds and B 5"):
        judge(a, b, Terms(), key=1)


def test_a_family_is_decided_by_holm_and_its_interval_agrees_with_its_word() -> None:
    tables = [sides([w] * 4, [losses] * 4, key=k) for k, (w, losses) in enumerate([(20, 5), (14, 5), (6, 5)], start=1)]
    plain = [judge(a, b, Terms(reruns=QUICK), key=1) for a, b in tables]
    decided = family(plain)
    ps = [v.effect.p_value for v in plain]
    assert decided[0].decision.p_value == pytest.approx(3 * min(ps))
    for verdict, before in zip(decided, plain, strict=True):
        inner = verdict.decision.interval
        assert verdict.called is (inner.low > 0 or inner.high < 0)
        assert verdict.effect == before.effect and verdict.decision.family == 3
    assert decided[0].decision.interval.level == pytest.approx(1 - 0.05 / 3)


def test_a_family_of_one_is_the_verdict_itself() -> None:
    verdict = judged([30, 31, 29], [3, 2, 4])
    assert family([verdict]) == (verdict,)


def test_a_look_before_the_end_is_held_against_its_nominal_level() -> None:
    # p of about .01 is called at .05 and not at the first look of two, whose level is 2 − 2Φ(1.96/√½) = .0056.
    verdict = next(v for k in range(20) if 0.006 < (v := _near(k)).effect.p_value < 0.04)
    assert verdict.called
    early = family([verdict], alpha=nominal_levels([0.5])[0])[0]
    assert (early.words, early.decision.alpha) != (Words.CALLED_A, 0.05)
    assert early.decision.alpha == pytest.approx(0.00557, abs=5e-5)


def _near(key: int) -> Verdict:
    a, b = sides([15, 12, 16, 11], [5, 4, 6, 5], key=key)
    return judge(a, b, Terms(reruns=QUICK), key=1)


def test_levels_of_looks_spend_what_the_function_allows() -> None:
    assert nominal_levels([1.0]) == [pytest.approx(0.05, abs=1e-6)]
    shares = [0.2, 0.4, 0.6, 0.8, 1.0]
    levels = nominal_levels(shares)
    assert levels == sorted(levels) and levels[0] == pytest.approx(spent(0.2, 0.05), rel=1e-3)
    # Wiener paths that are flat: 200,000 of them, SE of 5% is .05 points.
    steps = rng(3).normal(size=(200_000, 5)) * math.sqrt(0.2)
    z = np.abs(steps.cumsum(axis=1)) / np.sqrt(shares)
    bars = np.array([-_probit(level / 2) for level in levels])
    assert (z > bars).any(axis=1).mean() == pytest.approx(0.05, abs=0.0015)
    with pytest.raises(StatsError, match="rising shares"):
        nominal_levels([0.5, 0.5])


def _probit(share: float) -> float:
    from scipy.stats import norm

    return float(norm.ppf(share))


def test_a_rule_by_name_decides_by_itself() -> None:
    verdict = judged([42, 22, 3], [2, 2, 2], rule=Rule.TWO_PART)
    assert verdict.words is Words.CALLED_A


def test_null_against_null_outranks_everything() -> None:
    flat = paired_gain(np.array([[1.0, 0.0] * 25] * 3), np.array([0.0, 1.0] * 25))
    assert (flat.gain, flat.learned) == (0.0, False)
    a, b = sides([30, 31, 29], [3, 2, 4])
    assert judge(a, b, Terms(reruns=QUICK), key=1, gains=(flat, flat)).words is Words.NOTHING_TO_RANK
    grown = paired_gain(np.array([[1.0] * 20 + [0.0] * 30] * 3), np.zeros(50))
    assert (grown.gain, grown.learned, grown.lost, grown.seed_gains) == (0.4, True, False, (0.4, 0.4, 0.4))
    assert (grown.before, grown.after) == (0.0, 0.4)
    assert judge(a, b, Terms(reruns=QUICK), key=1, gains=(grown, flat)).words is Words.CALLED_A
    assert not nothing_learned(())


def test_the_plants_loss_of_the_readme_is_no_loss_over_fresh_seeds() -> None:
    # 37.0% → 17.7% in seeds that lost 31.5, 2.5 and 24 points of 200 items: t₂·SD/√3 alone is 37 points.
    after = np.zeros((3, 200))
    for s, right in enumerate((11, 69, 26)):
        after[s, :right] = 1.0
    before = np.array([1.0] * 74 + [0.0] * 126)
    gain = paired_gain(after, before)
    assert 100 * gain.gain == pytest.approx(-19.3, abs=0.05)
    assert (round(100 * gain.effect.low, 1), round(100 * gain.effect.high, 1)) == (-56.7, 18.1)
    assert not gain.lost


def test_words_are_never_no_difference() -> None:
    assert {word.value for word in Words} == {
        "called(A)", "called(B)", "these runs only(A)", "these runs only(B)", "dead heat", "not called",
        "null against null: nothing learned, nothing to rank",
    }  # fmt: skip


def test_same_key_same_record_and_another_key_other_rates() -> None:
    a, b = sides([9, 7, 12], [5, 5, 4])
    one, again, other = (judge(a, b, Terms(reruns=QUICK), key=key) for key in (1, 1, 2))
    assert one == again
    assert one.instrument.false_call_two_part != other.instrument.false_call_two_part
    assert one.effect == other.effect


@pytest.mark.parametrize(("name", "value"), [("alpha", 0.0), ("power", 1.0), ("within", 0.0)])
def test_terms_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(StatsError, match=name):
        Terms(**{name: value})  # type: ignore[arg-type]

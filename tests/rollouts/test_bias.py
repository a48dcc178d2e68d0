"""The stated bias of each way of drawing, against every sequence of grades there is, weighed by its probability."""

from itertools import product

import numpy as np
import pytest

from deadheat.rollouts import Drawing, Keep, kept_counts

from .scripted import play, rewards_of, script

CASES = [
    (Drawing.FLAT, Keep.FIRST_G),
    (Drawing.DYNAMIC, Keep.FIRST_G),
    (Drawing.ADAPTIVE, Keep.FIRST_G),
    (Drawing.ADAPTIVE, Keep.BALANCED),
]


def measured(p: float, drawing: Drawing, keep: Keep, group_size: int, max_rounds: int) -> np.ndarray:
    """[G+1] probability of k right kept: the strategy itself on every sequence of grades."""
    sequences = ["".join(grades) for grades in product("01", repeat=group_size * max_rounds)]
    played = play(
        drawing,
        [script(grades, grades) for grades in sequences],
        group_size=group_size,
        max_rounds=max_rounds,
        max_refills=0,
        keep=keep,
    )
    pmf_K = np.zeros(group_size + 1)
    for group in played.batch.kept:
        grades = group.problem.problem_id
        pmf_K[int(rewards_of(group).sum())] += p ** grades.count("1") * (1 - p) ** grades.count("0")
    return pmf_K


@pytest.mark.parametrize(("drawing", "keep"), CASES)
@pytest.mark.parametrize(("group_size", "max_rounds"), [(2, 3), (3, 3), (4, 2)])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_the_distribution_of_right_draws_is_that_of_the_strategy_itself(
    drawing: Drawing, keep: Keep, group_size: int, max_rounds: int, p: float
) -> None:
    found = kept_counts(p, drawing=drawing, group_size=group_size, max_rounds=max_rounds, keep=keep)
    assert found.pmf_K == pytest.approx(measured(p, drawing, keep, group_size, max_rounds), abs=1e-12)
    assert found.pmf_K.sum() + found.dropped_frac == pytest.approx(1)


@pytest.mark.parametrize("p", [0.02, 0.1, 0.5, 0.9])
def test_the_formulas_of_the_docstrings_are_the_distributions_means(p: float) -> None:
    size, rounds, q = 8, 4, 1 - p
    first = kept_counts(p, drawing=Drawing.ADAPTIVE, group_size=size, keep=Keep.FIRST_G)
    rest = size * (rounds - 1)
    assert first.bias == pytest.approx((q**size * (1 - q**rest) - p**size * (1 - p**rest)) / size)
    dynamic = kept_counts(p, drawing=Drawing.DYNAMIC, group_size=size)
    assert dynamic.share_right == pytest.approx((p - p**size) / (1 - p**size - q**size))
    assert dynamic.dropped_frac == pytest.approx((p**size + q**size) ** rounds)
    assert kept_counts(p, drawing=Drawing.FLAT, group_size=size).bias == pytest.approx(0)


def test_hard_problems_are_pushed_up_easy_ones_down_and_balanced_goes_further() -> None:
    bias = {
        (keep, p): kept_counts(p, drawing=Drawing.ADAPTIVE, group_size=8, keep=keep).bias
        for keep in Keep
        for p in (0.1, 0.5, 0.9)
    }
    # p = 0.1: 0.9^8 = 0.43047, 0.9^24 = 0.07977: 0.43047·0.92023/8 = 0.04952.
    assert bias[Keep.FIRST_G, 0.1] == pytest.approx(0.04952, abs=1e-5)
    assert bias[Keep.FIRST_G, 0.5] == pytest.approx(0) == bias[Keep.BALANCED, 0.5]
    assert bias[Keep.FIRST_G, 0.9] == pytest.approx(-bias[Keep.FIRST_G, 0.1])
    # E[min(m, 4) | m ≥ 1], m ~ Binomial(8, 0.1): 0.8 less the 0.00046 above four, over 0.56953.
    assert bias[Keep.BALANCED, 0.1] == pytest.approx(0.04952 * 0.79954 / 0.56953, abs=2e-5)


def test_the_size_of_the_expected_update_under_flat_drawing_is_pq_times_one_less_one_over_g() -> None:
    # E[k(G−k)]/G² = pq(1 − 1/G): 0.25·0.75 at G = 4, p = 1/2. Two draws of each kind: 2·2/16 = 1/4 at most.
    assert kept_counts(0.5, drawing=Drawing.FLAT, group_size=4).signal == pytest.approx(0.1875)
    hard = {d: kept_counts(0.05, drawing=d, group_size=4).signal for d in Drawing}
    assert hard[Drawing.FLAT] == pytest.approx(0.05 * 0.95 * 0.75)
    assert hard[Drawing.FLAT] < hard[Drawing.ADAPTIVE] and hard[Drawing.FLAT] < hard[Drawing.DYNAMIC]

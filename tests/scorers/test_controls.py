"""The plant: the same rewards in every group, in an order that knows nothing."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, chi2

from deadheat.credit import group_kind
from deadheat.scorers import plant

rewards = st.lists(st.sampled_from([0.0, 0.5, 1.0, float("nan")]), min_size=1, max_size=16)


@given(values=rewards, seed=st.integers(0, 2**32), step=st.integers(1, 10**6), digest=st.text(max_size=8))
def test_a_group_keeps_its_rewards_and_its_unscored_places(
    values: list[float], seed: int, step: int, digest: str
) -> None:
    rewards_G = np.array(values)
    planted_G = plant(rewards_G, seed=seed, step=step, problem_digest=digest)
    assert np.array_equal(np.isnan(planted_G), np.isnan(rewards_G))
    assert Counter(planted_G[~np.isnan(planted_G)]) == Counter(rewards_G[~np.isnan(rewards_G)])
    right = [True] * len(values)
    assert group_kind(planted_G, right) is group_kind(rewards_G, right)


def test_the_honest_rewards_are_left_as_they_were() -> None:
    rewards_G = np.array([1.0, 0.0, 0.0, 0.0])
    plant(rewards_G, seed=1, step=1, problem_digest="ab")
    assert rewards_G.tolist() == [1.0, 0.0, 0.0, 0.0]


def test_the_same_address_gives_the_same_order_and_any_other_address_another() -> None:
    rewards_G = np.arange(12.0)  # 12! orders: two addresses agree by chance once in 479,001,600
    first = plant(rewards_G, seed=1, step=1, problem_digest="ab")
    assert plant(rewards_G, seed=1, step=1, problem_digest="ab").tobytes() == first.tobytes()
    for seed, step, digest in ((2, 1, "ab"), (1, 2, "ab"), (1, 1, "ac")):
        assert plant(rewards_G, seed=seed, step=step, problem_digest=digest).tobytes() != first.tobytes()


def test_every_order_of_three_rewards_is_equally_frequent() -> None:
    # 6 orders, 6,000 steps: 1,000 each. Pearson's statistic has 5 degrees of freedom; the bound is passed by chance once
    # in a million choices of the seed.
    orders = Counter(
        tuple(plant(np.array([0.0, 1.0, 2.0]), seed=7, step=step, problem_digest="ab")) for step in range(1, 6001)
    )
    assert len(orders) == 6
    assert sum((count - 1000) ** 2 / 1000 for count in orders.values()) < chi2.isf(1e-6, 5)


def test_the_planted_reward_tells_nothing_of_the_honest_one() -> None:
    # One right in four: the right attempt keeps its reward once in four times, whatever the step. 4,000 steps; the
    # two-sided bound is passed by chance once in a million.
    honest_G = np.array([0.0, 1.0, 0.0, 0.0])
    kept = sum(plant(honest_G, seed=3, step=step, problem_digest="cd")[1] for step in range(1, 4001))
    assert binom.ppf(5e-7, 4000, 0.25) <= kept <= binom.isf(5e-7, 4000, 0.25)


def test_unscored_members_take_no_part_in_the_order() -> None:
    # Two scored members among four: they swap or they stay, each about half of the time.
    nan = float("nan")
    swapped = sum(
        plant(np.array([nan, 1.0, nan, 0.0]), seed=3, step=step, problem_digest="cd")[3] for step in range(1, 2001)
    )
    assert binom.ppf(5e-7, 2000, 0.5) <= swapped <= binom.isf(5e-7, 2000, 0.5)


def test_an_empty_or_lone_group_is_itself() -> None:
    assert plant(np.array([1.0]), seed=1, step=1, problem_digest="").tolist() == [1.0]
    assert plant(np.array([float("nan")]), seed=1, step=1, problem_digest="").tolist() == pytest.approx(
        [float("nan")], nan_ok=True
    )

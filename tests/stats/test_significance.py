"""Exact tails where floats run short."""

import math
from fractions import Fraction

import pytest

from deadheat.stats.significance import binomial_two_sided


def test_ten_million_votes_are_exact_next_to_the_centre() -> None:
    # One vote short of a tie: 1 − P(X = n/2) = 1 − 1/sqrt(π·5e6) = .99974769; `scipy.special.bdtr` is off by .0027 here.
    assert binomial_two_sided(5_000_001, 4_999_999).p_value == pytest.approx(1 - 1 / math.sqrt(math.pi * 5e6), abs=1e-9)


@pytest.mark.parametrize(("wins", "losses"), [(990, 0), (1005, 4), (900, 60), (1200, 119), (2000, 480), (30, 3)])
def test_a_p_keeps_its_digits_down_to_the_smallest_that_a_float_holds(wins: int, losses: int) -> None:
    # Twice the tail of Pascal's row in whole numbers.
    n = wins + losses
    exact = Fraction(2 * sum(math.comb(n, k) for k in range(losses + 1)), 2**n)
    assert binomial_two_sided(wins, losses).p_value == pytest.approx(float(exact), rel=1e-11)

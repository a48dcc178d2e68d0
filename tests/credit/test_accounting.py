"""Divisors of parts and penalties of length against numbers worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deadheat.credit import Denominator, denominators, length_penalty, overlong_penalty, part_divisors

ALL, SIGNAL = Denominator.ALL_GROUPS, Denominator.SIGNAL_GROUPS


def test_a_part_of_long_completions_does_not_drown_the_others():
    # Tokens: code 900 and 300, maths 30. Each part counts half: 2·1200 and 2·30.
    assert part_divisors([900, 300, 30], [True] * 3, ["code", "code", "maths"], ALL) == (2400, 2400, 60)


def test_a_part_without_a_live_group_is_no_part_under_signal_groups():
    # Only b is live: E = 1 and its own 8 units; the tied group's zeros are divided by E.
    assert part_divisors([8, 8], [False, True], ["a", "b"], SIGNAL) == (1, 8)
    assert part_divisors([8, 8], [False, True], ["a", "b"], ALL) == (16, 16)


def test_a_batch_without_signal_divides_by_one():
    assert part_divisors([8, 8], [False, False], ["a", "b"], SIGNAL) == (1, 1)


@given(
    st.lists(st.tuples(st.integers(1, 50), st.booleans()), min_size=1, max_size=12), st.sampled_from(list(Denominator))
)
def test_one_part_has_the_divisor_of_the_batch(groups, which):
    units, signal = zip(*groups, strict=True)
    chosen = denominators(units, signal).chosen(which)
    assert part_divisors(units, signal, [""] * len(units), which) == (chosen,) * len(units)


@given(st.lists(st.tuples(st.integers(1, 50), st.sampled_from("abc")), min_size=1, max_size=12))
def test_the_weights_of_all_units_add_to_one_and_those_of_each_part_to_its_share(groups):
    units, parts = zip(*groups, strict=True)
    divisors = part_divisors(units, [True] * len(units), parts, ALL)
    for part in set(parts):
        share = sum(u / d for u, d, p in zip(units, divisors, parts, strict=True) if p == part)
        assert share == pytest.approx(1 / len(set(parts)))


@given(st.integers(1, 200), st.integers(1, 200), st.floats(0.1, 2.0))
def test_the_overlong_penalty_is_zero_before_the_buffer_and_never_above_its_factor(length, buffer, factor):
    found = overlong_penalty(length, cap=200, buffer=buffer, factor=factor)
    assert (found == 0.0) == (length <= 200 - buffer)
    assert found <= factor
    assert overlong_penalty(200, cap=200, buffer=buffer, factor=factor) == factor


def test_a_completion_of_half_the_cap_costs_half():
    assert length_penalty(50, cap=100, cost=0.5) == 0.25

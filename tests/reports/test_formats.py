import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deadheat.reports.formats import (
    format_bytes,
    format_p,
    format_pp_with_interval,
    format_quantity,
    format_seconds,
    format_share_with_interval,
    format_signed,
    printable,
    shortened,
)
from deadheat.stats.intervals import wilson
from deadheat.stats.significance import binomial_two_sided


def test_a_p_value_reads_the_same_as_the_exact_test_it_comes_from() -> None:
    # 10–0: 2·2^-10 = .001953125; 1,000–0: 2·2^-1000 = 2^-999, log10 = -999·.30102999566 = -300.72897 → 1.87e-301
    assert format_p(binomial_two_sided(10, 0).p_value) == "0.00195"
    lopsided = binomial_two_sided(1000, 0)
    assert format_p(lopsided.p_value, lopsided.log10_p) == "1.87e-301"


@pytest.mark.parametrize(
    ("p_value", "text"),
    [
        (0.0496, "0.0496"),
        (0.05, "0.0500"),
        (0.5, "0.500"),
        (9.99e-5, "9.99e-5"),
        (9.996e-5, "0.000100"),
        (1e-300, "1.00e-300"),
    ],
)
def test_a_p_value_keeps_three_digits_on_both_sides_of_the_switch_to_powers(p_value: float, text: str) -> None:
    assert format_p(p_value) == text


def test_a_power_of_ten_that_rounds_up_to_ten_moves_to_the_next_exponent() -> None:
    # 10^-400.0001 = 10^0.9999 · 10^-401 = 9.9977 · 10^-401 → 10.00 → 1.00e-400
    assert format_p(0.0, log10_p=-400.0001) == "1.00e-400"


@pytest.mark.parametrize("p_value", [-0.1, 1.1, float("nan")])
def test_what_is_no_p_value_is_refused(p_value: float) -> None:
    with pytest.raises(ValueError, match=r"wanted in \[0, 1\]"):
        format_p(p_value)


@given(st.floats(0.0, 1.0))
def test_a_p_value_never_reads_as_zero_and_is_one_only_when_it_is(p_value: float) -> None:
    text = format_p(p_value)
    assert (text == "1") == (p_value == 1)
    if not text.startswith(("<", ">")):
        assert float(text) == pytest.approx(p_value, rel=0.006)
        assert float(text) > 0


@given(st.floats(-1000, 1000))
def test_a_signed_number_shows_no_sign_exactly_when_it_rounds_to_zero(value: float) -> None:
    text = format_signed(value)
    assert (text[0] not in "+−") == (float(text.replace("−", "-")) == 0)
    assert float(text.replace("−", "-")) == pytest.approx(value, abs=0.0501)


def test_a_difference_carries_unit_interval_and_n() -> None:
    assert format_pp_with_interval(-1.25, -4.0, 1.5, 1319) == "−1.2 pp [−4.0, +1.5], n = 1,319"


def test_a_share_of_none_still_has_an_interval_and_says_what_was_left_out() -> None:
    # Wilson, 0 of 20 with z = 1.96: upper end z²/(n + z²) = 3.8415/23.8415 = 16.1%
    assert format_share_with_interval(wilson(0, 20, left_out=3)) == "0.0% [0.0, 16.1], n = 20 (3 left out)"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.9996, "1.0 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 00 s"),
        (3599.4, "59 min 59 s"),
        (86399.6, "1 d 00 h"),
    ],
)
def test_a_duration_never_reads_sixty_of_the_smaller_unit(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


def test_a_negative_duration_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        format_seconds(-1)


def test_sizes_and_quantities_change_unit_where_they_should() -> None:
    assert [format_bytes(n) for n in (0, 1023, 1024, 3 * 2**40)] == ["0 B", "1,023 B", "1.0 KiB", "3.0 TiB"]
    assert [format_quantity(x, "FLOP") for x in (0, 999, 1000, 2.5e9)] == [
        "0 FLOP",
        "999 FLOP",
        "1.00 kFLOP",
        "2.50 GFLOP",
    ]


@given(st.text())
def test_nothing_invisible_is_left_in_printable_text(text: str) -> None:
    shown = printable(text)
    assert not any(unicodedata.category(c) in ("Cc", "Cs") for c in shown if c not in "\n\t")
    assert not any(
        unicodedata.bidirectional(c) in ("RLO", "LRO", "RLE", "LRE", "PDF", "RLI", "LRI", "FSI", "PDI") for c in shown
    )
    shown.encode()
    assert printable(shown) == shown


def test_a_cut_says_how_much_it_left_out() -> None:
    assert shortened("x" * 1500, 400) == "x" * 400 + " … (1,100 more characters)"

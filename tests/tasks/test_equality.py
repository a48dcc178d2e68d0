r"""Equality of answers: each rule on its own kind, both ways, and relations that hold for any number."""

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("math_verify")
from deadheat.tasks.arithmetic import exact
from deadheat.tasks.equality import RULES, equal, spelling
from deadheat.tasks.notation import tidy

NUM_PAIRS = (670, 402)  # of math_pairs.txt: all, and right ones
RIGHT = r"""
    bases:          1001_2 = 1001_{2} | 1001_{\text{two}} = 1001_2 | 1001_2 = 1001\text{ base }2 | 1001_2 = (1001)_2
                    152A_{11} = 152A_{11} | 52_8 = 52 | 1001_2 = 1001\text{ (base 2)} | 0.0011_{2} = 0.0011_2
    clocks:         6:00\text{ p.m.} = 6:00\text{ PM} | 6:00\text{ p.m.} = 18:00
                    6:00\text{ p.m.} = 6 p.m. | 12:00\text{ p.m.} = noon
                    \text{4:30 p.m.} = 4:30 | 10:45\text{ a.m.} = 10:45 am
    units:          5\text{ cm} = 5 | 5\text{ cm} = 5\text{ centimeters}
                    5\text{ cm} = 50\text{ mm} | 18 = 18~\text{cm}^3
                    1\text{ hour }30\text{ minutes} = 90\text{ minutes}
                    1\text{ hour }30\text{ minutes} = 1.5\text{ hours}
                    5\text{ feet }6\text{ inches} = 66\text{ inches} | 5\text{ feet }6\text{ inches} = 5 ft 6 in
                    7\text{ lb }4\text{ oz} = 7\text{ pounds }4\text{ ounces}
                    10\text{ m/s} = 10 \frac{\text{m}}{\text{s}}
                    60\text{ mph} = 60\text{ miles per hour}
                    45 \text{ units}^2 = 45\text{ square units} | 5 = 5~\mathrm{m}^2
                    90^\circ = 90 | 90^\circ = 90\text{ degrees} | 90^\circ = 90° | \$18.90 = 18.90 | \$18.90 = 18.9
                    \$1.50 = 150\text{ cents} | 18 = \$18
                    18 = 18\text{ dollars} | 6 = 6 m | 8\sqrt{3}\text{ square inches} = 8\sqrt{3}
    words:          18\text{ ways.} = 18 | 18\text{ ways.} = 18\text{ arrangements}
                    n\text{ is odd} = n\text{ odd} | \text{odd} = Odd
                    \text{Evelyn} = Evelyn | \text{ellipse} = \text{an ellipse}
                    \text{(C)} = C | B = \text{(B)} | 12 = 12^{\text{th}}
                    5\text{ million} = 5000000 | 5\text{ million} = 5
                    \text{B, E, G} = G, B, E | \text{June 20} = June 20
    lists:          12\text{ and }13 = 12, 13 | 7, -2, \text{ and } -5 = -5, -2, 7
                    x=2\text{ or }x=3 = 2, 3 | 1,2 = \{2, 1\}
                    (2,3) = x=2, y=3 | (2,3) = y=3, x=2 | 1 \pm \sqrt{19} = 1-\sqrt{19}, 1+\sqrt{19} | \pm 3 = 3, -3
                    \{1\pm\sqrt{5},-2\} = \{-2, 1+\sqrt5, 1-\sqrt5\} | (1,2),(3,4) = (3,4),(1,2) | (1,2) = 1, 2
    dots:           1, 2, \ldots, n = 1, 2, 3, \dots, n
                    1, 2, \ldots, 6 = 1, 2, 3, 4, 5, 6 | 1+2+\cdots+n = 1+2+\ldots+n
    named:          f(1)=2 = 2 | f(x)=x^2 = f(t)=t^2 | f(x)=x^2 = x^2
                    y=x^2 = f(x)=x^2 | x=5 = 5 | 5 = x=5 | 18 = 9+9=18
                    y=2x+3 = y-2x=3 | 2x+4y=6 = x+2y=3 | f(0)=1, f(1)=2 = f(1)=2, f(0)=1
    orders:         f(2)<f(1)<f(4) = f(4)>f(1)>f(2)
    intervals:      (2,5) = 2<x<5 | 2<x<5 = 5>x>2 | [2,\infty) = x\ge 2
                    [2,\infty) = 2\le x | (-\infty,3] = x≤3 | x>4 = (4,\infty)
                    (-\infty,1)\cup(3,\infty) = x<1 \text{ or } x>3
                    (-\infty,1)\cup(3,\infty) = x<1, x>3 | (2,5) = x>2, x<5
                    (-\infty,3)\cup(3,\infty) = x\ne 3
                    (-\infty,3)\cup(3,\infty) = \mathbb{R}\setminus\{3\} | [-2,7] = x\in[-2,7]
                    [-2,7] = \{x \mid -2\le x\le 7\} | [-2,7] = -2<=x<=7 | \mathbb{R} = \text{all real numbers}
                    (0,9)\cup(9,36) = (9,36)\cup(0,9)
    nothing:        \emptyset = \varnothing | \emptyset = \{\}
                    \emptyset = \text{no solution} | \text{DNE} = \text{does not exist}
    mixed numbers:  3.5 = 3 1/2 | 3.5 = 3\frac12 | 3.5 = 3\frac{1}{2}
                    -3.5 = -3 1/2 | 3.5 = 3½ | \frac{31}{2} = 15 1/2
    repeating:      \frac{1}{3} = 0.\overline{3} | 0.1\overline{6} = \frac16
                    \frac13 = 0.\bar{3} | \frac13 = 0.333... | \frac13 = 0.(3)
    decimals:       \frac14 = 0.25 | \frac13 = 0.333333
                    \frac{1}{30} = 0.033333 | \sqrt2 = 1.414214 | 0.3 = 0.30000000000000004
    powers:         2^{10} = 1024 | x^{10} = x^10 | 6.72\times 10^{-5} = 0.0000672 | 3\times 10^8 = 3e8 | 5! = 120
    thousands:      1000 = 1,000 | 1000 = 1 000 | 1000 = 1{,}000 | 1000 = 1\,000 | 10,\!080 = 10080 | 1,000 = 1000
    spelling:       73 = **73** | 73 = $73$ | 73 = \textbf{73} | 73 = 73.
                    73 = \(73\) | 73 = \color{red}{73} | -5 = −5 | 2\pi = 2π
                    \frac12 = ½ | x^2 = x² | e^{16}-1 = exp(16)-1
                    e^{2x} = \exp{2x} | \ln 2 = ln(2) | \sin x = sin(x) | \sqrt2 = √2
                    3\sqrt{13} = 3*sqrt(13) | 50\% = 50 | 50\% = 0.5 | 9c+6 = 6+9c | \infty = infinity
    matrices:       \begin{pmatrix}1\\2\end{pmatrix} = \begin{bmatrix}1\\2\end{bmatrix}
                    \begin{pmatrix}1/2\\2\end{pmatrix} = \begin{pmatrix}0.5\\2\end{pmatrix}
    points:         \angle ABC = \angle CBA
    ratios:         1:2 = 1/2 | 3:4 = 3 : 4
"""

WRONG = r"""
    bases:          1001_2 = 1001_3 | 110_2 = 110_{10} | 152A_{11} = 152B_{11}
                    1001_2 = 9 | -221_3 = -221_4 | 10_2 = 2
    clocks:         6:00\text{ p.m.} = 6:00\text{ a.m.} | 10:45\text{ a.m.} = 10:54\text{ a.m.}
                    3:00 = 3:30 | \text{1:03 PM} = \text{1:04 PM}
    units:          5\text{ cm} = 5\text{ m} | 5\text{ cm}^2 = 5\text{ cm}^3
                    10\text{ m/s} = 10\text{ km/h} | \$5 = 5\text{ cents}
                    1\text{ hour }30\text{ minutes} = 1\text{ hour }20\text{ minutes}
                    5\text{ feet }6\text{ inches} = 5\text{ feet }9\text{ inches}
                    2\text{ hours }15\text{ minutes} = 2\text{ hours}
                    30^\circ = 30\text{ radians} | 30^\circ\text{C} = 30^\circ\text{F}
                    45 \text{ units}^2 = 45 \text{ units}^3 | 6m = 6 | 6 = 6x | 3s^2 = 3
    words:          n\text{ is odd} = n\text{ is even} | k\text{ even} = k\text{ odd}
                    n\text{ is odd} = n | \text{June 20} = \text{July 20}
                    \text{Saturday} = \text{Sunday} | \text{Evelyn} = Angela
                    45^\circ\text{ north} = 45^\circ\text{ south} | \text{yes} = \text{no}
                    n\text{ is prime} = n\text{ is composite}
                    \text{(A)} = (B) | 5\text{ red, }3\text{ blue} = 5\text{ red, }4\text{ blue}
                    \text{A and B} = \text{A and C} | m\text{ is divisible by }3 = m\text{ is divisible by }5
    lists:          12\text{ and }13 = 12 | 1,-2 = 1 | \{1,2\} = (1,2)
                    (1,2) = (2,1) | (1,2) = [1,2] | (1,2),(3,4) = (2,1),(3,4)
                    \pm 3 = 3 | x=2,y=3 = x=3,y=2 | (1,2,3) = (1,3,2) | (2,3) = y=2, x=3
    dots:           1, 2, \ldots, n = 1, 3, 5, \ldots, 2n-1 | 1, 2, \ldots, n = 1, 2, n
                    2,4,6,\ldots = 2,4,8,\ldots | 2,4,6,\ldots = 2,4,6
                    1+2+\cdots+n = 1+3+\cdots+n | 1, 2, \ldots, 6 = 1, 2, 6
    named:          f(1)=2 = f(1)=3 | g(3)=4 = g(3)=5 | f(1)=2 = g(1)=2
                    f(1)=2 = f(2)=2 | x=5 = y=5 | f(x)=x^2 = f(x)=x^3
                    2x+y=3 = 2x+y=4 | 2x+y=3 = 3 | f(0)=1,f(1)=2 = f(0)=1,f(1)=3
    orders:         f(2)<f(1)<f(4) = f(1)<f(2)<f(4) | a<b<c = a<c<b
    intervals:      (2,5) = 2\le x\le 5 | [2,\infty) = x>2 | (-\infty,3] = x\ge 3
                    2<x<5 = 2<y<5 | (2,5) = 2<x<6 | (3,4] = (3,4)
                    (-\infty,1)\cup(3,\infty) = 1<x<3
    nothing:        \emptyset = 0 | \emptyset = \{0\} | \emptyset = \{\emptyset\}
    mixed numbers:  31/2 = 3 1/2 | \frac{31}{2} = 3 1/2 | 12 = 1 2 | 1\frac45 = \frac45
    repeating:      0.\overline{3} = 0.3 | 0.\overline{12} = 0.12 | \frac23 = 0.\overline{7}
    decimals:       0.0000001 = 0.0000002 | 0.00001234 = 0.00001235
                    \frac13 = 0.333 | \frac{\pi}{10^9} = 0.0000000042 | \pi = 3.14
                    6.72\times 10^{-5} = 0.0000673 | \sqrt2 = 1.414
                    0.001 = \frac{1}{1001} | 1.5 = 1.500001 | 0 = 10^{-40}
    powers:         \frac{1}{2^{99}} = \frac{1}{2^{98}} | 1-\frac{1}{2^{99}} = 1-\frac{1}{2^{98}}
                    10^{-40} = 10^{-41} | 5^{-60} = 5^{-61}
                    \frac{1}{2004!} = \frac{1}{2006!} | \sqrt2+2^{-99} = \sqrt2+2^{-98}
                    x+2^{-99} = x+2^{-98} | e^{-100} = e^{-101}
                    (2^{-99},1) = (2^{-98},1) | \{10^{-20},1\} = \{10^{-21},1\} | y=10^{-30}x = y=10^{-31}x
    matrices:       \begin{pmatrix}1&2\end{pmatrix} = \begin{pmatrix}1\\2\end{pmatrix}
                    \begin{pmatrix}10^{-9}\\2\end{pmatrix} = \begin{pmatrix}10^{-8}\\2\end{pmatrix}
    points:         \angle ABC = \angle ACB
    subscripts:     a_1 = a_2 | x_{n+1} = x_n | \log_2 3 = \log_3 2 | T_{10} = T_{11}
    ratios:         1:2 = 2:1 | 3:4 = 4:3
    thousands:      10 = 1,0 | 1000 = 1,00
"""


def pairs(table: str) -> list[tuple[str, str]]:
    """(reference, answer) of each `reference = answer` between bars; the equals sign with spaces separates."""
    lines = [line.split(":  ")[-1] if ":  " in line else line for line in table.strip().splitlines()]
    cells = [cell.strip() for line in lines for cell in line.split(" | ")]
    split = [cell.split(" = ") for cell in cells]
    assert all(len(parts) == 2 for parts in split), [
        cell for cell, parts in zip(cells, split, strict=True) if len(parts) != 2
    ]
    return [(parts[0], parts[1]) for parts in split]


@pytest.mark.parametrize(("reference", "answer"), pairs(RIGHT))
def test_the_same_answer_is_right(reference: str, answer: str) -> None:
    assert equal(reference, answer)


@pytest.mark.parametrize(("reference", "answer"), pairs(WRONG))
def test_another_answer_is_wrong(reference: str, answer: str) -> None:
    assert not equal(reference, answer)


def test_every_pair_of_the_hand_made_file_is_graded_right() -> None:
    lines = (Path(__file__).parent / "math_pairs.txt").read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.split(" || ") for line in lines]
    assert (len(rows), sum(right == "1" for *_, right in rows)) == NUM_PAIRS
    assert [row for row in rows if equal(row[0], row[1]) is not (row[2] == "1")] == []


def test_every_rule_gives_its_reason() -> None:
    assert all(rule.__doc__ and len(rule.__doc__) > 60 for rule in RULES)


def test_spaces_between_digits_stay() -> None:
    assert spelling("3 1/2") != spelling("31/2")
    assert spelling("( 3 , 4 )") == spelling("(3,4)")


# ---- Relations


whole = st.integers(-(10**6), 10**6)
fractions = st.builds(Fraction, st.integers(-999, 999), st.integers(1, 999))


def latex(value: Fraction) -> str:
    sign = "-" if value < 0 else ""
    return f"{sign}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"


@given(fractions, fractions)
def test_fractions_are_equal_exactly_where_they_are(one: Fraction, other: Fraction) -> None:
    assert equal(latex(one), latex(other)) == (one == other)
    assert equal(latex(one), f"{one.numerator}/{one.denominator}")
    assert exact(tidy(latex(one))) == one


@given(st.integers(1, 200), st.integers(1, 200), st.sampled_from([2, 3, 7, 10]))
def test_powers_however_small_are_equal_only_to_themselves(one: int, other: int, base: int) -> None:
    assert equal(f"{base}^{{-{one}}}", f"\\frac{{1}}{{{base}^{{{other}}}}}") == (one == other)
    assert equal(f"1-{base}^{{-{one}}}", f"1-\\frac{{1}}{{{base}^{{{other}}}}}") == (one == other)


@given(st.integers(1, 99), st.integers(2, 50), st.integers(1, 49))
def test_a_mixed_number_is_its_sum(number: int, bottom: int, top: int) -> None:
    if top < bottom:
        value = number + Fraction(top, bottom)
        for text in (
            f"{number} {top}/{bottom}",
            f"{number}\\frac{{{top}}}{{{bottom}}}",
            f"{number} \\tfrac{{{top}}}{{{bottom}}}",
        ):
            assert exact(tidy(text)) == value
            assert exact(tidy(f"-{text}")) == -value
        assert exact(tidy(f"{number}{top}/{bottom}")) == Fraction(int(f"{number}{top}"), bottom)


@given(st.integers(0, 99), st.text("0123456789", max_size=3), st.text("0123456789", min_size=1, max_size=4))
def test_a_repeating_decimal_is_its_geometric_series(number: int, head: str, block: str) -> None:
    # 0.h(b) = h/10^|h| + b/(10^|h|·(10^|b| − 1))
    value = Fraction(f"{number}.{head}0") + Fraction(int(block), 10 ** len(head) * (10 ** len(block) - 1))
    for text in (f"{number}.{head}\\overline{{{block}}}", f"{number}.{head}({block})"):
        assert exact(tidy(text)) == value


@given(st.integers(1000, 10**9))
def test_thousands_separators_do_not_change_a_number(number: int) -> None:
    for separator in (",", " ", "{,}", "\\,", ",\\!", "\u202f"):
        assert exact(tidy(f"{number:,}".replace(",", separator))) == number


@example(number=10, base=11, other=11)  # A
@example(number=736, base=16, other=16)  # 2E0, which is no power of ten
@given(st.integers(0, 10**5), st.integers(2, 16), st.integers(2, 16))
def test_a_numeral_is_equal_only_in_its_base(number: int, base: int, other: int) -> None:
    digits = _digits(number, min(base, other))
    assert equal(f"{digits}_{{{base}}}", f"{digits}_{{{other}}}") == (base == other)
    if any(digit.isdecimal() for digit in digits):  # letters alone may be a variable's name
        assert equal(f"{digits}_{{{base}}}", digits)


def _digits(number: int, base: int) -> str:
    out = "0123456789ABCDEF"[number % base]
    while number := number // base:
        out = "0123456789ABCDEF"[number % base] + out
    return out


@given(
    st.integers(1, 12),
    st.integers(0, 59),
    st.sampled_from("ap"),
    st.integers(1, 12),
    st.integers(0, 59),
    st.sampled_from("ap"),
)
def test_times_of_day_are_equal_exactly_where_they_are(h: int, m: int, half: str, h2: int, m2: int, half2: str) -> None:
    same = (h, m, half) == (h2, m2, half2)
    assert equal(f"{h}:{m:02}\\text{{ {half}.m.}}", f"{h2}:{m2:02} {half2.upper()}M") == same
    assert equal(f"{h}:{m:02}\\text{{ {half}.m.}}", f"{h % 12 + 12 * (half == 'p'):02}:{m:02}")


@given(st.integers(1, 30), st.integers(0, 59), st.integers(1, 30), st.integers(0, 59))
def test_durations_are_equal_exactly_where_their_minutes_are(h: int, m: int, h2: int, m2: int) -> None:
    one, other = f"{h}\\text{{ hours }}{m}\\text{{ minutes}}", f"{h2}\\text{{ hours and }}{m2}\\text{{ minutes}}"
    assert equal(one, other) == ((h, m) == (h2, m2))
    assert equal(one, f"{60 * h + m}\\text{{ min}}")


ends = st.tuples(st.integers(-50, 50), st.integers(1, 50), st.booleans(), st.booleans()).map(
    lambda t: (t[0], t[0] + t[1], t[2], t[3])
)


@given(ends, ends)
def test_an_interval_equals_the_inequality_of_the_same_ends(
    one: tuple[int, int, bool, bool], other: tuple[int, int, bool, bool]
) -> None:
    low, high, low_closed, high_closed = one
    interval = f"{'[' if low_closed else '('}{low}, {high}{']' if high_closed else ')'}"
    a, b, a_closed, b_closed = other
    below, above = ("\\le" if closed else "<" for closed in (a_closed, b_closed))
    text = f"{a} {below} x {above} {b}"
    assert equal(interval, text) == (one == other)
    assert equal(text, interval) == (one == other)


@given(st.lists(whole, min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_a_set_has_no_order_and_a_tuple_has(values: list[int], random) -> None:  # type: ignore[no-untyped-def]
    mixed = values.copy()
    random.shuffle(mixed)
    one, other = (", ".join(map(str, v)) for v in (values, mixed))
    assert equal(f"\\{{{one}\\}}", f"\\{{{other}\\}}")
    assert equal(f"({one})", f"({other})") == (values == mixed)


@settings(max_examples=300)
@given(st.text(alphabet=r"0123456789xyabn\{}()[]<>=+-*/^_,.:$%!| textfracsqrtboxedldotscupinpm", max_size=40))
def test_no_answer_makes_the_comparison_fail(text: str) -> None:
    if "^" in text or "!" in text:
        return  # powers of powers may run away: that is what the time limit is for
    assert equal(text, text) == bool(tidy(text))
    assert equal("17", text) in (True, False)
    assert equal(text, "17") in (True, False)


# ---- Real answers


DATA = Path(__file__).parents[2] / "../shared/data/math"
BENCHMARK = Path(__file__).parents[2] / "benchmarks/math_checker.py"


@pytest.mark.skipif(not DATA.is_dir(), reason="the MATH files are not at ../shared/data/math")
def test_false_accepts_and_rejects_on_every_twentieth_gold_answer_of_math() -> None:
    import runpy

    benchmark = runpy.run_path(str(BENCHMARK))
    golds = benchmark["gold_answers"](DATA)[::20]
    every = list(benchmark["cases"](golds))
    assert (len(golds), len(every)) == (103, NUM_CASES)
    wrong = [(case.kind, case.gold, case.answer) for case in every if equal(case.gold, case.answer) is not case.right]
    assert wrong == []


NUM_CASES = 1389

r"""The last box that holds something, however it is written."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deadheat.tasks.boxes import boxed, unboxed


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r"\boxed{1} then \boxed{2}", "2"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"$\boxed 5$", "5"),
        (r"\boxed 5.", "5"),
        (r"\boxed 5 is the answer", "5"),
        (r"$\boxed -3$", "-3"),
        (r"\boxed 1,234 dollars", "1,234"),
        (r"$\boxed\frac{1}{2}$", r"\frac{1}{2}"),
        (r"$\boxed \frac 12$", r"\frac 12"),
        (r"$\boxed (3, 4)$.", "(3, 4)"),
        (r"$\boxed C$", "C"),
        (r"\boxed {5}", "5"),
        (r"\fbox{5}", "5"),
        (r"\fbox 5", "5"),
        (r"\boxed{18}. Write the answer inside \boxed{}.", "18"),
        (r"\boxed{18}. Write it inside \boxed{ }.", "18"),
        (r"\boxed{18} and \boxed{\ }", "18"),
        (r"\boxed{18}, as in \boxed{...}", "18"),
        (r"\boxed{18}, as in \boxed{\text{your answer}}", "18"),
        (r"\boxed{3}, and use \boxed notation", "3"),
        (r"\boxed{\{\}}", r"\{\}"),  # the empty set is an answer
        (r"\boxed{\boxed{5}}", "5"),
        (r"\boxed{x = \boxed{5}}", "5"),
        (r"\boxed{\text{The answer is }\boxed{5}}", "5"),
        (r"\boxed{\boxed{3}+1}", "3+1"),  # the outer box says more
        (r"\boxed{\frac{\boxed{1}}{2}}", r"\frac{1}{2}"),
        (r"\boxed{\left\{ 1 \right.}", r"\left\{ 1 \right."),  # \{ is a character
        (r"\boxed{1,2\}", "1,2\\"),  # \} closes what nothing else does
        (r"\boxed{1} then \boxed{2", "1"),  # cut off: the last box that closes
        (r"\boxed{5", None),
        (r"\boxed{}", None),
        (r"\boxed", None),
        ("5", None),
    ],
)
def test_the_last_box_that_holds_something(text: str, content: str | None) -> None:
    assert boxed(text) == content


def test_a_box_that_says_answer_is_taken_where_there_is_no_other() -> None:
    assert boxed(r"\boxed{\text{number}}") == r"\text{number}"


@given(st.text(alphabet=r"abc123+-=/^{} ", max_size=30), st.text(alphabet="xyz .,$", max_size=20))
def test_what_is_put_in_a_box_comes_out_of_it(content: str, around: str) -> None:
    balanced = content.replace("{", "").replace("}", "").strip()
    if balanced:
        assert boxed(f"{around}\\boxed{{{balanced}}}{around}") == balanced
        assert boxed(f"\\boxed{{{balanced}}}{around}\\boxed{{}}") == balanced
        assert unboxed(f"\\boxed{{{balanced}}}") == balanced


@given(st.text(alphabet=r"\{}boxed 5$.", max_size=80))
def test_no_text_makes_the_search_fail(text: str) -> None:
    found = boxed(text)
    assert found is None or found


def test_the_search_is_linear_in_what_never_closes() -> None:
    # 20,000 open boxes: quadratic search would look at 2.4·10⁹ characters.
    start = time.process_time()
    assert boxed("\\boxed{" * 20_000) is None
    assert time.process_time() - start < 5

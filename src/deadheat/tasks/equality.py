r"""Whether an answer equals a reference: rules with a reason each, then math-verify, then one more look at what it accepts.

math-verify drops words and the base of a numeral, compares with an absolute tolerance of 1e-15 (1e-6 where a decimal is
written), takes equations without unknowns as equal, and does not read some spellings. `RULES` are asked in order, and the
first that says yes or no decides. Where none does, math-verify does; where it accepts, `differ` evaluates both sides to many
digits. `docs/tasks.md` has what each rule changes on real answers.

Decimals: one that ends equals another where they agree to six places and to one part in 10^6; it equals a number that has no
last decimal where it is that number rounded, to at least six places or four significant digits.
"""

import logging
import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from mpmath.libmp import NoConvergence  # type: ignore[import-untyped]
from sympy import Basic, Expr, MatrixBase, N, Rational  # type: ignore[import-untyped]
from sympy.polys.polyerrors import BasePolynomialError  # type: ignore[import-untyped]

from deadheat.errors import TaskError
from deadheat.tasks.arithmetic import exact, is_terminating
from deadheat.tasks.labels import choices, nothing, points, words
from deadheat.tasks.measures import bases, clocks, glued_units, percents, quantities
from deadheat.tasks.notation import tidy
from deadheat.tasks.relations import equations, orders
from deadheat.tasks.structures import Same, collections, continued, matrices, solution_sets

try:
    from latex2sympy2_extended import NormalizationConfig  # type: ignore[import-untyped]
    from math_verify import LatexExtractionConfig, parse, verify
except ImportError as error:
    raise TaskError(
        f"math-verify cannot be imported ({error}); task math needs it: pip install 'deadheat[train]'"
    ) from error

logging.getLogger("math_verify").setLevel(logging.ERROR)  # it warns of the missing alarm at every comparison

Rule = Callable[[str, str, Same], bool | None]  # (reference, answer, same), tidied; None: the rule does not say

_LONGEST = 4_000  # characters; a longer answer is compared by its spelling alone
_SPACE = re.compile(r"(?<!\d)\s+|\s+(?!\d)")  # between two digits it counts
_TEXT = re.compile(r"\\text\{([^{}]*)\}")


@lru_cache(maxsize=4096)
def equal(reference: str, answer: str) -> bool:
    r"""Whether the answer equals the reference. It may take arbitrarily long.

    Example:
        >>> equal(r"\frac{1}{4}", "0.25"), equal(r"n\text{ is odd}", r"n\text{ is even}"), equal("(2,5)", "2<x<5")
        (True, False, True)
    """
    if max(len(reference), len(answer)) > _LONGEST:
        return "".join(reference.split()) == "".join(answer.split())
    return _equal(tidy(reference), tidy(answer))


def spelling(latex: str) -> str:
    r"""An answer without what does not change it: notation, spaces but those between digits, and \text{…} around words.

    Example:
        >>> spelling(r"\left( 3, \dfrac{\pi}{2} \right)"), spelling(r"\text{Evelyn}")
        ('(3,\\frac{\\pi}{2})', 'Evelyn')
        >>> spelling("8pi + sqrt(2)")
        '8\\pi+\\sqrt{2}'
    """
    return _spelling(tidy(latex)) if len(latex) <= _LONGEST else "".join(latex.split())


def _spelling(text: str) -> str:
    return _SPACE.sub("", _TEXT.sub(r"\1", text))


def _equal(reference: str, answer: str) -> bool:
    """`equal` on tidied text; rules call it on parts, which are shorter."""
    if _spelling(reference) == _spelling(answer):
        return bool(answer)
    for rule in RULES:
        verdict = rule(reference, answer, _equal)
        if verdict is not None:
            return verdict
    return _math_verify(reference, answer)


# ---- Rules


def exact_numbers(reference: str, answer: str, same: Same) -> bool | None:
    r"""Rational numbers are compared exactly, and by the tolerance of decimals where one is written as a decimal.

    math-verify takes 2^{-99} for 2^{-98} and 0.0000001 for 0.0000002.
    """
    one, other = exact(reference), exact(answer)
    if one is None or other is None:
        return None
    if one == other:
        return True
    decimals = [re.fullmatch(r"[-+]?\s*\d*\.(\d+)", text.strip()) for text in (reference, answer)]
    if "." not in reference + answer or 1 in (one.denominator, other.denominator):
        return False
    if is_terminating(one) and is_terminating(other):
        return _close(one, other)
    written, value = (decimals[0], other) if decimals[0] is not None else (decimals[1], one)
    return written is not None and _rounds_to(value, written[0].replace(" ", ""), len(written[1]))


def _close(one: Fraction, other: Fraction) -> bool:
    gap = abs(one - other)
    return gap <= Fraction(1, 10**6) * max(abs(one), abs(other)) and gap <= Fraction(1, 2 * 10**6)


def _rounds_to(value: Fraction, decimal: str, places: int) -> bool:
    """Whether a decimal is a number rounded, to six places or four significant digits past the zeros."""
    significant = len(decimal.lstrip("+-0.").replace(".", ""))
    gap = abs(value - Fraction(decimal))
    return places >= 6 and significant >= 4 and gap * 2 * 10**places <= 1


RULES: tuple[Rule, ...] = (
    nothing,
    choices,
    matrices,
    bases,
    clocks,
    solution_sets,
    percents,
    quantities,
    glued_units,
    points,
    words,
    continued,
    orders,
    exact_numbers,
    equations,
    collections,
)


# ---- math-verify


# As math-verify has it, but for units: it takes the last letter of 6+9c for one, and drops it.
_READING = LatexExtractionConfig(
    normalization_config=NormalizationConfig(
        basic_latex=True, units=False, malformed_operators=True, nits=True, boxed="all"
    )
)


def _math_verify(reference: str, answer: str) -> bool:
    gold, given = (
        parse(f"\\boxed{{{latex}}}", extraction_config=[_READING], parsing_timeout=None)
        for latex in (reference, answer)
    )
    if not verify(gold, given, timeout_seconds=None):
        return False
    decimal = re.search(r"\d\.\d", reference + answer) is not None
    return "%" in reference + answer or not (gold and given) or not differ(gold[0], given[0], decimal=decimal)


_AT = tuple(Rational(top, 1009) for top in (1361, 1823, 727, 2011, 1187, 1553, 937, 1693))
_DIGITS = 120
_NOT_EVALUATED = (
    TypeError, ValueError, ArithmeticError, AttributeError, LookupError, RuntimeError, BasePolynomialError, NoConvergence,
)  # fmt: skip


def differ(gold: object, given: object, *, decimal: bool) -> bool:
    """Whether two expressions that math-verify takes as equal have other values at a point, to 100 significant digits.

    With a decimal in one of them, by more than one part in 10^4: math-verify has compared six places.
    """
    if isinstance(gold, MatrixBase) and isinstance(given, MatrixBase):
        return gold.shape == given.shape and any(
            differ(a, b, decimal=decimal) for a, b in zip(gold, given, strict=True)
        )
    if not (isinstance(gold, Expr) and isinstance(given, Expr)):
        return False
    symbols = sorted(gold.free_symbols | given.free_symbols, key=str)
    point = dict(zip(symbols, _AT, strict=False))
    gap = _relative_gap(gold, given, point)
    return gap is not None and gap > (1e-4 if decimal else 1e-100)


def _relative_gap(gold: Expr, given: Expr, point: dict[Basic, Rational]) -> float | None:
    """|a − b| / max(|a|, |b|) at a point, from 120 digits; None where it cannot be evaluated: math-verify's word stands."""
    try:
        one, other = (N(expression.subs(point).doit(), _DIGITS) for expression in (gold, given))
        size = max(abs(one), abs(other))
        return float(abs(one - other) / size) if size.is_finite and size != 0 else None
    except _NOT_EVALUATED:
        return None

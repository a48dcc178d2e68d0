r"""Exact values of numbers as people write them: no float stands between 2^{-99} and 2^{-98}.

    sum     = ["+"|"-"] product {("+"|"-") product}
    product = power {("\cdot"|"\times"|"/"|"\div"|"x") power}       3 \times 10^5; a bracket after a factor multiplies
    power   = atom {"!"} ["^" exponent]                                 the exponent is an integer
    atom    = decimal | "(" sum ")" | "{" sum "}" | "\frac" "{" sum "}" "{" sum "}" | "\binom" … | "\sqrt" of a square

Left out: what is irrational or holds a letter (None: math-verify compares it), and numbers of more than `_MOST_BITS` bits.
"""

import math
import re
from fractions import Fraction

_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?|\.\d+)|(\\[a-zA-Z]+)|(.))", re.DOTALL)
_SIGNS = {"+": 1, "-": -1}
_TIMES = ("\\cdot", "\\times", "*", "/", "\\div")
_MOST_BITS = 60_000
_MOST_FACTORIAL = 5_000
_MOST_CHARS = 1_000
_DEEPEST = 40


class _UnreadableError(Exception):
    """The text is no rational number that this grammar reads."""


def exact(text: str) -> Fraction | None:
    r"""The value of a tidied answer as a rational number, or None.

    Example:
        >>> exact(r"\frac{1}{2^{3}}"), exact(r"3 \times 10^5"), exact("(3+\\frac{1}{2})"), exact("5!")
        (Fraction(1, 8), Fraction(300000, 1), Fraction(7, 2), Fraction(120, 1))
        >>> exact(r"\sqrt{2}"), exact("2x"), exact("1/0"), exact("9^{9^{9}}")
        (None, None, None, None)
    """
    if len(text) > _MOST_CHARS:
        return None
    tokens = [found[1] or found[2] or found[3] for found in _TOKEN.finditer(text.strip())]
    reader = _Reader(tokens)
    try:
        value = reader.sum()
    except _UnreadableError:
        return None
    return value if reader.at == len(tokens) else None


class _Reader:
    """One pass over the tokens."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens, self.at, self.depth = tokens, 0, 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted: str) -> None:
        if self.peek() != wanted:
            raise _UnreadableError
        self.at += 1

    def sum(self) -> Fraction:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _UnreadableError
        total = self.product(self.sign() or 1)
        while (sign := self.sign()) is not None:
            total = _bounded(total + self.product(sign))
        self.depth -= 1
        return total

    def sign(self) -> int | None:
        sign = _SIGNS.get(self.peek())
        self.at += sign is not None
        return sign

    def product(self, sign: int) -> Fraction:
        value = sign * self.power()
        while True:
            operator = self.peek()
            if operator in _TIMES:
                self.at += 1
                factor = (self.sign() or 1) * self.power()
            elif operator == "(":
                factor = self.power()
            else:
                return value
            if operator in ("/", "\\div"):
                if factor == 0:
                    raise _UnreadableError
                factor = 1 / factor
            value = _bounded(value * factor)

    def power(self) -> Fraction:
        value = self.atom()
        while self.peek() == "!":
            self.at += 1
            if value.denominator != 1 or not 0 <= value <= _MOST_FACTORIAL:
                raise _UnreadableError
            value = _bounded(Fraction(math.factorial(int(value))))
        if self.peek() != "^":
            return value
        self.at += 1
        return _raised(value, (self.sign() or 1) * self.power())

    def atom(self) -> Fraction:
        token = self.peek()
        self.at += 1
        if token[:1].isdecimal() or (token[:1] == "." and len(token) > 1):
            return Fraction(token)
        if token in ("(", "{"):
            value = self.sum()
            self.take({"(": ")", "{": "}"}[token])
            return value
        if token in ("\\frac", "\\binom"):
            top, bottom = self.group(), self.group()
            return _divided(top, bottom) if token == "\\frac" else _chosen(top, bottom)
        if token == "\\sqrt":
            return _root(self.group())
        raise _UnreadableError

    def group(self) -> Fraction:
        self.take("{")
        value = self.sum()
        self.take("}")
        return value


def _bounded(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MOST_BITS:
        raise _UnreadableError
    return value


def _divided(top: Fraction, bottom: Fraction) -> Fraction:
    if bottom == 0:
        raise _UnreadableError
    return _bounded(top / bottom)


def _chosen(top: Fraction, bottom: Fraction) -> Fraction:
    if top.denominator != 1 or bottom.denominator != 1 or not 0 <= bottom <= top <= _MOST_FACTORIAL:
        raise _UnreadableError
    return Fraction(math.comb(int(top), int(bottom)))


def _root(value: Fraction) -> Fraction:
    if value < 0:
        raise _UnreadableError
    root = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
    if root * root != value:
        raise _UnreadableError
    return root


def _raised(base: Fraction, exponent: Fraction) -> Fraction:
    """A power, where it is an integer one and its size is known to stay within bounds."""
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if exponent.denominator != 1 or (base == 0 and exponent <= 0) or bits * abs(exponent) > _MOST_BITS:
        raise _UnreadableError
    return base ** int(exponent)


def is_terminating(value: Fraction) -> bool:
    """Whether a number has a last decimal.

    Example:
        >>> is_terminating(Fraction(1, 8)), is_terminating(Fraction(1, 3))
        (True, False)
    """
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1

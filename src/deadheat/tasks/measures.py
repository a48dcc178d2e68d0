r"""Rules for what is measured: numerals in a base, times of day, quantities with units, percentages.

A rule takes the reference, the answer (both tidied) and `same`, which compares parts of them as answers. It says True or
False, or None where it has nothing to say.
"""

import re
from fractions import Fraction

from deadheat.tasks.arithmetic import exact
from deadheat.tasks.solution_sets import split
from deadheat.tasks.structures import Same
from deadheat.tasks.units import Quantity, clock, quantity, same_time
from deadheat.tasks.wording import is_constant, worded

_NUMERAL = re.compile(
    r"(?P<sign>-?)\s*\(?\s*(?P<digits>[0-9A-Z][0-9A-Z ]*(?:\.[0-9A-Z]+)?)\s*\)?\s*"
    r"(?:_\s*\{?\s*(?:\\text\{)?\s*\(?(?:base\s*)?(?P<base>\d+|[a-z]+)\)?\s*\}?\s*\}?"  # 1001_2, 1001_{\text{two}}
    r"|\(?\s*(?:\\text\{)?\s*[(,]?\s*(?:in\s+)?base[ -]*\}?\s*(?P<said>\d+|[a-z]+)\s*\)?\s*\}?\s*\)?)"  # 1001 (base 2)
)
_BARE_NUMERAL = re.compile(r"-?[0-9A-Z]+(?:\.[0-9A-Z]+)?")


_SCIENTIFIC = re.compile(r"(\d) \\cdot 10\^\{(\d+)\}")  # what 1E3 was taken for, where it is a numeral in base 16
_BASE_NAMES = "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_BASES = {name: base for base, name in enumerate(_BASE_NAMES.split(), start=2)}


def bases(reference: str, answer: str, same: Same) -> bool | None:
    """A numeral keeps its base: 1001_2 is not 1001_3. Without one, the digits are compared, as a question may state it.

    math-verify drops the subscript.
    """
    one, other = _numeral(reference), _numeral(answer)
    if one is None and other is None:
        return None
    if one is not None and other is not None:
        return one == other
    digits = (one or other or ("", 0))[0]
    bare = _SCIENTIFIC.sub(r"\1E\2", answer if one is not None else reference).replace(" ", "")
    return _BARE_NUMERAL.fullmatch(bare) is not None and (_digits(bare) == digits)


def _numeral(text: str) -> tuple[str, int] | None:
    found = _NUMERAL.fullmatch(text)
    if found is None or not re.search(r"\d", found["digits"]):
        return None
    named = found["base"] or found["said"]
    base = int(named) if named.isdecimal() and len(named) < 3 else _BASES.get(named, 0)
    digits = _digits(found["digits"].replace(" ", ""))
    fits = all((int(d) if d.isdecimal() else ord(d) - ord("A") + 10) < base for d in digits if d != ".")
    return (found["sign"] + digits, base) if base > 1 and fits else None


def _digits(digits: str) -> str:
    whole, point, rest = digits.removeprefix("-").partition(".")
    return (
        "-" * digits.startswith("-")
        + (whole.lstrip("0") or "0")
        + (point + rest.rstrip("0") if rest.rstrip("0") else "")
    )


def clocks(reference: str, answer: str, same: Same) -> bool | None:
    """Times of day agree in hours, minutes and half of the day. math-verify reads 6:00 as a division by nought."""
    one, other = clock(reference), clock(answer)
    return same_time(one, other) if one is not None and other is not None else None


def quantities(reference: str, answer: str, same: Same) -> bool | None:
    r"""Units count: 5\text{ cm} is not 5\text{ m} nor 5\text{ cm}^2, 5 ft 6 in is 66 in. Without one the number is compared.

    math-verify drops \text{…} and reads the first number alone.
    """
    one, other = quantity(reference), quantity(answer)
    if one is None and other is None:
        return None
    if one is not None and other is not None:
        return _same_quantity(one, other, same)
    (stated, bare) = (one, answer) if one is not None else (other, reference)
    if stated is None or worded(bare).words:
        return None
    if len(stated.parts) > 1:
        money = stated.parts[0][1].dimensions == (("dollars", 1),)
        total = _total(stated)
        return same(str(total / stated.parts[0][1].factor), bare) if money and total is not None else False
    return same(stated.parts[0][0], bare) if one is not None else same(bare, stated.parts[0][0])


def _same_quantity(one: Quantity, other: Quantity, same: Same) -> bool:
    (a, unit), (b, other_unit) = one.parts[0], other.parts[0]
    powers = [[power for _, power in of.dimensions] for of in (unit, other_unit)]
    if "unit" in unit.dimensions[0] + other_unit.dimensions[0] and powers[0] == powers[1]:
        return same(a, b)  # "square units" is any unit, squared
    if unit.dimensions != other_unit.dimensions:
        return False
    if len(one.parts) == len(other.parts) == 1 and unit == other_unit:
        return same(a, b)
    totals = _total(one), _total(other)
    if None not in totals:
        return totals[0] == totals[1]
    if len(one.parts) > 1 or len(other.parts) > 1:
        return False
    ratio = other_unit.factor / unit.factor
    return same(a, rf"\frac{{{ratio.numerator}}}{{{ratio.denominator}}} \cdot ({b})")


def _total(of: Quantity) -> Fraction | None:
    total = Fraction(0)
    for number, unit in of.parts:
        value = exact(number)
        if value is None:
            return None
        total += value * unit.factor
    return total


_PERCENT = re.compile(r"(.+?)\s*(?:\\?%|\\text\{\s*per ?cent\s*\}|per ?cent)", re.DOTALL)


def percents(reference: str, answer: str, same: Same) -> bool | None:
    """A percentage is the number before its sign, or a hundredth of it: 12.5% is 12.5 and 1/8.

    math-verify says so of whole numbers alone.
    """
    one, other = _PERCENT.fullmatch(reference), _PERCENT.fullmatch(answer)
    if (one is None and other is None) or any(len(list(split(text, ","))) > 1 for text in (reference, answer)):
        return None
    if one is not None and other is not None:
        return same(one[1], other[1])
    number, bare = (one[1], answer) if one is not None else ((other or [""] * 2)[1], reference)
    return same(number, bare) or same(rf"\frac{{{number}}}{{100}}", bare)


_GLUED = re.compile(r"(.*[\d})])\s*[msghLNJW](?:\^\{?[23]\}?)?", re.DOTALL)


def glued_units(reference: str, answer: str, same: Same) -> bool | None:
    """Where the reference is a number, 6m is six metres. Where it holds letters, m is one of them."""
    found = _GLUED.fullmatch(answer)
    return same(reference, found[1]) if found and is_constant(found[1]) and is_constant(reference) else None

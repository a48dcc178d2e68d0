r"""Rules for equations and chains of inequalities that are statements, and no sets.

For what a rule takes and says see `measures`.
"""

import re
from collections.abc import Sequence

from deadheat.tasks.solution_sets import split
from deadheat.tasks.structures import Same

_CALL = re.compile(r"([a-zA-Z]\w*'*(?:_\{?\w+\}?)?(?:\^\{-1\})?)\s*\(([^()]*)\)")
_NAME = re.compile(r"(?:[a-zA-Z]|\\[a-zA-Z]+)(?:_\{?\w+\}?)?'*|\\angle\s*\w+|[A-Z]{2,3}")


_NAMES = re.compile(r"\(\s*[a-z]\s*(?:,\s*[a-z]\s*)+\)")
_EQUALS = re.compile(r"(?<![<>!\\])=(?!=)")


def equations(reference: str, answer: str, same: Same) -> bool | None:
    """What is named and what it is: f(1)=2 is not f(1)=3, nor f(2)=2. A name that the other side leaves out does not count.

    math-verify solves both for their unknowns; without unknowns it finds the same (empty) solutions.
    """
    if any(len(list(split(text, ","))) > 1 for text in (reference, answer)):
        return None
    one, other = ([side.strip() for side in _EQUALS.split(text)] for text in (reference, answer))
    if len(one) == len(other) == 1 or not all((*one, *other)):
        return None
    if len(one) > 1 and len(other) > 1:
        return _same_equation((one[0], one[-1]), (other[0], other[-1]), same)
    if len(one) > 1 and not _names_a_value(one[0]):
        return None
    return same(_value_of(one), _value_of(other))


def _value_of(sides: Sequence[str]) -> str:
    """What a chain of equations ends with: the last side, or the first where the last is a name (73 = x)."""
    turned = len(sides) > 1 and _NAME.fullmatch(sides[-1]) is not None and not _names_a_value(sides[0])
    return sides[0] if turned else sides[-1]


def _same_equation(one: tuple[str, str], other: tuple[str, str], same: Same) -> bool | None:
    (left, right), (given_left, given_right) = one, other
    calls = _CALL.fullmatch(left), _CALL.fullmatch(given_left)
    if "".join(left.split()) == "".join(given_left.split()):
        return same(right, given_right)
    if calls[0] and calls[1]:
        arguments = calls[0][2].strip(), calls[1][2].strip()
        if calls[0][1] == calls[1][1] and all(re.fullmatch("[a-z]", argument) for argument in arguments):
            return same(right, re.sub(rf"(?<![\\a-zA-Z]){arguments[1]}(?![a-zA-Z])", arguments[0], given_right))
        return calls[0][1] == calls[1][1] and same(arguments[0], arguments[1]) and same(right, given_right)
    if (calls[0] or calls[1]) and _names_a_value(left) and _names_a_value(given_left):
        argument = (calls[0] or calls[1] or [""] * 3)[2]  # y = 2x against f(x) = 2x
        return bool(re.fullmatch("[a-z]", argument.strip())) and same(right, given_right)
    return None


def _names_a_value(text: str) -> bool:
    return any(form.fullmatch(text) for form in (_CALL, _NAME, _NAMES))


_CHAIN = re.compile(r"(<|>|\\le(?![a-z])|\\ge(?![a-z])|=)")
_TURNED = {"<": ">", ">": "<", "\\le": "\\ge", "\\ge": "\\le", "=": "="}


def orders(reference: str, answer: str, same: Same) -> bool | None:
    """A chain of three or more terms is an order: f(2)<f(1)<f(4) is not f(4)<f(1)<f(2).

    math-verify looks for unknowns to solve for, and there are none.
    """
    one, other = ([part.strip() for part in _CHAIN.split(text)] for text in (reference, answer))
    lists = any(len(list(split(text, ","))) > 1 for text in (reference, answer))
    if lists or len(one) < 5 or len(other) < 5 or set(one[1::2]) == {"="}:
        return None
    if other[1::2] != one[1::2]:
        other = [_TURNED.get(part, part) for part in reversed(other)]
    if other[1::2] != one[1::2] or len(one) != len(other):
        return False
    return all(same(a, b) for a, b in zip(one[0::2], other[0::2], strict=True))

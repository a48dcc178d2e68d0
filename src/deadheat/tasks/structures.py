r"""Rules for answers of several parts: pairs, sets, lists, matrices, intervals and inequalities, lists with dots.

Each part is compared as an answer is, so that each has its own tolerance. For what a rule takes and says see `measures`.
"""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from deadheat.tasks.arithmetic import exact
from deadheat.tasks.solution_sets import Stretch, solution_set, split

Same = Callable[[str, str], bool]  # whether a part of the answer (second) equals a part of the reference (first)

_OPENINGS = {"(": ")", "[": "]", "\\{": "\\}", "\\langle": "\\rangle"}
_AXES = re.compile(r"([xyzabc])\s*=")


_LIKE_A_LIST = ("\\{\\}", "()")
_MATRIX = re.compile(
    r"\\begin\{(?P<name>[a-zB-V]*matrix|array)\*?\}(?:\{[clr|]*\})?(.*)\\end\{(?P=name)\*?\}", re.DOTALL
)


def collections(reference: str, answer: str, same: Same) -> bool | None:
    r"""Pairs, intervals, sets and lists are compared element by element, so that each element has its own tolerance.

    (a,b) and [a,b) are ordered, \{a,b\} and a list are not. A list is a pair where its order agrees, and it is a set. A set
    is no pair.
    """
    one, other = _unions(reference), _unions(answer)
    if one is not None and other is not None:
        return matched(one, other, same)
    found, given = _elements(reference), _elements(answer)
    if found is None or given is None or (len(found[1]) < 2 and len(given[1]) < 2):
        return None
    kinds = tuple(kind.replace("\\langle\\rangle", "()") for kind in (found[0], given[0]))  # a vector in either bracket
    if kinds[0] != kinds[1] and not ("" in kinds and kinds[0] + kinds[1] in _LIKE_A_LIST):
        return False
    ordered = not set(kinds) <= {"", "\\{\\}"}
    if not ordered:
        return matched(_distinct(found[1], same), _distinct(given[1], same), same)
    return len(found[1]) == len(given[1]) and all(
        same(a, b) for a, b in zip(_by_axis(found[1]), _by_axis(given[1]), strict=True)
    )


def _by_axis(elements: Sequence[str]) -> list[str]:
    """Coordinates x=…, y=… in the order of their names."""
    names = [_AXES.match(element) for element in elements]
    return sorted(elements) if all(names) else list(elements)


def _unions(text: str) -> list[str] | None:
    parts = [part.strip() for part in re.split(r"\\cup(?![a-z])", text)]
    return parts if len(parts) > 1 else None


def _elements(text: str) -> tuple[str, list[str]] | None:
    """The brackets and the elements of a collection; a list has no brackets. None where the text is a union or is empty."""
    text = text.strip()
    for opening, closing in (*_OPENINGS.items(), ("(", "]"), ("[", ")")):
        if text.startswith(opening) and text.endswith(closing) and _closes_last(text, opening, closing):
            inner = list(split(text[len(opening) : -len(closing)], ","))
            if len(inner) > 1 or opening == "\\{":
                return opening + closing, [element for part in inner for element in _both_signs(part)] if all(
                    inner
                ) else []
    parts = list(split(text, ",;"))
    elements = [element for part in parts for element in _both_signs(part)]
    return ("", elements) if all(parts) and _unions(text) is None else None


def _closes_last(text: str, opening: str, closing: str) -> bool:
    """Whether the first bracket of a text is closed by its last."""
    depth = 0
    for at, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if depth == 0 and char in ")]}":
            return at == len(text) - 1
    return opening == "\\langle" and text.count(closing) == 1


def _both_signs(element: str) -> list[str]:
    r"""a \pm b is two numbers."""
    if element.count("\\pm") != 1 or "\\mp" in element:
        return [element]
    return [element.replace("\\pm", sign).strip().removeprefix("+").strip() for sign in ("+", "-")]


def _distinct(elements: Sequence[str], same: Same) -> list[str]:
    kept: list[str] = []
    for element in elements:
        if not any(same(other, element) for other in kept):
            kept.append(element)
    return kept


def _unwrapped(text: str) -> str:
    found = _elements(text)
    if found is None or not found[0]:
        return text
    opening = next(name for name in ("\\langle", "\\{", "(", "[") if text.startswith(name))
    return text[len(opening) : -2 if opening == "\\{" else -1]


def matrices(reference: str, answer: str, same: Same) -> bool | None:
    """Matrices are compared cell by cell, whatever their brackets, so that each cell has its own tolerance."""
    one, other = _MATRIX.fullmatch(reference), _MATRIX.fullmatch(answer)
    if one is None or other is None:
        return None
    cells, given = ([[cell.strip() for cell in row.split("&")] for row in _rows(found[2])] for found in (one, other))
    if [len(row) for row in cells] != [len(row) for row in given]:
        return False
    return all(
        same(a, b) for row, other_row in zip(cells, given, strict=True) for a, b in zip(row, other_row, strict=True)
    )


def _rows(body: str) -> list[str]:
    return [row for row in re.split(r"\\\\(?:\[[^\]]*\])?|\\cr\b|\\hline", body) if row.strip()]


def solution_sets(reference: str, answer: str, same: Same) -> bool | None:
    """An interval and the inequality that describes it are the same set. Ends are compared as answers are."""
    one, other = solution_set(reference), solution_set(answer)
    if one is None or other is None or not (one.as_inequality or other.as_inequality):
        return None
    if None not in (one.variable, other.variable) and one.variable != other.variable:
        return False
    return matched(one.stretches, other.stretches, lambda a, b: _same_stretch(a, b, same))


def _same_stretch(one: Stretch, other: Stretch, same: Same) -> bool:
    return (
        (one.low_closed, one.high_closed) == (other.low_closed, other.high_closed)
        and same(one.low, other.low)
        and same(one.high, other.high)
    )


def continued(reference: str, answer: str, same: Same) -> bool | None:
    r"""A list with dots goes on as its terms say: 1, 2, \ldots, n is not 1, 3, \ldots, 2n-1. math-verify drops the dots."""
    one, other = _terms(reference), _terms(answer)
    if one is None and other is None:
        return None
    if one is None or other is None:
        short = _elements(answer if one is not None else reference)
        full = _spelled_out(one or other or [])
        return None if short is None else full is not None and matched(full, short[1], same)
    heads = [terms[: terms.index("\\ldots")] for terms in (one, other)]
    tails = [terms[terms.index("\\ldots") + 1 :] for terms in (one, other)]
    shared = min(len(head) for head in heads)
    if len(tails[0]) != len(tails[1]) or (shared < 2 and len(heads[0]) != len(heads[1])):
        return False
    pairs = [*zip(heads[0][:shared], heads[1][:shared], strict=True), *zip(tails[0], tails[1], strict=True)]
    return all(same(a, b) for a, b in pairs)


def _terms(text: str) -> list[str] | None:
    """The terms of a list or a sum with one row of dots."""
    text = _unwrapped(text)
    for separator in ",+":
        terms = [term.strip() for term in split(text, separator)]
        if terms.count("\\ldots") == 1 and terms.index("\\ldots") > 0:
            return [term for term in terms if term] + ([f"by {separator}"] if separator == "+" else [])
    return None


def _spelled_out(terms: list[str]) -> list[str] | None:
    """The terms that dots stand for, where they are evenly spaced whole numbers."""
    at = terms.index("\\ldots")
    head, tail = [exact(term) for term in terms[:at]], [exact(term) for term in terms[at + 1 :]]
    if len(head) < 2 or len(tail) != 1 or None in head or None in tail:
        return None
    known = [value for value in head if value is not None]
    step, last = known[1] - known[0], tail[0]
    if last is None or step == 0 or not 0 < (last - known[0]) / step < 1000 or (last - known[0]) % step != 0:
        return None
    if any(b - a != step for a, b in pairwise(known)):
        return None
    return [str(known[0] + step * place) for place in range(int((last - known[0]) / step) + 1)]


def matched(ones: Sequence[object], others: Sequence[object], same: Callable[..., bool]) -> bool:
    """Whether every element has a partner of its own, in any order; partners are equal, so that the first found will do."""
    left = list(others)
    for one in ones:
        partner = next((at for at, other in enumerate(left) if same(one, other)), None)
        if partner is None:
            return False
        left.pop(partner)
    return not left

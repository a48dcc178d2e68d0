r"""Sets of real numbers written as intervals, as inequalities or with set braces, in one form.

    (2,5)   2<x<5   \{x \mid 2<x<5\}   x\in(2,5)        one open interval
    x\le 3   3\ge x   (-\infty,3]                           one half-line
    x<1 \text{ or } x>3   x\ne 3   \mathbb{R}\setminus\{3\}   several

Left out: inequalities that must be solved (math-verify does that), and conditions on two variables.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from deadheat.tasks.arithmetic import exact

_RELATION = re.compile(r"(\\le(?![a-z])|\\ge(?![a-z])|\\ne(?![a-z])|<|>)")
_VARIABLE = r"(?:[a-zA-Z]|\\(?:theta|alpha|beta|lambda|phi))(?:_\{?\w\}?)?(?:\([a-z]\))?"
_WITHIN = re.compile(
    rf"(?:\||\\vert|\\lvert)\s*({_VARIABLE})\s*(?:\||\\vert|\\rvert)\s*(<|>|\\le(?![a-z])|\\ge(?![a-z]))\s*([^<>=]+)"
)
_IN = re.compile(rf"({_VARIABLE})\s*\\in\s*(.+)", re.DOTALL)
_BUILDER = re.compile(
    rf"\\\{{\s*({_VARIABLE})\s*(?:\\in\s*(?:\\mathbb\{{R\}}|R))?\s*(?:\\mid|\\vert|\||:)\s*(.+?)\s*\\\}}", re.DOTALL
)
_REAL = re.compile(rf"(?:\s*,\s*)?{_VARIABLE}\s*\\in\s*\\mathbb\{{R\}}(?:\s*,\s*)?")
_OR = re.compile(r"\\text\{\s*or\s*\}|\\lor(?![a-z])|\bor\b|\\cup(?![a-z])")
_AND = re.compile(r"\\text\{\s*(?:and|,)\s*\}|\\land(?![a-z])|\band\b|,|;|\\cap(?![a-z])")
_HOLES = re.compile(r"(?:\\mathbb\{R\}|\(\s*-\s*\\infty\s*,\s*\\infty\s*\))\s*(?:\\setminus|\\|-)\s*\\\{(.+)\\\}")
_EVERYTHING = re.compile(
    r"\\mathbb\{R\}|(?:\\text\{\s*)?(?:all|any|every|the set of all|the)?\s*reals?(?:\s+numbers?)?\s*\}?",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """An interval."""

    low: str  # tidied LaTeX
    high: str
    low_closed: bool
    high_closed: bool


@dataclass(frozen=True, kw_only=True)
class SolutionSet:
    """A union of intervals, in the order written."""

    stretches: tuple[Stretch, ...]
    variable: str | None  # None: written without one
    as_inequality: bool  # written with relations, set braces or ∈: what an interval is compared with


def solution_set(text: str) -> SolutionSet | None:
    r"""A tidied answer as a union of intervals, or None.

    Example:
        >>> solution_set("2<x<5").stretches == solution_set("(2,5)").stretches
        True
        >>> [(s.low, s.high) for s in solution_set(r"x \ne 3").stretches]
        [('-\\infty', '3'), ('3', '\\infty')]
        >>> solution_set(r"x\le 3") == solution_set(r"3 \ge x"), solution_set("x+1")
        (True, None)
    """
    text = text.strip()
    if _EVERYTHING.fullmatch(text):
        return SolutionSet(stretches=(_line(),), variable=None, as_inequality=True)
    if _RELATION.search(text) and not text.startswith("\\{"):
        text = _REAL.sub("", text).strip()
    builder = _BUILDER.fullmatch(text)
    if builder is not None:
        found = solution_set(builder[2])
        return found if found is not None and found.variable == builder[1] else None
    inside = _IN.fullmatch(text)
    if inside is not None:
        found = solution_set(inside[2])
        if found is None or found.variable is not None:
            return None
        return SolutionSet(stretches=found.stretches, variable=inside[1], as_inequality=True)
    holes = _HOLES.fullmatch(text)
    if holes is not None:
        points = _points([point.strip() for point in holes[1].split(",")])
        return SolutionSet(stretches=points, variable=None, as_inequality=True) if points else None
    return _inequalities(text) if _RELATION.search(text) else _intervals(text)


def _line() -> Stretch:
    return Stretch(low=r"-\infty", high=r"\infty", low_closed=False, high_closed=False)


def _intervals(text: str) -> SolutionSet | None:
    stretches = []
    for part in re.split(r"\\cup(?![a-z])|\\text\{\s*or\s*\}", text):
        inner = part.strip()
        ends = list(split(inner[1:-1], ","))
        if inner[:1] not in ("(", "[") or inner[-1:] not in (")", "]") or len(ends) != 2 or not all(ends):
            return None
        low, high = (end.replace("+\\infty", "\\infty") for end in ends)
        stretches.append(Stretch(low=low, high=high, low_closed=inner[0] == "[", high_closed=inner[-1] == "]"))
    return SolutionSet(stretches=tuple(stretches), variable=None, as_inequality=False)


def _inequalities(text: str) -> SolutionSet | None:
    stretches: list[Stretch] = []
    variables: set[str] = set()
    for case in _OR.split(text):
        chains = [_chain(part.strip()) for part in _AND.split(case) if part.strip()]
        if not chains or any(chain is None for chain in chains):
            return None
        known = [chain for chain in chains if chain is not None]
        variables |= {variable for variable, _ in known}
        both = _joined([found for _, found in known])
        if both is None:
            return None
        stretches += both
    if len(variables) != 1:
        return None
    return SolutionSet(stretches=tuple(stretches), variable=variables.pop(), as_inequality=True)


def _chain(text: str) -> tuple[str, tuple[Stretch, ...]] | None:
    """One inequality, its variable alone on one side or in the middle."""
    within = _WITHIN.fullmatch(text)
    if within is not None:
        return _around_nought(within[1], within[2], within[3].strip())
    parts = [part.strip() for part in _RELATION.split(text)]
    terms, relations = parts[0::2], parts[1::2]
    at = [place for place, term in enumerate(terms) if re.fullmatch(_VARIABLE, term)]
    if len(at) != 1 or not all(terms) or len(terms) not in (2, 3) or (len(terms) == 3 and at != [1]):
        return None
    variable = terms[at[0]]
    if relations == ["\\ne"]:
        return variable, _points([terms[1 - at[0]]])
    up = {"<", "\\le"} if relations[0] in ("<", "\\le") else {">", "\\ge"}
    if any(relation not in up for relation in relations):
        return None
    rising = "<" in up
    low, high, low_closed, high_closed = r"-\infty", r"\infty", False, False
    for place, term in enumerate(terms):
        if place == at[0]:
            continue
        closed = relations[min(place, at[0])] in ("\\le", "\\ge")
        if (place < at[0]) == rising:
            low, low_closed = term, closed
        else:
            high, high_closed = term, closed
    return variable, (Stretch(low=low, high=high, low_closed=low_closed, high_closed=high_closed),)


def _around_nought(variable: str, relation: str, end: str) -> tuple[str, tuple[Stretch, ...]] | None:
    """|x| < a is (−a, a), and |x| > a what is left of the line, for a > 0."""
    value = exact(end)
    if value is None or value <= 0:
        return None
    closed = relation in ("\\le", "\\ge")
    if relation in ("<", "\\le"):
        return variable, (Stretch(low=f"-{end}", high=end, low_closed=closed, high_closed=closed),)
    outside = (
        Stretch(low=r"-\infty", high=f"-{end}", low_closed=False, high_closed=closed),
        Stretch(low=end, high=r"\infty", low_closed=closed, high_closed=False),
    )
    return (variable, outside) if relation != "\\ne" else None


def _points(points: list[str]) -> tuple[Stretch, ...]:
    """The line without some points; nothing where their order is not known."""
    values = [exact(point) for point in points]
    if len(points) > 1:
        if any(value is None for value in values):
            return ()
        points = [
            point
            for _, point in sorted(
                (value, point) for value, point in zip(values, points, strict=True) if value is not None
            )
        ]
    ends = [r"-\infty", *points, r"\infty"]
    return tuple(Stretch(low=a, high=b, low_closed=False, high_closed=False) for a, b in pairwise(ends))


def _joined(cases: list[tuple[Stretch, ...]]) -> tuple[Stretch, ...] | None:
    """What satisfies every one of several inequalities: a lower and an upper bound; holes; else both, as alternatives."""
    if len(cases) == 1:
        return cases[0]
    if all(len(case) == 2 for case in cases):
        return _points([case[0].high for case in cases]) or None
    if len(cases) != 2 or any(len(case) != 1 for case in cases):
        return None
    (one,), (other,) = cases
    lower, upper = (one, other) if one.high == r"\infty" else (other, one)
    if lower.high != r"\infty" or upper.low != r"-\infty" or lower.low == r"-\infty" or upper.high == r"\infty":
        return None
    low, high = exact(lower.low), exact(upper.high)
    if low is not None and high is not None and low > high:
        return one, other  # x<1, x>3
    return (Stretch(low=lower.low, high=upper.high, low_closed=lower.low_closed, high_closed=upper.high_closed),)


def split(text: str, separators: str) -> Iterator[str]:
    r"""The parts of a text between separators that stand in no bracket.

    Example:
        >>> list(split(r"(1,2), \frac{a,b}{c}", ","))
        ['(1,2)', '\\frac{a,b}{c}']
    """
    depth, start = 0, 0
    for at, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char in separators and depth <= 0 and text[at - 1 : at] != "\\":
            yield text[start:at].strip()
            start = at + 1
    yield text[start:].strip()

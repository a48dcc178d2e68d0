r"""Rules for what is named: choices, points, words beside mathematics, and answers that say there is nothing.

For what a rule takes and says see `measures`.
"""

import re

from deadheat.tasks.structures import Same, matched
from deadheat.tasks.wording import is_nothing, is_undefined, worded, words_decide

_CHOICE = re.compile(r"(?:\\text\{\s*)?\(\s*(?:\\text\{\s*)?([A-Z])\s*\}?\s*\)\s*\}?")


def choices(reference: str, answer: str, same: Same) -> bool | None:
    """The letter of a choice with or without its brackets: (C) is C."""
    one, other = (_CHOICE.sub(r"\1", text) if _CHOICE.fullmatch(text) else text for text in (reference, answer))
    return same(one, other) if (one, other) != (reference, answer) else None


def nothing(reference: str, answer: str, same: Same) -> bool | None:
    r"""\emptyset, "no solution" and "none" say the same; so do "DNE" and "does not exist"."""
    for says in (is_nothing, is_undefined):
        if says(reference) and says(answer):
            return True
    return None


_POINTS_NAMED = re.compile(r"(\\angle|\\triangle|\\overline|\\overrightarrow|\\vec)\s*\{?\s*([A-Z]{2,4})\s*\}?")


def points(reference: str, answer: str, same: Same) -> bool | None:
    r"""The order of points counts: \angle ABC is \angle CBA, and not \angle ACB. math-verify reads a product."""
    one, other = _POINTS_NAMED.fullmatch(reference), _POINTS_NAMED.fullmatch(answer)
    if one is None or other is None or one[1] != other[1]:
        return None
    if one[1] == "\\triangle":
        return sorted(one[2]) == sorted(other[2])
    return one[2] == other[2] or (one[1] in ("\\angle", "\\overline") and one[2] == other[2][::-1])


def words(reference: str, answer: str, same: Same) -> bool | None:
    r"""Words are read: n\text{ is odd} is not n\text{ is even}. Labels of a number are not: 18\text{ ways} is 18.

    math-verify drops \text{…}. What is left after the words is compared as an answer is.
    """
    one, other = worded(reference), worded(answer)
    spoken = [text for text, found in ((reference, one), (answer, other)) if found.words or found.scaled]
    if not spoken and one.mathematics == reference.strip() and other.mathematics == answer.strip():
        return None
    verdict = words_decide(one, other)
    if verdict is not None:
        return verdict
    if not one.mathematics or not other.mathematics:
        return None
    if one.scaled or other.scaled:
        big = same(one.scaled or one.mathematics, other.scaled or other.mathematics)
        return big or (
            not (one.scaled and other.scaled) and _shorter(one.mathematics, other.mathematics, reference, answer, same)
        )
    if len(one.numbers) == len(other.numbers) > 1 and one.words and other.words:
        if sorted(label for _, label in one.labelled) == sorted(label for _, label in other.labelled):
            return matched(one.labelled, other.labelled, lambda a, b: a[1] == b[1] and same(a[0], b[0]))
        return all(same(a, b) for a, b in zip(one.numbers, other.numbers, strict=True))
    return _shorter(one.mathematics, other.mathematics, reference, answer, same)


def _shorter(a: str, b: str, reference: str, answer: str, same: Same) -> bool | None:
    """Compares what is left of two answers, if anything was taken away."""
    return same(a, b) if (a, b) != (reference, answer) else None

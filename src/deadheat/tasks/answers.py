"""Finding a final answer in a text, and reading numbers as people write them. Each rule has a versioned name.

marked/v1       the first "#### …" line; else the last \\boxed{…}; else nothing was parsed
last-number/v1  as marked; else the last number of the text
"""

import re
from enum import StrEnum
from fractions import Fraction

_HASH = re.compile(r"####[ \t]*(.+)")
_NUMBER = re.compile(
    r"(?:(?<![\w.)])(?P<sign>[-−+])[ ]?)?\$?[ ]?"  # a sign counts where no term stands before it: not in 10-5
    r"(?P<top>(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)?(?:\.\d+)?)(?:[ ]?/[ ]?(?P<bottom>\d+))?"
)
_MAX_DIGITS = 60  # more than that is no answer to a question
_LATEX_FRACTION = re.compile(r"\\[dt]?frac\{([^{}]+)\}\{([^{}]+)\}")
_LATEX_NOISE = re.compile(r"\\text\{[^{}]*\}|\\mathrm\{[^{}]*\}|\\[,!;: ]|[{}]|\\(?=[$%])|\\left|\\right")
_BOXED = ("\\boxed{", "\\fbox{")


class Extraction(StrEnum):
    """Which rule finds the final answer."""

    MARKED = "marked/v1"  # only an answer that is marked as final
    LAST_NUMBER = "last-number/v1"  # falls back on the last number of the text


def hashed(text: str) -> str | None:
    """What follows the first "####", to the end of its line.

    Example:
        >>> hashed("so 9 + 9 = 18\\n#### 18\\nQuestion: …\\n#### 3")
        '18'
    """
    found = _HASH.search(text)
    return found[1].strip() if found else None


def boxed(text: str) -> str | None:
    """The content of the last \\boxed{…} whose braces close.

    Example:
        >>> boxed(r"first \\boxed{1}, then \\boxed{\\frac{1}{2}}")
        '\\\\frac{1}{2}'
    """
    starts = [found.end() for opening in _BOXED for found in re.finditer(re.escape(opening), text)]
    for start in sorted(starts, reverse=True):
        depth = 1
        for end in range(start, len(text)):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            if depth == 0:
                return text[start:end].strip()
    return None


def numbers(text: str) -> list[Fraction]:
    """Every number in a text, in order: thousands commas, a currency sign, decimals and a/b are read.

    Example:
        >>> [str(x) for x in numbers("from $1,234.50 to -3/4, that is 10-5 = 5.00.")]
        ['2469/2', '-3/4', '10', '5', '5']
    """
    found = []
    for match in _NUMBER.finditer(text):
        top, bottom = match["top"].replace(",", ""), match["bottom"] or "1"
        if not top or len(top) + len(bottom) > _MAX_DIGITS or int(bottom) == 0:
            continue
        value = Fraction(top) / int(bottom)
        found.append(-value if match["sign"] in ("-", "−") else value)
    return found


def plain(latex: str) -> str:
    """LaTeX as plain text, as far as a number needs it: fractions as a/b, units and spacing dropped.

    Example:
        >>> plain(r"\\$\\frac{3}{4}\\text{ dollars}"), plain("1{,}200")
        ('$3/4', '1,200')
    """
    return _LATEX_NOISE.sub("", _LATEX_FRACTION.sub(r"\1/\2", latex)).strip()


def one_number(text: str) -> Fraction | None:
    """The number of a text that holds exactly one, or None.

    Example:
        >>> one_number("18 dollars") == 18, one_number("3 + 4 = 7"), one_number("none")
        (True, None, None)
    """
    found = numbers(plain(text))
    return found[0] if len(found) == 1 else None


def final_number(text: str, rule: Extraction) -> Fraction | None:
    """The final answer of a worked solution as a number, by a named rule; None where nothing could be parsed.

    Example:
        >>> final_number("6 * 3 = 18\\n#### 18", Extraction.MARKED) == 18
        True
        >>> final_number("so it is 18.", Extraction.MARKED), final_number("so it is 18.", Extraction.LAST_NUMBER) == 18
        (None, True)
    """
    marked = hashed(text)
    if marked is None:
        marked = boxed(text)
    if marked is not None:
        return one_number(marked)
    if rule is Extraction.MARKED:
        return None
    found = numbers(text)
    return found[-1] if found else None

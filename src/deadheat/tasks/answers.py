r"""Finding the final number of a worked solution, and reading numbers as people write them. Each rule has a versioned name.

marked/v2       the first "#### …" line that is an answer (a heading is none); else the last box that holds something
last-number/v2  as marked; else the last number of the text

A line after "####" is an answer where it begins with a number, or says "answer" and holds one; "#### Step 1" and
"#### 2. Count the eggs" are headings. A number is read with its notation: 2\frac{1}{2}, 3 1/2, 10^6, 3\times 10^5, 1e6,
8 000, 1{,}200, \text{18}; after "=" counts what stands there; units and their exponents do not count.
"""

import re
from enum import StrEnum
from fractions import Fraction

from deadheat.tasks.arithmetic import exact
from deadheat.tasks.boxes import boxed as boxed
from deadheat.tasks.boxes import unboxed
from deadheat.tasks.notation import tidy
from deadheat.tasks.pieces import pieces
from deadheat.tasks.units import SCALES, quantity

_MAX_DIGITS = 60  # more than that is no answer to a question
_LONGEST_LINE = 300  # characters; no longer line is an answer

_HASH = re.compile(r"(?P<line>^[ \t>*]*)?#{4,}[ \t]*(?P<content>[^\n]*)(?P<below>(?:\n\s*\n?[^\n#]+)?)", re.MULTILINE)
_SAYS_ANSWER = re.compile(
    r"[*_ ]*(?:the\s+)?(?:final\s+|correct\s+)?(?:answer|result|total)\b[^\d\\$=:+−–-]*[:=]?[*_ ]*", re.IGNORECASE
)
_BEGINS_A_NUMBER = re.compile(
    r"[*_`(\s]*(?:\$|\\\$|\\\(|\\\[|[€£₹¥]|US)*\s*[-−–+]?\s*(?:\\\$|[$€£₹¥])?\s*(?:\d|\.\d|\\[dt]?frac|\\boxed|\\fbox|\\text\w*\{\s*[-$\d]|[a-z]\s*=\s*[-\d])"
)
_HEADING = re.compile(
    r"[*_\s]*\d+\s*(?:[.):]\s*(?:\*{0,2}\s*[A-Za-z*\\]|(?<=\s)\S)|[^\n]*:\s*\S|[^\n]*[.!?]\s+\S)|[*_\s]*\d+\s*(?:st|nd|rd|th)\b"
)
_MOST_LABEL_WORDS = 6
_STATES = re.compile(
    r"[^\d\\$]*\b(?:is|are|was|were|has|have|had|equals?|makes|costs|about|approximately|so|thus|hence|therefore)\b",
    re.IGNORECASE,
)
_ENUMERATED = re.compile(
    r"\b(?:step|part|problem|day|case|question|example|phase|section|stage|option|method|week|month|year|round|exercise|task"
    r"|approach|solution|scenario|person|group|number|no\.?)\s*#?\s*\d",
    re.IGNORECASE,
)

_FRAC = r"\\[dtc]?frac\s*(?:\{\s*(?P<a>\d+)\s*\}|(?P<a1>\d))\s*(?:\{\s*(?P<b>\d+)\s*\}|(?P<b1>\d))"
_GROUPS = (
    r"\d{1,3}(?:(?:,|\{,\}|\\,|,\\!|\u202f|\u2009|\u00a0)\d{3})+(?!\d)"
    r"|\d{1,2}(?:,\d{2})+,\d{3}(?!\d)"  # 1,00,000
    r"|\d{1,3}(?: \d{3})*(?: 0\d{2})(?: \d{3})*(?!\d|\.\d)"  # 8 000: no number of its own begins with a nought
)
_NUMBER = re.compile(
    r"(?P<exponent>(?<=[a-zA-Z}])\s?\^\s?\{?[23]\}?(?!\d)|(?<![a-zA-Z\d])(?:[mck]?m|in|ft|yd)[23](?!\w))|"  # 20 ft^2, 20 m2
    r"(?:(?<![\w.)}])(?P<sign>[-−–+])[ ]?)?"  # a sign counts where no term stands before it: not in 10-5
    r"(?:(?:\\?\$|[€£₹¥])(?:[ ]?(?P<late>[-−–]))?)?[ ]?"
    rf"(?:(?:(?P<whole>\d+)\s*)?{_FRAC}"
    r"|(?P<mixed>\d+) +(?P<top2>\d+)/(?P<bottom2>\d+)(?![\d/])"
    rf"|(?P<top>(?:{_GROUPS}|\d+)(?:\.\d+)?|\.\d+)"
    r"(?:\s*(?:\\times|\\cdot|×|x|\*)\s*10\s*\^\s*\{?(?P<power>[-−]?\d{1,2})(?!\d)\}?|[eE](?P<e>[+-]?\d{1,2})(?!\w)"
    r"|\s*\^\s*\{?(?P<raised>\d{1,2})(?!\d)\}?|[ ]?/[ ]?(?P<bottom>\d+))?)"
)
_EQUALS = re.compile(r"(?<![<>!\\])=|\\approx|\\equiv")


class Extraction(StrEnum):
    """Which rule finds the final answer."""

    MARKED = "marked/v2"  # only an answer that is marked as final
    LAST_NUMBER = "last-number/v2"  # falls back on the last number of the text


def hashed(text: str) -> str | None:
    r"""What follows the first "####" that marks an answer, and no heading.

    Example:
        >>> hashed("so 9 + 9 = 18\n#### 18\nQuestion: …\n#### 3"), hashed("#### Step 1: count\n#### 18 eggs")
        ('18', '18 eggs')
        >>> hashed("#### Solution\nThere are 18."), hashed("#### Answer: 18")
        (None, '18')
    """
    for found in _HASH.finditer(text):
        answer = _marked(found["content"].strip(), found["below"].strip(), at_start=found["line"] is not None)
        if answer is not None:
            return answer
    return None


def _marked(content: str, below: str, *, at_start: bool) -> str | None:
    """The answer of a line after "####", and of the line below it where it only says "Answer"."""
    content = content.rstrip("#").strip()
    if len(content) > _LONGEST_LINE:
        return None
    said = _SAYS_ANSWER.match(content)
    if said is not None or not content:
        rest = (content[said.end() :].strip() if said else "") or below
        if len(rest) > _LONGEST_LINE:
            return None
        answers = _BEGINS_A_NUMBER.match(rest) is not None and _is_answer(rest)
        return rest if answers or (rest == below and _STATES.match(rest) and one_number(rest) is not None) else None
    if not _BEGINS_A_NUMBER.match(content) or (at_start and not _is_answer(content)):
        return None
    return content


def sentence(text: str) -> str | None:
    r"""The first line after "####" that is a sentence with one number in it, and no heading such as "Step 1".

    Example:
        >>> sentence("#### Therefore, she has 18 eggs."), sentence("#### Step 1"), sentence("#### The cost of 3 apples")
        ('Therefore, she has 18 eggs.', None, None)
    """
    lines = (found["content"].rstrip("# ").strip() for found in _HASH.finditer(text))
    stating = (
        line for line in lines if len(line) <= _LONGEST_LINE and _STATES.match(line) and not _ENUMERATED.search(line)
    )
    return next((line for line in stating if one_number(line) is not None), None)


def _is_answer(content: str) -> bool:
    """Whether a line that begins with a number is no numbered heading: "1. Count", "16 eggs: the morning"."""
    words = re.findall(r"[A-Za-z]{2,}", re.sub(r"\\[a-zA-Z]+", "", content))
    return _HEADING.match(content) is None and len(words) <= _MOST_LABEL_WORDS


def numbers(text: str) -> list[Fraction]:
    r"""Every number in a text, in order, in the notations of this module.

    Example:
        >>> [str(x) for x in numbers("from $1,234.50 to -3/4, that is 10-5 = 5.00.")]
        ['2469/2', '-3/4', '10', '5', '5']
        >>> [str(x) for x in numbers(r"2\frac{1}{2} of 10^6, 3 1/2 of 20 ft^2")]
        ['5/2', '1000000', '7/2', '20']
    """
    found = []
    for match in _NUMBER.finditer(text):
        value = _value(match)
        if value is not None:
            negative = match["sign"] in ("-", "−", "–") or match["late"] is not None
            found.append(-value if negative else value)
    return found


def _value(found: re.Match[str]) -> Fraction | None:
    if found["exponent"] or len(found[0]) > 2 * _MAX_DIGITS:
        return None
    top, bottom = found["a"] or found["a1"] or found["top2"], found["b"] or found["b1"] or found["bottom2"]
    if top:
        whole = found["whole"] or found["mixed"] or "0"
        if not int(bottom):
            return None
        return int(whole) + Fraction(int(top), int(bottom))
    digits, bottom = re.sub(r"[^\d.]", "", found["top"] or ""), found["bottom"] or "1"
    if not digits or len(digits) + len(bottom) > _MAX_DIGITS or int(bottom) == 0:
        return None
    value = Fraction(digits) / int(bottom)
    if found["raised"]:
        return value ** int(found["raised"]) if len(digits) * int(found["raised"]) <= _MAX_DIGITS else None
    power = int((found["power"] or found["e"] or "0").replace("−", "-"))
    return value * Fraction(10) ** power


def one_number(text: str) -> Fraction | None:
    r"""The number that a short text gives as an answer, or None where it gives none or several.

    Example:
        >>> [str(one_number(x)) for x in ("18 dollars", r"\frac12", r"20\text{ ft}^2", "9+9=18", "8 000", "18 or 20")]
        ['18', '1/2', '20', '18', '8000', 'None']
    """
    if len(text) > _LONGEST_LINE:
        return None
    tidied = tidy(unboxed(text))
    stated = _EQUALS.split(tidied)[-1].strip() or tidied
    value = _exactly(stated)
    if value is None:
        found = numbers(text)
        value = found[0] if len(found) == 1 else None
    return value if value is not None and _is_short(value) else None


def _is_short(value: Fraction) -> bool:
    return max(value.numerator.bit_length(), value.denominator.bit_length()) <= 4 * _MAX_DIGITS


def _exactly(tidied: str) -> Fraction | None:
    """The value of a tidied text that holds one expression, and words that are labels."""
    money = quantity(tidied)
    if money is not None and len(money.parts) == 2 and money.parts[0][1].dimensions == (("dollars", 1),):
        values = [(exact(number), unit.factor) for number, unit in money.parts]  # 18 dollars and 50 cents
        return sum((value * factor for value, factor in values if value is not None), Fraction(0))
    expressions: list[str] = []
    after_word = False
    for piece in pieces(tidied):
        if piece.word:
            if piece.text.lower() in SCALES and expressions:
                expressions[-1] = rf"({expressions[-1]}) \cdot 10^{{{SCALES[piece.text.lower()]}}}"
            after_word = True
            continue
        bare = re.sub(r"^\s*\^\s*\{?\s*-?\d\s*\}?", "", piece.text) if after_word else piece.text
        bare = re.sub(r"\\?[$%]|[€£₹¥]", "", bare).strip(" .,;:*")
        expressions += [bare] if bare else []
        after_word = False
    return exact(expressions[0]) if len(expressions) == 1 else None


def marked_answer(text: str) -> str | None:
    """What a text marks as its answer; None where nothing is marked."""
    return hashed(text) or boxed(text) or sentence(text)


def final_number(text: str, rule: Extraction) -> Fraction | None:
    r"""The final answer of a worked solution as a number, by a named rule; None where nothing could be parsed.

    Example:
        >>> final_number("6 * 3 = 18\n#### 18", Extraction.MARKED) == 18
        True
        >>> final_number("so it is 18.", Extraction.MARKED), final_number("so it is 18.", Extraction.LAST_NUMBER) == 18
        (None, True)
    """
    marked = marked_answer(text)
    if marked is not None:
        return one_number(marked)
    if rule is Extraction.MARKED:
        return None
    found = numbers(text)
    return found[-1] if found else None

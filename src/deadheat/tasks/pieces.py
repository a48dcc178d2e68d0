r"""An answer cut into mathematics and words, in the order in which they stand.

Words are what stands inside \text{…}, runs of letters that are no product of variables, and the degree sign. A number inside
\text{…} is mathematics: \text{64 apples} is 64 and a word.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

_PER = re.compile(r"\\frac\s*\{\s*\\text\{([^{}]*)\}\s*\}\s*\{\s*\\text\{([^{}]*)\}\s*(\^\s*\{?\s*\d\s*\}?)?\s*\}")
_SPEED = re.compile(  # 10 m/s: a stroke between two letters after a number
    r"(?<=[\d}])\s*((?:km|cm|m|mi|ft|kg|g|mL|L)/(?:hr|h|sec|s|min|m|mL|L|day)(?:\s*\^\s*\{?\d\}?)?)(?![a-zA-Z])"
)
_SCAN = re.compile(
    r"\\text\{(?P<text>[^{}]*)\}|(?P<degree>\^\s*\\circ(?![a-zA-Z])\s*(?:(?:\\text\{\s*)?(?P<scale>[CF])(?![a-zA-Z])(?:\s*\})?)?)|(?P<command>\\(?:begin|end|operatorname\*?|mathbb|mathcal|overline|vec|hat)\s*\{[^{}]*\}|\\[a-zA-Z]+|\\.)"
    r"|(?P<letters>[A-Za-z]+(?:\.[A-Za-z]\b\.?)*(?:'s\b)?)|(?P<coin>[€£₹¥])|(?P<other>.)",
    re.DOTALL,
)
_INSIDE = re.compile(
    r"(?P<number>\\?\$?\d[\d,]*(?:\.\d+)?(?:\s*/\s*\d+)?|\\?\$\.?\d+)|(?P<halves>[AaPp]\.\s?[Mm]\.?)"
    r"|(?P<word>[A-Za-zÀ-ÿ]+(?:'[a-z]+)?)|(?P<math>\^\s*\{?\s*-?\d\s*\}?|\\%|%|[/,;:=<>+]|(?<![A-Za-z])-)|(?P<other>.)",
    re.DOTALL,
)
_VOWEL = re.compile(r"[aeiouy]", re.IGNORECASE)
_SHORT_WORDS = (
    "and or odd the are not yes no is all any day dog cat red six ten two one bad low men boy add sum per hrs min sec lbs "
    "cm mm km kg mg ft yd mi in oz lb ml hr mph kph gal usd deg pm am sq cu rad degs mins secs feet foot inch mile gram cup "
    "cups cent hour year day days week unit even none true false left right"
)
_KNOWN_WORDS = frozenset(_SHORT_WORDS.split())


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A run of mathematics, or one word."""

    text: str
    word: bool


@lru_cache(maxsize=4096)
def pieces(text: str) -> tuple[Piece, ...]:
    r"""The pieces of a tidied answer.

    Example:
        >>> [(p.text, p.word) for p in pieces(r"1\text{ hour }30\text{ min}")]
        [('1', False), ('hour', True), ('30', False), ('min', True)]
        >>> [p.text for p in pieces("3x+abc")], [p.text for p in pieces(r"\text{64 red apples}")]
        (['3x+abc'], ['64', 'red', 'apples'])
    """
    found: list[Piece] = []
    text = _SPEED.sub(r"\\text{ \1}", text)
    text = _PER.sub(r"\\text{ \1/\2\3}", text)
    for at in _SCAN.finditer(text):
        if at["text"] is not None:
            _inside(found, at["text"])
        elif at["degree"]:
            found.append(Piece(text={"C": "celsius", "F": "fahrenheit"}.get(at["scale"], "°"), word=True))
        elif at["coin"] or (at["letters"] and is_word(at["letters"])):
            found.append(Piece(text=at[0].removesuffix("'s").replace(".", ""), word=True))
        else:
            _add(found, at[0])
    return tuple(Piece(text=p.text.strip(), word=p.word) for p in found if p.text.strip() or p.word)


def is_word(letters: str) -> bool:
    """Whether a bare run of letters is a word, and no product of variables: known, or four letters with a vowel among them.

    Example:
        >>> is_word("inches"), is_word("cm"), is_word("abc"), is_word("x"), is_word("p.m.")
        (True, True, False, False, True)
    """
    plain = letters.lower().replace(".", "").removesuffix("'s")
    return plain in _KNOWN_WORDS or (len(plain) > 3 and _VOWEL.search(plain) is not None)


def _inside(found: list[Piece], content: str) -> None:
    r"""The pieces inside \text{…}; single capital letters there are names of choices: mathematics, as outside."""
    letters = re.fullmatch(r"\s*\(?\s*[A-Z]\s*\)?(?:\s*(?:,|and|or|,\s*and)\s*[A-Z])*\s*\.?\s*", content)
    if letters:
        names = re.findall(r"\b[A-Z]\b", content)
        _add(found, ", ".join(names) if len(names) > 1 else names[0])
        return
    for at in _INSIDE.finditer(content):
        if at["word"] or at["halves"]:
            found.append(Piece(text=re.sub(r"[.\s]", "", at[0]).removesuffix("'s"), word=True))
        elif at["number"]:
            _add(found, " " + re.sub(r",(?=\d{3}(?!\d))", "", at[0]).rstrip(",") + (" " if at[0][-1] != "," else ", "))
        elif at["math"]:
            _add(found, at[0])
        elif at["other"].isspace():
            _add(found, " ")


def _add(found: list[Piece], text: str) -> None:
    if found and not found[-1].word:
        found[-1] = Piece(text=found[-1].text + text, word=False)
    else:
        found.append(Piece(text=text, word=False))

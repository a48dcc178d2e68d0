r"""What the words of an answer decide.

    telling words   odd, p.m., decreasing, not …: two answers with unlike ones differ
    labels          any other words beside a number: 18\text{ ways} is 18, and 18\text{ arrangements} too
    names           an answer of words alone is right where the words are the same
    scales          5\text{ million} is 5000000

What has no words is left to the other rules.
"""

import re
from collections import Counter
from dataclasses import dataclass

from deadheat.tasks.pieces import Piece, pieces
from deadheat.tasks.units import CONTRASTS, SCALES, TELLING, unit_of

_FILLER_WORDS = (
    "a an the is are was be of that it its we get so there in at by for to total answer final approximately about roughly "
    "exactly only which this these then has have and or on both all each"
)
_FILLERS = frozenset(_FILLER_WORDS.split())
_SAME = {"anticlockwise": "counterclockwise", "upwards": "up", "upward": "up", "downwards": "down", "downward": "down"}
_NOTHING = re.compile(
    r"(?:there (?:is|are) )?(?:no (?:real |such |possible )?(?:solutions?|roots?|values?(?: of x)?|numbers?|answers?)"
    r"|none|empty ?set)"
)
_NOWHERE = re.compile(r"dne|does not exist|doesn'?t exist")
_LONE_LETTER = re.compile(r"[a-zA-Z]|\\[a-z]+")


@dataclass(frozen=True, kw_only=True)
class Worded:
    """An answer taken apart."""

    mathematics: str  # the answer without its words; a word between two numbers is a comma
    numbers: tuple[str, ...]  # the mathematics between words, in order
    labelled: tuple[tuple[str, str], ...]  # each with the words that follow it
    words: tuple[str, ...]  # in lower case, without fillers
    scaled: str | None  # the mathematics with million, thousand … multiplied in; None: there is none


def worded(text: str) -> Worded:
    r"""The mathematics and the words of a tidied answer.

    Example:
        >>> worded(r"n\text{ is odd}").mathematics, worded(r"n\text{ is odd}").words
        ('n', ('odd',))
        >>> worded(r"12\text{ and }13").mathematics, worded(r"5\text{ million}").scaled
        ('12, 13', '5\\cdot 10^{6}')
    """
    found = pieces(text)
    numbers = _mathematics(found)
    plain = ", ".join(number for number in numbers if number)
    words = tuple(_SAME.get(word, word) for word in (p.text.lower() for p in found if p.word) if word not in _FILLERS)
    scaled = None
    if any(word in SCALES for word in words):
        scaled = ", ".join(_scaled(found))
        words = tuple(word for word in words if word not in SCALES)
    return Worded(mathematics=plain, numbers=numbers, labelled=_labelled(found), words=words, scaled=scaled)


def _mathematics(found: tuple[Piece, ...]) -> tuple[str, ...]:
    """The mathematics between words, without the exponents and strokes of units."""
    numbers = []
    for at, piece in enumerate(found):
        if piece.word:
            continue
        text = piece.text
        if at and found[at - 1].word and found[at - 1].text not in ("and", "or"):
            text = re.sub(r"^\s*(?:\^\s*\{?\s*-?\d\s*\}?|/)\s*", "", text)
        text = text.strip().strip(",;:").strip()
        numbers += [text] if text not in ("", ".", "-", "/", "()", "( )") else []
    return tuple(numbers)


def _labelled(found: tuple[Piece, ...]) -> tuple[tuple[str, str], ...]:
    out: list[tuple[str, str]] = []
    for piece in found:
        if not piece.word:
            out.append((piece.text.strip(" ,;:"), ""))
        elif out and piece.text.lower() not in _FILLERS:
            out[-1] = (out[-1][0], f"{out[-1][1]} {piece.text.lower()}".strip())
    return tuple(pair for pair in out if pair[0])


def _scaled(found: tuple[Piece, ...]) -> list[str]:
    out: list[str] = []
    for piece in found:
        if not piece.word:
            out.append(piece.text.strip(" ,;"))
        elif piece.text.lower() in SCALES and out:
            out[-1] += rf"\cdot 10^{{{SCALES[piece.text.lower()]}}}"
    return out


def is_nothing(text: str) -> bool:
    r"""Whether an answer says that there is no solution: \emptyset, "no solution", "none".

    Example:
        >>> is_nothing(r"\emptyset"), is_nothing(r"\text{no real solutions}"), is_nothing("0")
        (True, True, False)
    """
    plain = re.sub(r"\\text\{([^{}]*)\}", r"\1", text).strip().lower()
    return plain == r"\emptyset" or _NOTHING.fullmatch(plain) is not None


def is_undefined(text: str) -> bool:
    """Whether an answer says that what is asked for does not exist."""
    return _NOWHERE.fullmatch(re.sub(r"\\text\{([^{}]*)\}", r"\1", text).strip().lower()) is not None


def opposed(one: Worded, other: Worded) -> bool:
    r"""Whether telling words set two answers apart.

    Example:
        >>> opposed(worded(r"n\text{ is odd}"), worded(r"n\text{ is even}")), opposed(worded("5"), worded(r"5\text{ cm}"))
        (True, False)
    """
    words = (frozenset(one.words), frozenset(other.words))
    for row in CONTRASTS:
        here, there = words[0] & row, words[1] & row
        if here and there and here != there:
            return True
    return bool({"not", "never", "neither"} & (words[0] ^ words[1]))


def is_constant(mathematics: str) -> bool:
    r"""Whether an expression holds no variable.

    Example:
        >>> is_constant(r"8\sqrt{3}"), is_constant("2k"), is_constant(r"\frac{3}{4}\pi")
        (True, False, True)
    """
    return (
        bool(mathematics)
        and re.search(r"[a-zA-Z]|\\(?:theta|alpha|beta)", re.sub(r"\\[a-zA-Z]+|\be\b", "", mathematics)) is None
    )


def words_decide(one: Worded, other: Worded) -> bool | None:
    r"""What the words of two answers settle: False where they differ, True where nothing but names is there and they agree.

    None: the words say nothing, and the mathematics is to be compared.
    """
    if opposed(one, other):
        return False
    if not one.mathematics and not other.mathematics:
        return _same_names(one, other)
    if not one.mathematics or not other.mathematics:
        named = one.mathematics or other.mathematics  # "n is odd" against "odd"
        return (
            Counter(one.words) == Counter(other.words)
            if _LONE_LETTER.fullmatch(named) and one.words and other.words
            else None
        )
    if one.words and other.words:
        same = Counter(one.words) == Counter(other.words)
        both_numbers = is_constant(one.mathematics) and is_constant(other.mathematics)
        return None if same or (both_numbers and not _unlike_units(one, other)) else False
    (wordy, bare) = (one, other) if one.words else (other, one)
    telling = TELLING & set(wordy.words)
    if _LONE_LETTER.fullmatch(wordy.mathematics) and bare.mathematics and not is_constant(wordy.mathematics):
        return False if unit_of(" ".join(wordy.words)) is None else None  # "n is odd" is not n
    return False if telling and not is_constant(wordy.mathematics) else None


def _same_names(one: Worded, other: Worded) -> bool | None:
    if Counter(one.words) == Counter(other.words):
        return True
    letters = [sorted("".join(worded.words)) for worded in (one, other)]
    return (
        None if letters[0] == letters[1] and len(one.words) == len(other.words) == 1 else False
    )  # a product: abcd, dcba


def _unlike_units(one: Worded, other: Worded) -> bool:
    units = [unit_of(" ".join(worded.words)) for worded in (one, other)]
    return None not in units and units[0] != units[1]

r"""Quantities: a number with a unit, or several of one dimension (5 ft 6 in), and clock times.

Only units in `UNITS` are read; any other word after a number is a label ("18 ways") and is for `wording`. A unit is a
dimension (a power product of base dimensions) and a factor to the base unit. What has no unit is compared as it stands:
a question that asks "how many cm" is answered by 5 and by 5 cm.
"""

import re
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from deadheat.tasks.pieces import Piece, pieces

_TABLE = {
    "length": {
        "1": "m meter metre", "1/100": "cm centimeter centimetre", "1/1000": "mm millimeter millimetre",
        "1000": "km kilometer kilometre", "254/10000": "in inch inche", "3048/10000": "ft foot feet",
        "9144/10000": "yd yard", "1609344/1000": "mi mile",
    },
    "time": {
        "1": "s sec second", "60": "min minute", "3600": "h hr hour", "86400": "day d", "604800": "week wk",
        "1/1000": "ms millisecond",
    },
    "months": {"1": "month mo", "12": "year yr"},
    "mass": {
        "1": "g gm gram gramme", "1000": "kg kilogram kilo", "1/1000": "mg milligram", "1000000": "tonne",
        "45359237/100000": "lb pound", "45359237/1600000": "oz ounce",
    },
    "volume": {
        "1": "l liter litre", "1/1000": "ml milliliter millilitre", "3785411784/1000000000": "gal gallon",
        "3785411784/4000000000": "qt quart", "3785411784/8000000000": "pt pint", "3785411784/16000000000": "cup",
    },
    "dollars": {"1": "dollar usd buck", "1/100": "cent ¢ penny pennie", "1/4": "quarter", "1/10": "dime", "1/20": "nickel"},
    "euros": {"1": "euro eur €"},
    "sterling": {"1": "gbp £"},
    "rupees": {"1": "rupee rs inr ₹"},
    "yen": {"1": "yen jpy ¥"},
    "unit": {"1": "unit"},
    "angle": {"1": "degree deg °", "1/60": "arcminute", "1/3600": "arcsecond"},
    "radians": {"1": "radian rad"},
    "celsius": {"1": "celsius"},
    "fahrenheit": {"1": "fahrenheit"},
    "force": {"1": "n newton"},
    "energy": {"1": "j joule", "1000": "kj kilojoule"},
    "power": {"1": "w watt", "1000": "kw kilowatt"},
    "data": {"1": "byte", "1000": "kb kilobyte", "1000000": "mb megabyte", "1000000000": "gb gigabyte"},
}  # fmt: skip
_COMPOUND = {
    "mph": ("mile", "hour"),
    "kph": ("km", "hour"),
    "kmh": ("km", "hour"),
    "mpg": ("mile", "gallon"),
    "fps": ("foot", "second"),
}
_POWERS = {"square": 2, "sq": 2, "squared": 2, "cubic": 3, "cu": 3, "cubed": 3}
_BASE = {
    word: (dimension, Fraction(factor))
    for dimension, names in _TABLE.items()
    for factor, words in names.items()
    for word in words.split()
}
_BEFORE_A_NUMBER = ("about", "approximately", "exactly", "roughly", "is", "it", "the", "answer")
# Words that decide an answer: two answers with unlike words of one row differ, whatever number stands beside them.
CONTRASTS = tuple(
    frozenset(row.split())
    for row in (
        "odd even", "prime composite", "am pm", "morning afternoon evening night noon midnight", "more less fewer",
        "above below", "before after", "left right", "north south east west",
        "up down upward downward upwards downwards",
        "increasing decreasing increase decrease increased decreased increases decreases", "positive negative",
        "clockwise counterclockwise anticlockwise", "rational irrational", "true false", "yes no", "maximum minimum",
        "finite infinite", "convergent divergent converges diverges", "bc ad bce ce", "win lose wins loses won lost",
        "profit loss gain", "first second third fourth fifth last", "acute obtuse", "inside outside",
        "heads tails",
        "january february march april may june july august september october november december",
        "monday tuesday wednesday thursday friday saturday sunday",
    )
)  # fmt: skip
TELLING = frozenset().union(*CONTRASTS) | {"not", "never", "neither", "nor", "except", "without", "mod", "modulo"}

_PIECE = re.compile(
    r"\s*(?:(?P<word>[a-z]+|[°¢€£₹¥])\.?(?P<raised>\s*\^\s*\{?\s*(?P<power>-?[1-4])\s*\}?|(?P<glued>[23])(?![\d.]))?"
    r"|(?P<over>/|per\b)|(?P<filler>\\cdot|\*|-))\s*"
)
_MONEY = re.compile(r"(?:US\s*)?\\?\$\s*")
_NUMBER_START = re.compile(r"[-+]?\s*(?:[\d.(]|\\(?:frac|sqrt|pi|binom|\$)|\$)")
_RAISED = re.compile(r"\s*(\^\s*\{?\s*-?[1-4]\s*\}?)\s*(.*)", re.DOTALL)
_COINS = ("€", "£", "₹", "¥")
SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}  # powers of ten that follow a number


@dataclass(frozen=True, kw_only=True)
class Unit:
    """What a number counts."""

    dimensions: tuple[tuple[str, int], ...]  # base dimension and its power, sorted
    factor: Fraction  # base units in one of it


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """Numbers with units of one dimension, to be added."""

    parts: tuple[tuple[str, Unit], ...] = field(default=())  # (number as tidied LaTeX, its unit), in the order written


@lru_cache(maxsize=2048)
def unit_of(words: str) -> Unit | None:
    r"""The unit that a phrase names, or None where it is no known one.

    Example:
        >>> unit_of("square feet") == unit_of("ft^2"), unit_of("m/s") == unit_of("meters per second"), unit_of("apples")
        (True, True, None)
    """
    phrase = re.sub(r"\\text\{([^{}]*)\}", r" \1 ", words).replace("\\%", "%").lower().strip().rstrip(".,;")
    phrase = re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"\1/\2", phrase)
    phrase = re.sub(r"\^\s*(?:\{\s*)?\\circ\s*\}?", "°", phrase).replace("° c", "celsius").replace("° f", "fahrenheit")
    phrase = re.sub(
        r"(?:degrees?|°)\s*(celsius|fahrenheit|c\b|f\b)",
        lambda f: {"c": "celsius", "f": "fahrenheit"}.get(f[1], f[1]),
        phrase,
    )
    powers: dict[str, int] = {}
    factor, sign, coming, at = Fraction(1), 1, 1, 0
    last: tuple[str, Fraction] | None = None
    while at < len(phrase):
        piece = _PIECE.match(phrase, at)
        if piece is None or piece.end() == at:
            return None
        at = piece.end()
        if piece["over"] or piece["word"] == "per":
            sign = -1
        elif piece["word"] in _POWERS:
            if piece["word"] in ("squared", "cubed") and last is not None:
                extra = sign * (_POWERS[piece["word"]] - 1)
                powers[last[0]], factor = powers[last[0]] + extra, factor * last[1] ** extra
            else:
                coming = _POWERS[piece["word"]]
        elif piece["word"]:
            for place, name in enumerate(_COMPOUND.get(piece["word"], (piece["word"],))):
                last = _base(name)
                if last is None:
                    return None
                power = sign * (-1 if place else 1) * coming * int(piece["power"] or piece["glued"] or 1)
                powers[last[0]] = powers.get(last[0], 0) + power
                factor *= last[1] ** power
            coming = 1
    dimensions = tuple(sorted((name, power) for name, power in powers.items() if power))
    return Unit(dimensions=dimensions, factor=factor) if dimensions else None


def _base(word: str) -> tuple[str, Fraction] | None:
    for name in (word, word.removesuffix("s"), word.removesuffix("es")):
        if name in _BASE:
            return _BASE[name]
    return None


def quantity(text: str) -> Quantity | None:
    r"""A tidied answer as a quantity; None where it holds no unit, or anything that is neither a number nor a unit.

    Example:
        >>> len(quantity(r"5\text{ feet }6\text{ inches}").parts), quantity(r"90^\circ").parts[0][0], quantity("18")
        (2, '90', None)
    """
    parts: list[tuple[str, Unit]] = []
    rest = list(pieces(text))
    while rest:
        part = _part(rest)
        if part is None:
            return None
        parts.append(part)
    dimensions = {unit.dimensions for _, unit in parts}
    factors = [unit.factor for _, unit in parts]
    descending = all(a > b for a, b in pairwise(factors))
    return Quantity(parts=tuple(parts)) if len(dimensions) == 1 and descending else None


def _part(rest: list[Piece]) -> tuple[str, Unit] | None:
    """Takes one number and its unit off the front of the pieces."""
    while rest and rest[0].word and rest[0].text.lower() in _BEFORE_A_NUMBER:
        del rest[0]
    coin = rest.pop(0) if rest and rest[0].text in _COINS else None  # it stands before its number
    head = rest.pop(0) if rest else None
    if head is None or head.word:
        return None
    number = head.text.strip(" ,;")
    bare = _MONEY.sub("", number, count=1)
    if not _NUMBER_START.match(number) or re.search(r"[a-zA-Z,=<>]", re.sub(r"\\[a-zA-Z]+", "", bare)):
        return None
    scale = next((SCALES[piece.text.lower()] for piece in rest[:1] if piece.text.lower() in SCALES), None)
    if scale is not None:
        del rest[0]
        bare = rf"({bare})\cdot 10^{{{scale}}}"
    phrase = _phrase(rest)
    if coin is not None or "$" in number:
        coined = coin.text if coin is not None else "dollars"
        phrase = phrase if phrase and unit_of(phrase[0]) == unit_of(coined) else [coined, *phrase]
    unit = _unit_in(phrase)
    return (bare, unit) if unit is not None else None


def _phrase(rest: list[Piece]) -> list[str]:
    """Takes the words after a number off the front, with their exponents and strokes."""
    phrase: list[str] = []
    while rest:
        text = rest[0].text
        if rest[0].word:
            rest.pop(0)
            if text.lower() in ("and", "or"):
                break
            phrase.append(text)
            continue
        raised = _RAISED.fullmatch(text)
        if phrase and raised and not re.match(r"\d", raised[2]):
            phrase[-1] += raised[1]
            text = raised[2]
            rest[0] = Piece(text=text, word=False)
        if phrase and text.strip() in ("/", "\\cdot", "-") and len(rest) > 1:
            phrase.append(text)
        elif text.strip(" .,;"):
            break
        rest.pop(0)
    return phrase


def _unit_in(phrase: list[str]) -> Unit | None:
    """The unit at the start of a phrase: "feet tall" is feet, "cm above" too. None where a telling word follows it."""
    for end in range(len(phrase), 0, -1):
        unit = unit_of(" ".join(phrase[:end]))
        if unit is not None:
            return unit if not any(word.lower() in TELLING for word in phrase[end:]) else None
    return None


@dataclass(frozen=True, kw_only=True)
class Clock:
    """A time of day."""

    hour: int  # as written
    minute: int
    second: int
    half: str | None  # "a", "p"; None: not said


_CLOCK = re.compile(
    r"(?:(\d{1,2}):(\d{2})(?::(\d{2}))?|(\d{1,2}))\s*(?:o'?clock)?\s*"
    r"(?:([ap])\.?\s*m\.?|in the (morning|afternoon|evening)|(noon|midnight))?"
)
_NAMED = {
    "noon": Clock(hour=12, minute=0, second=0, half="p"),
    "midnight": Clock(hour=12, minute=0, second=0, half="a"),
}
_HALVES = {"morning": "a", "afternoon": "p", "evening": "p", "noon": "p", "midnight": "a"}


def clock(text: str) -> Clock | None:
    r"""A tidied answer as a time of day: hours and minutes, or an hour with a.m. or p.m.

    Example:
        >>> clock(r"6:00\text{ p.m.}") == clock("6 PM") == clock("6:00 pm"), clock("1:2"), clock("18")
        (True, None, None)
    """
    plain = re.sub(r"\\text\{([^{}]*)\}", r" \1 ", text).lower()
    plain = re.sub(r"\s+", " ", plain).strip().removeprefix("at ")
    if plain in _NAMED:
        return _NAMED[plain]
    found = _CLOCK.fullmatch(plain)
    if found is None:
        return None
    half = found[5] or _HALVES.get(found[6] or found[7] or "")
    hour, minute, second = int(found[1] or found[4]), int(found[2] or 0), int(found[3] or 0)
    if found[4] and half is None:
        return None
    return Clock(hour=hour, minute=minute, second=second, half=half) if hour < 25 and max(minute, second) < 60 else None


def same_time(one: Clock, other: Clock) -> bool:
    """Whether two times of day agree; where one of them does not say a.m. or p.m., up to twelve hours.

    Example:
        >>> same_time(clock("6:00 pm"), clock("18:00")), same_time(clock("6:00 pm"), clock("6:00 am"))
        (True, False)
    """
    if (one.minute, one.second) != (other.minute, other.second):
        return False
    hours = [_day_hours(c) for c in (one, other)]
    return bool(hours[0] & hours[1])


def _day_hours(time: Clock) -> set[int]:
    if time.half is None:
        return {time.hour % 24} if time.hour > 12 or time.hour == 0 else {time.hour % 12, time.hour % 12 + 12}
    return {time.hour % 12 + (12 if time.half == "p" else 0)} if time.hour <= 12 else {time.hour % 24}

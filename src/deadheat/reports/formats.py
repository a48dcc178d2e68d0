"""How a number is written: with its n, its interval and its unit, the same in a terminal, a table and a figure.

A true minus sign (U+2212) is used, so that signed columns line up. `printable` makes foreign text (arm names, model
output) safe to show: control characters and the invisible marks that reorder a line become visible ones.
"""

import math
import re

from deadheat.stats.intervals import Interval

MINUS = "\N{MINUS SIGN}"
SMALLEST_P = 1e-300  # below it a float64 p value loses its digits

_SI = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BINARY = ("KiB", "MiB", "GiB", "TiB", "PiB")
_REORDERING = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional marks, embeddings, overrides, isolates
_HIDDEN = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\ufeff\ufff9-\uffff{_REORDERING}]")


def printable(text: str) -> str:
    """The text with nothing invisible in it: control characters, reordering marks and the like become ‹U+XXXX›.

    Line feeds and tabs stay. A carriage return before a line feed is dropped.

    Example:
        >>> printable("a\\x00b\\r\\nc\\u202ed")
        'a‹U+0000›b\\nc‹U+202E›d'
    """
    return _HIDDEN.sub(lambda match: f"‹U+{ord(match.group()):04X}›", text.replace("\r\n", "\n"))


def shortened(text: str, limit: int) -> str:
    """The first `limit` characters, and how many were left out.

    Example:
        >>> shortened("abcdefgh", 3), shortened("abc", 3)
        ('abc … (5 more characters)', 'abc')
    """
    return text if len(text) <= limit else f"{text[:limit]} … ({len(text) - limit:,} more characters)"


def format_p(p_value: float, log10_p: float | None = None) -> str:
    """A p value to three significant digits, never "0" and never rounded up to 1.

    `log10_p`, where it is known, carries values too small for a float; without it they read "<1e-300".

    Example:
        >>> format_p(1.0), format_p(0.0028195), format_p(0.9999), format_p(1.67e-23), format_p(0.0)
        ('1', '0.00282', '>0.999', '1.67e-23', '<1e-300')
        >>> format_p(0.0, log10_p=-450.25)
        '5.62e-451'
    """
    if not 0 <= p_value <= 1:
        raise ValueError(f"p value is {p_value}; wanted in [0, 1]")
    if p_value < SMALLEST_P:
        return "<1e-300" if log10_p is None else _power_of_ten(log10_p)
    if p_value > 0.999:
        return "1" if p_value == 1 else ">0.999"
    return f"{p_value:#.3g}" if p_value >= 9.995e-5 else re.sub("e-0+", "e-", f"{p_value:.2e}")


def _power_of_ten(log10: float) -> str:
    exponent = math.floor(log10)
    digits = f"{10 ** (log10 - exponent):.2f}"
    return f"1.00e{exponent + 1}" if digits == "10.00" else f"{digits}e{exponent}"


def format_signed(value: float, digits: int = 1) -> str:
    """A signed number with a true minus; what rounds to zero has no sign.

    Example:
        >>> format_signed(3.25, 1), format_signed(-0.04, 1), format_signed(-1.0, 2)
        ('+3.2', '0.0', '−1.00')
    """
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text.replace("-", MINUS)


def format_pp(value_pp: float, digits: int = 1) -> str:
    """A difference in percentage points.

    Example:
        >>> format_pp(-12.84)
        '−12.8 pp'
    """
    return f"{format_signed(value_pp, digits)} pp"


def format_pp_with_interval(value_pp: float, low_pp: float, high_pp: float, num: int) -> str:
    """A difference with its interval and n.

    Example:
        >>> format_pp_with_interval(3.0, -0.5, 6.5, 600)
        '+3.0 pp [−0.5, +6.5], n = 600'
    """
    return f"{format_pp(value_pp)} [{format_signed(low_pp)}, {format_signed(high_pp)}], n = {num:,}"


def format_share(share: float) -> str:
    """A share as a percentage.

    Example:
        >>> format_share(0.585)
        '58.5%'
    """
    return f"{100 * share:.1f}%"


def format_share_with_interval(interval: Interval) -> str:
    """A share with its interval and n, and what was left out of it.

    Example:
        Wilson, 117 of 200: centre (117 + 1.92)/203.84 = .5834, half-width 1.96·sqrt(117·83/200 + .96)/203.84 = .0677.
        >>> from deadheat.stats.intervals import wilson
        >>> format_share_with_interval(wilson(117, 200)), format_share_with_interval(wilson(0, 20, left_out=4))
        ('58.5% [51.6, 65.1], n = 200', '0.0% [0.0, 16.1], n = 20 (4 left out)')
    """
    left_out = f" ({interval.left_out:,} left out)" if interval.left_out else ""
    bounds = f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
    return f"{format_share(interval.estimate)} {bounds}, n = {interval.n:,}{left_out}"


def format_seconds(seconds: float) -> str:
    """A duration in the two largest units that matter.

    Example:
        >>> [format_seconds(s) for s in (0.0042, 3.21, 75, 3599.6, 90000)]
        ['4.2 ms', '3.2 s', '1 min 15 s', '1 h 00 min', '1 d 01 h']
    """
    if seconds < 0 or not math.isfinite(seconds):
        raise ValueError(f"duration is {seconds} s; wanted a finite number of seconds, at least 0")
    if seconds == 0:
        return "0 s"
    if seconds < 0.9995:
        return f"{1000 * seconds:.3g} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole_s = round(seconds)
    if whole_s < 3600:
        return f"{whole_s // 60} min {whole_s % 60:02d} s"
    if whole_s < 86400:
        return f"{whole_s // 3600} h {whole_s % 3600 // 60:02d} min"
    return f"{whole_s // 86400} d {whole_s % 86400 // 3600:02d} h"


def format_count(count: int) -> str:
    """A whole number, exact, in groups of three digits.

    Example:
        >>> format_count(1234567), format_count(-3)
        ('1,234,567', '−3')
    """
    return f"{count:,}".replace("-", MINUS)


def format_quantity(value: float, unit: str) -> str:
    """A large quantity to three significant digits with an SI prefix.

    Example:
        >>> format_quantity(3.4217e15, "FLOP"), format_quantity(812, "tokens"), format_quantity(999_999, "FLOP")
        ('3.42 PFLOP', '812 tokens', '1.00 MFLOP')
    """
    for size, prefix in _SI:
        if abs(value) >= size * 0.9995:
            return f"{value / size:#.3g}".rstrip(".").replace("-", MINUS) + f" {prefix}{unit}"
    return f"{value:.3g}".replace("-", MINUS) + f" {unit}"


def format_bytes(num_bytes: int) -> str:
    """A size in binary units.

    Example:
        >>> format_bytes(512), format_bytes(1536), format_bytes(5 * 2**30)
        ('512 B', '1.5 KiB', '5.0 GiB')
    """
    size, unit = float(num_bytes), "B"
    for name in _BINARY:
        if size < 1024:
            break
        size, unit = size / 1024, name
    return f"{num_bytes:,} B" if unit == "B" else f"{size:.1f} {unit}"

r"""One way to write an answer: LaTeX, plain text and Unicode brought to the LaTeX that the comparisons read.

`tidy` applies the table `STEPS` in order. No step changes what an answer says: each has its reason beside it. Words stay,
inside \text{…}; what they mean is for `wording` and `units`.
"""

import re
from collections.abc import Callable
from fractions import Fraction

_UNICODE = {
    **dict.fromkeys("−–—‒﹣－", "-"),
    **dict.fromkeys("\u00a0\u202f\u2007", "~"),
    **dict.fromkeys("\u2009\u200a\u2006\u2005", r"\,"),
    **dict.fromkeys("\u200b\u2060\ufeff\u2061\u2062", ""),
    "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ", "∙": r"\cdot ", "÷": "/", "∕": "/", "⁄": "/",
    "≤": r"\le ", "≥": r"\ge ", "⩽": r"\le ", "⩾": r"\ge ", "≠": r"\ne ", "≈": r"\approx ", "±": r"\pm ", "∓": r"\mp ",
    "∞": r"\infty ", "π": r"\pi ", "θ": r"\theta ", "α": r"\alpha ", "β": r"\beta ", "γ": r"\gamma ", "λ": r"\lambda ",
    "φ": r"\phi ", "ω": r"\omega ", "°": r"^\circ ", "…": r"\ldots ", "⋯": r"\ldots ",
    "∅": r"\emptyset ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "∖": r"\setminus ", "ℝ": r"\mathbb{R}", "∨": r"\lor ",
    "∧": r"\land ", "¢": r"\text{ cents}", "′": "'", "％": "%", "（": "(", "）": ")", "，": ",", "：": ":",
}  # fmt: skip
_VULGAR = {
    "½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅕": (1, 5), "⅖": (2, 5), "⅗": (3, 5), "⅘": (4, 5),
    "⅙": (1, 6), "⅚": (5, 6), "⅐": (1, 7), "⅛": (1, 8), "⅜": (3, 8), "⅝": (5, 8), "⅞": (7, 8), "⅑": (1, 9), "⅒": (1, 10),
}  # fmt: skip
_RAISED, _LOWERED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ", "₀₁₂₃₄₅₆₇₈₉"
_TRANSLATION = str.maketrans(_UNICODE | {char: rf"\frac{{{a}}}{{{b}}}" for char, (a, b) in _VULGAR.items()})
_SCRIPTS = str.maketrans(_RAISED + _LOWERED, "0123456789-+n0123456789")

_FUNCTIONS = "arcsin|arccos|arctan|sinh|cosh|tanh|sin|cos|tan|cot|sec|csc|log|ln|gcd|max|min|det"
_TEXT_COMMAND = re.compile(r"\\(?:mbox|hbox|textrm|textit|textsf|texttt|textnormal|mathrm|mathit|text)\s*\{")
_UPRIGHT = re.compile(rf"\\(?:mathrm|mathit|operatorname)\*?\s*\{{\s*([A-Zdei]|{_FUNCTIONS})\s*\}}")
_UNIT_OPERATOR = re.compile(r"(?<=[\d}])((?:\s|~|\\[,;: ])*)\\operatorname\*?(?=\{[a-z]+\})")  # 5 \operatorname{cm}
_WRAPPER = re.compile(
    r"\\(?:textbf|mathbf|boldsymbol|bm|underline|emph|boxed|fbox|mathsf|ensuremath|displaystyle|textcolor\{\w*\}|color\{\w*\})"
    r"\s*\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}"
)
_NOISE = re.compile(
    r"\\(?:displaystyle|textstyle|limits|left\.|right\.|(?:left|right|big|Big|bigg|Bigg|bigl|bigr|Bigl|Bigr)(?![a-zA-Z]))"
    r"|\\(?:color|textcolor)\{\w*\}|\\hspace\*?\{[^{}]*\}"
)
_SYNONYMS = {
    r"\\[dtc]frac(?![a-z])": r"\\frac",
    r"\\(?:leq|leqslant|leqq)(?![a-z])": r"\\le ",
    r"\\(?:geq|geqslant|geqq)(?![a-z])": r"\\ge ",
    r"\\neq(?![a-z])": r"\\ne ",
    r"\\lt(?![a-z])": "<",
    r"\\gt(?![a-z])": ">",
    r"\\(?:varnothing|O(?![a-zA-Z]))": r"\\emptyset ",
    r"\\\{(?:\s|\\,)*\\\}": r"\\emptyset ",
    r"\\(?:dots|cdots|dotsc|dotsb|hdots)(?![a-z])": r"\\ldots ",
    r"\.\.\.+": r"\\ldots ",
    r"\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![a-z])|\\degree(?![a-z]))|\\degree(?![a-z])": r"^\\circ ",
    r"\\(?:infin|infinity)(?![a-z])": r"\\infty ",
    r"\\(?:R|Reals|reals)(?![a-zA-Z])": r"\\mathbb{R}",
    r"\\(?:vee)(?![a-z])": r"\\lor ",
    r"\\(?:wedge)(?![a-z])": r"\\land ",
    r"\\(?:backslash)(?![a-z])": r"\\setminus ",
    r"\\(?:colon)(?![a-z])": ":",
    r"\\prime(?![a-z])": "'",
}
_SYNONYM = [(re.compile(pattern), word) for pattern, word in _SYNONYMS.items()]
_SPACES = re.compile(r"(?:(?<!\\)\\(?:[,;: ]|quad(?![a-z])|qquad(?![a-z])|thinspace|enspace|nobreakspace)|~|\s)+")
_TEXT_GROUP = re.compile(r"(\\text\{[^{}]*\})")
_GREEK = "pi|theta|alpha|beta|gamma|lambda|phi|omega|sigma|delta|epsilon|mu|rho|tau"
_BARE = r"(?<![\\a-zA-Z])"
_PLAIN = [
    (re.compile(_BARE + r"(?:infinity|infty|inf|oo)(?![a-zA-Z])"), r"\\infty "),
    (re.compile(_BARE + rf"({_GREEK})(?![a-zA-Z])"), r"\\\1 "),
    (re.compile(_BARE + rf"({_FUNCTIONS})(?=\s*(?:\(|\d|\\[a-z]|[a-z]\b))"), r"\\\1 "),
    (re.compile(r"(?<=[)\]}])\s*(?:union|U|u)(?=\s*[(\[])"), r"\\cup "),
    (re.compile(r"<=|=<"), r"\\le "),
    (re.compile(r">=|=>"), r"\\ge "),
    (re.compile(r"(?<=[a-zA-Z ])!=(?=\s*[-\d(\\])"), r"\\ne "),  # after a letter or a space: 5!=120 is a factorial
    (re.compile(r"\*\*"), "^"),
    (re.compile(r"(?<!\^)\*(?!\*)"), r" \\cdot "),
]
_NUMBER = r"(?:\d+(?:\.\d+)?|\.\d+)"
_SCIENTIFIC = re.compile(rf"(?<![\w.\\])({_NUMBER})[eE]([+-]?\d+)(?![\w.])")
_LONG_POWER = re.compile(r"\^\s*(-?\d{2,}|-\d)(?!\d)")
_PAREN_POWER = re.compile(r"\^\s*\(([^()]*)\)")
_GROUPED = re.compile(r"(?<![\d.])(\d{1,3})((?:(?:\{,\}|,\s*\\!\s*|\\!\s*,\s*|\\,)\d{3})+)(?!\d)")
_WHOLE_GROUPED = re.compile(
    r"(?P<before>[^\d.,]*?)(?<![a-zA-Z\d.,])(?P<number>\d{1,3}(?:(?:,\d{3})+|(?: \d{3})+|(?:'\d{3})+))"
    r"(?P<after>(?:\.\d+)?(?:[^\d.,/].*)?)",
    re.DOTALL,
)
_IN_BRACKETS = re.compile(r"[(\[]|\\[{]")
_MIXED_LATEX = re.compile(r"(?<![\d.^_,}\w])(\d+)\s*\\frac\{(\d+)\}\{(\d+)\}(?!\s*\^)")
_MIXED_PLAIN = re.compile(r"(?<![\d.^_,/\w])(\d+) +(\d+) ?/ ?(\d+)(?![\d.^])")
_REPEATING = re.compile(
    r"(?<![\d.])(\d*)\.(\d*)(?:\\(?:overline|bar|dot|overbar)\s*(?:\{(\d+)\}|(\d))|\((\d+)\))(?!\d)"
)
_RUNNING_ON = re.compile(r"(?<![\d.])(\d*)\.(\d+?)((\d{1,6}?)\4+)\s*\\ldots\s*$")
_ORDINAL = re.compile(
    r"(?<=\d)\s*(?:\^\s*)?(?:\\text\{\s*(?:st|nd|rd|th)\s*\}|\{\\text\{\s*(?:st|nd|rd|th)\s*\}\}|(?:st|nd|rd|th)\b)"
)
# "$5$" is mathematics and "$5" is money
_OPENING_MARK = re.compile(
    r"^(?:=(?!=)|\\approx(?![a-z])|\*(?=[^*]*\*$)|\*\*|__|`+|\$+(?!\d)|\$+(?=[^$]*\$$)|\\\(|\\\[)"
)
_CLOSING_MARK = re.compile(r"(?:\*|__|`+|(?<!\\)\$+|\\\)|\\\]|(?<!\.)\.|[;,]|\\)$")
_STRAY_DOLLAR = re.compile(r"(?<!\\)\$(?!\s*\d)")
_MOST_DIGITS = 400


def tidy(answer: str) -> str:
    r"""An answer in one notation.

    Example:
        >>> tidy(r"\dfrac12"), tidy("−3 1/2"), tidy(r"**$73$**."), tidy("exp(16)-1")
        ('\\frac{1}{2}', '-(3+\\frac{1}{2})', '73', 'e^{16}-1')
        >>> tidy(r"0.1\overline{6}"), tidy("10 000"), tidy(r"x ≤ 3"), tidy(r"18~\mbox{cm}^3")
        ('\\frac{1}{6}', '10000', 'x \\le 3', '18 \\text{cm}^3')
    """
    for step in STEPS:
        answer = step(answer)
    return answer


def without_marks(text: str) -> str:
    r"""Markdown's bold and code, $…$, \(…\), a closing full stop: they set an answer off and are no part of it."""
    while (bare := _CLOSING_MARK.sub("", _OPENING_MARK.sub("", text.strip()))) != text:
        text = bare
    return _STRAY_DOLLAR.sub("", text)


def from_unicode(text: str) -> str:
    """Signs that stand for a LaTeX command; small raised and lowered digits are exponents and subscripts."""
    text = re.sub(f"[{_RAISED}]+", lambda found: "^{" + found[0].translate(_SCRIPTS) + "}", text)
    text = re.sub(f"[{_LOWERED}]+", lambda found: "_{" + found[0].translate(_SCRIPTS) + "}", text)
    text = re.sub(r"√\s*(?:\(([^()]*)\)|(\d+|\w))", lambda found: rf"\sqrt{{{found[1] or found[2]}}}", text)
    text = re.sub(f"(?<=\\d)(?=[{''.join(_VULGAR)}])", " ", text)
    return text.translate(_TRANSLATION)


def without_wrappers(text: str) -> str:
    r"""Bold, colour, size and \left \right change how an answer looks."""
    while (bare := _WRAPPER.sub(r"\1", text)) != text:
        text = bare
    text = _UNIT_OPERATOR.sub(r"\\text", text)
    text = _UPRIGHT.sub(lambda found: found[1] if len(found[1]) == 1 else f"\\{found[1]} ", text)
    return _NOISE.sub("", _TEXT_COMMAND.sub(r"\\text{", text))


def one_command(text: str) -> str:
    r"""Commands with several names: \leq and \le, \varnothing and \emptyset, \dots and \cdots."""
    for pattern, word in _SYNONYM:
        text = pattern.sub(word, text)
    return text


def joined_digits(text: str) -> str:
    r"""Thousands separators that cannot be anything else: 1{,}000, 10,\!080, 1\,000."""
    return (
        _GROUPED.sub(lambda found: found[1] + re.sub(r"\D", "", found[2]), text).replace("{,}", ",").replace("\\!", "")
    )


def one_space(text: str) -> str:
    """Every kind of space is one space: 3 1/2 is not 31/2, so that none is not a kind."""
    return _SPACES.sub(" ", text).strip()


def braced(text: str) -> str:
    r"""The arguments of \frac and \sqrt in braces, as TeX reads them: \frac12 is \frac{1}{2}.

    Example:
        >>> braced(r"\frac12"), braced(r"\frac 9{19}"), braced(r"\frac\pi4"), braced(r"11\sqrt2")
        ('\\frac{1}{2}', '\\frac{9}{19}', '\\frac{\\pi}{4}', '11\\sqrt{2}')
    """
    out, at = [], 0
    for found in re.finditer(r"\\(frac|binom|sqrt)(?![a-zA-Z])", text):
        if found.start() < at:
            continue  # inside an argument that was read whole
        out.append(text[at : found.end()])
        at = found.end()
        if found[1] == "frac" and re.compile(r"\s*\d{3}").match(text, at):
            continue  # \frac919 has lost its braces: math-verify guesses
        for _ in range(1 if found[1] == "sqrt" else 2):
            at = _argument(text, at, out)
    return "".join(out) + text[at:]


def _argument(text: str, at: int, out: list[str]) -> int:
    """Reads one argument of a command, appends it in braces, and returns where it ends."""
    root = re.compile(r"\s*\[[^\]]*\]").match(text, at)
    if root:
        out.append(root[0].strip())
        at = root.end()
    token = re.compile(r"\s*(?:(\{)|(\\[a-zA-Z]+(?:\{[^{}]*\})?|[^\s\\}{]))").match(text, at)
    if token is None:
        return at
    if token[2]:
        out.append("{" + braced(token[2]) + "}")
        return token.end()
    end = _close(text, token.end())
    out.append("{" + braced(text[token.end() : end].strip()) + "}")
    return end + 1


def _close(text: str, start: int) -> int:
    depth = 1
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return len(text)


def from_plain(text: str) -> str:
    """Names and operators as they are typed without LaTeX: pi, sqrt(2), exp(16), <=, **, x^10."""
    parts = _TEXT_GROUP.split(text)
    return "".join(part if at % 2 else _from_plain(part) for at, part in enumerate(parts))


def _from_plain(part: str) -> str:
    part = _called(part, r"(?<![a-zA-Z])\\?exp(?![a-z])", "e^{", "}")
    part = _called(part, r"(?<![\\a-zA-Z])sqrt(?![a-z])", r"\sqrt{", "}")
    for pattern, word in _PLAIN:
        part = pattern.sub(word, part)
    part = _SCIENTIFIC.sub(r"\1 \\cdot 10^{\2}", part)
    return _LONG_POWER.sub(r"^{\1}", _PAREN_POWER.sub(r"^{\1}", part)).replace("^{+", "^{").replace("{ ", "{")


def _called(text: str, name: str, opening: str, closing: str) -> str:
    """A function's argument in braces: exp(x) and exp{x} as e^{x}."""
    call = re.compile(name + r"\s*([({])")
    while (found := call.search(text)) is not None:
        pair = {"(": ")", "{": "}"}[found[1]]
        depth, end = 1, found.end()
        while end < len(text) and depth:
            depth += {found[1]: 1, pair: -1}.get(text[end], 0)
            end += 1
        if depth:
            break
        text = text[: found.start()] + opening + text[found.end() : end - 1] + closing + text[end:]
    return text


def whole_number(text: str) -> str:
    """Thousands separators of a lone number: 1,000 and 10 000. In a list or a pair a comma separates."""
    found = None if _IN_BRACKETS.search(text) else _WHOLE_GROUPED.fullmatch(text)
    if found is None or re.match(r"\s*[,;]\s*[\d-]", found["after"]):
        return text
    return found["before"] + re.sub(r"\D", "", found["number"]) + found["after"]


def mixed(text: str) -> str:
    r"""A whole number before a proper fraction is added to it: 3 1/2 and 3\frac{1}{2} are 7/2. In 31/2 there is no space.

    Example:
        >>> mixed(r"3\frac{1}{2}"), mixed("3 1/2"), mixed("31/2"), mixed(r"2\frac{5}{3}")
        ('(3+\\frac{1}{2})', '(3+\\frac{1}{2})', '31/2', '2\\frac{5}{3}')
    """

    def added(found: re.Match[str]) -> str:
        proper = len(found[3]) >= len(found[2]) and (len(found[3]) > _MOST_DIGITS or int(found[2]) < int(found[3]))
        return rf"({found[1]}+\frac{{{found[2]}}}{{{found[3]}}})" if proper else found[0]

    return _MIXED_PLAIN.sub(added, _MIXED_LATEX.sub(added, text))


def repeating(text: str) -> str:
    r"""A repeating decimal is a fraction: 0.1\overline{6} is (16 − 1)/90. Also 0.\bar{3}, 0.(3) and 0.333….

    Example:
        >>> repeating(r"0.\overline{3}"), repeating("0.1(6)"), repeating(r"0.333\ldots")
        ('\\frac{1}{3}', '\\frac{1}{6}', '\\frac{1}{3}')
    """

    def fraction(found: re.Match[str], block: str) -> str:
        whole, head = found[1], found[2]
        if len(whole + head + block) > _MOST_DIGITS:
            return found[0]
        nines = int("9" * len(block)) * 10 ** len(head)
        value = Fraction(int(whole + head + block or "0") - int(whole + head or "0"), nines)
        return rf"\frac{{{value.numerator}}}{{{value.denominator}}}" if value.denominator > 1 else str(value)

    text = _REPEATING.sub(lambda found: fraction(found, found[3] or found[4] or found[5]), text)
    if r"\ldots" not in text:
        return text
    return _RUNNING_ON.sub(lambda found: fraction(found, found[4]) if len(found[3]) > 1 else found[0], text)


def ordinal(text: str) -> str:
    r"""12^{\text{th}} is the number 12."""
    return _ORDINAL.sub("", text)


def leading_zero(text: str) -> str:
    """.5 is 0.5."""
    return re.sub(r"(?<![\d.\\])\.(?=\d)", "0.", text)


STEPS: tuple[Callable[[str], str], ...] = (
    without_marks,
    from_unicode,
    without_wrappers,
    without_marks,  # those that stood inside a wrapper
    joined_digits,
    one_command,
    one_space,
    ordinal,
    leading_zero,
    repeating,
    braced,
    from_plain,
    braced,  # of what plain names became
    one_space,
    mixed,
    whole_number,
)

r"""Finding the last box of a text that holds an answer: \boxed{…} and \fbox{…}, nested ones, and \boxed 5 without braces.

Braces are matched in one pass, with \{ and \} taken as characters, so that the time is linear in the text's length. A box
that does not close holds nothing: what was cut off is no answer.
"""

import re
from dataclasses import dataclass

_COMMAND = re.compile(r"\\(?:boxed|fbox)(?![a-zA-Z])[ \t]*")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_PLAIN_BRACE = re.compile(r"[{}]")
_PAIRS = {")": "(", "]": "[", "}": "{"}
_PLACEHOLDER = re.compile(
    r"(?:[\s.…?_~*$,;:]|\\$|\\(?:[,;:! ]|quad|qquad|ldots|dots|cdots|square|phantom\{[^{}]*\})|\{\s*\}"
    r"|(?:\\text\{)?\s*(?:your\s+|the\s+|final\s+)*(?:answer|number|result)(?:\s+here)?\s*\}?)*",
    re.IGNORECASE,
)
_LONGEST_PLACEHOLDER = 60
_LONGEST_TOKEN = 200
_LEADS_IN = re.compile(r"(?:[^\\=]*[=:]\s*|(?:\\text\{[^{}]*\}|[A-Za-z ,.'*$])*|.*(?:=|\\approx)\s*)", re.DOTALL)
_LEADS_OUT = re.compile(r"[\s.,;$*]*")


@dataclass(frozen=True, kw_only=True)
class _Box:
    start: int  # of the command
    opens: int  # of the content
    closes: int  # just past the content
    end: int  # just past the box


def boxed(text: str) -> str | None:
    r"""The content of the last box that holds something; None where no box closes.

    Example:
        >>> boxed(r"first \boxed{1}, then \boxed{\frac{1}{2}}; write it inside \boxed{}.")
        '\\frac{1}{2}'
        >>> boxed(r"$\boxed 5$"), boxed(r"\fbox {5}"), boxed(r"\boxed{x = \boxed{5}}"), boxed(r"\boxed{5")
        ('5', '5', '5', None)
    """
    boxes = _boxes(text)
    contents = [(box, text[box.opens : box.closes].strip()) for box in boxes]
    for box, content in reversed(contents):
        if content and not _is_placeholder(content):
            return _outermost(text, box, boxes)
    return next((content for _, content in reversed(contents) if content and unboxed(content)), None)


def unboxed(content: str) -> str:
    r"""A text with its boxes taken for what they hold.

    Example:
        >>> unboxed(r"\boxed{3}+1")
        '3+1'
    """
    boxes = _boxes(content)
    cut = {at for box in boxes for at in (*range(box.start, box.opens), *range(box.closes, box.end))}
    return "".join(char for at, char in enumerate(content) if at not in cut).strip() if boxes else content.strip()


def _is_placeholder(content: str) -> bool:
    """Whether a box only says that an answer goes there: an instruction repeated after the answer."""
    return len(content) <= _LONGEST_PLACEHOLDER and _PLACEHOLDER.fullmatch(unboxed(content)) is not None


def _outermost(text: str, box: _Box, boxes: list[_Box]) -> str:
    r"""What a box holds, or the box around it where that says more than words, or "x =", before the inner one."""
    outer = next((b for b in boxes if b.opens <= box.start and box.end <= b.closes), None)
    if outer is not None:
        before, after = text[outer.opens : box.start], text[box.end : outer.closes]
        if not (_LEADS_IN.fullmatch(before) and _LEADS_OUT.fullmatch(after)):
            return unboxed(text[outer.opens : outer.closes])
    return unboxed(text[box.opens : box.closes])


def _boxes(text: str) -> list[_Box]:
    """Every box that closes, by where it starts."""
    commands = list(_COMMAND.finditer(text))
    ends = _closing(text, _PLAIN_BRACE) | _closing(text, _BRACE) if commands else {}  # \} closes what nothing else does
    found = []
    for command in commands:
        start, opens = command.start(), command.end()
        if opens in ends:
            found.append(_Box(start=start, opens=opens + 1, closes=ends[opens], end=ends[opens] + 1))
        elif text[opens : opens + 1] not in ("{", ""):
            closes = _token_end(text, opens)
            if closes is not None:
                found.append(_Box(start=start, opens=opens, closes=closes, end=closes))
    return found


def _closing(text: str, braces: re.Pattern[str]) -> dict[int, int]:
    """Where each opening brace is closed."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for brace in braces.finditer(text):
        if brace[0] == "{":
            opened.append(brace.start())
        elif brace[0] == "}" and opened:
            ends[opened.pop()] = brace.start()
    return ends


def _token_end(text: str, start: int) -> int | None:
    r"""The end of what follows \boxed without braces: a number, a command with its arguments, a letter; None for a word."""
    opened: list[str] = []
    end = start
    while end < len(text) and end - start < _LONGEST_TOKEN:
        char = text[end]
        if char in "([{":
            opened.append(char)
        elif char in ")]}":
            if not opened or opened.pop() != _PAIRS[char]:
                break
        elif char in "$\n" or text.startswith(("\\)", "\\]", "\\\\"), end):
            break
        elif char == " " and not opened and not re.fullmatch(r"\\[a-zA-Z]*frac(?:\d|\{[^{}]*\})?", text[start:end]):
            break  # the two arguments of \frac 12 may stand apart
        elif char == "\\":
            end += 1  # the character after it is the command's
        end += 1
    token = text[start:end].rstrip(".,;:!?*")
    letter = re.fullmatch(r"\(?[A-Za-z]\)?", token) is not None and not re.match(r" +\w", text[end : end + 9])
    return start + len(token) if not opened and (letter or re.search(r"\d|\\[a-zA-Z]", token)) else None

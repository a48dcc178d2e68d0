"""One value of somebody's log as one of ours: numbers from strings, booleans and lists; text that Parquet can hold.

A reward that is missing, NaN or no number is *unscored*, with the reason; never zero.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WORDS = {
    "true": 1.0,
    "false": 0.0,
    "correct": 1.0,
    "incorrect": 0.0,
    "right": 1.0,
    "wrong": 0.0,
    "yes": 1.0,
    "no": 0.0,
    "c": 1.0,
    "i": 0.0,
    "p": 0.5,
    "n": 0.0,
}  # grades that logs write as words; the letters are Inspect's: correct, incorrect, partial, no answer


@dataclass(frozen=True, kw_only=True)
class Reward:
    """A reward, or why there is none."""

    value: float | None
    unscored: str | None  # None: there is a value


def reward_of(value: Any) -> Reward:
    """A number, a boolean, either written as text, a grade in a word, a list of one, or per-token rewards, which are summed.

    Example:
        >>> [reward_of(v).value for v in (1, True, "0.5", "C", [0.25], [0.0, 0.0, 1.0])]
        [1.0, 1.0, 0.5, 1.0, 0.25, 1.0]
        >>> reward_of(float("nan")).unscored
        'the reward is NaN'
    """
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return _summed(value)
    word = WORDS.get(value.strip().lower()) if isinstance(value, str) else None
    number = word if word is not None else _float(value)
    if number is None and value is not None:
        return Reward(value=None, unscored=f"the reward is {str(value)[:40]!r}, which is no number")
    if number is None or number != number:
        return Reward(value=None, unscored="there is no reward" if number is None else "the reward is NaN")
    if math.isinf(number):
        return Reward(value=None, unscored="the reward is infinite")
    return Reward(value=number, unscored=None)


def _summed(values: Sequence[Any]) -> Reward:
    parts = [reward_of(value) for value in values]
    missing = next((part.unscored for part in parts if part.value is None), None)
    if missing is not None or not parts:
        return Reward(value=None, unscored=missing or "the list of rewards is empty")
    return Reward(value=math.fsum(part.value for part in parts if part.value is not None), unscored=None)


def number_of(value: Any) -> float | None:
    """A finite number, or None.

    Example:
        >>> (number_of("3"), number_of("x"), number_of(float("nan")))
        (3.0, None, None)
    """
    number = _float(value)
    return number if number is not None and math.isfinite(number) else None


def _float(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def integer_of(value: Any) -> int | None:
    """A whole number, or None.

    Example:
        >>> (integer_of("12"), integer_of(2.0), integer_of(2.5))
        (12, 2, None)
    """
    number = number_of(value)
    return int(number) if number is not None and number == int(number) else None


def text_of(value: Any) -> str | None:
    """Text that Parquet can hold: other values as JSON, a lone surrogate replaced.

    Example:
        >>> text_of({"b": 1}), text_of("a"), text_of(None)
        ('{"b": 1}', 'a', None)
    """
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def chat_text(messages: Any) -> str | None:
    """A conversation as text, one `role: content` per message; plain text stays as it is.

    Example:
        >>> chat_text([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [{"text": "Lo"}]}])
        'user: Hi\\nassistant: Lo'
    """
    if not isinstance(messages, list) or not all(isinstance(message, Mapping) for message in messages):
        return text_of(messages)
    return text_of("\n".join(f"{message.get('role', '?')}: {_said(message)}" for message in messages))


def answer_text(messages: Any) -> str | None:
    """What a policy said: the content alone where it said one thing, else the conversation."""
    if isinstance(messages, list) and len(messages) == 1 and isinstance(messages[0], Mapping):
        return text_of(_said(messages[0]))
    return chat_text(messages)


def _said(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    pieces = [message.get("reasoning_content"), *(content if isinstance(content, list) else [content])]
    said = "".join(str(_piece(piece)) for piece in pieces if piece is not None)
    calls = message.get("tool_calls")
    return said + (f"\n{text_of(calls)}" if calls else "")


def _piece(piece: Any) -> Any:
    if isinstance(piece, Mapping):
        return next((piece[key] for key in ("text", "reasoning", "content") if piece.get(key) is not None), "")
    return piece

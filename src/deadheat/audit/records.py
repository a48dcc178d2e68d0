"""What every audit takes and gives: options, shares, and records that print, draw and write themselves.

A share is a Wilson interval; in JSON it is {value, low, high, n}. An audit whose columns are not there gives a
`Missing`, which names them, and the other audits still run.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from typing import Any, SupportsInt

from deadheat.audit.draw import draw_html
from deadheat.stats.intervals import Interval, wilson

Decode = Callable[[Sequence[int]], str]  # token ids to text
Recheck = Callable[[str, str], bool | None]  # (reference, answer) to right, wrong, or None: could not say


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """How the questions are asked. Every field has a default, so that an archive alone can be audited."""

    by: tuple[str, ...] = ()  # columns to break shares down by, beside arm, task, temperature and step
    skill: str | None = None  # audit frozen: a slot kind, a problem column, NAME=VALUE, `part:NAME` or a regex
    cap: int | None = None  # audit caps: the token cap, or an earlier one where rollouts are longer
    warm_up: int = 0  # audit caps: steps up to this one are counted apart
    noise_floor: float | None = None  # the scorer's own movement on unchanged text, in its unit
    group_sizes: tuple[int, ...] = (4, 8, 16)  # audit gate: sizes at which an expected rate is given
    first_draws: int | None = None  # audit stuck: draws that selected the problem; None: purpose `top-up` tells
    reference_source: str | None = None  # audit contested: the column that says who wrote the reference
    scorer: str | None = None  # audits rescored and drift: the score column of the other or frozen scorer
    usd_per_rollout: float | None = None  # audit rescored: price of one score
    control_arm: str | None = None  # audit drift: the arm trained without the scorer
    num_parameters: int | None = None  # audit accounting: of the model, for the FLOP proxies
    short_tokens: int = 30  # audit opening: what counts as a short response
    min_chars: int = 30  # audit opening: characters before the marker
    marker: str = "\\boxed"  # what marks a final answer
    head_tokens: int = 160  # audit siblings: tokens in which a shared equation counts
    decode: Decode | None = None  # token ids to text; None: a prefix is cut by its share of the characters
    recheck: Recheck | None = None  # audit contested: a second verifier
    level: float = 0.95  # of every interval


class AuditRecord(ABC):
    """What an audit found. A subclass is a frozen dataclass with a `sentence`."""

    @property
    @abstractmethod
    def sentence(self) -> str:
        """The finding in a sentence, with n and interval."""

    @property
    def is_broken(self) -> bool:
        """Whether the log contradicts itself, so that none of its figures can be relied on."""
        return False

    def _repr_html_(self) -> str:
        """The record in a notebook."""
        return draw_html(type(self).__name__, self.sentence, self)


@dataclass(frozen=True, kw_only=True)
class Missing(AuditRecord):
    """An audit that could not be asked."""

    audit: str  # its name
    lacks: tuple[str, ...]  # columns or options it needs and did not get; `a|b`: either would do
    why: str = ""  # more about it; empty: the names say enough

    @property
    def sentence(self) -> str:
        """Which column is not there."""
        names = ", ".join(f"`{name.replace('|', '` or `')}`" for name in self.lacks)
        return f"needs {names}{': ' + self.why if self.why else ''}"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A share of one part of the archive."""

    where: Mapping[str, str] = field(default_factory=dict)  # column to value; empty: everything
    share: Interval | None  # None: nothing to count


def share(k: SupportsInt, n: SupportsInt, *, left_out: int = 0, level: float = 0.95) -> Interval | None:
    """Wilson interval of k in n; None where n is 0.

    Example:
        >>> share(0, 0) is None, share(1, 2).estimate
        (True, 0.5)
    """
    return wilson(int(k), int(n), level, left_out=int(left_out)) if int(n) else None


def share_of(interval: Interval, what: str) -> str:
    """A share with its interval and what it is a share of.

    Example:
        >>> share_of(wilson(117, 200), "groups"), share_of(wilson(0, 20, left_out=4), "groups")
        ('58.5% [51.6, 65.1] of 200 groups', '0.0% [0.0, 16.1] of 20 groups (4 left out)')
    """
    left_out = f" ({interval.left_out:,} left out)" if interval.left_out else ""
    bounds = f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
    return f"{100 * interval.estimate:.1f}% {bounds} of {interval.n:,} {what}{left_out}"


def as_json(value: object) -> Any:
    """A record as plain data: shares as {value, low, high, n}, records with their sentence.

    Example:
        >>> {key: round(number, 3) for key, number in as_json(share(1, 2)).items()}
        {'value': 0.5, 'low': 0.095, 'high': 0.905, 'n': 2}
    """
    if isinstance(value, Interval):
        return {"value": value.estimate, "low": value.low, "high": value.high, "n": value.n}
    if is_dataclass(value) and not isinstance(value, type):
        found = {f.name: as_json(getattr(value, f.name)) for f in fields(value)}
        return {"sentence": value.sentence} | found if isinstance(value, AuditRecord) else found
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [as_json(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value

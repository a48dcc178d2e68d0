"""What every audit takes and gives: options, shares, and records that print, draw and write themselves.

A share carries Wilson's interval, at the effective number of groups where one problem stands in several
(`problems.py`); in JSON it is {value, low, high, n, method}. An audit whose columns are not there gives a
`Missing`, which names them, and the other audits still run.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum, StrEnum
from typing import Any, SupportsInt

from deadheat.audit.draw import draw_html
from deadheat.stats.intervals import Interval, wilson
from deadheat.stats.shares import ClusteredShare

Decode = Callable[[Sequence[int]], str]  # token ids to text
Recheck = Callable[[str, str], bool | None]  # (reference, answer) to right, wrong, or None: could not say


class LossDivisor(StrEnum):
    """What the summed loss of a batch is divided by."""

    ALL_GROUPS = "all groups"  # or all their rollouts: tied groups make the step smaller
    ALL_TOKENS = "all tokens"  # of all groups: tied groups make the step smaller by their tokens
    LIVE = "live groups"  # or their rollouts or tokens: tied groups change nothing


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
    loss_divisor: LossDivisor | None = None  # audit dilution: what the loss is divided by; None: not stated
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
    if isinstance(interval, ClusteredShare):
        what += f" of {interval.num_clusters:,} {interval.clusters}"
    left_out = f" ({interval.left_out:,} left out)" if interval.left_out else ""
    bounds = f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
    return f"{100 * interval.estimate:.1f}% {bounds} of {interval.n:,} {what}{left_out}"


def notes_of(record: AuditRecord) -> tuple[str, ...]:
    """What the record's own intervals have to say about themselves, each once."""
    values: list[object] = [getattr(record, f.name) for f in fields(record)] if is_dataclass(record) else []
    return tuple(dict.fromkeys(value.note for value in values if isinstance(value, Interval) and value.note))


def as_json(value: object) -> Any:
    """A record as plain data: shares as {value, low, high, n, method}, records with their sentence.

    Example:
        >>> as_json(share(1, 2)) | {"low": 0.1, "high": 0.9}
        {'value': 0.5, 'low': 0.1, 'high': 0.9, 'n': 2, 'method': 'Wilson'}
    """
    if isinstance(value, Interval):
        bounds = {name: as_json(x) for name, x in (("value", value.estimate), ("low", value.low), ("high", value.high))}
        return bounds | {"n": value.n, "method": value.method} | ({"note": value.note} if value.note else {})
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

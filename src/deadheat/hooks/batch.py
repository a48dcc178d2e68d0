"""What a training loop hands over at each step, in the shapes loops have, and the same as flat columns.

Rewards come nested, a row per group, or flat with a group for each. A reward that is None, NaN or infinite is unscored,
never zero. Anything with `tolist` (an array, a tensor on any device) is taken as it is, so that torch need not be here.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import StatsError
from deadheat.sampling.keys import Purpose

Column = Any  # values of all rollouts, nested or flat as the rewards are; an array or a tensor will do


@dataclass(frozen=True, kw_only=True)
class GroupBatch:
    """The rollouts of one step: whole groups, each rollout once."""

    step: int  # counted from 1; several batches of one step add up
    rewards: Column  # what is learned from: [P][G] nested, or flat [B]; None, NaN or infinite: unscored
    groups: Sequence[Hashable] | None = None  # flat rewards: each one's group; need not be next to each other
    group_size: int | None = None  # flat rewards without `groups`: every lot of this many is a group
    correct: Column | None = None  # grades; None: a reward of 1 is right, of 0 wrong, any other neither
    lengths: Column | None = None  # tokens drawn; None: those of `token_ids`, where given
    capped: Column | None = None  # whether the token cap ended it; None: by length, where the monitor has a cap
    completions: Column | None = None  # texts
    token_ids: Column | None = None  # lists of drawn ids
    prompts: Column | None = None  # texts, one per rollout, or one per group where rewards are nested
    parts: Mapping[str, Column] = field(default_factory=dict)  # named components of the reward
    advantages: Column | None = None  # what the loop made of the rewards
    purpose: Purpose = Purpose.TRAIN  # anything else goes into the archive only


@dataclass(frozen=True, kw_only=True)
class Rollouts:
    """A batch as flat columns; a column that was not given is None."""

    step: int
    purpose: Purpose
    rewards_B: NDArray[np.float64]  # NaN: unscored
    members: tuple[tuple[int, ...], ...]  # the rows of each group, groups in order of appearance
    names: tuple[str, ...]  # of the groups
    correct: tuple[bool | None, ...] | None
    lengths: tuple[int | None, ...] | None
    capped: tuple[bool | None, ...] | None
    completions: tuple[str | None, ...] | None
    token_ids: tuple[tuple[int, ...], ...] | None
    prompts: tuple[str, ...] | None
    parts: Mapping[str, tuple[float | None, ...]]
    advantages: tuple[float | None, ...] | None

    @property
    def grades(self) -> tuple[bool | None, ...]:
        """The grades given, or those that rewards of exactly 1 and 0 are."""
        if self.correct is not None:
            return self.correct
        return tuple({1.0: True, 0.0: False}.get(reward) for reward in self.rewards_B.tolist())


def flattened(batch: GroupBatch, *, cap: int | None) -> Rollouts:
    """The batch as columns; what does not fit together is refused.

    Example:
        >>> rows = flattened(GroupBatch(step=1, rewards=[[1, 0], [None, 0, 1]]), cap=None)
        >>> rows.rewards_B.tolist(), rows.members
        ([1.0, 0.0, nan, 0.0, 1.0], ((0, 1), (2, 3, 4)))
    """
    rewards = _listed("rewards", batch.rewards)
    sizes = _nested_sizes(rewards)
    flat = rewards if sizes is None else [value for row in rewards for value in _listed("a row of rewards", row)]
    if not flat:
        raise StatsError(f"step {batch.step} has no reward; wanted at least one group")

    def column(name: str, values: Column | None) -> list[Any] | None:
        return None if values is None else _column(name, values, len(flat), sizes)

    rewards_B = np.array([_reward(row, value) for row, value in enumerate(flat)], dtype=np.float64)
    names, members = _groups(batch, len(flat), sizes)
    ids = column("token_ids", batch.token_ids)
    tokens = None if ids is None else tuple(tuple(int(t) for t in _listed("a row of token_ids", row)) for row in ids)
    lengths = _lengths(column("lengths", batch.lengths), tokens)
    return Rollouts(
        step=batch.step,
        purpose=batch.purpose,
        rewards_B=rewards_B,
        members=members,
        names=names,
        correct=_booleans("correct", column("correct", batch.correct)),
        lengths=lengths,
        capped=_capped(_booleans("capped", column("capped", batch.capped)), lengths, cap),
        completions=_texts(column("completions", batch.completions)),
        token_ids=tokens,
        prompts=_prompts(batch, len(flat), sizes),
        parts={name: _numbers(column(f"parts[{name!r}]", values) or []) for name, values in batch.parts.items()},
        advantages=None if batch.advantages is None else _numbers(column("advantages", batch.advantages) or []),
    )


def _listed(name: str, values: Any) -> list[Any]:
    plain = values.tolist() if hasattr(values, "tolist") else values
    if isinstance(plain, (str, bytes)) or not isinstance(plain, Sequence):
        raise StatsError(f"{name} is {type(values).__name__} {str(values)[:40]!r}; wanted a list, an array or a tensor")
    return list(plain)


def _is_row(value: Any) -> bool:
    plain = value.tolist() if hasattr(value, "tolist") else value
    return isinstance(plain, (list, tuple))


def _nested_sizes(rewards: list[Any]) -> tuple[int, ...] | None:
    """Sizes of the groups where rewards are nested; None: they are flat."""
    rows = [_is_row(value) for value in rewards]
    if not any(rows):
        return None
    if not all(rows):
        raise StatsError(f"row {rows.index(False)} of the rewards is a number among lists; wanted all of one kind")
    return tuple(len(_listed("a row of rewards", row)) for row in rewards)


def _column(name: str, values: Column, num_rows: int, sizes: tuple[int, ...] | None) -> list[Any]:
    """One value per rollout: nested like the rewards, or flat."""
    given = _listed(name, values)
    if sizes is not None and len(given) == len(sizes) and all(_is_row(row) for row in given):
        rows = [_listed(name, row) for row in given]
        if tuple(map(len, rows)) == sizes:
            return [value for row in rows for value in row]
    if len(given) != num_rows:
        raise StatsError(f"{name} has {len(given)} values for {num_rows} rewards; wanted one for each rollout")
    return given


def _groups(
    batch: GroupBatch, num_rows: int, sizes: tuple[int, ...] | None
) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]:
    if sizes is None and (batch.groups is None) == (batch.group_size is None):
        raise StatsError(
            f"step {batch.step}: flat rewards with {'both' if batch.groups is not None else 'neither'} of groups and "
            "group_size; wanted exactly one of them, or rewards nested by group"
        )
    if batch.groups is not None:
        labels = [str(name) for name in _column("groups", batch.groups, num_rows, sizes)]
    elif sizes is not None:
        labels = [str(group) for group, size in enumerate(sizes) for _ in range(size)]
    else:
        labels = _lots(batch, num_rows)
    rows: dict[str, list[int]] = {}
    for row, label in enumerate(labels):
        rows.setdefault(label, []).append(row)
    return tuple(rows), tuple(map(tuple, rows.values()))


def _lots(batch: GroupBatch, num_rows: int) -> list[str]:
    size = batch.group_size or 0
    if size < 1 or num_rows % size:
        raise StatsError(
            f"step {batch.step}: {num_rows} rewards in groups of {batch.group_size}; wanted whole groups. Where sizes "
            "differ, pass `groups`"
        )
    return [str(row // size) for row in range(num_rows)]


def _prompts(batch: GroupBatch, num_rows: int, sizes: tuple[int, ...] | None) -> tuple[str, ...] | None:
    if batch.prompts is None:
        return None
    given = _listed("prompts", batch.prompts)
    if sizes is not None and len(given) == len(sizes) and not any(_is_row(text) for text in given):
        return tuple(str(text) for text, size in zip(given, sizes, strict=True) for _ in range(size))
    return tuple(str(text) for text in _column("prompts", given, num_rows, sizes))


def _reward(row: int, value: Any) -> float:
    try:
        number = math.nan if value is None else float(value)
    except (TypeError, ValueError):
        raise StatsError(f"reward {row} is {value!r}; wanted a number, or None where there is no score") from None
    return number if math.isfinite(number) else math.nan


def _numbers(values: list[Any]) -> tuple[float | None, ...]:
    found = [_reward(row, value) for row, value in enumerate(values)]
    return tuple(None if math.isnan(value) else value for value in found)


def _booleans(name: str, values: list[Any] | None) -> tuple[bool | None, ...] | None:
    return None if values is None else tuple(_boolean(name, row, value) for row, value in enumerate(values))


def _boolean(name: str, row: int, value: Any) -> bool | None:
    if value is None or value != value:
        return None
    if value not in (0, 1):
        raise StatsError(f"{name} {row} is {value!r}; wanted True, False, 1, 0, or None where it is not known")
    return bool(value)


def _texts(values: list[Any] | None) -> tuple[str | None, ...] | None:
    return None if values is None else tuple(None if value is None else str(value) for value in values)


def _lengths(given: list[Any] | None, tokens: tuple[tuple[int, ...], ...] | None) -> tuple[int | None, ...] | None:
    if given is not None:
        return tuple(_length(row, value) for row, value in enumerate(given))
    return None if tokens is None else tuple(map(len, tokens))


def _length(row: int, value: Any) -> int | None:
    if value is None or value != value:
        return None
    if isinstance(value, str) or value < 0 or int(value) != value:
        raise StatsError(f"length {row} is {value!r}; wanted a whole number of tokens, or None where it is not known")
    return int(value)


def _capped(
    given: tuple[bool | None, ...] | None, lengths: tuple[int | None, ...] | None, cap: int | None
) -> tuple[bool | None, ...] | None:
    if given is not None or lengths is None or cap is None:
        return given
    return tuple(None if length is None else length >= cap for length in lengths)

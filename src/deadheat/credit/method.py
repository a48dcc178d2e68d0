"""What a way of crediting is given and what it gives: the records around a credit method.

A method sees a whole batch, since some normalise over it, and gives every token an advantage. Flat credit gives all
tokens of a completion the same one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deadheat.types import Origin

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class CreditOptions:
    """The constants that methods share."""

    ddof: int = 0  # the standard deviation divides by G − ddof
    eps: float = 1e-4  # added to the standard deviation


@dataclass(frozen=True, kw_only=True)
class ScoredGroup:
    """What a method sees of a group."""

    rewards_G: Array  # what is learned from: after shaping and control; NaN: unscored
    lengths_G: tuple[int, ...]  # tokens of each completion
    correct_G: tuple[bool | None, ...]  # grades; None: not graded
    origins_G: tuple[Origin | None, ...]  # None: drawn from the prompt alone


@dataclass(frozen=True, kw_only=True)
class PairTerm:
    """One branch should be likelier than another: weight·max(0, margin − (ℓ_better − ℓ_worse)), ℓ summed from `first` on."""

    better: int  # index in the group
    worse: int  # index in the group
    first: int  # first token of both that counts
    margin: float = 1.0  # in nats
    weight: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Credit:
    """What a method makes of a group."""

    rewards_G: Array  # as they were learned from, where the method adjusts them
    advantages_G: tuple[Array, ...]  # [T] per completion; zeros for unscored members
    categories_G: tuple[str | None, ...] | None = (
        None  # what kind of attempt each is, in the method's words; None: none
    )
    skip: str | None = None  # why nothing is learned from the group; None: it is
    pairs: tuple[PairTerm, ...] = ()


CreditMethod = Callable[[Sequence[ScoredGroup], CreditOptions], list[Credit]]


def flat_credit(group: ScoredGroup, advantages_G: Array) -> Credit:
    """Every token of a completion has its completion's advantage.

    Example:
        >>> group = ScoredGroup(rewards_G=np.zeros(2), lengths_G=(1, 2), correct_G=(None, None), origins_G=(None, None))
        >>> [list(map(float, a_T)) for a_T in flat_credit(group, np.array([0.5, -0.5])).advantages_G]
        [[0.5], [-0.5, -0.5]]
    """
    pairs = zip(group.lengths_G, advantages_G.tolist(), strict=True)
    return Credit(rewards_G=group.rewards_G, advantages_G=tuple(np.full(length, a) for length, a in pairs))

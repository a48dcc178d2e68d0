"""What a batch of groups carries: its composition, its two denominators, and its signed token mass.

`all_groups` divides the summed loss by the units (sequences or tokens) of every group, tied ones included, so a batch
with 13 tied groups of 64 takes 51/64 of the step its live groups justify. `signal_groups` divides by the units of live
groups only. Both are recorded for every batch whichever was used.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from deadheat.credit.advantages import GroupKind


class Denominator(StrEnum):
    """Which groups' units the loss is divided by."""

    ALL_GROUPS = "all_groups"
    SIGNAL_GROUPS = "signal_groups"


@dataclass(frozen=True, kw_only=True)
class Denominators:
    """The two divisors of one batch, in the unit its loss averages over."""

    all_groups: int  # units in every group
    signal_groups: int  # units in groups that carry signal; 0 when none does

    @property
    def dilution(self) -> float:
        """Step taken over step justified: signal_groups / all_groups, in [0, 1].

        Example:
            >>> Denominators(all_groups=64, signal_groups=51).dilution
            0.796875
        """
        return self.signal_groups / self.all_groups if self.all_groups else 0.0

    def chosen(self, which: Denominator) -> int:
        """The divisor to use; at least 1, so that a batch without signal divides zero by one."""
        return max(1, self.all_groups if which is Denominator.ALL_GROUPS else self.signal_groups)


def denominators(units_P: Sequence[int], signal_P: Sequence[bool]) -> Denominators:
    """Both divisors from each group's units and whether it carries signal.

    Example:
        >>> denominators([8, 8, 8], [True, False, True])
        Denominators(all_groups=24, signal_groups=16)
    """
    signal = sum(units for units, live in zip(units_P, signal_P, strict=True) if live)
    return Denominators(all_groups=sum(units_P), signal_groups=signal)


def composition(kinds_P: Sequence[GroupKind]) -> Mapping[GroupKind, int]:
    """How many groups of each kind, every kind present."""
    return {kind: sum(k is kind for k in kinds_P) for kind in GroupKind}


def signed_token_mass(advantages_G: NDArray[np.float64], lengths_G: Sequence[int]) -> float:
    """(1/G)·Σ A_i·L_i: the net push on log-probability per rollout of a group, in advantage·tokens.

    Example:
        >>> signed_token_mass(np.array([1.0, -1.0]), [10, 30])
        -10.0
    """
    return float(np.dot(advantages_G, np.asarray(lengths_G, dtype=np.float64)) / len(lengths_G))

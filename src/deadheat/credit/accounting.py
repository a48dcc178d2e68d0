"""What a batch of groups carries: its composition, its two denominators, and its signed token mass.

`all_groups` divides the summed loss by the units (sequences or tokens) of every group, tied ones included, so a batch
with 13 tied groups of 64 takes 51/64 of the step its live groups justify. `signal_groups` divides by the units of live
groups only. Both are recorded for every batch whichever was used.

Where several tasks or sub-skills share a batch, each *part* may have a divisor of its own: the loss is the mean over the
E parts of (summed loss of the part) / (units of the part), so that a part of long completions does not drown the others.
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


def part_divisors(
    units_P: Sequence[int], signal_P: Sequence[bool], parts_P: Sequence[str], which: Denominator
) -> tuple[int, ...]:
    """[P] what each group's summed loss is divided by: E·(units of its part), over groups that count under `which`.

    E is the number of parts that have a group that counts. With one part this is the divisor of the batch; a part
    without a group that counts divides its zeros by E.

    Example:
        Part a has 8 + 8 units, one of its groups tied; part b has 40. E = 2.
        >>> part_divisors([8, 8, 40], [True, False, True], ["a", "a", "b"], Denominator.ALL_GROUPS)
        (32, 32, 80)
        >>> part_divisors([8, 8, 40], [True, False, True], ["a", "a", "b"], Denominator.SIGNAL_GROUPS)
        (16, 16, 80)
    """
    totals: dict[str, int] = {}
    for units, signal, part in zip(units_P, signal_P, parts_P, strict=True):
        if signal or which is Denominator.ALL_GROUPS:
            totals[part] = totals.get(part, 0) + units
    num_parts = max(1, len(totals))
    return tuple(num_parts * max(1, totals.get(part, 1)) for part in parts_P)


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

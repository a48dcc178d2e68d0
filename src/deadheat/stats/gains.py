"""Did an arm learn? Its held-out grades against its own step 0, item by item, over seeds and items.

If no arm's gain clears zero there is nothing to rank, however far apart two untaught models may be.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from deadheat.errors import StatsError
from deadheat.stats.effect import Effect, paired_effect

NOTHING_TO_RANK = "null against null: nothing learned, nothing to rank"


@dataclass(frozen=True, kw_only=True)
class PairedGain:
    """Mean of after − before over the items that both readings have."""

    effect: Effect  # the gain and its interval, in the grade's unit
    seed_gains: tuple[float, ...]  # [S] each seed's own mean gain
    before: float  # mean before, over the same cells
    after: float  # mean after, over the same cells

    @property
    def gain(self) -> float:
        """The point estimate."""
        return self.effect.estimate

    @property
    def learned(self) -> bool:
        """The interval lies above 0."""
        return self.effect.low > 0

    @property
    def lost(self) -> bool:
        """The interval lies below 0."""
        return self.effect.high < 0


def paired_gain(after_SN: ArrayLike, before: ArrayLike, *, alpha: float = 0.05) -> PairedGain:
    """Gain over step 0; `before` is [S, N], or [N] where every seed starts from the same policy.

    Example:
        One seed, four items from wrong to right: column means 1 with +1 and −1 beside them, t₅·√(SS/5/6·(6/4)²) = 1.29.
        >>> gain = paired_gain([[1.0, 1.0, 1.0, 1.0]], [0.0, 0.0, 0.0, 0.0])
        >>> gain.gain, gain.learned
        (1.0, False)
    """
    after_SN_ = np.atleast_2d(np.asarray(after_SN, dtype=np.float64))
    before_SN = np.atleast_2d(np.asarray(before, dtype=np.float64))
    if before_SN.shape[0] == 1:
        before_SN = np.broadcast_to(before_SN, (after_SN_.shape[0], before_SN.shape[1]))
    if after_SN_.shape != before_SN.shape:
        raise StatsError(
            f"after has shape {after_SN_.shape} and before {before_SN.shape}; wanted the same seeds and items"
        )
    gain_SN = after_SN_ - before_SN
    present = ~np.isnan(gain_SN)
    return PairedGain(
        effect=paired_effect(gain_SN, alpha=alpha, grades=are_grades(after_SN_, before_SN)),
        seed_gains=tuple(float(row[~np.isnan(row)].mean()) if (~np.isnan(row)).any() else np.nan for row in gain_SN),
        before=float(before_SN[present].mean()),
        after=float(after_SN_[present].mean()),
    )


def nothing_learned(gains: Sequence[PairedGain]) -> bool:
    """True where gains are given and none clears zero."""
    return bool(gains) and not any(gain.learned for gain in gains)


def are_grades(*tables: ArrayLike) -> bool:
    """Every score lies in [0, 1].

    Example:
        >>> are_grades([[0.0, 1.0]], [[0.5, float("nan")]]), are_grades([[2.0]])
        (True, False)
    """
    values = np.concatenate([np.asarray(table, dtype=np.float64).ravel() for table in tables])
    kept = values[~np.isnan(values)]
    return bool(kept.size) and bool(((kept >= 0) & (kept <= 1)).all())

"""Did an arm learn? Its held-out grades against its own step 0, item by item.

If no arm's gain clears zero there is nothing to rank, however significant a vote between two untaught models may be.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from deadheat.errors import StatsError
from deadheat.stats.bootstrap import BootstrapInterval, Level, bootstrap

NOTHING_TO_RANK = "null against null: nothing learned, nothing to rank"


@dataclass(frozen=True, kw_only=True)
class PairedGain:
    """Mean of after − before over the items that both readings have."""

    interval: BootstrapInterval  # the gain and its interval, in the grade's unit
    seed_gains: tuple[float, ...]  # [S] each seed's own mean gain
    before: float  # mean before, over the same cells
    after: float  # mean after, over the same cells
    learned: bool  # the interval lies above 0

    @property
    def gain(self) -> float:
        """The point estimate."""
        return self.interval.estimate


def paired_gain(
    after_SN: ArrayLike,
    before: ArrayLike,
    *,
    key: int,
    resamples: int = 4000,
    coverage: float = 0.95,
    level: Level | str = Level.CROSSED,
) -> PairedGain:
    """Gain over step 0; `before` is [S, N], or [N] where every seed starts from the same policy.

    Example:
        >>> gain = paired_gain([[1.0, 1.0, 1.0, 1.0]], [0.0, 0.0, 0.0, 0.0], key=1)
        >>> gain.gain, gain.learned
        (1.0, True)
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
    interval = bootstrap(gain_SN, level, key=key, resamples=resamples, coverage=coverage)
    present = ~np.isnan(gain_SN)
    return PairedGain(
        interval=interval,
        seed_gains=tuple(np.nanmean(gain_SN, axis=1).tolist()),
        before=float(before_SN[present].mean()),
        after=float(after_SN_[present].mean()),
        learned=interval.low > 0,
    )


def nothing_learned(gains: Sequence[PairedGain]) -> bool:
    """True where gains are given and none clears zero."""
    return bool(gains) and not any(gain.learned for gain in gains)

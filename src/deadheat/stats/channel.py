"""How much of an accuracy change is moving between channels, and how much is getting better inside them.

    accuracy = Σ_c rate_c · acc_c
    rate first:      Σ (rate′ − rate)·acc   +  Σ rate′·(acc′ − acc)
    accuracy first:  Σ (rate′ − rate)·acc′  +  Σ rate·(acc′ − acc)

A channel is any label of an attempt: boxed or not, stopped or capped, short or long. The two orders differ by the
interaction; both are given because neither is right (Oaxaca 1973; Blinder 1973). A channel empty on one side has no
accuracy there and takes the other side's, so that its whole change is one of rate.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from deadheat.errors import StatsError


@dataclass(frozen=True, kw_only=True)
class Parts:
    """One order of the decomposition."""

    rate: float  # part due to moving between channels
    accuracy: float  # part due to accuracy inside channels


@dataclass(frozen=True, kw_only=True)
class ChannelChange:
    """One channel, before and after."""

    channel: str
    rate_before: float
    rate_after: float
    accuracy_before: float | None  # None: no attempt in the channel
    accuracy_after: float | None


@dataclass(frozen=True, kw_only=True)
class ChannelDecomposition:
    """An accuracy change split in both orders."""

    total: float  # accuracy after − before
    rate_first: Parts
    accuracy_first: Parts
    channels: tuple[ChannelChange, ...]
    n: int  # attempts before plus after
    left_out: int  # attempts with a missing grade
    level: float | None = None  # None: exact arithmetic on the counts
    method: str = "rate × accuracy within channel, both orders"


def channel_decomposition(
    before: ArrayLike, channels_before: Sequence[str], after: ArrayLike, channels_after: Sequence[str]
) -> ChannelDecomposition:
    """Split the change of mean grade by channel.

    Example:
        Before: 2 of 4 boxed, all boxed right. After: 4 of 4 boxed, 3 right. Total .75 − .5; rate first: moving all into
        a channel right every time gives +.5, the accuracy inside falling to ¾ gives −.25.
        >>> split = channel_decomposition([1, 1, 0, 0], ["box", "box", "no", "no"], [1, 1, 1, 0], ["box"] * 4)
        >>> split.total, split.rate_first
        (0.25, Parts(rate=0.5, accuracy=-0.25))
    """
    rates, accuracies, sizes, dropped = [], [], 0, 0
    names = sorted(set(channels_before) | set(channels_after))
    for grades, labels in ((before, channels_before), (after, channels_after)):
        values, channel = np.asarray(grades, dtype=np.float64), np.asarray(labels)
        if values.shape != channel.shape or values.ndim != 1:
            raise StatsError(f"{values.size} grades and {channel.size} channels; wanted one channel per grade")
        known = ~np.isnan(values)
        values, channel = values[known], channel[known]
        if not values.size:
            raise StatsError("one side has no graded attempt")
        inside = [values[channel == name] for name in names]
        rates.append(np.array([part.size for part in inside]) / values.size)
        accuracies.append(np.array([part.mean() if part.size else np.nan for part in inside]))
        sizes, dropped = sizes + values.size, dropped + int((~known).sum())
    rate_0, rate_1 = rates
    acc_0 = np.where(np.isnan(accuracies[0]), accuracies[1], accuracies[0])
    acc_1 = np.where(np.isnan(accuracies[1]), accuracies[0], accuracies[1])
    return ChannelDecomposition(
        total=float(rate_1 @ acc_1 - rate_0 @ acc_0),
        rate_first=Parts(rate=float((rate_1 - rate_0) @ acc_0), accuracy=float(rate_1 @ (acc_1 - acc_0))),
        accuracy_first=Parts(rate=float((rate_1 - rate_0) @ acc_1), accuracy=float(rate_0 @ (acc_1 - acc_0))),
        channels=tuple(
            ChannelChange(
                channel=name,
                rate_before=float(rate_0[i]),
                rate_after=float(rate_1[i]),
                accuracy_before=None if np.isnan(accuracies[0][i]) else float(accuracies[0][i]),
                accuracy_after=None if np.isnan(accuracies[1][i]) else float(accuracies[1][i]),
            )
            for i, name in enumerate(names)
        ),
        n=sizes,
        left_out=dropped,
    )

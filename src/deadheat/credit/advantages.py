"""The arithmetic of advantages, one group at a time, with every constant named. By name: `table`.

With mean m, standard deviation s (divisor G − ddof) over the *scored* members of a group:

    centred         r − m
    standardised    (r − m) / (s + eps)                    GRPO, Shao et al. 2024
    leave_one_out   r_i − mean of the others               RLOO, Ahmadian et al. 2024; = (r_i − m)·G/(G−1), sums to zero
    batch_relative  (r − M) / (S + eps) over the batch     REINFORCE++-style: tied groups then carry signal

Unscored members (NaN, and what is infinite) take no part in m or s and get advantage 0. A group whose s < 1e-6 is tied:
its advantages are exactly 0 under the three group-relative estimators.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

TIED_SD = 1e-6


class GroupKind(StrEnum):
    """What a group's rewards say, computed from the rewards that are learned from."""

    LIVE = "live"  # rewards differ: the group can express a preference
    ALL_RIGHT = "all_right"  # tied, and every graded member is correct
    ALL_WRONG = "all_wrong"  # tied, and every graded member is incorrect
    TIED_OTHER = "tied_other"  # tied at another value, or grades disagree while rewards agree
    UNSCORED = "unscored"  # fewer than one member has a reward


def is_tied(rewards_G: Array) -> bool:
    """Whether the scored rewards have a standard deviation below 1e-6 (one scored member, or none, is a tie).

    Example:
        >>> is_tied(np.array([1.0, 1.0, np.nan])), is_tied(np.array([1.0, 0.0]))
        (True, False)
    """
    scored = rewards_G[np.isfinite(rewards_G)]
    return scored.size < 2 or float(scored.std()) < TIED_SD


def group_kind(rewards_G: Array, correct_G: Sequence[bool | None]) -> GroupKind:
    """Live, or which kind of tie.

    Example:
        >>> group_kind(np.array([0.0, 0.0]), [False, False])
        <GroupKind.ALL_WRONG: 'all_wrong'>
    """
    scored = np.isfinite(rewards_G)
    if not scored.any():
        return GroupKind.UNSCORED
    if not is_tied(rewards_G):
        return GroupKind.LIVE
    grades = {grade for grade, ok in zip(correct_G, scored, strict=True) if ok}
    if grades == {True}:
        return GroupKind.ALL_RIGHT
    return GroupKind.ALL_WRONG if grades == {False} else GroupKind.TIED_OTHER


def centred(rewards_G: Array) -> Array:
    """r − mean over scored members.

    Example:
        >>> centred(np.array([1.0, 0.0, 0.0, 0.0])).tolist()
        [0.75, -0.25, -0.25, -0.25]
    """
    return rewards_G - _mean(rewards_G)


def standardised(rewards_G: Array, *, ddof: int, eps: float) -> Array:
    """(r − mean)/(sd + eps); `ddof` 0 divides by G, 1 by G − 1.

    Example:
        >>> standardised(np.array([1.0, 0.0, 0.0, 1.0]), ddof=0, eps=0.5).tolist()
        [0.5, -0.5, -0.5, 0.5]
    """
    return centred(rewards_G) / (_sd(rewards_G, ddof) + eps)


def leave_one_out(rewards_G: Array) -> Array:
    """Each reward minus the mean of the other scored ones; a lone member gets 0.

    Example:
        >>> leave_one_out(np.array([1.0, 0.0, 0.0])).tolist()
        [1.0, -0.5, -0.5]
    """
    count = int(np.isfinite(rewards_G).sum())
    return centred(rewards_G) * (count / (count - 1) if count > 1 else 0.0)


def scored_only(estimate: Callable[[Array], Array], rewards_G: Array) -> Array:
    """[G] an estimator's advantages: unscored members 0, a tied group exactly 0."""
    if is_tied(rewards_G):
        return np.zeros_like(rewards_G)
    return np.nan_to_num(estimate(np.where(np.isfinite(rewards_G), rewards_G, np.nan)), nan=0.0)


def over_batch(groups: Sequence[Array], *, ddof: int, eps: float) -> list[Array]:
    """[G] per group, standardised by the mean and deviation of the whole batch."""
    batch_B = np.concatenate([np.empty(0), *groups])
    if is_tied(batch_B):
        return [np.zeros_like(r_G) for r_G in groups]
    scaled_B = scored_only(lambda rewards_B: standardised(rewards_B, ddof=ddof, eps=eps), batch_B)
    return list(np.split(scaled_B, np.cumsum([len(r_G) for r_G in groups])[:-1]))


def _mean(rewards_G: Array) -> float:
    scored = rewards_G[np.isfinite(rewards_G)]
    return float(scored.mean()) if scored.size else 0.0


def _sd(rewards_G: Array, ddof: int) -> float:
    scored = rewards_G[np.isfinite(rewards_G)]
    return float(scored.std(ddof=ddof)) if scored.size > ddof else 0.0

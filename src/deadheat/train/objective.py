"""The loss of one group, before its divisor.

With token log-probabilities ℓ_it of completion i and its advantage A_i, the group's objective is

    sequence_sum    Σ_i A_i·Σ_t ℓ_it              weighting after the sum; before it: Σ_i Σ_t (A_i·ℓ_it)
    token_mean      Σ_i Σ_t A_i·ℓ_it              (the same sum over another divisor: tokens, not sequences)
    sequence_mean   Σ_i A_i·(1/L_i)·Σ_t ℓ_it
    fixed_length    Σ_i A_i·(1/L_max)·Σ_t ℓ_it    Liu et al. 2025 (Dr. GRPO): no bias towards short right answers

and the loss of a batch is −Σ_groups objective / divisor. One update per batch of fresh rollouts: the importance ratio is
1 and its clipped form has this same gradient, so no ratio is computed.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from deadheat.train.config import Loss


def units(lengths_G: Sequence[int], loss: Loss) -> int:
    """What a group adds to the divisor: its tokens for token_mean, its sequences otherwise.

    Example:
        >>> units([3, 5], Loss.TOKEN_MEAN), units([3, 5], Loss.SEQUENCE_SUM)
        (8, 2)
    """
    return sum(lengths_G) if loss is Loss.TOKEN_MEAN else len(lengths_G)


def group_objective(
    logprobs_G: Sequence[torch.Tensor],
    advantages_G: NDArray[np.float64],
    *,
    loss: Loss,
    weighting: Literal["after_sum", "before_sum"],
    max_length: int,
) -> torch.Tensor:
    """The group's objective: a scalar to be maximised, not yet divided."""
    terms = []
    for logprobs_T, advantage in zip(logprobs_G, advantages_G.tolist(), strict=True):
        scale = _length_scale(len(logprobs_T), loss, max_length)
        if weighting == "after_sum":
            terms.append(advantage * scale * logprobs_T.sum())
        else:
            terms.append((advantage * scale * logprobs_T).sum())
    return torch.stack(terms).sum()


def _length_scale(length: int, loss: Loss, max_length: int) -> float:
    if loss is Loss.SEQUENCE_MEAN:
        return 1.0 / length
    return 1.0 / max_length if loss is Loss.FIXED_LENGTH else 1.0

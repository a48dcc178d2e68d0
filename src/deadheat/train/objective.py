"""The loss of one group, before its divisor.

With token log-probabilities ℓ_it of completion i and its advantage A_i, the group's objective is

    sequence_sum    Σ_i A_i·Σ_t ℓ_it              weighting after the sum; before it: Σ_i Σ_t (A_i·ℓ_it)
    token_mean      Σ_i Σ_t A_i·ℓ_it              (the same sum over another divisor: tokens, not sequences)
    sequence_mean   Σ_i A_i·(1/L_i)·Σ_t ℓ_it
    fixed_length    Σ_i A_i·(1/L_max)·Σ_t ℓ_it    Liu et al. 2025 (Dr. GRPO): no bias towards short right answers

Where a completion's tokens have advantages of their own, A_it stands for A_i inside the sum over t, which `before_sum` asks
for. With an importance ratio the clipped surrogate of `train/ratio.py` stands for A_i·ℓ_it; at ratio 1 the gradient is the
same, so one update per batch needs no ratio. The KL term is the same sum with k3_it in place of A_i·ℓ_it. The loss of a
batch is −Σ_groups objective / divisor + kl_coef·Σ_groups KL / divisor of all groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deadheat.credit import PairTerm
from deadheat.errors import ConfigError
from deadheat.train.config import Importance, Loss, UpdateConfig
from deadheat.train.ratio import k3, ratios, surrogate


@dataclass(frozen=True, kw_only=True)
class GroupLogprobs:
    """What is known of the tokens of a group, completion by completion."""

    now_G: Sequence[Tensor]  # [T] each: log-probabilities under the policy that is updated; gradients flow
    advantages_G: Sequence[float] | Sequence[NDArray[np.float64]] | NDArray[np.float64]  # one number or [T] each
    drawn_G: Sequence[Tensor] | None = None  # [T] each, recorded when they were drawn; None: not recorded
    reference_G: Sequence[Tensor] | None = None  # [T] each, under the model without its adapter; None: no KL term
    pairs: Sequence[PairTerm] = ()  # by index in the lists above


@dataclass(frozen=True, kw_only=True)
class Objective:
    """The two sums of a group, not yet divided."""

    policy: Tensor  # scalar, to be maximised
    kl: Tensor | None  # scalar, to be kept small; None: no KL term
    hinge: Tensor | None = (
        None  # scalar, to be kept small: Σ weight·max(0, margin − (ℓ_better − ℓ_worse)); None: no pair
    )


def units(lengths_G: Sequence[int], loss: Loss) -> int:
    """What a group adds to the divisor: its tokens for token_mean, its sequences otherwise.

    Example:
        >>> units([3, 5], Loss.TOKEN_MEAN), units([3, 5], Loss.SEQUENCE_SUM)
        (8, 2)
    """
    return sum(lengths_G) if loss is Loss.TOKEN_MEAN else len(lengths_G)


def group_objective(group: GroupLogprobs, config: UpdateConfig, *, max_length: int) -> Objective:
    """The group's objective and KL term.

    Example:
        >>> now = [torch.tensor([-1.0, -2.0]), torch.tensor([-3.0])]
        >>> group = GroupLogprobs(now_G=now, advantages_G=np.array([1.0, -0.5]))
        >>> group_objective(group, UpdateConfig(), max_length=4).policy  # 1·(−3) − 0.5·(−3)
        tensor(-1.5000)
    """
    scales_G = [_length_scale(len(now_T), config.loss, max_length) for now_T in group.now_G]
    policy = (
        _plain(group, scales_G, config) if config.importance is Importance.NONE else _clipped(group, scales_G, config)
    )
    hinge = torch.stack([_hinge(group.now_G, pair) for pair in group.pairs]).sum() if group.pairs else None
    if group.reference_G is None:
        return Objective(policy=policy, kl=None, hinge=hinge)
    rows = zip(scales_G, group.now_G, group.reference_G, strict=True)
    kl = torch.stack([scale * k3(now, other).sum() for scale, now, other in rows]).sum()
    return Objective(policy=policy, kl=kl, hinge=hinge)


def _hinge(now_G: Sequence[Tensor], pair: PairTerm) -> Tensor:
    lead = now_G[pair.better][pair.first :].sum() - now_G[pair.worse][pair.first :].sum()
    return pair.weight * (pair.margin - lead).clamp(min=0.0)


def advantage_of(advantages: float | NDArray[np.float64], like: Tensor) -> float | Tensor:
    """One number where all tokens have the same advantage, else [T] beside the log-probabilities."""
    if np.ndim(advantages) == 0:
        return float(advantages)
    array_T = np.asarray(advantages, dtype=np.float64)
    if len(array_T) != len(like):
        raise ValueError(f"a completion has {len(like)} tokens and {len(array_T)} advantages; wanted one for each")
    if (array_T == array_T[:1]).all() or np.isnan(array_T).all():
        return float(array_T[0]) if len(array_T) else 0.0
    return torch.tensor(array_T, dtype=like.dtype).to(like.device)


def _plain(group: GroupLogprobs, scales_G: Sequence[float], config: UpdateConfig) -> Tensor:
    terms = []
    for now_T, advantages, scale in zip(group.now_G, group.advantages_G, scales_G, strict=True):
        advantage = advantage_of(advantages, now_T)
        if config.weighting == "after_sum":
            if isinstance(advantage, Tensor):
                raise ConfigError(
                    "update.weighting is 'after_sum' and the credit gives the tokens of a completion different "
                    "advantages, which no sum over them can be weighted with; wanted update.weighting = 'before_sum'"
                )
            terms.append(advantage * scale * now_T.sum())
        else:
            terms.append((advantage * scale * now_T).sum())
    return torch.stack(terms).sum()


def _clipped(group: GroupLogprobs, scales_G: Sequence[float], config: UpdateConfig) -> Tensor:
    if group.drawn_G is None:
        raise ValueError(
            f"update.importance is '{config.importance}' and the group has no log-probabilities from when it was drawn; "
            "wanted them, or update.importance = 'none'"
        )
    rows = zip(group.now_G, group.drawn_G, group.advantages_G, scales_G, strict=True)
    return torch.stack(
        [
            scale * surrogate(ratios(now_T, drawn_T, config.importance), advantage_of(advantages, now_T), config).sum()
            for now_T, drawn_T, advantages, scale in rows
        ]
    ).sum()


def _length_scale(length: int, loss: Loss, max_length: int) -> float:
    if loss is Loss.SEQUENCE_MEAN:
        return 1.0 / length
    return 1.0 / max_length if loss is Loss.FIXED_LENGTH else 1.0

"""Importance ratios and what they do to an objective; the estimator of a KL divergence. Per token, in torch.

With ℓ the log-probability of a drawn token now, and ℓ' the one recorded when it was drawn,

    token       ρ_t = exp(ℓ_t − ℓ'_t)                     Schulman et al. 2017 (PPO)
    sequence    ρ_t = exp((1/L)·Σ_u (ℓ_u − ℓ'_u))         Zheng et al. 2025 (GSPO): one ratio for a whole completion
    surrogate   min(ρA, clip(ρ, 1 − low, 1 + high)·A)     separate bounds: Yu et al. 2025 (DAPO)
    dual clip   max(surrogate, c·A) where A < 0           Ye et al. 2020: a ratio far above 1 does not count past c
    k3          exp(r − ℓ) − (r − ℓ) − 1                  Schulman 2020: of KL(policy ‖ reference), r the reference's ℓ;
                                                          never negative, unbiased on tokens drawn from the policy

At ρ = 1 the surrogate is A and its gradient A·∇ℓ, that of the objective without a ratio.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from deadheat.train.config import Importance, UpdateConfig


def ratios(logprobs_T: Tensor, drawn_T: Tensor, importance: Importance) -> Tensor:
    """[T] the ratio of every token.

    Example:
        >>> now, drawn = torch.tensor([0.5, 0.2]).log(), torch.tensor([0.25, 0.1]).log()
        >>> [round(x, 4) for x in ratios(now, drawn, Importance.TOKEN).tolist()]
        [2.0, 2.0]
        >>> now, drawn = torch.tensor([0.4, 0.9]).log(), torch.tensor([0.1, 0.9]).log()  # 4 and 1: their mean is √4
        >>> [round(x, 4) for x in ratios(now, drawn, Importance.SEQUENCE).tolist()]
        [2.0, 2.0]
    """
    steps_T = logprobs_T - drawn_T
    if importance is Importance.SEQUENCE:
        steps_T = steps_T.mean().expand_as(steps_T)
    return steps_T.exp()


def surrogate(ratios_T: Tensor, advantage: float | Tensor, config: UpdateConfig) -> Tensor:
    """[T] the clipped objective of every token.

    Example:
        >>> config = UpdateConfig(importance="token", dual_clip=3.0)  # bounds 0.2 and 0.28
        >>> ratio = torch.tensor([0.5, 1.0, 2.0, 4.0])
        >>> [round(x, 2) for x in surrogate(ratio, 1.0, config).tolist()]
        [0.5, 1.0, 1.28, 1.28]
        >>> [round(x, 2) for x in surrogate(ratio, -1.0, config).tolist()]
        [-0.8, -1.0, -2.0, -3.0]
    """
    bounded_T = ratios_T.clamp(1 - config.clip_low, 1 + config.clip_high)
    found_T = torch.minimum(ratios_T * advantage, bounded_T * advantage)
    if config.dual_clip is not None and isinstance(advantage, Tensor):
        found_T = torch.where(advantage < 0, torch.maximum(found_T, config.dual_clip * advantage), found_T)
    elif config.dual_clip is not None and advantage < 0:
        found_T = found_T.clamp(min=config.dual_clip * advantage)
    return found_T


def k3(logprobs_T: Tensor, other_T: Tensor) -> Tensor:
    """[T] exp(o − ℓ) − (o − ℓ) − 1: of KL(ℓ's distribution ‖ o's), on tokens drawn from ℓ's.

    Example:
        >>> k3(torch.tensor([0.5]).log(), torch.tensor([0.25]).log())  # 1/2 + ln 2 − 1
        tensor([0.1931])
    """
    steps_T = other_T - logprobs_T
    return steps_T.exp() - steps_T - 1


def on_device(rows: Sequence[Sequence[float]], like: Sequence[Tensor]) -> list[Tensor]:
    """Recorded log-probabilities as tensors beside those of the policy; as many per completion, or a `ValueError`."""
    found = [torch.tensor(row, dtype=now.dtype, device=now.device) for row, now in zip(rows, like, strict=True)]
    for place, (row, now) in enumerate(zip(found, like, strict=True)):
        if len(row) != len(now):
            raise ValueError(f"completion {place} has {len(now)} tokens and {len(row)} recorded log-probabilities")
    return found

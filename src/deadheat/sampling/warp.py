"""Warping: from a model's logits to the log-probabilities a token is drawn from.

One order, always: temperature → top-k → top-p → renormalise.

    z       = logits / temperature
    top-k   keeps z_j ≥ the k-th largest z (ties at the k-th value are all kept)
    top-p   sorts what is left by mass, equal masses by ascending id, and keeps j while the mass before j is < p
            (the token that crosses p is kept)
    log p_j = z_j − ln Σ_kept exp(z), −inf for what was cut

Arithmetic is float32 at least (bfloat16 and float16 logits are promoted first); the running mass of top-p is float64
on the CPU.
Gradients flow through what is kept. Sources: Fan, Lewis and Dauphin 2018 (top-k); Holtzman et al. 2020 (top-p).
Left out: min-p, typical and repetition penalties, because no spec of ours asks for them.
"""

import torch
from torch import Tensor

from deadheat.types import SamplingParams


def plain_logprobs(logits_BV: Tensor) -> Tensor:
    """[..., V] the model's own log-probabilities: temperature 1, nothing cut, float32 or better.

    Example:
        >>> plain_logprobs(torch.tensor([0.0, 0.0])).exp().tolist()
        [0.5, 0.5]
    """
    return torch.log_softmax(_at_least_float32(logits_BV), dim=-1)


def warped_logprobs(logits_BV: Tensor, sampling: SamplingParams) -> Tensor:
    """[..., V] log-probabilities after temperature, top-k and top-p; −inf where cut.

    Example:
        Masses 8, 4, 2, 2 (of 16). top_p 0.6 keeps 8/16, then 4/16 crosses 0.6 and is kept: 8/12 and 4/12.
        >>> logits = torch.tensor([8.0, 4.0, 2.0, 2.0]).log()
        >>> [round(p, 4) for p in warped_logprobs(logits, SamplingParams(top_p=0.6)).exp().tolist()]
        [0.6667, 0.3333, 0.0, 0.0]
        >>> [round(p, 3) for p in warped_logprobs(logits, SamplingParams(top_k=3)).exp().tolist()]
        [0.5, 0.25, 0.125, 0.125]
    """
    z_BV = _at_least_float32(logits_BV)
    if sampling.temperature != 1.0:
        z_BV = z_BV / sampling.temperature
    if sampling.top_k is not None and sampling.top_k < z_BV.shape[-1]:
        z_BV = z_BV.masked_fill(_below_top_k(z_BV.detach(), sampling.top_k), -torch.inf)
    if sampling.top_p < 1.0:
        z_BV = z_BV.masked_fill(_outside_top_p(z_BV.detach(), sampling.top_p), -torch.inf)
    return torch.log_softmax(z_BV, dim=-1)


def is_plain(sampling: SamplingParams) -> bool:
    """Whether warping would change nothing: temperature 1 and no cut."""
    return sampling.temperature == 1.0 and sampling.top_k is None and sampling.top_p >= 1.0


def _at_least_float32(logits_BV: Tensor) -> Tensor:
    return logits_BV if logits_BV.dtype == torch.float64 else logits_BV.float()


def _below_top_k(z_BV: Tensor, top_k: int) -> Tensor:
    kth = torch.topk(z_BV, top_k, dim=-1).values[..., -1:]
    return z_BV < kth


def _outside_top_p(z_BV: Tensor, top_p: float) -> Tensor:
    exact = torch.float64 if z_BV.device.type == "cpu" else z_BV.dtype  # not every device has float64
    mass_BV = torch.softmax(z_BV, dim=-1, dtype=exact)
    order = torch.sort(mass_BV, dim=-1, descending=True, stable=True)
    before_BV = order.values.cumsum(dim=-1) - order.values
    return torch.zeros_like(before_BV, dtype=torch.bool).scatter(-1, order.indices, before_BV >= top_p)

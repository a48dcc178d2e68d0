"""Log-probabilities of given tokens from the states below the head, without keeping a vocabulary's worth of numbers.

    ℓ = log softmax(W·h)[token]        ∂ℓ/∂h = (W[token] − Σ_v p_v·W_v) / T

The second term, one row of E numbers, is computed on the way forward while the probabilities are at hand: what is kept
per column is E numbers and not V, and nothing is computed twice. Columns are taken 128 at a time. It holds for any
warping, p being what is left after the cut and T the temperature. Where the head is trained or does more than multiply,
the logits are kept and differentiated as usual.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from deadheat.sampling.warp import is_plain, plain_logprobs, warped_logprobs
from deadheat.types import SamplingParams

COLUMNS = 128  # whose logits are held at once


def logprobs_of(logits_CV: Tensor, sampling: SamplingParams | None) -> Tensor:
    """[C, V] under the model's own distribution, or the one warped by `sampling`."""
    if sampling is None or is_plain(sampling):
        return plain_logprobs(logits_CV)
    return warped_logprobs(logits_CV, sampling)


def edge_logprobs(logits_CV: Tensor, columns_E: Tensor, tokens_E: Tensor, sampling: SamplingParams | None) -> Tensor:
    """[E] log-probability of each token at its column, from logits."""
    return logprobs_of(logits_CV, sampling)[columns_E, tokens_E]


class TokenLogprobs(torch.autograd.Function):
    """[E] log-probability of each token at its column, from the states below a frozen head; columns ascend."""

    @staticmethod
    def forward(
        ctx: Any,
        states_CD: Tensor,
        columns_E: Tensor,
        tokens_E: Tensor,
        head: Callable[[Tensor], Tensor],
        weight_VD: Tensor,
        sampling: SamplingParams | None,
    ) -> Tensor:
        wants_gradient = ctx.needs_input_grad[0]
        expected_CD = torch.zeros_like(states_CD) if wants_gradient else None
        found = []
        for start in range(0, len(states_CD), COLUMNS):
            logprobs_CV = logprobs_of(head(states_CD[start : start + COLUMNS]), sampling)
            first, last = torch.searchsorted(columns_E, torch.tensor([start, start + COLUMNS], device=columns_E.device))
            found.append(logprobs_CV[columns_E[first:last] - start, tokens_E[first:last]])
            if expected_CD is not None:
                expected_CD[start : start + COLUMNS] = logprobs_CV.exp_().to(weight_VD.dtype) @ weight_VD
        ctx.save_for_backward(expected_CD, columns_E, tokens_E, weight_VD)
        ctx.temperature = 1.0 if sampling is None else sampling.temperature
        return torch.cat(found)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        expected_CD, columns_E, tokens_E, weight_VD = ctx.saved_tensors
        per_edge = (grads[0] / ctx.temperature).to(weight_VD.dtype)[:, None]
        d_states = torch.zeros_like(expected_CD)
        d_states.index_add_(0, columns_E, per_edge * (weight_VD[tokens_E] - expected_CD[columns_E]))
        return d_states, None, None, None, None, None

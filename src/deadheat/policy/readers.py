"""What can be read at every token of given completions, in one pass: a reader is a function of what the pass saw.

    chosen_logprobs(sampling)   [E]      log-probability of the token; gradients flow
    top(k)                      [E, k+1] ids of the k likeliest tokens, then the gap of the two likeliest (k ≥ 2)
    candidates(ids)             [E, K]   log-probability of each of K given ids
    states()                    [E, D]   what the head is given
    interval(sampling)          [E, 3]   integer weight below the token, up to it, and of all: where a keyed uniform fell

Logits are held for 128 columns at a time (`by_slab`). A new reader is a new function; `Policy.read` takes it as it is.

The log-probability of a token from the states h below a frozen head W:

    ℓ = log softmax(W·h)[token]        ∂ℓ/∂h = (W[token] − Σ_v p_v·W_v) / T

The second term, one row of D numbers, is computed on the way forward while the probabilities are at hand: what is kept
per column is D numbers and not V, and nothing is computed twice. It holds for any warping, p being what is left after
the cut and T the temperature. Where the head is trained or does more than multiply, the logits are kept and
differentiated as usual.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from deadheat.errors import UnsupportedModelError
from deadheat.sampling.draws import cdf_weights
from deadheat.sampling.warp import is_plain, plain_logprobs, warped_logprobs
from deadheat.types import SamplingParams

COLUMNS = 128  # whose logits are held at once


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a pass hands to a reader: C columns, and the E tokens that follow them; the columns of tokens ascend."""

    states_CD: Tensor | None  # what the head is given; None: only logits are known
    logits_CV: Tensor | None  # None: they follow from the states
    columns_E: Tensor  # column that each token is predicted from
    tokens_E: Tensor
    head: Callable[[Tensor], Tensor]
    frozen_head_VD: Tensor | None  # the head's matrix where it is not trained and nothing but a product


Reader = Callable[[Seen], Tensor]  # to [E, ...]: one row per token


@dataclass(frozen=True, kw_only=True)
class Slab:
    """At most 128 columns with their logits, and the tokens that follow them."""

    logits_CV: Tensor
    columns_E: Tensor  # within the slab
    tokens_E: Tensor

    @property
    def logits_EV(self) -> Tensor:
        """The logits that each token was predicted with."""
        return self.logits_CV[self.columns_E]


def by_slab(read: Callable[[Slab], Tensor]) -> Reader:
    """A reader that holds the logits of 128 columns at a time."""

    def reader(seen: Seen) -> Tensor:
        source = seen.states_CD if seen.logits_CV is None else seen.logits_CV
        assert source is not None, "a pass hands over states or logits"
        found = []
        for start in range(0, len(source), COLUMNS):
            part = source[start : start + COLUMNS]
            ends = torch.tensor([start, start + COLUMNS], device=seen.columns_E.device)
            first, last = torch.searchsorted(seen.columns_E, ends)
            logits_CV = seen.head(part) if seen.logits_CV is None else part
            columns_E = seen.columns_E[first:last] - start
            found.append(read(Slab(logits_CV=logits_CV, columns_E=columns_E, tokens_E=seen.tokens_E[first:last])))
        return torch.cat(found)

    return reader


def chosen_logprobs(sampling: SamplingParams | None = None) -> Reader:
    """[E] the log-probability of each token, under the model's own distribution or the one warped by `sampling`."""

    def reader(seen: Seen) -> Tensor:
        if seen.frozen_head_VD is not None:
            found: Tensor = TokenLogprobs.apply(  # type: ignore[no-untyped-call]
                seen.states_CD, seen.columns_E, seen.tokens_E, seen.head, seen.frozen_head_VD, sampling
            )
            return found
        logits_CV = seen.logits_CV
        if logits_CV is None:
            assert seen.states_CD is not None, "a pass hands over states or logits"
            logits_CV = seen.head(seen.states_CD)
        return edge_logprobs(logits_CV, seen.columns_E, seen.tokens_E, sampling)

    return reader


def top(k: int, sampling: SamplingParams | None = None) -> Reader:
    """[E, k+1] the ids of the k likeliest tokens in order, then the lead of the first over the second, in nats."""
    if k < 2:
        raise ValueError(f"k is {k}; wanted at least 2, since the last column is the gap of the two likeliest")

    def read(slab: Slab) -> Tensor:
        best = torch.topk(logprobs_of(slab.logits_CV, sampling), k, dim=-1)
        gap_C1 = best.values[:, :1] - best.values[:, 1:2]
        return torch.cat([best.indices.to(gap_C1.dtype), gap_C1], dim=-1)[slab.columns_E]

    return by_slab(read)


def candidates(ids: Sequence[int], sampling: SamplingParams | None = None) -> Reader:
    """[E, K] the log-probability of each of K ids in the place of the token."""
    ids_K = torch.tensor(list(ids))

    def read(slab: Slab) -> Tensor:
        return logprobs_of(slab.logits_CV, sampling)[:, ids_K.to(slab.logits_CV.device)][slab.columns_E]

    return by_slab(read)


def interval(sampling: SamplingParams | None = None) -> Reader:
    """[E, 3] integers: weight of all ids below the token, that weight with its own, and the weight of all ids.

    A token was drawn by `inverse_cdf` from a uniform u exactly if below ≤ (u·2^53 · all) >> 53 < below + own.
    """

    def read(slab: Slab) -> Tensor:
        running_CV = cdf_weights(logprobs_of(slab.logits_CV, sampling)).cumsum(-1)
        high_E = running_CV[slab.columns_E.cpu(), slab.tokens_E.cpu()]
        before_E = slab.tokens_E.cpu() - 1
        low_E = torch.where(before_E < 0, 0, running_CV[slab.columns_E.cpu(), before_E.clamp(min=0)])
        return torch.stack([low_E, high_E, running_CV[slab.columns_E.cpu(), -1]], dim=-1).to(slab.logits_CV.device)

    return by_slab(read)


def states() -> Reader:
    """[E, D] what the head is given where each token is predicted."""

    def reader(seen: Seen) -> Tensor:
        if seen.states_CD is None:
            raise UnsupportedModelError(
                "the states of this model are not kept in this pass: its head is trained and a gradient is asked for, or "
                "its logits are more than the head's product. Wanted a frozen plain head, or torch.no_grad()"
            )
        return seen.states_CD[seen.columns_E]

    return reader


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

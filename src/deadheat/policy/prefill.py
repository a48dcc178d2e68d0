"""Prompts, computed together: a common head of several is run once, and what a prompt leaves behind knows no company.

    the distinct prompts form a trie; one pass over its nodes, each seeing its own path (see `attention`)

Prompts share a pass up to a budget of tokens.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from deadheat.policy.attention import Attend
from deadheat.policy.forward import CausalModel
from deadheat.policy.trie import Branches, lay_out

MAX_TOKENS = 4096  # prompt tokens of one pass, the heads they share counted every time

Tokens = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Prefilled:
    """What a prompt leaves behind."""

    logits_V: Tensor  # [V] for the token after it
    keys: Tensor  # [layers, K, P, D]
    values: Tensor  # [layers, K, P, D]

    @property
    def length(self) -> int:
        """Tokens of the prompt."""
        return int(self.keys.shape[2])


@dataclass(frozen=True, kw_only=True)
class PrefilledBatch:
    """Prompts of one call, and what they took."""

    prompts: dict[Tokens, Prefilled]
    num_computed: int  # prompt tokens run
    num_idle: int  # places in attention that held no token


@torch.no_grad()
def prefill(model: CausalModel, prompts: Sequence[Tokens]) -> PrefilledBatch:
    """Run distinct prompts."""
    done: dict[Tokens, Prefilled] = {}
    num_computed = num_idle = 0
    for batch in _batches(prompts):
        laid = lay_out([Branches(prompt_tokens=prompt, completions=()) for prompt in batch])
        attend = model.path_pass(laid.paths, laid.trunks)
        kept = _Kept(attend)
        ids, positions = (torch.from_numpy(a).to(model.device) for a in (laid.tokens_N, laid.positions_N))
        last = torch.tensor([int(trunk[-1]) for trunk in laid.trunks], device=model.device)
        logits_CV = model.logits(ids, positions, kept, keep=last)
        keys, values = torch.stack(kept.keys), torch.stack(kept.values)  # [layers, N, K, D]
        for prompt, trunk, logits_V in zip(batch, laid.trunks, logits_CV, strict=True):
            columns = torch.from_numpy(trunk).to(model.device)
            own_keys, own_values = (t[:, columns].transpose(1, 2) for t in (keys, values))
            done[prompt] = Prefilled(logits_V=logits_V, keys=own_keys, values=own_values)
        num_computed += len(ids)
        num_idle += attend.num_idle
    return PrefilledBatch(prompts=done, num_computed=num_computed, num_idle=num_idle)


class _Kept:
    """Attention that remembers the keys and values of every layer."""

    def __init__(self, attend: Attend) -> None:
        self._attend = attend
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []

    def __call__(self, layer: int, query_NHD: Tensor, key_NKD: Tensor, value_NKD: Tensor, scale: float) -> Tensor:
        self.keys.append(key_NKD)
        self.values.append(value_NKD)
        return self._attend(layer, query_NHD, key_NKD, value_NKD, scale)


def _batches(prompts: Sequence[Tokens]) -> Iterator[list[Tokens]]:
    batch: list[Tokens] = []
    for prompt in prompts:
        if batch and sum(map(len, batch)) + len(prompt) > MAX_TOKENS:
            yield batch
            batch = []
        batch.append(prompt)
    if batch:
        yield batch

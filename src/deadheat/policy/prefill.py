"""Prompts, computed together: a common head of several is run once, and what a prompt leaves behind knows no company.

    the distinct prompts form a trie; one pass over its nodes, each seeing its own path (see `attention`)
    tokens that completions of a prompt must begin with are a trie above it, run in the same pass

Prompts share a pass up to a budget of tokens. Keys, values and logits of forced tokens have the bits they would have if
they were decoded one by one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from deadheat.policy.attention import Attend
from deadheat.policy.forward import CausalModel
from deadheat.policy.layout import Columns
from deadheat.policy.trie import Branches, Pass, lay_out

MAX_TOKENS = 4096  # prompt tokens of one pass, the heads they share counted every time

Tokens = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Forced:
    """What F tokens that a completion must begin with leave behind. The last of them is decoded, and left out here."""

    before_F: Tensor  # [F, …] of the column before each token: the head's input, or logits where the head is not plain
    keys: Tensor  # [layers, K, F − 1, D]
    values: Tensor  # [layers, K, F − 1, D]


@dataclass(frozen=True, kw_only=True)
class Prefilled:
    """What a prompt leaves behind."""

    logits_V: Tensor  # [V] for the token after it
    keys: Tensor  # [layers, K, P, D]
    values: Tensor  # [layers, K, P, D]
    forced: dict[Tokens, Forced] = field(default_factory=dict)  # by the tokens above it

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
def prefill(
    model: CausalModel, prompts: Sequence[Tokens], *, forced: Mapping[Tokens, Sequence[Tokens]] | None = None
) -> PrefilledBatch:
    """Run distinct prompts, and above each the tokens that `forced` names for it."""
    done: dict[Tokens, Prefilled] = {}
    num_computed = num_idle = 0
    for batch in _batches([(prompt, tuple((forced or {}).get(prompt, ()))) for prompt in prompts]):
        laid = lay_out([Branches(prompt_tokens=prompt, completion_tokens=above) for prompt, above in batch])
        attend = model.path_pass(laid.paths, laid.trunks)
        kept = _Kept(attend)
        ids, positions = (torch.from_numpy(a).to(model.device) for a in (laid.tokens_N, laid.positions_N))
        last = torch.tensor([int(trunk[-1]) for trunk in laid.trunks], device=model.device)
        edges = torch.tensor(laid.edge_columns, dtype=torch.long, device=model.device)
        run = model.states if len(edges) and model.has_plain_head else model.logits
        out = run(ids, positions, kept, keep=torch.cat([last, edges]))
        logits_PV = head_of(model, out[: len(last)]) if len(edges) else out
        keys, values = torch.stack(kept.keys), torch.stack(kept.values)  # [layers, N, K, D]
        above_P = _forced(laid, out[len(last) :], keys, values)
        for (prompt, above), trunk, logits_V, found in zip(batch, laid.trunks, logits_PV, above_P, strict=True):
            own_keys, own_values = (_columns(t, trunk) for t in (keys, values))
            held = dict(zip(above, found, strict=True))
            done[prompt] = Prefilled(logits_V=logits_V, keys=own_keys, values=own_values, forced=held)
        num_computed += len(ids)
        num_idle += attend.num_idle
    return PrefilledBatch(prompts=done, num_computed=num_computed, num_idle=num_idle)


def head_of(model: CausalModel, before: Tensor) -> Tensor:
    """Logits of what `Forced.before_F` holds: it holds them where the head does more than multiply."""
    return model.head(before) if model.has_plain_head else before


def _forced(laid: Pass, before_E: Tensor, keys: Tensor, values: Tensor) -> Iterator[list[Forced]]:
    """Per prompt, what each of its forced beginnings leaves behind."""
    start = 0
    for trie in laid.tries:
        found = []
        for path in trie.paths:
            nodes = [start + node for node in path]
            columns = np.array([laid.edge_columns[node] for node in nodes[1:]], dtype=np.int64)
            own_keys, own_values = (_columns(t, columns) for t in (keys, values))
            found.append(Forced(before_F=before_E[nodes], keys=own_keys, values=own_values))
        start += len(trie.tokens)
        yield found


def _columns(table: Tensor, columns: Columns) -> Tensor:
    """[layers, K, …, D] the given columns of [layers, N, K, D]."""
    return table[:, torch.from_numpy(columns).to(table.device)].transpose(1, 2)


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


def _batches(prompts: Sequence[tuple[Tokens, tuple[Tokens, ...]]]) -> Iterator[list[tuple[Tokens, tuple[Tokens, ...]]]]:
    batch: list[tuple[Tokens, tuple[Tokens, ...]]] = []
    used = 0
    for prompt, above in prompts:
        size = len(prompt) + sum(map(len, above))
        if batch and used + size > MAX_TOKENS:
            yield batch
            batch, used = [], 0
        batch.append((prompt, above))
        used += size
    if batch:
        yield batch

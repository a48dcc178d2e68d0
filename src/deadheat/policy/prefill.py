"""Prompts in chunks, four chunks a pass: a common head of different prompts is run once, and company changes nothing.

A prompt is cut every 16 tokens, counted from its start. What a chunk leaves behind (keys, values, logits) is a function of
the tokens up to its end: it is computed in a pass of one fixed shape, four rows of 16 tokens at the same depth, over keys
of one length. So it may be computed for one prompt and used by another, in whatever company, to the same bits. Rows
without a chunk are dummies. A last chunk that is shorter stands at the end of its row, so that the one column whose logits
are wanted is the same in every row; nothing attends to the padding before it.

    level 0   [t0 … t15]                 distinct first chunks, four a pass
    level 1   [t16 … t31] after its own first chunk's keys and values
    …
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from deadheat.policy.forward import CausalModel, LayerState, Prefilled, additive

CHUNK = 16
ROWS = 4

Tokens = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class _Node:
    """What one chunk leaves behind."""

    layers: tuple[LayerState, ...]  # keys and values of its own tokens, one row
    logits_V: Tensor  # for the token after its last


class Prefiller:
    """Prefilled prompts of one call of `generate`; a chunk is dropped when no waiting prompt begins with it."""

    def __init__(self, model: CausalModel, prompts: Iterable[Tokens]) -> None:
        self._model = model
        self._nodes: dict[Tokens, _Node] = {}
        self._users = Counter(head for prompt in prompts for head in heads(prompt))
        self.num_computed = 0  # prompt tokens run
        self.num_idle = 0  # columns run for nothing: dummies and padding

    def run(self, prompts: Sequence[Tokens]) -> None:
        """Compute whatever these prompts lack, level by level."""
        lacking = sorted({head for prompt in prompts for head in heads(prompt)} - self._nodes.keys(), key=len)
        by_level: dict[int, list[Tokens]] = {}
        for head in lacking:
            by_level.setdefault((len(head) - 1) // CHUNK, []).append(head)
        for level, level_heads in sorted(by_level.items()):
            for start in range(0, len(level_heads), ROWS):
                self._pass(level, level_heads[start : start + ROWS])

    def has(self, prompt: Tokens) -> bool:
        """Whether a prompt is there to be taken."""
        return prompt in self._nodes

    def state(self, prompt: Tokens) -> Prefilled:
        """What a prompt leaves behind."""
        nodes = [self._nodes[head] for head in heads(prompt)]
        layers = tuple(
            LayerState(
                keys=torch.cat([layer.keys for layer in column], dim=2),
                values=torch.cat([layer.values for layer in column], dim=2),
            )
            for column in zip(*(node.layers for node in nodes), strict=True)
        )
        return Prefilled(logits_V=nodes[-1].logits_V, layers=layers)

    def release(self, prompt: Tokens) -> None:
        """A prompt is no longer waited for."""
        for head in heads(prompt):
            self._users[head] -= 1
            if self._users[head] == 0:
                del self._nodes[head], self._users[head]

    def _pass(self, level: int, level_heads: Sequence[Tokens]) -> None:
        start, device = level * CHUNK, self._model.device
        ids = torch.zeros((ROWS, CHUNK), dtype=torch.long)
        pads_B = torch.full((ROWS,), CHUNK)
        for row, head in enumerate(level_heads):
            pads_B[row] = start + CHUNK - len(head)
            ids[row, pads_B[row] :] = torch.tensor(head[start:])
        columns = torch.arange(CHUNK)
        positions = start + (columns - pads_B[:, None]).clamp(min=0)
        own = (columns[None, :] <= columns[:, None]) & (
            (columns >= pads_B[:, None])[:, None, :] | torch.eye(CHUNK).bool()
        )
        sees = torch.cat([torch.ones(ROWS, CHUNK, start, dtype=torch.bool), own], dim=2)[:, None]
        pasts = [[self._nodes[h] for h in heads(head)[:-1]] for head in level_heads]
        layers = [_ChunkLayer(layer, pasts, start) for layer in range(self._model.num_layers)]
        mask = additive(sees.to(device), self._model.dtype)
        logits = self._model(ids.to(device), positions.to(device), mask, keep=1, cache=Cache(layers=layers))
        for row, head in enumerate(level_heads):
            state = tuple(layer.own(row, len(head) - start) for layer in layers)
            self._nodes[head] = _Node(layers=state, logits_V=logits[row, -1].clone())
        num_used = sum(len(head) - start for head in level_heads)
        self.num_computed += num_used
        self.num_idle += ROWS * CHUNK - num_used


def heads(prompt: Tokens) -> list[Tokens]:
    """The prompt cut after every chunk; the last is the prompt itself.

    Example:
        >>> [len(head) for head in heads(tuple(range(40)))]
        [16, 32, 40]
    """
    return [prompt[: min(end, len(prompt))] for end in range(CHUNK, len(prompt) + CHUNK, CHUNK)]


class _ChunkLayer(CacheLayerMixin):  # type: ignore[misc]
    """One layer of a pass: the rows' past keys and values, to which the chunk's own are appended."""

    is_sliding = False

    def __init__(self, layer: int, pasts: Sequence[Sequence[_Node]], start: int) -> None:
        super().__init__()
        self._start = start
        self._pasts = [[node.layers[layer] for node in past] for past in pasts]
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing to do: the past is there when the layer is made."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """The past and the chunk's own; dummies have a past of zeros."""
        rows, kv_heads, length, width = key_states.shape
        self.keys = key_states.new_zeros((rows, kv_heads, self._start + length, width))
        self.values = value_states.new_zeros((rows, kv_heads, self._start + length, width))
        for row, past in enumerate(self._pasts):
            for number, state in enumerate(past):
                self.keys[row, :, number * CHUNK : (number + 1) * CHUNK] = state.keys[0]
                self.values[row, :, number * CHUNK : (number + 1) * CHUNK] = state.values[0]
        self.keys[:, :, self._start :], self.values[:, :, self._start :] = key_states, value_states
        return self.keys, self.values

    def own(self, row: int, used: int) -> LayerState:
        """A row's own keys and values, padding cut off."""
        keys, values = (table[row : row + 1, :, -used:].clone() for table in (self.keys, self.values))
        return LayerState(keys=keys, values=values)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Length and offset of what is attended to."""
        return self._start + query_length, 0

    def get_seq_length(self) -> int:
        """Columns of the past."""
        return self._start

    def get_max_length(self) -> int:
        """Columns there will be."""
        return self._start + CHUNK

"""One call into a stock Hugging Face causal model: one row of columns, explicit positions, attention laid out by the caller.

Everything the engine and the trie need of a model passes through `CausalModel`: it puts our attention and our linear
layers into the stock modules, runs body and head apart, and refuses models whose state the engine cannot keep by column
(sliding windows, recurrent layers, attention that cannot be registered).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from peft.tuners.lora import LoraLayer
from torch import Tensor, nn
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from deadheat.errors import UnsupportedModelError
from deadheat.policy.attention import ATTENTION, Attend, Chunk, PathAttention
from deadheat.policy.layout import Columns, Path, attention_chunks
from deadheat.policy.linear import make_invariant, make_ordinary


class CausalModel:
    """A stock causal language model behind one calling convention."""

    def __init__(self, module: nn.Module, *, invariant: bool = True, checkpointing: bool = False) -> None:
        self.module = module
        self.config: Any = module.config
        _refuse_unsupported(module)
        module.set_attn_implementation(ATTENTION)  # type: ignore[operator]
        (make_invariant if invariant else make_ordinary)(module)
        self._checkpointing = checkpointing
        if checkpointing:
            _refuse_dropout(module)
            enable: Any = (
                getattr(module, "activation_checkpointing_enable", None) or module.gradient_checkpointing_enable
            )
            enable({"use_reentrant": False})
        self._head: Any = module.get_output_embeddings()  # type: ignore[operator]
        self.head = self._head.forward
        self.has_plain_head = self._tries_as_plain()

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.module.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """The type the model computes in."""
        return next(self.module.parameters()).dtype

    @property
    def context_length(self) -> int:
        """The most positions the model was made for."""
        text = self.config.get_text_config()
        return int(getattr(text, "max_position_embeddings", None) or getattr(text, "n_positions", None) or 2**31)

    @property
    def head_weight(self) -> Tensor | None:
        """[V, E] the head's matrix where logits are that, a bias and nothing else, and it is frozen."""
        if not self.has_plain_head or isinstance(self._head, LoraLayer) or self._head.weight.requires_grad:
            return None
        weight: Tensor = self._head.weight
        return weight

    def logits(self, ids_N: Tensor, positions_N: Tensor, attend: Attend, *, keep: Tensor) -> Tensor:
        """[C, V] logits of the columns `keep`."""
        with self._maybe_checkpointing():
            output = self.module(
                input_ids=ids_N[None],
                position_ids=positions_N[None],
                attention_mask=torch.zeros((1, 1, 1, 1), dtype=self.dtype, device=self.device),  # four axes: kept as is
                attend=attend,
                use_cache=False,
                logits_to_keep=keep,
            )
        logits: Tensor = output.logits[0]
        return logits

    @contextmanager
    def _maybe_checkpointing(self) -> Iterator[None]:
        """The library checkpoints layers of a module in training mode only; dropout is refused, so nothing else changes."""
        if not (self._checkpointing and torch.is_grad_enabled()):
            yield
            return
        self.module.train()
        try:
            yield
        finally:
            self.module.eval()

    def states(self, ids_N: Tensor, positions_N: Tensor, attend: Attend, *, keep: Tensor) -> Tensor:
        """[C, E] what the head would be given at the columns `keep`."""
        self._head.forward = _as_is
        try:
            return self.logits(ids_N, positions_N, attend, keep=keep)
        finally:
            self._head.forward = self.head

    def path_pass(self, paths: Sequence[Path], trunks: Sequence[Columns]) -> "PathPass":
        """Attention over branches: computed together, each seeing its trunk and its own columns."""
        heads = int(self.config.get_text_config().num_attention_heads)
        like = torch.empty(0, dtype=self.dtype, device=self.device)
        return PathPass(attention_chunks(paths, trunks, num_heads=heads, like=like))

    @torch.no_grad()
    def _tries_as_plain(self) -> bool:
        """Whether the logits are the head's output and nothing else: some families scale or cap them."""
        columns = torch.arange(2, device=self.device)
        attend = self.path_pass([Path(columns=columns.cpu().numpy(), first=0, trunk=None)], [])
        states = self.states(columns, columns, attend, keep=columns)
        return torch.equal(self.logits(columns, columns, attend, keep=columns), self.head(states))


class PathPass:
    """The attention of one pass over branches."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = tuple(chunks)

    @property
    def num_idle(self) -> int:
        """Places in it that hold no token."""
        return sum(int((~chunk.is_query_GCT).sum()) for chunk in self._chunks)

    def __call__(self, layer: int, query_NHD: Tensor, key_NKD: Tensor, value_NKD: Tensor, scale: float) -> Tensor:
        """[N, H, D]"""
        return PathAttention.apply(query_NHD, key_NKD, value_NKD, self._chunks, scale)  # type: ignore[no-any-return, no-untyped-call]


def _as_is(states: Tensor) -> Tensor:
    return states


def _refuse_dropout(module: nn.Module) -> None:
    rates = {m.p for m in module.modules() if isinstance(m, nn.Dropout) and m.p > 0}
    if rates:
        raise UnsupportedModelError(
            f"{type(module).__name__} has dropout of {max(rates):g}, which layers that are computed again would draw again; "
            "set gradient_checkpointing to false, or set the model's dropout to 0"
        )


def _refuse_unsupported(module: nn.Module) -> None:
    config: Any = module.config
    if getattr(config, "is_encoder_decoder", False):
        raise UnsupportedModelError(f"{config.model_type} is an encoder-decoder; wanted a decoder-only model")
    layers = DynamicCache(config=config).layers
    odd = sorted({type(layer).__name__ for layer in layers if type(layer) is not DynamicLayer})
    if odd:
        raise UnsupportedModelError(
            f"{config.model_type} keeps {', '.join(odd)}; wanted full attention in every layer, because a branch's "
            "state is kept by column (a sliding window or a recurrent state cannot be). Use a full-attention model"
        )
    if not getattr(module, "_supports_attention_backend", False):
        raise UnsupportedModelError(
            f"{type(module).__name__} does not let attention be replaced; wanted a decoder-only transformer such as "
            "Llama or Qwen, whose shared prefixes can be computed once"
        )

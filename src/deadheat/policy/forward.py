"""One call into a stock Hugging Face causal model: explicit positions, an explicit 4-D mask, logits where wanted.

Everything the engine and the trie need of a model passes through `CausalModel`: it hides the name of the cache argument
(it changed between transformers versions), chooses the attention function, and refuses models whose state the engine
cannot copy row by row (sliding windows, recurrent layers, no cache at all).

Attention is `grouped_attention`, registered with transformers where the model takes registered functions: the heads
that share a key/value head are one matrix product, so keys and values are never repeated in memory (a decode step reads
a third of what `eager` reads on a model with 9 query and 3 key/value heads), and the products of a decode step keep
their numbers when the key/value length grows by blocks, which torch's fused kernels do not promise. Models with
soft-capped scores or without the registry use their own `eager` code.
"""

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, DynamicCache
from transformers.cache_utils import DynamicLayer
from transformers.masking_utils import eager_mask

from deadheat.errors import UnsupportedModelError

ATTENTION = "deadheat_grouped"


def grouped_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **options: Any,
) -> tuple[Tensor, None]:
    """softmax(q·kᵀ·scaling + mask)·v with the query heads of one key/value head as rows of one product."""
    if options.get("softcap") is not None or options.get("s_aux") is not None or dropout:
        raise UnsupportedModelError("this model asks for soft-capped scores, attention sinks or attention dropout")
    rows, heads, length, width = query.shape
    kv_heads = key.shape[1]
    factor = width**-0.5 if scaling is None else scaling
    stacked = (query * factor).reshape(rows, kv_heads, heads // kv_heads * length, width)
    scores = torch.matmul(stacked, key.transpose(2, 3))
    if attention_mask is not None:
        per_head = scores.view(rows, kv_heads, heads // kv_heads, length, -1) + attention_mask[:, :, None]
        scores = per_head.view(scores.shape)
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype)
    mixed = torch.matmul(weights, value).view(rows, heads, length, value.shape[-1])
    return mixed.transpose(1, 2).contiguous(), None


AttentionInterface.register(ATTENTION, grouped_attention)
AttentionMaskInterface.register(ATTENTION, eager_mask)  # the module called without a mask is causal, as everywhere


def additive(allowed: Tensor, dtype: torch.dtype) -> Tensor:
    """0 where allowed, −inf elsewhere, in the model's dtype.

    Example:
        >>> additive(torch.tensor([True, False]), torch.float32).tolist()
        [0.0, -inf]
    """
    return torch.zeros(allowed.shape, dtype=dtype, device=allowed.device).masked_fill_(~allowed, -torch.inf)


@dataclass(frozen=True, kw_only=True)
class LayerState:
    """Keys and values of one layer."""

    keys: Tensor  # [rows, kv heads, length, width]
    values: Tensor  # [rows, kv heads, length, width]


@dataclass(frozen=True, kw_only=True)
class Prefilled:
    """What a prompt leaves behind."""

    logits_V: Tensor  # [V] for the token after the prompt
    layers: tuple[LayerState, ...]  # one row each


class CausalModel:
    """A stock causal language model behind one calling convention."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.config: Any = module.config
        self._cache_argument = _cache_argument(module)
        _refuse_unsupported(module)
        _choose_attention(module)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.module.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """The type the model computes in."""
        return next(self.module.parameters()).dtype

    @property
    def num_layers(self) -> int:
        """Layers that keep keys and values."""
        return len(DynamicCache(config=self.config).layers)

    @property
    def context_length(self) -> int:
        """The most positions the model was made for."""
        text = self.config.get_text_config()
        return int(getattr(text, "max_position_embeddings", None) or getattr(text, "n_positions", None) or 2**31)

    def __call__(
        self, ids: Tensor, positions: Tensor, mask: Tensor, *, keep: Tensor | int, cache: Any = None
    ) -> Tensor:
        """[rows, kept, V] logits; `keep` is 1 for the last position or an index of positions."""
        arguments: dict[str, Any] = {self._cache_argument: cache, "use_cache": cache is not None}
        output = self.module(
            input_ids=ids, attention_mask=mask, position_ids=positions, logits_to_keep=keep, **arguments
        )
        logits: Tensor = output.logits
        return logits

    def prefill(self, tokens: tuple[int, ...]) -> Prefilled:
        """Run one prompt whole and alone: the slow twin of `prefill.Prefiller`."""
        ids = torch.tensor([tokens], device=self.device)
        positions = torch.arange(len(tokens), device=self.device)[None]
        causal = additive(positions[0][None, :] <= positions[0][:, None], self.dtype)[None, None]
        cache = DynamicCache(config=self.config)
        logits = self(ids, positions, causal, keep=1, cache=cache)
        layers = tuple(LayerState(keys=layer.keys, values=layer.values) for layer in cache.layers)
        return Prefilled(logits_V=logits[0, -1], layers=layers)


def _cache_argument(module: nn.Module) -> str:
    names = inspect.signature(module.forward).parameters
    for name in ("cache", "past_key_values"):
        if name in names:
            return name
    raise UnsupportedModelError(
        f"{type(module).__name__} takes no key/value cache; wanted a decoder-only transformer such as Llama or Qwen"
    )


def _refuse_unsupported(module: nn.Module) -> None:
    config: Any = module.config
    if getattr(config, "is_encoder_decoder", False):
        raise UnsupportedModelError(f"{config.model_type} is an encoder-decoder; wanted a decoder-only model")
    layers = DynamicCache(config=config).layers
    odd = sorted({type(layer).__name__ for layer in layers if type(layer) is not DynamicLayer})
    if odd:
        raise UnsupportedModelError(
            f"{config.model_type} keeps {', '.join(odd)}; wanted full attention in every layer, because a row's state "
            "is copied by column (a sliding window or a recurrent state cannot be). Use a full-attention model"
        )


def _choose_attention(module: nn.Module) -> None:
    config: Any = module.config
    text = config.get_text_config()
    registered = getattr(module, "_supports_attention_backend", False)
    capped = getattr(text, "attn_logit_softcapping", None) is not None
    module.set_attn_implementation(ATTENTION if registered and not capped else "eager")  # type: ignore[operator]

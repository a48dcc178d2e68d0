"""Attention over branching sequences: a trunk that all branches of a group share, and each branch's own columns.

A token attends to its group's trunk (the prompt) and to its own branch up to itself:

    s = [ q·K_trunkᵀ | q·K_ownᵀ ]·scale + mask        w = softmax(s)        o = w_trunk·V_trunk + w_own·V_own

and the two sums are always cut there, in a decode step as in a pass over whole completions. Keys and values are padded
to blocks of 16 columns, which are masked: a weight of exactly zero adds exactly zero, and 16 columns fill the vectors of
the softmax's sum. So a token's result has the same bits whether it is decoded step by step or computed with all others,
and nothing of the trunk is copied for a branch: its products serve all branches of a group at once.

`PathAttention` is the pass over many tokens: it keeps q, k and v for the way back and computes the weights again there
(Chen et al. 2016; Dao et al. 2022), in chunks of bounded size, so that its memory grows with the tokens and not with
their square. Query heads that share a key/value head are rows of one product; keys are never repeated in memory.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from deadheat.errors import UnsupportedModelError

ATTENTION = "deadheat"
BLOCK = 16
MIN_ROWS = 4  # rows of one product: fewer are another kernel's


class Attend(Protocol):
    """How the tokens of one forward pass attend to each other and to what came before."""

    def __call__(self, layer: int, query_NHD: Tensor, key_NKD: Tensor, value_NKD: Tensor, scale: float) -> Tensor:
        """[N, H, D] from the pass's own queries, keys and values in this layer; K key/value heads."""


def blocks_up(length: int) -> int:
    """The length rounded up to whole blocks of 16.

    Example:
        >>> blocks_up(16), blocks_up(17)
        (16, 32)
    """
    return -(-length // BLOCK) * BLOCK


def additive(allowed: Tensor, dtype: torch.dtype) -> Tensor:
    """0 where allowed, −inf elsewhere, in the model's dtype.

    Example:
        >>> additive(torch.tensor([True, False]), torch.float32).tolist()
        [0.0, -inf]
    """
    return torch.zeros(allowed.shape, dtype=dtype, device=allowed.device).masked_fill_(~allowed, -torch.inf)


def attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    attend: Attend | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """What the models call: [rows, heads, length, width] in, [rows, length, heads, width] out.

    With `attend` the pass is one row of columns laid out by its caller; without, softmax(q·kᵀ·scaling + mask)·v.
    """
    if options.get("softcap") is not None or options.get("s_aux") is not None or dropout:
        raise UnsupportedModelError("this model asks for soft-capped scores, attention sinks or attention dropout")
    rows, heads, length, width = query.shape
    scale = width**-0.5 if scaling is None else scaling
    if attend is not None:
        q, k, v = (t[0].transpose(0, 1) for t in (query, key, value))
        return attend(module.layer_idx, q, k, v, scale)[None], None
    groups = heads // key.shape[1]
    stacked = (query * scale).reshape(rows, key.shape[1], groups * length, width)
    scores = (stacked @ key.transpose(2, 3)).view(rows, key.shape[1], groups, length, -1)
    if attention_mask is not None:
        scores = scores + attention_mask[:, :, None]
    mixed = softmax(scores).view(*stacked.shape[:3], -1) @ value
    return mixed.view(rows, heads, length, -1).transpose(1, 2).contiguous(), None


AttentionInterface.register(ATTENTION, attention)
AttentionMaskInterface.register(ATTENTION, eager_mask)  # the module called without a mask is causal, as everywhere


def softmax(scores: Tensor) -> Tensor:
    """Over the last axis, in float32 or better, back in the type it came in."""
    return torch.softmax(scores, dim=-1, dtype=torch.promote_types(scores.dtype, torch.float32)).to(scores.dtype)


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Some branches of some groups: which columns of the pass ask, and which they see."""

    queries_GCT: Tensor  # [G, C, T] columns that ask, T tokens of each of C branches of G groups
    is_query_GCT: Tensor  # [G, C, T] False: padding
    own_GCL: Tensor  # [G, C, L] columns of the branch in order, L whole blocks
    sees_GCTL: Tensor  # [G, C, T, L] 0 or −inf
    trunk_GP: Tensor | None  # [G, P] columns of the trunk, P whole blocks; None: there is none
    sees_GP: Tensor | None  # [G, P] 0 or −inf


class PathAttention(torch.autograd.Function):
    """Attention of one pass over tokens laid out in chunks: [N, H, D] from q [N, H, D], k and v [N, K, D]."""

    @staticmethod
    def forward(
        ctx: Any, q_NHD: Tensor, k_NKD: Tensor, v_NKD: Tensor, chunks: tuple[Chunk, ...], scale: float
    ) -> Tensor:
        out_NHD = q_NHD.new_zeros((*q_NHD.shape[:2], v_NKD.shape[2]))
        for chunk in chunks:
            part = _Part.of(chunk, q_NHD, k_NKD, v_NKD, scale)
            _put(out_NHD, chunk, part.mixed())
        ctx.save_for_backward(q_NHD, k_NKD, v_NKD)
        ctx.chunks, ctx.scale = chunks, scale
        return out_NHD

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (d_out_NHD,) = grads
        q_NHD, k_NKD, v_NKD = ctx.saved_tensors
        d_q, d_k, d_v = torch.zeros_like(q_NHD), torch.zeros_like(k_NKD), torch.zeros_like(v_NKD)
        for chunk in ctx.chunks:
            part = _Part.of(chunk, q_NHD, k_NKD, v_NKD, ctx.scale)
            part.add_gradients(chunk, d_out_NHD, (d_q, d_k, d_v), ctx.scale)
        return d_q, d_k, d_v, None, None


@dataclass(frozen=True, kw_only=True)
class _Part:
    """One chunk gathered: heads before branches, so that the trunk's product takes all branches of a group as rows."""

    q: Tensor  # [G, K, C, g·T, D] scaled
    own_k: Tensor  # [G, K, C, L, D]
    own_v: Tensor
    trunk_k: Tensor | None  # [G, K, P, D]
    trunk_v: Tensor | None
    weights: Tensor  # [G, K, C, g·T, P + L]

    @classmethod
    def of(cls, chunk: Chunk, q_NHD: Tensor, k_NKD: Tensor, v_NKD: Tensor, scale: float) -> "_Part":
        q = _heads_first(q_NHD, chunk.queries_GCT, k_NKD.shape[1]) * scale
        own_k, own_v = (t[chunk.own_GCL].permute(0, 3, 1, 2, 4).contiguous() for t in (k_NKD, v_NKD))
        trunk_k = trunk_v = None
        num_trunk = 0 if chunk.trunk_GP is None else chunk.trunk_GP.shape[1]
        scores = q.new_empty((*q.shape[:4], num_trunk + own_k.shape[3]))
        _product(q, own_k, scores[..., num_trunk:])
        sees, num_tokens = chunk.sees_GCTL[:, None, :, None], chunk.queries_GCT.shape[2]
        if chunk.trunk_GP is not None:
            trunk_k, trunk_v = (t[chunk.trunk_GP].permute(0, 2, 1, 3).contiguous() for t in (k_NKD, v_NKD))
            _product(_merged(q), trunk_k, _merged(scores)[..., :num_trunk])
            assert chunk.sees_GP is not None, "a trunk comes with what is seen of it"
            trunk_sees = chunk.sees_GP[:, None, None, None, None].expand(*sees.shape[:5], -1)
            sees = torch.cat([trunk_sees, sees], -1)
        by_token = scores.view(*scores.shape[:3], -1, num_tokens, scores.shape[-1])
        weights = softmax(by_token.add_(sees)).view(scores.shape)
        return cls(q=q, own_k=own_k, own_v=own_v, trunk_k=trunk_k, trunk_v=trunk_v, weights=weights)

    @property
    def num_trunk(self) -> int:
        return 0 if self.trunk_k is None else self.trunk_k.shape[2]

    def mixed(self) -> Tensor:
        """[G, K, C, g·T, D] weights times values."""
        own = self.weights[..., self.num_trunk :] @ self.own_v
        if self.trunk_v is None:
            return own
        trunk = _merged(self.weights)[..., : self.num_trunk] @ self.trunk_v
        return trunk.view(own.shape) + own

    def add_gradients(self, chunk: Chunk, d_out_NHD: Tensor, sums: tuple[Tensor, Tensor, Tensor], scale: float) -> None:
        """Adds this chunk's share to the gradients of q, k and v."""
        d_q_NHD, d_k_NKD, d_v_NKD = sums
        num_kv, cut, weights = d_k_NKD.shape[1], self.num_trunk, self.weights
        d_mixed = _heads_first(d_out_NHD, chunk.queries_GCT, num_kv)
        padding = ~chunk.is_query_GCT[:, None, :, None, :, None]
        d_mixed.view(*d_mixed.shape[:3], -1, chunk.queries_GCT.shape[2], d_mixed.shape[-1]).masked_fill_(padding, 0.0)
        d_own_v = weights[..., cut:].transpose(-1, -2) @ d_mixed
        d_weights = torch.empty_like(weights)
        _product(d_mixed, self.own_v, d_weights[..., cut:])
        if self.trunk_v is not None:
            _product(_merged(d_mixed), self.trunk_v, _merged(d_weights)[..., :cut])
        d_scores = torch.ops.aten._softmax_backward_data(d_weights, weights, -1, weights.dtype)
        d_q = d_scores[..., cut:] @ self.own_k
        _add_columns(d_k_NKD, chunk.own_GCL, (d_scores[..., cut:].transpose(-1, -2) @ self.q).permute(0, 2, 3, 1, 4))
        _add_columns(d_v_NKD, chunk.own_GCL, d_own_v.permute(0, 2, 3, 1, 4))
        if self.trunk_k is not None and chunk.trunk_GP is not None:
            trunk_scores, trunk_weights = (_merged(t)[..., :cut] for t in (d_scores, weights))
            d_q = d_q + (trunk_scores @ self.trunk_k).view(d_q.shape)
            _add_columns(d_k_NKD, chunk.trunk_GP, (trunk_scores.transpose(-1, -2) @ _merged(self.q)).transpose(1, 2))
            d_trunk_v = trunk_weights.transpose(-1, -2) @ _merged(d_mixed)
            _add_columns(d_v_NKD, chunk.trunk_GP, d_trunk_v.transpose(1, 2))
        _put(d_q_NHD, chunk, d_q * scale)


def _product(rows: Tensor, columns: Tensor, out: Tensor) -> None:
    """out [..., R, L] = rows [..., R, D] · columnsᵀ [..., L, D], written in place: `out` may be a cut of a wider tensor."""
    left, right = (t.reshape(-1, *t.shape[-2:]) for t in (rows, columns))
    torch.bmm(left, right.transpose(1, 2), out=out.view(-1, *out.shape[-2:]))


def _heads_first(x_NHD: Tensor, columns_GCT: Tensor, num_kv: int) -> Tensor:
    """[G, K, C, g·T, D] of [N, H, D]: the g query heads of one key/value head are rows of one product."""
    groups, branches, tokens = columns_GCT.shape
    picked = x_NHD[columns_GCT].view(groups, branches, tokens, num_kv, -1, x_NHD.shape[2])
    return picked.permute(0, 3, 1, 4, 2, 5).reshape(groups, num_kv, branches, -1, x_NHD.shape[2])


def _merged(x: Tensor) -> Tensor:
    """[G, K, C·R, …] of [G, K, C, R, …]."""
    return x.flatten(2, 3)


def _put(out_NHD: Tensor, chunk: Chunk, part: Tensor) -> None:
    """Write [G, K, C, g·T, D] to the columns that asked."""
    groups, num_kv, branches = part.shape[:3]
    tokens = chunk.queries_GCT.shape[2]
    by_token = part.view(groups, num_kv, branches, -1, tokens, part.shape[-1]).permute(0, 2, 4, 1, 3, 5)
    out_NHD[chunk.queries_GCT[chunk.is_query_GCT]] = by_token.flatten(3, 4)[chunk.is_query_GCT]


def _add_columns(total_NKD: Tensor, columns: Tensor, part: Tensor) -> None:
    total_NKD.index_add_(0, columns.flatten(), part.reshape(-1, *total_NKD.shape[1:]))

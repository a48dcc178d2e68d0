"""Linear layers whose result for a row does not depend on the rows beside it, adapters folded in.

    y = x·W'ᵀ + b,   W' = W + scale·B·A       one product in place of three where a LoRA adapter is attached
    dx = dy·W',  dA = scale·(dy·B)ᵀ·x,  dB = scale·dyᵀ·(x·Aᵀ)

A library's matrix product may choose its kernel by the number of rows, and another kernel adds in another order. On a
CPU in float32 the product runs on weights that oneDNN has laid out once, chosen with the weights and not with the rows.
That no row changes with the number of rows is tried, not assumed (`ignores_row_count`); where it fails, and on other
devices and types, a product runs in tiles of one fixed number of rows.

The layout is renewed when a weight was written to (torch counts the writes), so an update costs one. Where W' is not
stored (bfloat16 would round the adapter away; other devices) the adapter stays a product of its own.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from peft.tuners.lora import LoraLayer
from torch import Tensor, nn
from torch.nn.functional import linear, pad
from transformers.pytorch_utils import Conv1D

TILE_ROWS = 64  # rows of one product where the kernel depends on their number
_LAYOUT_ROWS = 32  # what the stored layout is tuned for: a decode step
_TRIED_ROWS = (2, 3, 7, 16, 33, 64, 250)


class RowLinear:
    """The forward pass of one linear layer."""

    def __init__(self, layer: nn.Module) -> None:
        self._layer = layer
        self._base: Any = layer.base_layer if isinstance(layer, LoraLayer) else layer
        self._packed: dict[bool, tuple[tuple[int, ...], Tensor]] = {}  # by whether the adapter is in

    @property
    def weight(self) -> Tensor:
        """[out, in] the weights without adapter."""
        weight: Tensor = self._base.weight
        return weight.t() if isinstance(self._base, Conv1D) else weight

    @property
    def bias(self) -> Tensor | None:
        """[out]"""
        bias: Tensor | None = self._base.bias
        return bias

    @property
    def adapter(self) -> tuple[Tensor, Tensor, float] | None:
        """A [rank, in], B [out, rank] and their scale; None: no adapter is attached, or it is switched off."""
        layer: Any = self._layer
        if not isinstance(layer, LoraLayer) or layer.disable_adapters:
            return None
        (name,) = layer.active_adapters
        return layer.lora_A[name].weight, layer.lora_B[name].weight, float(layer.scaling[name])

    @property
    def is_trained(self) -> bool:
        """Whether anything in it wants a gradient."""
        return any(p.requires_grad for p in self._layer.parameters())

    def __call__(self, x: Tensor) -> Tensor:
        """[..., in] to [..., out]."""
        rows = x.reshape(-1, x.shape[-1])
        if torch.is_grad_enabled() and (x.requires_grad or self.is_trained):
            down, up, scale = self.adapter or (None, None, 0.0)
            out: Tensor = _Product.apply(  # type: ignore[no-untyped-call]
                rows, self, self.weight, self.bias, down, up, scale
            )
        else:
            out = self.product(rows)
        return out.view(*x.shape[:-1], out.shape[-1])

    def product(self, rows: Tensor) -> Tensor:
        """[N, in] to [N, out], without a gradient."""
        if not packs(rows.device, rows.dtype):
            return _in_tiles(self._plain, rows)
        packed = self._laid_out()
        if not ignores_row_count(*self.weight.shape, torch.get_num_threads()):
            return _in_tiles(lambda tile: _packed_product(tile, packed, self.bias), rows)
        if len(rows) > 1:
            return _packed_product(rows, packed, self.bias)
        return _packed_product(rows.expand(2, -1), packed, self.bias)[:1]  # one row alone is another kernel's

    def _plain(self, rows: Tensor) -> Tensor:
        out = linear(rows, self.weight, self.bias)
        if self.adapter is None:
            return out
        down, up, scale = self.adapter
        return out + (linear(linear(rows.to(down.dtype), down), up) * scale).to(out.dtype)

    def _laid_out(self) -> Tensor:
        """W' as oneDNN wants it."""
        adapter = self.adapter
        sources = (self._base.weight, *(adapter[:2] if adapter else ()))
        state = tuple(number for t in sources for number in (t._version, t.data_ptr()))
        held = self._packed.get(adapter is not None)
        if held is None or held[0] != state:
            weight = self.weight.detach()
            if adapter is not None:
                down, up, scale = adapter
                weight = torch.addmm(weight, up.detach(), down.detach(), alpha=scale)
            packed = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), _LAYOUT_ROWS)
            held = self._packed[adapter is not None] = (state, packed)
        return held[1]


class _Product(torch.autograd.Function):
    """The product and its gradients; only the layer's input is kept for the way back."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        layer: RowLinear,
        weight: Tensor,
        bias: Tensor | None,
        down: Tensor | None,
        up: Tensor | None,
        scale: float,
    ) -> Tensor:
        ctx.save_for_backward(rows, weight, down, up)
        ctx.scale = scale
        return layer.product(rows)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = grads
        rows, weight, down, up = ctx.saved_tensors
        wanted = ctx.needs_input_grad
        d_rows = grad @ weight if wanted[0] else None
        d_weight = grad.t() @ rows if wanted[2] else None
        d_bias = grad.sum(0) if wanted[3] else None
        d_down = d_up = None
        if down is not None:
            inner = (grad.to(up.dtype) @ up) * ctx.scale
            d_down = inner.t() @ rows.to(down.dtype) if wanted[4] else None
            d_up = (grad.to(up.dtype).t() @ linear(rows.to(down.dtype), down)) * ctx.scale if wanted[5] else None
            if d_rows is not None and d_rows.dtype == down.dtype:
                d_rows.addmm_(inner, down)
            elif d_rows is not None:
                d_rows += (inner @ down).to(d_rows.dtype)
        return d_rows, None, d_weight, d_bias, d_down, d_up, None


def linear_layers(module: nn.Module) -> Iterator[nn.Module]:
    """The linear layers of a model, each adapted one once."""
    for child in module.children():
        if isinstance(child, LoraLayer | nn.Linear | Conv1D):
            yield child
        else:
            yield from linear_layers(child)


def make_invariant(module: nn.Module) -> None:
    """Let every linear layer of a model run through `RowLinear`, in place; one that does keeps its layout."""
    for layer in linear_layers(module):
        if not isinstance(layer.forward, RowLinear):
            layer.forward = RowLinear(layer)


def make_ordinary(module: nn.Module) -> None:
    """Let every linear layer of a model run as the library runs it, in place."""
    for layer in linear_layers(module):
        layer.__dict__.pop("forward", None)


@cache
def ignores_row_count(num_out: int, num_in: int, num_threads: int) -> bool:
    """Whether a packed product of this shape gives a row the same bits however many rows there are (tried, see above)."""
    wave = torch.arange(max(_TRIED_ROWS) * num_in, dtype=torch.float32).mul_(0.7311).sin_().view(-1, num_in)
    weight = torch.arange(num_out * num_in, dtype=torch.float32).mul_(0.3137).cos_().view(num_out, num_in)
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, _LAYOUT_ROWS)
    first = _packed_product(wave[:2], packed, None)
    return all(
        torch.equal(_packed_product(wave[:rows], packed, None)[:2], first)
        and torch.equal(_packed_product(wave[:2].repeat(rows // 2 + 1, 1)[-rows:], packed, None)[-2:], first)
        for rows in _TRIED_ROWS
    )


def packs(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether products here run on weights laid out once."""
    return device.type == "cpu" and dtype == torch.float32 and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]


def _packed_product(rows: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
    out: Tensor = torch.ops.mkldnn._linear_pointwise(rows.contiguous(), packed, bias, "none", [], "")
    return out


def _in_tiles(product: Any, rows: Tensor) -> Tensor:
    """The product in tiles of a fixed number of rows, the last one filled up with zeros."""
    missing = -len(rows) % TILE_ROWS
    tiles = torch.split(pad(rows, (0, 0, 0, missing)), TILE_ROWS)
    return torch.cat([product(tile) for tile in tiles])[: len(rows)]

"""Linear layers: the library's numbers, its gradients, and bits that do not depend on the rows beside them."""

import peft
import pytest
import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from deadheat.policy import linear as linear_module
from deadheat.policy.linear import RowLinear, linear_layers, make_invariant


def wave(*shape, step=0.37):
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).mul(step).sin().view(shape)


def adapted(out=48, width=32, dtype=torch.float32):
    """A linear layer with a LoRA adapter whose B is not zero, as a stock module and the same again."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(width, out)

        def forward(self, x):
            return self.inner(x)

    with torch.random.fork_rng(devices=[]):
        model = Model()
        peft.inject_adapter_in_model(peft.LoraConfig(r=4, lora_alpha=8, target_modules=["inner"]), model)
    for number, parameter in enumerate(model.parameters()):
        parameter.data.copy_(wave(*parameter.shape, step=0.3 + number))
    return model.to(dtype)


def test_the_output_is_that_of_the_library(subtests):
    x = wave(7, 32)
    for layer in (nn.Linear(32, 48), nn.Linear(32, 48, bias=False), Conv1D(48, 32), adapted().inner):
        with subtests.test(layer=type(layer).__name__), torch.no_grad():
            torch.testing.assert_close(RowLinear(layer)(x), layer(x), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_are_those_of_the_library(dtype):
    model, x = adapted(dtype=dtype), wave(5, 32).to(dtype)
    model.inner.base_layer.weight.requires_grad_(True)
    model.inner.base_layer.bias.requires_grad_(True)
    wanted = [x.requires_grad_(True), *model.parameters()]
    stock = torch.autograd.grad((model(x) * wave(5, 48, step=1.3)).sum(), wanted)
    make_invariant(model)
    ours = torch.autograd.grad((model(x) * wave(5, 48, step=1.3)).sum(), wanted)
    for a, b in zip(ours, stock, strict=True):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-4)


def test_gradients_hold_in_double_precision():
    layer = RowLinear(adapted(out=3, width=2, dtype=torch.float64).inner)
    x = wave(4, 2).double().requires_grad_(True)
    assert torch.autograd.gradcheck(layer, (x,))


@pytest.mark.parametrize("tiled", [False, True])
def test_a_row_has_the_same_bits_alone_and_among_others(tiled, monkeypatch):
    if tiled:
        monkeypatch.setattr(linear_module, "ignores_row_count", lambda *_: False)
    layer, x = RowLinear(adapted(out=96, width=64).inner), wave(300, 64)
    with torch.no_grad():
        whole = layer(x)
        for start, size in ((0, 1), (5, 2), (11, 7), (60, 32), (100, 129)):
            assert torch.equal(layer(x[start : start + size]), whole[start : start + size])


def test_a_write_to_a_weight_renews_the_layout():
    model, x = adapted(), wave(6, 32)
    make_invariant(model)
    with torch.no_grad():
        before = model(x)
        model.inner.lora_B["default"].weight.add_(1.0)
        after = model(x)
        # B grows by 1 everywhere: y grows by scale · Σ_r (A·x)_r in every output; scale = 8/4
        grown = 2.0 * (x @ model.inner.lora_A["default"].weight.t()).sum(-1, keepdim=True)
    torch.testing.assert_close(after - before, grown.expand_as(before), atol=1e-3, rtol=1e-4)


def test_a_switched_off_adapter_adds_nothing():
    model, x = adapted(), wave(6, 32)
    make_invariant(model)
    with torch.no_grad():
        model.inner.enable_adapters(False)
        bare = model(x)
        model.inner.enable_adapters(True)
        full = model(x)
    base = model.inner.base_layer
    torch.testing.assert_close(bare, x @ base.weight.t() + base.bias, atol=1e-4, rtol=1e-4)
    assert not torch.allclose(bare, full)


def test_in_bfloat16_the_adapter_is_not_rounded_into_the_weights():
    model = adapted(dtype=torch.bfloat16)
    model.inner.base_layer.weight.data.fill_(1.0)
    model.inner.lora_A["default"].weight.data.fill_(2.0**-8)  # B·A·scale = 4 · 2^-8 · 2^-8 · 2 = 2^-13, lost beside 1.0
    model.inner.lora_B["default"].weight.data.fill_(2.0**-8)
    model.inner.base_layer.bias.data.zero_()
    x = torch.zeros(2, 32, dtype=torch.bfloat16)
    x[0, 0], x[0, 1] = 1.0, -1.0  # the base weights cancel, the adapter's entries cancel too
    x[1, 0] = 1.0
    with torch.no_grad():
        out = RowLinear(model.inner)(x)
    assert out[0].abs().max() == 0
    assert out[1, 0] == torch.tensor(1.0 + 2.0**-13).bfloat16()


def test_every_linear_layer_is_found_and_an_adapted_one_once():
    model = nn.Sequential(adapted(), nn.Sequential(nn.Linear(48, 8), nn.ReLU()), Conv1D(4, 8))
    assert [type(layer).__name__ for layer in linear_layers(model)] == ["Linear", "Linear", "Conv1D"]

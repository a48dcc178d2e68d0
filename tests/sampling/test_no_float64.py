"""On a device without float64 nothing asks for it: a fake device refuses, and every draw still agrees with the CPU's."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from deadheat.sampling.draws import greedy, gumbel_max, inverse_cdf
from deadheat.sampling.warp import warped_logprobs
from deadheat.types import SamplingParams

DEVICE = torch.device("meta")  # a name that torch knows and needs no driver for; numbers stay beside it


class OnFake(torch.Tensor):
    """A tensor that says it is elsewhere and keeps its numbers here."""

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> "OnFake":
        made = torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, inner.stride(), inner.storage_offset(), dtype=inner.dtype, device=DEVICE
        )
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(function, args, kwargs or {})

    def tolist(self) -> Any:
        """As a real device does: a copy on the host."""
        return self.inner.tolist()


def run(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The operation on the numbers; float64 is refused unless its result leaves the fake device."""
    leaves = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, OnFake)]
    asked = kwargs.get("device")
    leaves_it = asked is not None and torch.device(asked).type == "cpu"
    on_fake = (bool(leaves) or (asked is not None and torch.device(asked).type == DEVICE.type)) and not leaves_it
    here = {**kwargs, "device": torch.device("cpu")} if asked is not None else kwargs
    args, here = tree_map(lambda x: x.inner if isinstance(x, OnFake) else x, (args, here))
    out = function(*args, **here)
    if not on_fake:
        return out

    def wrap(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if value.dtype == torch.float64:
            raise TypeError(f"{function} asks a device without float64 for it")
        return OnFake(value)

    return tree_map(wrap, out)


class FakeDevice(TorchDispatchMode):
    """Tensors that are made for the fake device are put there."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(function, args, kwargs or {})


@contextmanager
def fake_device() -> Iterator[None]:
    with FakeDevice():
        yield


@pytest.fixture
def logits() -> torch.Tensor:
    return torch.arange(4 * 50, dtype=torch.float32).mul(0.7).sin().mul(3).view(4, 50)


def test_the_fake_device_refuses_float64(logits: torch.Tensor) -> None:
    with fake_device(), pytest.raises(TypeError, match="without float64"):
        OnFake(logits).double()


@pytest.mark.parametrize("sampling", [SamplingParams(), SamplingParams(temperature=0.7, top_k=20, top_p=0.9)])
@pytest.mark.parametrize("draw", ["gumbel_max", "inverse_cdf", "greedy"])
def test_every_draw_runs_without_float64_and_is_the_draw_of_the_cpu(
    logits: torch.Tensor, draw: str, sampling: SamplingParams
) -> None:
    keys, positions = [3, 5, 7, 11], [0, 1, 2, 3]

    def drawn(logits_BV: torch.Tensor) -> np.ndarray:
        logprobs_BV = warped_logprobs(logits_BV, sampling)
        if draw == "greedy":
            return greedy(logprobs_BV).tokens_B
        function = {"gumbel_max": gumbel_max, "inverse_cdf": inverse_cdf}[draw]
        return function(logprobs_BV, key=keys, positions=positions).tokens_B

    here = drawn(logits)
    with fake_device():
        there = drawn(OnFake(logits))
    assert there.tolist() == here.tolist()

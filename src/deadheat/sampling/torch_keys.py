"""The token uniforms of `sampling.keys` on a torch device, bit for bit.

torch has no full 64-bit unsigned arithmetic, so words are int64: products and XORs wrap alike, a logical right shift
is an arithmetic one with the copied sign bits masked off. Used where log-probabilities live on an accelerator.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deadheat.sampling import keys as k

_WRAP = 2**64


def signed(word: int) -> int:
    """The int64 with the same 64 bits.

    Example:
        >>> signed(1), signed(2**64 - 1)
        (1, -1)
    """
    return word - _WRAP if word >= _WRAP // 2 else word


def mix64_torch(x: Tensor) -> Tensor:
    """`mix64` of every int64 word; a new tensor."""
    x = (x ^ _logical_shift(x, 30)) * signed(k.MIX_A)
    x = (x ^ _logical_shift(x, 27)) * signed(k.MIX_B)
    return x ^ _logical_shift(x, 31)


def token_uniforms53_torch(words_B: NDArray[np.uint64], num_tokens: int, device: torch.device) -> Tensor:
    """[B, V] int64 uniforms in [0, 2^53) from the position keys of B rows; row b equals NumPy's `token_uniforms53`."""
    tokens_V = torch.arange(1, num_tokens + 1, dtype=torch.int64, device=device)
    salts_V = mix64_torch(tokens_V * signed(k.TOKEN))
    words_B1 = torch.from_numpy(words_B.view(np.int64)).to(device)[:, None]
    return _logical_shift(mix64_torch(words_B1 ^ salts_V), 11)


def _logical_shift(x: Tensor, bits: int) -> Tensor:
    return (x >> bits) & ((1 << (64 - bits)) - 1)

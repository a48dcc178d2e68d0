"""A tile: a fixed number of rows that decode together, each with its own length.

Every row's keys and values start at column 0; the next token's are written at column `length`. There is no left padding
and the number of rows never changes, so the matrix products of a step have one shape and a row's numbers do not depend
on its company. The attended length is the longest row's, rounded up to a block of 16 columns.
"""

from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from deadheat.policy.forward import CausalModel, LayerState, additive

BLOCK = 16


def blocks_up(length: int) -> int:
    """The length rounded up to whole blocks of 16.

    Example:
        >>> blocks_up(16), blocks_up(17)
        (16, 32)
    """
    return -(-length // BLOCK) * BLOCK


class Tile:
    """Rows with their keys and values, stepped together."""

    def __init__(self, model: CausalModel, like: tuple[LayerState, ...], *, num_rows: int, capacity: int) -> None:
        self.num_rows = num_rows
        self._model = model
        self._length_B = torch.zeros(num_rows, dtype=torch.long, device=model.device)
        self._columns = _Columns(device=model.device, num_rows=num_rows)
        self._layers = [_TileLayer(layer, self._columns, blocks_up(capacity)) for layer in like]
        self._cache = Cache(layers=self._layers)

    def put(self, row: int, layers: tuple[LayerState, ...]) -> None:
        """Start a row from the state a prompt left behind."""
        length = layers[0].keys.shape[2]
        self._columns.open(blocks_up(length), self._layers)
        for mine, theirs in zip(self._layers, layers, strict=True):
            mine.keys[row, :, :length] = theirs.keys[0]
            mine.values[row, :, :length] = theirs.values[0]
        self._length_B[row] = length

    def clear(self, row: int) -> None:
        """Free a row. It goes on stepping as a dummy at column 0 until it is put to use."""
        self._length_B[row] = 0

    def step(self, tokens_B: Tensor, is_active_B: Tensor) -> Tensor:
        """[B, V] logits after appending one token to every active row."""
        self._columns.position_B = self._length_B
        used = blocks_up(int(self._length_B.max()) + 1)
        self._columns.open(used, self._layers)
        self._columns.used = used
        reach = torch.arange(used, device=self._length_B.device)[None, :] <= self._length_B[:, None]
        mask = additive(reach, self._model.dtype)[:, None, None, :]
        logits = self._model(tokens_B[:, None], self._length_B[:, None], mask, keep=1, cache=self._cache)
        self._length_B = self._length_B + is_active_B.long()
        return logits[:, -1]


class _Columns:
    """Which columns of the tile are in use; shared by its layers."""

    def __init__(self, *, device: torch.device, num_rows: int) -> None:
        self.row_B = torch.arange(num_rows, device=device)
        self.position_B = torch.zeros(num_rows, dtype=torch.long, device=device)
        self.used = 0
        self._opened = 0

    def open(self, length: int, layers: list["_TileLayer"]) -> None:
        """Zero columns before their first use: an unwritten column has weight zero, and 0 · NaN is not zero."""
        if length <= self._opened:
            return
        for layer in layers:
            layer.keys[:, :, self._opened : length] = 0
            layer.values[:, :, self._opened : length] = 0
        self._opened = length


class _TileLayer(CacheLayerMixin):  # type: ignore[misc]
    """One layer's keys and values; memory beyond the opened columns is reserved and not touched."""

    is_sliding = False

    def __init__(self, like: LayerState, columns: _Columns, capacity: int) -> None:
        super().__init__()
        self._columns = columns
        num_rows = len(columns.row_B)
        self.keys: Tensor = like.keys.new_empty((num_rows, like.keys.shape[1], capacity, like.keys.shape[3]))
        self.values: Tensor = like.values.new_empty((num_rows, like.values.shape[1], capacity, like.values.shape[3]))
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing to do: the tile is allocated when it is made."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Write one token per row at its own column; return all columns in use."""
        where = self._columns
        self.keys[where.row_B, :, where.position_B] = key_states[:, :, 0]
        self.values[where.row_B, :, where.position_B] = value_states[:, :, 0]
        return self.keys[:, :, : where.used], self.values[:, :, : where.used]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Length and offset of what is attended to."""
        return self._columns.used, 0

    def get_seq_length(self) -> int:
        """Columns in use."""
        return self._columns.used

    def get_max_length(self) -> int:
        """Columns reserved."""
        return int(self.keys.shape[2])

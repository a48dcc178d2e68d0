"""From paths of columns to chunks of attention.

A pass computes N columns, one per token in its context. A path lists the columns a branch consists of, in order; it asks
for the tokens no earlier path asked for, which are its last ones. Queries are cut into blocks of 64, and a block sees the
keys up to its own end: what lies after it is not computed. Blocks of like length share a chunk while its scores fit
`MAX_SCORES`; padding is masked and takes part in nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from deadheat.policy.attention import BLOCK, MIN_ROWS, Chunk, additive, blocks_up

QUERY_BLOCK = 64
MAX_SCORES = 4_000_000  # scores held at once, in numbers

Columns = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Path:
    """The columns of one branch."""

    columns: Columns  # in order, the trunk's left out
    first: int  # position in `columns` of the first token that asks; the ones before belong to earlier paths
    trunk: int | None  # which trunk it grows from; None: it is one itself


@dataclass(frozen=True, kw_only=True)
class _Block:
    """Up to 64 consecutive queries of a path."""

    own: Columns  # the path's columns up to the last query
    num_queries: int

    @property
    def num_keys(self) -> int:
        return blocks_up(len(self.own))


@dataclass(frozen=True, kw_only=True)
class _Bundle:
    """Blocks that grow from one trunk."""

    trunk: Columns | None
    blocks: tuple[_Block, ...]

    def shape(self) -> tuple[int, int, int, int]:
        """Branches, queries, keys and trunk columns it needs."""
        trunk = 0 if self.trunk is None else blocks_up(len(self.trunk))
        num_queries = max(b.num_queries for b in self.blocks)
        return len(self.blocks), num_queries, max(b.num_keys for b in self.blocks), trunk


def attention_chunks(
    paths: Sequence[Path], trunks: Sequence[Columns], *, num_heads: int, like: torch.Tensor
) -> tuple[Chunk, ...]:
    """Every query of every path in exactly one chunk; `like` gives device and dtype."""
    bundles = sorted(_bundles(paths, trunks, num_heads), key=_Bundle.shape)
    return tuple(_chunk(together, like) for together in _batches(bundles, num_heads))


def _bundles(paths: Sequence[Path], trunks: Sequence[Columns], num_heads: int) -> Iterator[_Bundle]:
    by_trunk: dict[int, list[_Block]] = {}
    for path in paths:
        for block in _blocks(path):
            if path.trunk is None:
                yield _Bundle(trunk=None, blocks=(block,))
            else:
                by_trunk.setdefault(path.trunk, []).append(block)
    for number, blocks in by_trunk.items():
        trunk = trunks[number]
        held: list[_Block] = []
        for block in sorted(blocks, key=lambda b: (b.num_keys, b.num_queries)):
            if held and _num_scores([_Bundle(trunk=trunk, blocks=(*held, block))], num_heads) > MAX_SCORES:
                yield _Bundle(trunk=trunk, blocks=tuple(held))
                held = []
            held.append(block)
        yield _Bundle(trunk=trunk, blocks=tuple(held))


def _blocks(path: Path) -> Iterator[_Block]:
    for start in range(path.first, len(path.columns), QUERY_BLOCK):
        end = min(start + QUERY_BLOCK, len(path.columns))
        yield _Block(own=path.columns[:end], num_queries=end - start)


def _batches(bundles: Iterable[_Bundle], num_heads: int) -> Iterator[list[_Bundle]]:
    """Neighbours while they fit and padding stays below half of what is computed."""
    batch: list[_Bundle] = []
    used = 0
    for bundle in bundles:
        alone = _num_scores([bundle], num_heads)
        together = _num_scores([*batch, bundle], num_heads)
        mixed = batch and (batch[0].trunk is None) != (bundle.trunk is None)
        if batch and (mixed or together > MAX_SCORES or together > 2 * (used + alone)):
            yield batch
            batch, used = [], 0
        batch.append(bundle)
        used += alone
    if batch:
        yield batch


def _num_scores(bundles: Sequence[_Bundle], num_heads: int) -> int:
    branches, queries, keys, trunk = (max(sizes) for sizes in zip(*(b.shape() for b in bundles), strict=True))
    return int(len(bundles) * branches * num_heads * queries * (keys + trunk))


def _chunk(bundles: Sequence[_Bundle], like: torch.Tensor) -> Chunk:
    branches, queries, keys, trunk = (max(sizes) for sizes in zip(*(b.shape() for b in bundles), strict=True))
    queries = max(queries, MIN_ROWS)
    shape = (len(bundles), branches, queries)
    asking, is_query, own = np.zeros(shape, np.int64), np.zeros(shape, bool), np.zeros((*shape[:2], keys), np.int64)
    last_seen = np.zeros(shape, np.int64)
    for g, bundle in enumerate(bundles):
        for c, block in enumerate(bundle.blocks):
            start, used = len(block.own) - block.num_queries, block.num_queries
            asking[g, c, :used], is_query[g, c, :used] = block.own[start:], True
            own[g, c, : len(block.own)] = block.own
            last_seen[g, c, :used] = np.arange(start, len(block.own))
    sees = np.arange(keys) <= last_seen[..., None]
    trunk_columns, trunk_seen = np.zeros((len(bundles), trunk), np.int64), np.zeros((len(bundles), trunk), bool)
    for g, bundle in enumerate(bundles):
        if bundle.trunk is not None:
            trunk_columns[g, : len(bundle.trunk)], trunk_seen[g, : len(bundle.trunk)] = bundle.trunk, True
    on_device = [torch.from_numpy(a).to(like.device) for a in (asking, is_query, own, sees, trunk_columns, trunk_seen)]
    return Chunk(
        queries_GCT=on_device[0],
        is_query_GCT=on_device[1],
        own_GCL=on_device[2],
        sees_GCTL=additive(on_device[3], like.dtype),
        trunk_GP=on_device[4] if trunk else None,
        sees_GP=additive(on_device[5], like.dtype) if trunk else None,
    )


assert QUERY_BLOCK % BLOCK == 0, "a block of queries ends with a block of keys"

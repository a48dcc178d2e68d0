"""A tile: branches that decode together, above trunks that several of them share.

A branch has its own keys and values from its first token on; its prompt's lie once in a trunk, however many branches
grow from it. A branch that splits copies its own columns and nothing else. Branches in use are always the first ones, so
a step computes those and no others. The attended length is the longest branch's, rounded up to a block of 16 columns.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from deadheat.policy.attention import MIN_ROWS, additive, blocks_up, softmax
from deadheat.policy.forward import CausalModel
from deadheat.policy.prefill import Prefilled


class Tile:
    """Branches with their keys and values, stepped together."""

    def __init__(self, model: CausalModel, like: Prefilled, *, num_rows: int, prompt: int, capacity: int) -> None:
        """Room for `num_rows` branches of `capacity` tokens and as many trunks of `prompt` tokens."""
        self._model = model
        layers, kv_heads = like.keys.shape[:2]
        own, trunk = (num_rows, kv_heads, blocks_up(capacity)), (num_rows, kv_heads, blocks_up(prompt))
        self._own = [t.new_empty((layers, *own, t.shape[3])) for t in (like.keys, like.values)]
        self._trunk = [t.new_empty((layers, *trunk, t.shape[3])) for t in (like.keys, like.values)]
        self._opened = 0  # columns of branches that have been zeroed: 0 · NaN is not zero
        self._length_R = torch.zeros(num_rows, dtype=torch.long)
        self._trunk_R = torch.zeros(num_rows, dtype=torch.long)
        self._trunk_length_T = torch.zeros(num_rows, dtype=torch.long)
        self._sharing: _Sharing | None = None
        self.num_idle = 0  # places in the attention of all steps that held no branch

    def put_trunk(self, trunk: int, prompt: Prefilled) -> None:
        """Lay down a prompt's keys and values."""
        for table, source in zip(self._trunk, (prompt.keys, prompt.values), strict=True):
            table[:, trunk, :, : prompt.length] = source
            table[:, trunk, :, prompt.length :] = 0
        self._trunk_length_T[trunk] = prompt.length
        self._sharing = None

    def start(self, row: int, trunk: int) -> None:
        """A branch without tokens above a trunk."""
        self._length_R[row], self._trunk_R[row] = 0, trunk
        self._sharing = None

    def put_own(self, row: int, keys: Tensor, values: Tensor) -> None:
        """Lay down the first columns of a branch: [layers, K, length, D]."""
        length = keys.shape[2]
        self._open(blocks_up(length + 1))
        for table, source in zip(self._own, (keys, values), strict=True):
            table[:, row, :, :length] = source
        self._length_R[row] = length

    def copy(self, source: int, target: int) -> None:
        """Let a branch be what another is."""
        length = int(self._length_R[source])
        for table in self._own:
            table[:, target, :, :length] = table[:, source, :, :length]
        self._length_R[target], self._trunk_R[target] = length, self._trunk_R[source]
        self._sharing = None

    def step(self, tokens_R: Tensor) -> Tensor:
        """[R, V] logits after appending one token to each of the first R branches."""
        num_rows, device = len(tokens_R), self._model.device
        length_R, trunk_R = self._length_R[:num_rows], self._trunk_R[:num_rows]
        if self._sharing is None or self._sharing.num_rows != num_rows:
            self._sharing = _Sharing.of(trunk_R, self._trunk_length_T, like=self._own[0])
        used = blocks_up(int(length_R.max()) + 1)
        self._open(used)
        position_R = length_R.to(device)
        reach = torch.arange(used, device=device) <= position_R[:, None]
        attend = _Step(
            own=[table[:, :num_rows] for table in self._own],
            trunk=self._trunk,
            sharing=self._sharing,
            row_R=torch.arange(num_rows, device=device),
            position_R=position_R,
            sees_RC=torch.cat([self._sharing.sees_RP, additive(reach, self._model.dtype)], -1),
        )
        depth_R = (self._trunk_length_T[trunk_R] + length_R).to(device)
        logits = self._model.logits(tokens_R.to(device), depth_R, attend, keep=torch.arange(num_rows, device=device))
        self._length_R[:num_rows] += 1
        self.num_idle += self._sharing.rows_TM.numel() - num_rows
        return logits

    def _open(self, used: int) -> None:
        if used > self._opened:
            for table in self._own:
                table[:, :, :, self._opened : used] = 0
            self._opened = used


@dataclass(frozen=True, kw_only=True)
class _Sharing:
    """Which branches grow from which trunk."""

    rows_TM: Tensor  # [T, M] the branches of the first T trunks, M the most; padded with branch 0
    place_R: Tensor  # [R] where a branch stands in `rows_TM` flattened
    sees_RP: Tensor  # [R, P] 0 or −inf over trunk columns
    num_rows: int

    @classmethod
    def of(cls, trunk_R: Tensor, trunk_length_T: Tensor, *, like: Tensor) -> "_Sharing":
        members = [torch.nonzero(trunk_R == t)[:, 0] for t in range(int(trunk_R.max()) + 1)]
        most = max(map(len, members))
        place_R = torch.empty_like(trunk_R)
        for t, rows in enumerate(members):
            place_R[rows] = t * most + torch.arange(len(rows))
        length_R = trunk_length_T[trunk_R]
        reach = torch.arange(blocks_up(int(length_R.max()))) < length_R[:, None]
        return cls(
            rows_TM=torch.stack([pad(rows, (0, most - len(rows))) for rows in members]).to(like.device),
            place_R=place_R.to(like.device),
            sees_RP=additive(reach.to(like.device), like.dtype),
            num_rows=len(trunk_R),
        )


@dataclass(frozen=True, kw_only=True)
class _Step:
    """The attention of one decode step: see `attention` for what is computed, `_Sharing` for how it is shared."""

    own: list[Tensor]  # keys and values of the branches, [layers, R, K, L, D]
    trunk: list[Tensor]  # of the trunks, [layers, trunks, K, P, D]
    sharing: _Sharing
    row_R: Tensor  # [R] 0, 1, …
    position_R: Tensor  # [R] the column each branch writes
    sees_RC: Tensor  # [R, P + L] 0 or −inf over the trunk's columns and its own

    def __call__(self, layer: int, query_NHD: Tensor, key_NKD: Tensor, value_NKD: Tensor, scale: float) -> Tensor:
        """[R, H, D]"""
        for table, new in zip(self.own, (key_NKD, value_NKD), strict=True):
            table[layer, self.row_R, :, self.position_R] = new
        shared, num_kv = self.sharing, key_NKD.shape[1]
        num_trunks, in_use = len(shared.rows_TM), shared.sees_RP.shape[1]
        used = self.sees_RC.shape[1] - in_use
        own_k, own_v = (table[layer, :, :, :used] for table in self.own)
        trunk_k, trunk_v = (table[layer, :num_trunks, :, :in_use] for table in self.trunk)
        q = (query_NHD * scale).view(len(query_NHD), num_kv, -1, query_NHD.shape[2])
        per_head = q.shape[2]
        q = _enough_rows(q)
        trunk_scores = self._by_row(self._by_trunk(q) @ trunk_k.transpose(-1, -2), q.shape[2])
        scores = torch.cat([trunk_scores, q @ own_k.transpose(-1, -2)], -1)
        weights = softmax(scores.add_(self.sees_RC[:, None, None]))
        trunk_mixed = self._by_row(self._by_trunk(weights[..., :in_use]) @ trunk_v, q.shape[2])
        mixed = trunk_mixed + weights[..., in_use:] @ own_v
        return mixed[:, :, :per_head].reshape(len(query_NHD), query_NHD.shape[1], -1)

    def _by_trunk(self, x: Tensor) -> Tensor:
        """[T, K, M·g, …] of [R, K, g, …]: the branches of one trunk as rows of one product."""
        rows_TM = self.sharing.rows_TM
        picked = x.index_select(0, rows_TM.flatten()).view(*rows_TM.shape, *x.shape[1:])  # [T, M, K, g, …]
        return picked.transpose(1, 2).flatten(2, 3)

    def _by_row(self, x: Tensor, per_head: int) -> Tensor:
        """[R, K, g, …] of [T, K, M·g, …]."""
        trunks, num_kv, _, width = x.shape
        by_place = x.view(trunks, num_kv, -1, per_head, width).transpose(1, 2).flatten(0, 1)
        return by_place.index_select(0, self.sharing.place_R)


def _enough_rows(q: Tensor) -> Tensor:
    missing = MIN_ROWS - q.shape[2]
    return pad(q, (0, 0, 0, missing)) if missing > 0 else q

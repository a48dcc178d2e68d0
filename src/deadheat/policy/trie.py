"""Log-probabilities of many completions of one prompt, with every shared prefix computed once.

The completions of a group form a trie below their prompt. A node is a token in its context; the log-probability of a
token is read from the logits of its parent. So only the prompt and the *inner* nodes are computed: nobody conditions on
a leaf. One row of a batch holds one group:

    columns   [ last prompt token | inner nodes in order of creation | the other prompt tokens | padding ]
    position  its depth from the prompt's start        mask  node i sees node j when j is i or an ancestor of i

Order within a row is free because positions and mask are explicit. The columns whose logits are needed come first, so
the language-model head runs on them alone. Groups share a forward pass while (rows × longest row) fits the token
budget; a group that does not fit is split by completions.

`logprobs_one_by_one` runs every completion as a sequence of its own: the slow twin, equal within 1e-4 in float32.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deadheat.errors import PromptTooLongError
from deadheat.policy.forward import CausalModel, additive
from deadheat.sampling.warp import is_plain, warped_logprobs
from deadheat.types import SamplingParams

ROOT = -1  # parent of a first token: the last token of the prompt


@dataclass(frozen=True, kw_only=True)
class Branches:
    """A prompt and the completions that grow from it."""

    prompt_tokens: tuple[int, ...]  # non-empty
    completions: tuple[tuple[int, ...], ...]  # one may be empty, and two may be equal


@dataclass(frozen=True, kw_only=True)
class LogprobsAccount:
    """What one call of `logprobs` computed."""

    num_computed: int  # tokens run: prompts and inner nodes
    num_padded: int  # columns run for nothing, to make rows equally long
    num_unshared: int  # tokens a pass per completion would have run
    num_passes: int  # forward passes


@dataclass(frozen=True, kw_only=True)
class Scored:
    """Log-probabilities per group and completion, and what they took."""

    logprobs: list[list[Tensor]]  # [T] each
    account: LogprobsAccount


@dataclass(frozen=True, kw_only=True)
class Trie:
    """The distinct prefixes of a set of completions, parents before children."""

    tokens: tuple[int, ...]  # per node
    parents: tuple[int, ...]  # per node; ROOT for first tokens
    depths: tuple[int, ...]  # per node; 0 for first tokens
    paths: tuple[tuple[int, ...], ...]  # per completion, its nodes in order

    @property
    def inner(self) -> tuple[int, ...]:
        """Nodes that have a child, in order of creation."""
        return tuple(sorted({parent for parent in self.parents if parent != ROOT}))


def build_trie(completions: Sequence[Sequence[int]]) -> Trie:
    """Merge completions into a trie.

    Example:
        >>> build_trie([[5, 6], [5, 7]]).paths
        ((0, 1), (0, 2))
        >>> build_trie([[5, 6], [5, 7]]).inner
        (0,)
    """
    known: dict[tuple[int, int], int] = {}
    tokens: list[int] = []
    parents: list[int] = []
    depths: list[int] = []
    paths: list[tuple[int, ...]] = []
    for completion in completions:
        node = ROOT
        path: list[int] = []
        for depth, token in enumerate(completion):
            child = known.setdefault((node, token), len(tokens))
            if child == len(tokens):
                tokens.append(token)
                parents.append(node)
                depths.append(depth)
            node = child
            path.append(node)
        paths.append(tuple(path))
    return Trie(tokens=tuple(tokens), parents=tuple(parents), depths=tuple(depths), paths=tuple(paths))


@dataclass(frozen=True, kw_only=True)
class PackedRow:
    """One group laid out for a forward pass."""

    tokens_N: NDArray[np.int64]  # [N] per column
    positions_N: NDArray[np.int64]  # [N]
    sees_NN: NDArray[np.bool_]  # [N, N] which columns a column attends to
    num_kept: int  # leading columns whose logits are needed
    edge_columns: tuple[int, ...]  # per node of the trie, the column of its parent
    trie: Trie


def pack_row(branches: Branches) -> PackedRow:
    """Lay out one group.

    Example:
        Prompt 1 2, completions 5 6 and 5 7: token 5 is inner; 6 and 7 are leaves and are not run.
        >>> row = pack_row(Branches(prompt_tokens=(1, 2), completions=((5, 6), (5, 7))))
        >>> row.tokens_N.tolist(), row.positions_N.tolist(), row.edge_columns
        ([2, 5, 1], [1, 2, 0], (0, 1, 1))
        >>> row.sees_NN.astype(int).tolist()
        [[1, 0, 1], [1, 1, 1], [0, 0, 1]]
    """
    trie, prompt = build_trie(branches.completions), branches.prompt_tokens
    inner, head = trie.inner, len(branches.prompt_tokens) - 1
    column = {ROOT: 0} | {node: 1 + i for i, node in enumerate(inner)}
    num_kept = 1 + len(inner)
    size = num_kept + head
    sees_NN = np.zeros((size, size), dtype=bool)
    sees_NN[num_kept:, num_kept:] = np.tri(head, dtype=bool)
    sees_NN[0, num_kept:] = True
    sees_NN[0, 0] = True
    for node in inner:
        sees_NN[column[node]] = sees_NN[column[trie.parents[node]]]
        sees_NN[column[node], column[node]] = True
    return PackedRow(
        tokens_N=np.array([prompt[-1], *(trie.tokens[n] for n in inner), *prompt[:-1]], dtype=np.int64),
        positions_N=np.array([head, *(head + 1 + trie.depths[n] for n in inner), *range(head)], dtype=np.int64),
        sees_NN=sees_NN,
        num_kept=num_kept,
        edge_columns=tuple(column[parent] for parent in trie.parents),
        trie=trie,
    )


def trie_logprobs(
    model: CausalModel, groups: Sequence[Branches], *, sampling: SamplingParams | None, max_tokens: int
) -> Scored:
    """Log-probabilities of every completion's tokens, plain or warped by `sampling`."""
    _check(groups, model.context_length)
    pieces = [piece for g, branches in enumerate(groups) for piece in _split(g, branches, max_tokens)]
    found: list[list[Tensor]] = [[] for _ in groups]
    num_passes, num_computed, num_columns = 0, 0, 0
    for batch in _batches(pieces, max_tokens):
        rows = [row for _, row in batch]
        for (g, _), logprobs in zip(batch, _score(model, rows, sampling), strict=True):
            found[g] += logprobs
        num_passes += 1
        num_computed += sum(len(row.tokens_N) for row in rows)
        num_columns += len(rows) * max(len(row.tokens_N) for row in rows)
    account = LogprobsAccount(
        num_computed=num_computed,
        num_padded=num_columns - num_computed,
        num_unshared=sum(_unshared(branches) for branches in groups),
        num_passes=num_passes,
    )
    return Scored(logprobs=found, account=account)


def logprobs_one_by_one(
    model: CausalModel, groups: Sequence[Branches], *, sampling: SamplingParams | None
) -> list[list[Tensor]]:
    """Every completion as a sequence of its own: the slow twin of `trie_logprobs`."""
    _check(groups, model.context_length)
    return [[_alone(model, b.prompt_tokens, completion, sampling) for completion in b.completions] for b in groups]


def _alone(
    model: CausalModel, prompt: tuple[int, ...], completion: tuple[int, ...], sampling: SamplingParams | None
) -> Tensor:
    if not completion:
        return torch.zeros(0, device=model.device)
    ids = torch.tensor([[*prompt, *completion[:-1]]], device=model.device)
    positions = torch.arange(ids.shape[1], device=model.device)[None]
    causal = additive(positions[0][None, :] <= positions[0][:, None], model.dtype)[None, None]
    logits = model(ids, positions, causal, keep=len(completion))
    columns = torch.arange(len(completion), device=model.device)
    return _at(logits[0], columns, torch.tensor(completion, device=model.device), sampling)


def _check(groups: Sequence[Branches], context_length: int) -> None:
    for number, branches in enumerate(groups):
        if not branches.prompt_tokens:
            raise ValueError(f"group {number} has an empty prompt; wanted at least one token")
        longest = max(map(len, branches.completions), default=0)
        if len(branches.prompt_tokens) + longest > context_length:
            raise PromptTooLongError(
                f"group {number}: {len(branches.prompt_tokens)} prompt tokens plus {longest} completion tokens do not "
                f"fit this model's context of {context_length}; shorten one of them"
            )


def _unshared(branches: Branches) -> int:
    return sum(len(branches.prompt_tokens) + len(c) - 1 for c in branches.completions if c)


def _split(group: int, branches: Branches, max_tokens: int) -> Iterator[tuple[int, PackedRow]]:
    """The group as one row, or as rows of fewer completions where it exceeds the budget."""
    row = pack_row(branches)
    if len(row.tokens_N) <= max_tokens or len(branches.completions) <= 1:
        yield group, row
        return
    half = len(branches.completions) // 2
    for part in (branches.completions[:half], branches.completions[half:]):
        yield from _split(group, Branches(prompt_tokens=branches.prompt_tokens, completions=part), max_tokens)


def _batches(pieces: Sequence[tuple[int, PackedRow]], max_tokens: int) -> Iterator[list[tuple[int, PackedRow]]]:
    """Consecutive rows while rows × longest fits the budget: a group's pieces stay in the order of its completions."""
    batch: list[tuple[int, PackedRow]] = []
    for piece in pieces:
        longest = max(len(row.tokens_N) for _, row in [*batch, piece])
        if batch and longest * (len(batch) + 1) > max_tokens:
            yield batch
            batch = []
        batch.append(piece)
    if batch:
        yield batch


def _score(model: CausalModel, rows: Sequence[PackedRow], sampling: SamplingParams | None) -> list[list[Tensor]]:
    """One forward pass over padded rows; per row and completion, its log-probabilities."""
    size, num_kept = max(len(row.tokens_N) for row in rows), max(row.num_kept for row in rows)
    ids = np.zeros((len(rows), size), dtype=np.int64)
    positions = np.zeros((len(rows), size), dtype=np.int64)
    sees = np.zeros((len(rows), 1, size, size), dtype=bool)
    sees[:, :, np.arange(size), np.arange(size)] = True  # padding sees itself: a softmax over nothing is not a number
    for r, row in enumerate(rows):
        used = len(row.tokens_N)
        ids[r, :used], positions[r, :used], sees[r, 0, :used, :used] = row.tokens_N, row.positions_N, row.sees_NN
    on_device = [torch.from_numpy(array).to(model.device) for array in (ids, positions, sees)]
    keep = torch.arange(num_kept, device=model.device)
    logits = model(on_device[0], on_device[1], additive(on_device[2], model.dtype), keep=keep)
    columns = [r * num_kept + column for r, row in enumerate(rows) for column in row.edge_columns]
    tokens = [token for row in rows for token in row.trie.tokens]
    index = torch.tensor([columns, tokens], dtype=torch.long, device=model.device)
    edges = _at(logits.flatten(0, 1), index[0], index[1], sampling)
    per_row = torch.split(edges, [len(row.trie.tokens) for row in rows])
    return [[nodes[list(path)] for path in row.trie.paths] for nodes, row in zip(per_row, rows, strict=True)]


def _at(logits_CV: Tensor, columns_E: Tensor, tokens_E: Tensor, sampling: SamplingParams | None) -> Tensor:
    """[E] log-probability of each token at its column."""
    if sampling is not None and not is_plain(sampling):
        return warped_logprobs(logits_CV, sampling)[columns_E, tokens_E]
    logits_CV = logits_CV if logits_CV.dtype == torch.float64 else logits_CV.float()
    return logits_CV[columns_E, tokens_E] - torch.logsumexp(logits_CV, dim=-1)[columns_E]

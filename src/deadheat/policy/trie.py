"""Log-probabilities of many completions, with every shared prefix computed once.

The completions of a group form a trie below their prompt, and the prompts of a pass form one too. A node is a token in
its context; the log-probability of a token is read from the logits of its parent. So only the prompts and the *inner*
nodes are computed: nobody conditions on a leaf. A pass is one row of columns without padding:

    columns   [ prompt tokens, a common head once | inner nodes of the first group | of the second | … ]
    position  its depth from the prompt's start        a column sees its prompt and its own branch (see `attention`)

Groups share a pass while their columns fit the token budget; a group that does not fit is split by completions.
A token's log-probability has the same bits in every pass, and those it had when it was drawn.

`logprobs_one_by_one` runs every completion as a sequence of its own: the slow twin, equal within 1e-4 in float32.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deadheat.errors import PromptTooLongError
from deadheat.policy.attention import Attend
from deadheat.policy.forward import CausalModel
from deadheat.policy.layout import Columns, Path
from deadheat.policy.scores import TokenLogprobs, edge_logprobs
from deadheat.types import SamplingParams

ROOT = -1  # parent of a first token: the last token of the prompt


@dataclass(frozen=True, kw_only=True)
class Branches:
    """A prompt and the completions that grow from it."""

    prompt_tokens: tuple[int, ...]  # non-empty
    completions: tuple[tuple[int, ...], ...]  # one may be empty, and two may be equal

    @property
    def num_unshared(self) -> int:
        """Tokens that a pass per completion would run."""
        return sum(len(self.prompt_tokens) + len(c) - 1 for c in self.completions if c)


@dataclass(frozen=True, kw_only=True)
class LogprobsAccount:
    """What one call of `logprobs` computed."""

    num_computed: int  # tokens run: prompts and inner nodes
    num_padded: int  # places in attention that held no token
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
class Pass:
    """Some groups laid out for one forward pass."""

    tokens_N: NDArray[np.int64]  # [N] per column
    positions_N: NDArray[np.int64]  # [N]
    paths: tuple[Path, ...]  # who sees whom: prompts first, then completions
    trunks: tuple[Columns, ...]  # the columns of each prompt
    edge_columns: tuple[int, ...]  # per node of every trie, the column of its parent
    tries: tuple[Trie, ...]  # one per group

    @property
    def edge_tokens(self) -> tuple[int, ...]:
        """Per node of every trie, its token."""
        return tuple(token for trie in self.tries for token in trie.tokens)


def lay_out(groups: Sequence[Branches]) -> Pass:
    """Give every prompt token and inner node a column; a head that prompts have in common gets one.

    Example:
        Prompt 1 2, completions 5 6 and 5 7: token 5 is inner; 6 and 7 are leaves and are not run.
        >>> laid = lay_out([Branches(prompt_tokens=(1, 2), completions=((5, 6), (5, 7)))])
        >>> laid.tokens_N.tolist(), laid.positions_N.tolist(), laid.edge_columns
        ([1, 2, 5], [0, 1, 2], (1, 2, 2))
    """
    numbers = {prompt: i for i, prompt in enumerate(dict.fromkeys(b.prompt_tokens for b in groups))}
    prompts = build_trie(list(numbers))
    trunks = tuple(np.array(path, dtype=np.int64) for path in prompts.paths)
    tokens, positions = list(prompts.tokens), list(prompts.depths)
    paths = [*_asking(trunks, None)]
    edges: list[int] = []
    tries = tuple(build_trie(branches.completions) for branches in groups)
    for branches, trie in zip(groups, tries, strict=True):
        number = numbers[branches.prompt_tokens]
        column = {ROOT: int(trunks[number][-1])} | {node: len(tokens) + i for i, node in enumerate(trie.inner)}
        tokens += [trie.tokens[node] for node in trie.inner]
        positions += [len(branches.prompt_tokens) + trie.depths[node] for node in trie.inner]
        inner_paths = [np.array([column[n] for n in path if n in column], dtype=np.int64) for path in trie.paths]
        paths += _asking(inner_paths, number)
        edges += [column[parent] for parent in trie.parents]
    return Pass(
        tokens_N=np.array(tokens, dtype=np.int64),
        positions_N=np.array(positions, dtype=np.int64),
        paths=tuple(paths),
        trunks=trunks,
        edge_columns=tuple(edges),
        tries=tries,
    )


def _asking(paths: Sequence[Columns], trunk: int | None) -> Iterator[Path]:
    """Paths with the columns each is the first to hold: columns are numbered as the paths are walked."""
    newest = -1
    for columns in paths:
        first = int(np.searchsorted(columns, newest, side="right"))
        if first < len(columns):
            yield Path(columns=columns, first=first, trunk=trunk)
            newest = int(columns[-1])


@dataclass(frozen=True, kw_only=True)
class ScoredPiece:
    """Consecutive completions of one group."""

    group: int  # which group
    first: int  # its first completion here
    logprobs: list[Tensor]  # [T] per completion


@dataclass(frozen=True, kw_only=True)
class ScoredPass:
    """What one forward pass gave."""

    pieces: list[ScoredPiece]
    num_computed: int  # columns run
    num_padded: int  # places in attention that held no token


@dataclass(frozen=True, kw_only=True)
class _Piece:
    """A group, or as many of its completions as the budget allows."""

    group: int
    first: int
    branches: Branches

    @cached_property
    def num_columns(self) -> int:
        """Columns it needs on its own: the prompt and inner nodes."""
        return len(self.branches.prompt_tokens) + len(build_trie(self.branches.completions).inner)


def score_passes(
    model: CausalModel, groups: Sequence[Branches], *, sampling: SamplingParams | None, max_tokens: int
) -> Iterator[ScoredPass]:
    """One pass after another, so that whoever takes gradients can let go of each before the next is computed."""
    _check(groups, model.context_length)
    pieces = [
        piece
        for g, branches in enumerate(groups)
        for piece in _split(_Piece(group=g, first=0, branches=branches), max_tokens)
    ]
    for batch in _batches(pieces, max_tokens):
        laid = lay_out([piece.branches for piece in batch])
        attend = model.path_pass(laid.paths, laid.trunks)
        scored = [
            ScoredPiece(group=piece.group, first=piece.first, logprobs=logprobs)
            for piece, logprobs in zip(batch, _score(model, laid, attend, sampling), strict=True)
        ]
        yield ScoredPass(pieces=scored, num_computed=len(laid.tokens_N), num_padded=attend.num_idle)


def trie_logprobs(
    model: CausalModel, groups: Sequence[Branches], *, sampling: SamplingParams | None, max_tokens: int
) -> Scored:
    """Log-probabilities of every completion's tokens, plain or warped by `sampling`."""
    found: list[list[Tensor]] = [[] for _ in groups]
    num_passes = num_computed = num_padded = 0
    for scored in score_passes(model, groups, sampling=sampling, max_tokens=max_tokens):
        for piece in scored.pieces:
            found[piece.group] += piece.logprobs
        num_passes += 1
        num_computed += scored.num_computed
        num_padded += scored.num_padded
    account = LogprobsAccount(
        num_computed=num_computed,
        num_padded=num_padded,
        num_unshared=sum(b.num_unshared for b in groups),
        num_passes=num_passes,
    )
    return Scored(logprobs=found, account=account)


def logprobs_one_by_one(
    model: CausalModel, groups: Sequence[Branches], *, sampling: SamplingParams | None
) -> list[list[Tensor]]:
    """Every completion as a sequence of its own, through the model's usual call: the slow twin of `trie_logprobs`."""
    _check(groups, model.context_length)
    return [[_alone(model, b.prompt_tokens, completion, sampling) for completion in b.completions] for b in groups]


def _alone(
    model: CausalModel, prompt: tuple[int, ...], completion: tuple[int, ...], sampling: SamplingParams | None
) -> Tensor:
    if not completion:
        return torch.zeros(0, device=model.device)
    ids = torch.tensor([[*prompt, *completion[:-1]]], device=model.device)
    logits = model.module(input_ids=ids, use_cache=False, logits_to_keep=len(completion)).logits
    columns = torch.arange(len(completion), device=model.device)
    return edge_logprobs(logits[0], columns, torch.tensor(completion, device=model.device), sampling)


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


def _split(piece: _Piece, max_tokens: int) -> Iterator[_Piece]:
    """The group whole, or in parts of fewer completions where it exceeds the budget."""
    branches, first = piece.branches, piece.first
    if piece.num_columns <= max_tokens or len(branches.completions) <= 1:
        yield piece
        return
    half = len(branches.completions) // 2
    for start, part in ((first, branches.completions[:half]), (first + half, branches.completions[half:])):
        half_piece = Branches(prompt_tokens=branches.prompt_tokens, completions=part)
        yield from _split(_Piece(group=piece.group, first=start, branches=half_piece), max_tokens)


def _batches(pieces: Sequence[_Piece], max_tokens: int) -> Iterator[list[_Piece]]:
    """Consecutive pieces while their columns fit the budget, what prompts have in common counted once."""
    batch: list[_Piece] = []
    used = 0
    for piece in pieces:
        prompt = piece.branches.prompt_tokens
        shared = max((_num_common(prompt, other.branches.prompt_tokens) for other in batch), default=0)
        if batch and used + piece.num_columns - shared > max_tokens:
            yield batch
            batch, used, shared = [], 0, 0
        batch.append(piece)
        used += piece.num_columns - shared
    if batch:
        yield batch


def _num_common(one: Sequence[int], other: Sequence[int]) -> int:
    """Length of the common head.

    Example:
        >>> _num_common((1, 2, 3), (1, 2, 4))
        2
    """
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _score(model: CausalModel, laid: Pass, attend: Attend, sampling: SamplingParams | None) -> list[list[Tensor]]:
    """One forward pass; per group and completion, its log-probabilities."""
    kept, place = np.unique(np.array(laid.edge_columns, dtype=np.int64), return_inverse=True)
    order = np.argsort(place, kind="stable")
    arrays = (laid.tokens_N, laid.positions_N, kept, place[order], np.array(laid.edge_tokens, dtype=np.int64)[order])
    ids, positions, keep, columns_E, tokens_E = (torch.from_numpy(a).to(model.device) for a in arrays)
    weight = model.head_weight
    if len(kept) == 0:
        found_E = torch.zeros(0, device=model.device)
    elif weight is None:
        found_E = edge_logprobs(model.logits(ids, positions, attend, keep=keep), columns_E, tokens_E, sampling)
    else:
        states = model.states(ids, positions, attend, keep=keep)
        found_E = TokenLogprobs.apply(states, columns_E, tokens_E, model.head, weight, sampling)  # type: ignore[no-untyped-call]
    by_node = found_E[torch.from_numpy(np.argsort(order)).to(model.device)]
    per_group = torch.split(by_node, [len(trie.tokens) for trie in laid.tries])
    return [[nodes[list(path)] for path in trie.paths] for nodes, trie in zip(per_group, laid.tries, strict=True)]

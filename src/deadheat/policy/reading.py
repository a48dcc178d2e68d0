"""One teacher-forced pass over groups: every shared prefix computed once, and a reader that says what is read.

Groups share a pass while their columns fit the token budget; a group that does not fit is split by completions.
What is read of a token has the same bits in every pass, and its log-probability those it had when it was drawn.

`logprobs_one_by_one` runs every completion as a sequence of its own: the slow twin, equal within 1e-4 in float32.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from deadheat.errors import PromptTooLongError
from deadheat.policy.attention import Attend
from deadheat.policy.forward import CausalModel
from deadheat.policy.readers import Reader, Seen, edge_logprobs
from deadheat.policy.trie import Branches, Pass, build_trie, lay_out
from deadheat.types import Reading, ReadingCost, SamplingParams, TokenGroup


@dataclass(frozen=True, kw_only=True)
class PassPart:
    """What one pass read of consecutive completions of one group."""

    group: int  # which group
    first: int  # its first completion here
    values_G: list[Tensor]  # [T, ...] per completion


@dataclass(frozen=True, kw_only=True)
class PassReading:
    """What one forward pass gave."""

    parts: list[PassPart]
    num_computed: int  # columns run
    num_padded: int  # places in attention that held no token


def read_passes(
    model: CausalModel, groups: Sequence[TokenGroup], reader: Reader, *, max_tokens: int
) -> Iterator[PassReading]:
    """One pass after another, so that whoever takes gradients can free the graph of each before the next starts."""
    _check(groups, model.context_length)
    pieces = [
        piece for g, group in enumerate(groups) for piece in _split(_Piece(group=g, first=0, tokens=group), max_tokens)
    ]
    for batch in _batches(pieces, max_tokens):
        laid = lay_out([piece.tokens for piece in batch])
        attend = model.path_pass(laid.paths, laid.trunks)
        parts = [
            PassPart(group=piece.group, first=piece.first, values_G=values_G)
            for piece, values_G in zip(batch, _run(model, laid, attend, reader), strict=True)
        ]
        yield PassReading(parts=parts, num_computed=len(laid.tokens_N), num_padded=attend.num_idle)


def read(model: CausalModel, groups: Sequence[TokenGroup], reader: Reader, *, max_tokens: int) -> Reading[Tensor]:
    """What `reader` reads at every token of every completion."""
    found: list[list[Tensor]] = [[] for _ in groups]
    num_passes = num_computed = num_padded = 0
    for done in read_passes(model, groups, reader, max_tokens=max_tokens):
        for part in done.parts:
            found[part.group] += part.values_G
        num_passes += 1
        num_computed += done.num_computed
        num_padded += done.num_padded
    cost = ReadingCost(
        num_computed=num_computed, num_padded=num_padded, num_unshared=num_unshared(groups), num_passes=num_passes
    )
    return Reading(values_PG=found, cost=cost)


def num_unshared(groups: Sequence[TokenGroup]) -> int:
    """Tokens that a pass per completion would run: the last token of each is predicted and never fed."""
    return sum(len(group.prompt_tokens) + len(c) - 1 for group in groups for c in group.completion_tokens if c)


def logprobs_one_by_one(
    model: CausalModel, groups: Sequence[TokenGroup], *, sampling: SamplingParams | None
) -> list[list[Tensor]]:
    """Every completion as a sequence of its own, through the model's usual call: the slow twin of `chosen_logprobs`."""
    _check(groups, model.context_length)
    return [
        [_alone(model, g.prompt_tokens, completion, sampling) for completion in g.completion_tokens] for g in groups
    ]


def _alone(
    model: CausalModel, prompt: tuple[int, ...], completion: tuple[int, ...], sampling: SamplingParams | None
) -> Tensor:
    if not completion:
        return torch.zeros(0, device=model.device)
    ids = torch.tensor([[*prompt, *completion[:-1]]], device=model.device)
    logits = model.module(input_ids=ids, use_cache=False, logits_to_keep=len(completion)).logits
    columns = torch.arange(len(completion), device=model.device)
    return edge_logprobs(logits[0], columns, torch.tensor(completion, device=model.device), sampling)


@dataclass(frozen=True, kw_only=True)
class _Piece:
    """A group, or as many of its completions as the budget allows."""

    group: int
    first: int
    tokens: TokenGroup

    @cached_property
    def num_columns(self) -> int:
        """Columns it needs on its own: the prompt and inner nodes."""
        return len(self.tokens.prompt_tokens) + len(build_trie(self.tokens.completion_tokens).inner)


def _check(groups: Sequence[TokenGroup], context_length: int) -> None:
    for number, group in enumerate(groups):
        if not group.prompt_tokens:
            raise ValueError(f"group {number} has an empty prompt; wanted at least one token")
        longest = max(map(len, group.completion_tokens), default=0)
        if len(group.prompt_tokens) + longest > context_length:
            raise PromptTooLongError(
                f"group {number}: {len(group.prompt_tokens)} prompt tokens plus {longest} completion tokens do not "
                f"fit this model's context of {context_length}; shorten one of them"
            )


def _split(piece: _Piece, max_tokens: int) -> Iterator[_Piece]:
    """The group whole, or in parts of fewer completions where it exceeds the budget."""
    tokens, first = piece.tokens, piece.first
    completions = tokens.completion_tokens
    if piece.num_columns <= max_tokens or len(completions) <= 1:
        yield piece
        return
    half = len(completions) // 2
    for start, part in ((first, completions[:half]), (first + half, completions[half:])):
        half_piece = Branches(prompt_tokens=tokens.prompt_tokens, completion_tokens=part)
        yield from _split(_Piece(group=piece.group, first=start, tokens=half_piece), max_tokens)


def _batches(pieces: Sequence[_Piece], max_tokens: int) -> Iterator[list[_Piece]]:
    """Consecutive pieces while their columns fit the budget, what prompts have in common counted once."""
    batch: list[_Piece] = []
    used = 0
    for piece in pieces:
        prompt = piece.tokens.prompt_tokens
        shared = max((_num_common(prompt, other.tokens.prompt_tokens) for other in batch), default=0)
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


def _run(model: CausalModel, laid: Pass, attend: Attend, reader: Reader) -> list[list[Tensor]]:
    """One forward pass; per group and completion, what was read of it."""
    kept, place = np.unique(np.array(laid.edge_columns, dtype=np.int64), return_inverse=True)
    order = np.argsort(place, kind="stable")
    arrays = (laid.tokens_N, laid.positions_N, kept, place[order], np.array(laid.edge_tokens, dtype=np.int64)[order])
    ids, positions, keep, columns_E, tokens_E = (torch.from_numpy(a).to(model.device) for a in arrays)
    if len(kept) == 0:
        read_E = torch.zeros(0, device=model.device)
    else:
        below = model.has_plain_head and (model.head_weight is not None or not torch.is_grad_enabled())
        run = model.states if below else model.logits
        out = run(ids, positions, attend, keep=keep)
        read_E = reader(
            Seen(
                states_CD=out if below else None,
                logits_CV=None if below else out,
                columns_E=columns_E,
                tokens_E=tokens_E,
                head=model.head,
                frozen_head_VD=model.head_weight if below else None,
            )
        )
    by_node = read_E[torch.from_numpy(np.argsort(order)).to(model.device)]
    per_group = torch.split(by_node, [len(trie.tokens) for trie in laid.tries])
    return [[nodes[list(path)] for path in trie.paths] for nodes, trie in zip(per_group, laid.tries, strict=True)]

"""Attention over branches: the dense computation's numbers and gradients, whatever the chunks."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deadheat.errors import UnsupportedModelError
from deadheat.policy import layout
from deadheat.policy.attention import PathAttention, attention
from deadheat.policy.layout import attention_chunks
from deadheat.policy.trie import Branches, lay_out

HEADS, KV_HEADS, WIDTH, SCALE = 4, 2, 3, 0.7


def wave(*shape, step):
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float64).mul(step).sin().view(shape).requires_grad_(True)


def columns_of(laid):
    size = len(laid.tokens_N)
    return (
        wave(size, HEADS, WIDTH, step=0.7),
        wave(size, KV_HEADS, WIDTH, step=1.1),
        wave(size, KV_HEADS, WIDTH, step=1.9),
    )


def dense(laid, q, k, v):
    """softmax(q·kᵀ·scale + mask)·v over all columns, the mask from each column's own context."""
    sees = torch.zeros(len(q), len(q), dtype=torch.bool)
    for path in laid.paths:
        trunk = [] if path.trunk is None else laid.trunks[path.trunk].tolist()
        for place in range(path.first, len(path.columns)):
            sees[path.columns[place], [*trunk, *path.columns[: place + 1].tolist()]] = True
    k, v = (t.repeat_interleave(HEADS // KV_HEADS, dim=1) for t in (k, v))
    scores = torch.einsum("nhd,mhd->hnm", q, k) * SCALE
    weights = scores.masked_fill(~sees, -torch.inf).softmax(-1)
    return torch.einsum("hnm,mhd->nhd", weights, v)


def by_paths(laid, q, k, v):
    chunks = attention_chunks(laid.paths, laid.trunks, num_heads=HEADS, like=q.detach())
    return PathAttention.apply(q, k, v, chunks, SCALE)


PROMPTS = st.lists(st.integers(0, 2), min_size=1, max_size=20).map(tuple)
COMPLETIONS = st.lists(st.lists(st.integers(0, 2), max_size=20).map(tuple), max_size=6).map(tuple)


@settings(max_examples=40)
@given(
    groups=st.lists(st.tuples(PROMPTS, COMPLETIONS), min_size=1, max_size=4),
    query_block=st.sampled_from([16, 64]),
    max_scores=st.sampled_from([1, 2_000, 4_000_000]),
)
def test_values_and_gradients_are_those_of_the_dense_computation(groups, query_block, max_scores):
    laid = lay_out([Branches(prompt_tokens=p, completion_tokens=c) for p, c in groups])
    inputs = columns_of(laid)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "QUERY_BLOCK", query_block)
        patch.setattr(layout, "MAX_SCORES", max_scores)
        ours, plain = by_paths(laid, *inputs), dense(laid, *inputs)
    torch.testing.assert_close(ours, plain)
    weights = wave(*ours.shape, step=0.3).detach()
    for a, b in zip(*(torch.autograd.grad((out * weights).sum(), inputs) for out in (ours, plain)), strict=True):
        torch.testing.assert_close(a, b)


def test_gradients_hold_in_double_precision():
    laid = lay_out([Branches(prompt_tokens=(1, 2), completion_tokens=((3, 4, 5), (3, 6, 7)))])
    assert torch.autograd.gradcheck(lambda q, k, v: by_paths(laid, q, k, v), columns_of(laid))


def test_every_column_asks_in_exactly_one_chunk_and_long_paths_are_cut():
    laid = lay_out(
        [Branches(prompt_tokens=tuple(range(150)), completion_tokens=(tuple(range(70)), tuple(range(5, 9))))]
    )
    chunks = attention_chunks(laid.paths, laid.trunks, num_heads=HEADS, like=torch.zeros(0))
    asked = np.concatenate([chunk.queries_GCT[chunk.is_query_GCT].numpy() for chunk in chunks])
    assert sorted(asked.tolist()) == list(range(150 + 69 + 3))
    # The prompt's 150 = 64 + 64 + 22 queries see up to 64, 128 and 150 keys: the first two blocks share a chunk of 128,
    # since less than half of it is padding, and the last has one of 160, its keys filled up to whole blocks of 16.
    assert [chunk.own_GCL.shape for chunk in chunks if chunk.trunk_GP is None] == [(1, 1, 160), (2, 1, 128)]


@pytest.mark.parametrize("asked", [{"softcap": 5.0}, {"s_aux": torch.zeros(4)}, {"dropout": 0.1}])
def test_what_attention_cannot_do_here_is_refused(asked):
    q, k = torch.zeros(1, 4, 2, 3), torch.zeros(1, 2, 2, 3)
    with pytest.raises(UnsupportedModelError, match="soft-capped scores, attention sinks or attention dropout"):
        attention(None, q, k, k, None, **asked)

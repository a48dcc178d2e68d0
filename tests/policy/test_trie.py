"""The trie: every distinct prefix once, and the same log-probabilities and gradients as one pass per completion."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deadheat.errors import PromptTooLongError
from deadheat.policy import Branches, trainable_parameters
from deadheat.policy.trie import ROOT, build_trie, logprobs_one_by_one, pack_row
from deadheat.types import SamplingParams

COMPLETIONS = st.lists(st.lists(st.integers(0, 3), max_size=6).map(tuple), max_size=8)


@given(COMPLETIONS)
def test_nodes_are_the_distinct_prefixes_and_paths_spell_the_completions(completions):
    trie = build_trie(completions)
    prefixes = {c[: i + 1] for c in completions for i in range(len(c))}
    assert len(trie.tokens) == len(prefixes)
    for completion, path in zip(completions, trie.paths, strict=True):
        assert tuple(trie.tokens[n] for n in path) == completion
        assert tuple(trie.depths[n] for n in path) == tuple(range(len(completion)))
        assert [trie.parents[n] for n in path] == [ROOT, *path[:-1]][: len(path)]


@given(COMPLETIONS, st.lists(st.integers(0, 3), min_size=1, max_size=5).map(tuple))
def test_a_column_sees_exactly_its_own_context(completions, prompt):
    row = pack_row(Branches(prompt_tokens=prompt, completions=tuple(completions)))
    prefixes = {c[: i + 1] for c in completions for i in range(len(c))}
    inner = {p for p in prefixes if any(len(q) == len(p) + 1 and q[: len(p)] == p for q in prefixes)}
    assert row.num_kept == 1 + len(inner)
    assert len(row.tokens_N) == len(prompt) + len(inner)
    contexts = set()
    for column in range(row.num_kept):
        seen = sorted((row.positions_N[j], row.tokens_N[j]) for j in row.sees_NN[column].nonzero()[0])
        assert [position for position, _ in seen] == list(range(row.positions_N[column] + 1))
        contexts.add(tuple(token for _, token in seen))
    assert contexts == {prompt} | {prompt + p for p in inner}


def groups_of(policy):
    encode = [policy.encode(text, chat=False) for text in ("1 + 1 = 2\n3", "1 + 1 = 2\n12 +")]
    completions = [
        [policy.encode(t, chat=False) for t in (" + 4 = 7\n", " + 4 = 8\n", " + 5 = 8\n", " + 4 = 7\n", "")],
        [policy.encode(t, chat=False) for t in (" 13 = 25\n", " 1", "x")],
    ]
    return [Branches(prompt_tokens=p, completions=tuple(c)) for p, c in zip(encode, completions, strict=True)]


@pytest.mark.parametrize("sampling", [None, SamplingParams(temperature=0.7, top_k=20)])
@pytest.mark.parametrize("budget", [2048, 60, 1])
def test_shared_and_one_by_one_agree_whatever_the_budget(tiny_policy, sampling, budget):
    groups = groups_of(tiny_policy)
    policy = type(tiny_policy)(
        tiny_policy.module, tiny_policy.tokenizer, tiny_policy.config.model_copy(update={"max_update_tokens": budget})
    )
    with torch.no_grad():
        shared = policy.logprobs(groups, sampling=sampling)
        alone = logprobs_one_by_one(policy._model, groups, sampling=sampling)
    assert [[len(t) for t in group] for group in shared] == [[9, 9, 9, 9, 0], [9, 2, 1]]
    for mine, theirs in zip(shared, alone, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            assert torch.equal(torch.isinf(a), torch.isinf(b))
            assert torch.allclose(a, b, atol=1e-4, rtol=0)


def test_the_account_counts_prompts_and_inner_nodes_once(tiny_policy):
    groups = groups_of(tiny_policy)
    with torch.no_grad():
        tiny_policy.logprobs(groups)
    account = tiny_policy.last_logprobs
    # group 1: prompt 11; inner " + 4 = " is 7 characters, then 7 and 8; from " + " on, "5 = 8": 5, space, =, space, 8.
    # Leaves (the newlines) are not run: 7 + 2 + 5 = 14. Group 2: prompt 14; " 13 = 25" is 8 inner, " 1" shared, x a leaf.
    assert account.num_computed == (11 + 14) + (14 + 8)
    assert account.num_padded == 25 - 22
    assert account.num_unshared == 4 * (11 + 8) + (14 + 8) + (14 + 1) + 14
    assert account.num_passes == 1


def test_gradients_of_both_paths_agree(tiny_policy):
    groups = groups_of(tiny_policy)
    parameters = trainable_parameters(tiny_policy)
    gradients = []
    for path in (
        lambda: tiny_policy.logprobs(groups),
        lambda: logprobs_one_by_one(tiny_policy._model, groups, sampling=None),
    ):
        weighted = [(i + 1) * t.sum() for i, t in enumerate(t for group in path() for t in group)]
        gradients.append(torch.autograd.grad(sum(weighted), list(parameters.values())))
    # LoRA's B starts at zero, so every A's gradient is exactly zero in both and every B's is not
    assert any(g.abs().max() > 0.1 for g in gradients[0])
    for a, b in zip(*gradients, strict=True):
        assert torch.allclose(a, b, atol=1e-4, rtol=1e-4)


def test_a_completion_beyond_the_context_is_refused_with_its_numbers(tiny_policy):
    too_long = Branches(prompt_tokens=(5,) * 1000, completions=((6,) * 25,))
    with pytest.raises(PromptTooLongError, match=r"1000 prompt tokens plus 25 completion tokens .* context of 1024"):
        tiny_policy.logprobs([too_long])


@pytest.mark.smollm2
def test_on_the_real_model_both_paths_agree_to_1e_4(smollm2):
    prompt = smollm2.encode("Problem: 12 + 35\nAnswer: 47\n\nProblem: 38 + 30\nAnswer:", chat=False)
    completions = tuple(smollm2.encode(t, chat=False) for t in (" 68\n", " 67\n", " 68.0\n", " sixty-eight\n"))
    groups = [Branches(prompt_tokens=prompt, completions=completions)]
    with torch.no_grad():
        shared, alone = smollm2.logprobs(groups), logprobs_one_by_one(smollm2._model, groups, sampling=None)
    for a, b in zip(shared[0], alone[0], strict=True):
        assert torch.allclose(a, b, atol=1e-4, rtol=0)

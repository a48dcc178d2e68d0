"""The trie: every distinct prefix once, and the same log-probabilities and gradients as one pass per completion."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deadheat.errors import PromptTooLongError
from deadheat.policy import Branches, trainable_parameters
from deadheat.policy.readers import chosen_logprobs
from deadheat.policy.reading import logprobs_one_by_one
from deadheat.policy.trie import ROOT, build_trie, lay_out
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


@given(st.lists(st.tuples(st.lists(st.integers(0, 3), min_size=1, max_size=5).map(tuple), COMPLETIONS), max_size=4))
def test_every_column_asks_once_and_sees_exactly_its_own_context(groups):
    laid = lay_out([Branches(prompt_tokens=p, completion_tokens=tuple(c)) for p, c in groups])
    contexts = []
    for path in laid.paths:
        trunk = () if path.trunk is None else tuple(laid.trunks[path.trunk])
        for position in range(path.first, len(path.columns)):
            seen = [*trunk, *path.columns[: position + 1]]
            assert [laid.positions_N[j] for j in seen] == list(range(len(seen)))
            contexts.append((path.columns[position], tuple(int(laid.tokens_N[j]) for j in seen)))
    assert sorted(column for column, _ in contexts) == list(range(len(laid.tokens_N)))
    heads = {p[: i + 1] for p, _ in groups for i in range(len(p))}
    inner = {(p, c[:i]) for p, completions in groups for c in completions for i in range(1, len(c))}
    counted = sum(len({c for p, c in inner_of(number, groups)}) for number in range(len(groups)))
    assert {context for _, context in contexts} == heads | {p + c for p, c in inner}
    assert len(laid.tokens_N) == len(heads) + counted


def inner_of(number, groups):
    prompt, completions = groups[number]
    return {(prompt, c[:i]) for c in completions for i in range(1, len(c))}


def groups_of(policy):
    encode = [policy.encode(text, chat=False) for text in ("1 + 1 = 2\n3", "1 + 1 = 2\n12 +")]
    completions = [
        [policy.encode(t, chat=False) for t in (" + 4 = 7\n", " + 4 = 8\n", " + 5 = 8\n", " + 4 = 7\n", "")],
        [policy.encode(t, chat=False) for t in (" 13 = 25\n", " 1", "x")],
    ]
    return [Branches(prompt_tokens=p, completion_tokens=tuple(c)) for p, c in zip(encode, completions, strict=True)]


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
        account = tiny_policy.read(groups, chosen_logprobs()).cost
    # group 1: prompt 11; inner " + 4 = " is 7 characters, then 7 and 8; from " + " on, "5 = 8": 5, space, =, space, 8.
    # Leaves (the newlines) are not run: 7 + 2 + 5 = 14. Group 2: prompt 14; " 13 = 25" is 8 inner, " 1" shared, x a leaf.
    # The prompts have their first 10 characters in common and another eleventh.
    assert account.num_computed == (11 + 14) + (14 + 8) - 10
    assert account.num_unshared == 4 * (11 + 8) + (14 + 8) + (14 + 1) + 14
    assert account.num_passes == 1


def test_a_pass_at_a_time_gives_the_same_bits_in_the_order_of_the_completions(tiny_policy):
    groups = groups_of(tiny_policy)
    small = type(tiny_policy)(
        tiny_policy.module, tiny_policy.tokenizer, tiny_policy.config.model_copy(update={"max_update_tokens": 20})
    )
    with torch.no_grad():
        whole = tiny_policy.logprobs(groups)
        passes = list(small.read_passes(groups, chosen_logprobs()))
    assert len(passes) > 2
    pieces = [piece for done in passes for piece in done.parts]
    assert [(p.group, p.first + i) for p in pieces for i in range(len(p.values_G))] == [
        (g, i) for g, branches in enumerate(groups) for i in range(len(branches.completion_tokens))
    ]
    for piece in pieces:
        for i, logprobs in enumerate(piece.values_G):
            assert torch.equal(logprobs, whole[piece.group][piece.first + i])


@pytest.mark.parametrize("sampling", [None, SamplingParams(temperature=0.7, top_p=0.95)])
def test_the_gradient_without_kept_logits_is_that_of_kept_ones(tiny_policy, sampling, monkeypatch):
    groups, parameters = groups_of(tiny_policy), list(trainable_parameters(tiny_policy).values())
    found = []
    for keeps in (False, True):
        if keeps:
            monkeypatch.setattr(type(tiny_policy._model), "head_weight", None)
        logprobs = torch.cat([t for group in tiny_policy.logprobs(groups, sampling=sampling) for t in group])
        weights = torch.linspace(-1.0, 1.0, len(logprobs)).masked_fill(logprobs.isinf(), 0.0)
        found.append(
            (logprobs.detach(), torch.autograd.grad((weights * logprobs.nan_to_num(neginf=0.0)).sum(), parameters))
        )
    (fast, fast_gradients), (kept, kept_gradients) = found
    assert torch.equal(fast, kept)
    assert max(g.abs().max() for g in kept_gradients) > 0.1
    for a, b in zip(fast_gradients, kept_gradients, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


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
    too_long = Branches(prompt_tokens=(5,) * 1000, completion_tokens=((6,) * 25,))
    with pytest.raises(PromptTooLongError, match=r"1000 prompt tokens plus 25 completion tokens .* context of 1024"):
        tiny_policy.logprobs([too_long])


@pytest.mark.smollm2
def test_on_the_real_model_both_paths_agree_to_1e_4(smollm2):
    prompt = smollm2.encode("Problem: 12 + 35\nAnswer: 47\n\nProblem: 38 + 30\nAnswer:", chat=False)
    completions = tuple(smollm2.encode(t, chat=False) for t in (" 68\n", " 67\n", " 68.0\n", " sixty-eight\n"))
    groups = [Branches(prompt_tokens=prompt, completion_tokens=completions)]
    with torch.no_grad():
        shared, alone = smollm2.logprobs(groups), logprobs_one_by_one(smollm2._model, groups, sampling=None)
    for a, b in zip(shared[0], alone[0], strict=True):
        assert torch.allclose(a, b, atol=1e-4, rtol=0)

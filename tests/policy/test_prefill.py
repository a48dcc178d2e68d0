"""Chunked prefill: equal to a whole pass, in any company, and a common head is run once."""

import pytest
import torch

from deadheat.policy.forward import CausalModel
from deadheat.policy.prefill import CHUNK, Prefiller, heads


@pytest.fixture(scope="module")
def model(tiny_policy):
    return CausalModel(tiny_policy.module)


def prompts_with_a_common_head(policy):
    head = "a head of forty characters, the same in "  # 40 characters, so two whole chunks of 16 are shared
    assert len(head) == 40
    return [
        policy.encode(head + tail, chat=False) for tail in ("one", "another of them", "x", "a fourth", "the fifth one")
    ]


def bits(state):
    return [state.logits_V, *(t for layer in state.layers for t in (layer.keys, layer.values))]


def test_chunks_give_the_numbers_of_one_whole_pass(tiny_policy, model):
    prompts = prompts_with_a_common_head(tiny_policy)
    with torch.no_grad():
        prefiller = Prefiller(model, prompts)
        prefiller.run(prompts)
        for prompt in prompts:
            for chunked, whole in zip(bits(prefiller.state(prompt)), bits(model.prefill(prompt)), strict=True):
                torch.testing.assert_close(chunked, whole, atol=1e-4, rtol=1e-4)


def test_company_and_order_change_no_bit(tiny_policy, model):
    prompts = prompts_with_a_common_head(tiny_policy)
    with torch.no_grad():
        together = Prefiller(model, prompts)
        together.run(prompts)
        for company in ([prompts[3]], [prompts[4], prompts[3]], prompts[::-1]):
            other = Prefiller(model, company)
            other.run(company)
            pairs = zip(bits(other.state(prompts[3])), bits(together.state(prompts[3])), strict=True)
            assert all(torch.equal(a, b) for a, b in pairs)


def test_a_shared_head_is_run_once_and_dropped_with_its_last_prompt(tiny_policy, model):
    prompts = prompts_with_a_common_head(tiny_policy)
    with torch.no_grad():
        prefiller = Prefiller(model, prompts)
        prefiller.run(prompts)
    # two shared chunks of 16, then each prompt's own tokens after 32: more than one chunk where it is over 48 long
    assert prefiller.num_computed == 2 * CHUNK + sum(len(prompt) - 2 * CHUNK for prompt in prompts)
    for prompt in prompts[:-1]:
        prefiller.release(prompt)
    assert not prefiller.has(prompts[0]) and prefiller.has(prompts[-1])
    prefiller.state(prompts[-1])
    prefiller.release(prompts[-1])
    assert not any(prefiller.has(head) for head in heads(prompts[-1]))


@pytest.mark.parametrize("length", [1, 15, 16, 17, 32, 33])
def test_every_length_around_a_chunk_works(tiny_policy, model, length):
    prompt = tuple(range(2, 2 + length))
    with torch.no_grad():
        prefiller = Prefiller(model, [prompt])
        prefiller.run([prompt])
        state, whole = prefiller.state(prompt), model.prefill(prompt)
    assert state.layers[0].keys.shape[2] == length
    torch.testing.assert_close(state.logits_V, whole.logits_V, atol=1e-4, rtol=1e-4)

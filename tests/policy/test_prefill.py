"""Prefill: equal to the model's own pass, in any company, and a common head is run once."""

import pytest
import torch

from deadheat.policy import prefill as prefill_module
from deadheat.policy.forward import CausalModel
from deadheat.policy.prefill import prefill


@pytest.fixture(scope="module")
def model(tiny_policy):
    return CausalModel(tiny_policy.module)


def prompts_with_a_common_head(policy):
    head = "a head of forty characters, the same in "
    assert len(head) == 40
    tails = ("one", "another of them", "x", "a fourth", "the fifth one")
    return [policy.encode(head + tail, chat=False) for tail in tails]


def bits(state):
    return [state.logits_V, state.keys, state.values]


def by_the_library(model, prompt):
    """The model's own call on the prompt alone, with the library's cache."""
    with torch.no_grad():
        out = model.module(input_ids=torch.tensor([prompt]), use_cache=True, logits_to_keep=1)
    keys = torch.stack([layer.keys[0] for layer in out.past_key_values.layers])
    values = torch.stack([layer.values[0] for layer in out.past_key_values.layers])
    return [out.logits[0, -1], keys, values]


def test_a_prompt_leaves_behind_what_the_library_computes(tiny_policy, model):
    prompts = prompts_with_a_common_head(tiny_policy)
    done = prefill(model, prompts).prompts
    for prompt in prompts:
        for ours, theirs in zip(bits(done[prompt]), by_the_library(model, prompt), strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


def test_company_order_and_the_budget_of_a_pass_change_no_bit(tiny_policy, model, monkeypatch):
    prompts = prompts_with_a_common_head(tiny_policy)
    together = prefill(model, prompts).prompts[prompts[3]]
    batches = [prefill(model, company) for company in ([prompts[3]], [prompts[4], prompts[3]], prompts[::-1])]
    monkeypatch.setattr(prefill_module, "MAX_TOKENS", 1)
    batches.append(prefill(model, prompts))
    for batch in batches:
        pairs = zip(bits(batch.prompts[prompts[3]]), bits(together), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)


def test_a_shared_head_is_run_once(tiny_policy, model):
    prompts = prompts_with_a_common_head(tiny_policy)
    # 40 characters once, then the tails of 3, 15, 1, 8 and 13; "one" and "another…" begin with other letters, so do the
    # rest but "a fourth", which shares its "a" with "another of them"
    assert prefill(model, prompts).num_computed == 40 + 3 + 15 + 1 + (8 - 1) + 13


@pytest.mark.parametrize("length", [1, 15, 16, 17, 63, 64, 65, 130])
def test_every_length_around_a_block_works(model, length):
    prompt = tuple(2 + i % 60 for i in range(length))
    state = prefill(model, [prompt]).prompts[prompt]
    assert state.length == length
    for ours, theirs in zip(bits(state), by_the_library(model, prompt), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)

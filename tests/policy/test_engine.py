"""Generation: company never changes a draw, and what is recorded is what was drawn."""

from dataclasses import replace

import pytest
import torch

from deadheat.errors import PromptTooLongError, UnsupportedModelError
from deadheat.policy import Branches
from deadheat.policy.forward import CausalModel
from deadheat.sampling.keys import permutation, stream_key
from deadheat.types import Draw, GenerateRequest, Generation, GenerationCost, SamplingParams, StopReason


def requests_of(policy, *, num_samples, cap=10, draw=Draw.GUMBEL_MAX, prompts=("1 + 1 = 2\n3 +", "1 + 1 = 2\n", "1 +")):
    return [
        GenerateRequest(
            prompt_tokens=policy.encode(text, chat=False),
            key=stream_key(1, "engine-test", text, sample),
            sampling=SamplingParams(max_new_tokens=cap, draw=draw),
            stop_ids=policy.stop_ids("\n"),
        )
        for text in prompts
        for sample in range(num_samples)
    ]


def in_batches(policy, requests, size):
    return [c for i in range(0, len(requests), size) for c in policy.generate(requests[i : i + size]).completions]


@pytest.mark.parametrize("draw", list(Draw))
def test_batch_size_and_order_change_nothing(tiny_policy, draw):
    requests = requests_of(tiny_policy, num_samples=25, draw=draw)
    together = list(
        tiny_policy.generate(requests).completions
    )  # 75 requests through a tile of 64: rows leave and others enter
    assert in_batches(tiny_policy, requests, 7) == together
    assert [tiny_policy.generate([r]).completions[0] for r in requests[::9]] == together[::9]
    order = permutation(3, len(requests)).tolist()
    shuffled = tiny_policy.generate([requests[i] for i in order]).completions
    assert [shuffled[order.index(i)] for i in range(len(requests))] == together


def test_recorded_logprobs_are_those_of_the_update_to_the_bit(tiny_policy):
    sampling = SamplingParams(temperature=0.5, top_p=0.9, max_new_tokens=8)
    base = requests_of(tiny_policy, num_samples=4)
    requests = [
        GenerateRequest(prompt_tokens=r.prompt_tokens, key=r.key, sampling=sampling, stop_ids=r.stop_ids) for r in base
    ]
    done = tiny_policy.generate(requests).completions
    groups = [
        Branches(prompt_tokens=r.prompt_tokens, completion_tokens=(c.tokens,))
        for r, c in zip(requests, done, strict=True)
    ]
    with torch.no_grad():
        plain, warped = tiny_policy.logprobs(groups), tiny_policy.logprobs(groups, sampling=sampling)
    for c, p, w in zip(done, plain, warped, strict=True):
        assert list(c.plain_logprobs) == p[0].tolist()
        assert list(c.logprobs) == w[0].tolist()
        assert all(margin > 0 for margin in c.margins)


def test_greedy_tokens_are_the_argmax_of_a_plain_forward_pass(tiny_policy):
    request = requests_of(tiny_policy, num_samples=1, draw=Draw.GREEDY)[0]
    completion = tiny_policy.generate([request]).completions[0]
    ids = torch.tensor([[*request.prompt_tokens, *completion.tokens]])
    with torch.no_grad():
        logits = tiny_policy.module(input_ids=ids).logits[0]
    start = len(request.prompt_tokens) - 1
    assert logits[start : start + len(completion.tokens)].argmax(-1).tolist() == list(completion.tokens)


def test_a_forced_prefix_continues_to_the_very_completion_it_was_cut_from(tiny_policy):
    requests = requests_of(tiny_policy, num_samples=3)
    whole = tiny_policy.generate(requests)
    halves = [len(c.tokens) // 2 for c in whole.completions]
    again = tiny_policy.generate(
        [
            GenerateRequest(
                prompt_tokens=r.prompt_tokens,
                key=r.key,
                sampling=r.sampling,
                stop_ids=r.stop_ids,
                forced=c.tokens[:half],
            )
            for r, c, half in zip(requests, whole.completions, halves, strict=True)
        ]
    )
    assert [replace(c, num_forced=0) for c in again.completions] == list(whole.completions)
    assert [c.num_forced for c in again.completions] == halves
    assert again.cost.num_forced == sum(halves) > 0
    assert again.cost.num_generated == whole.cost.num_generated - sum(halves)
    assert again.cost.num_decoded < whole.cost.num_decoded, "forced tokens are run with their prompt"


def test_a_forced_prefix_is_kept_though_it_would_never_be_drawn(tiny_policy):
    request = requests_of(tiny_policy, num_samples=1)[0]
    forced = tiny_policy.encode("~~\n~", chat=False)  # a stop id inside the forced part does not end it
    done = tiny_policy.generate(
        [
            GenerateRequest(
                prompt_tokens=request.prompt_tokens,
                key=1,
                sampling=SamplingParams(max_new_tokens=4),
                stop_ids=request.stop_ids,
                forced=forced,
            )
        ]
    ).completions[0]
    assert done.tokens == forced
    assert done.stop is StopReason.CAP
    assert done.text == "~~\n~"


def test_stop_and_cap_are_told_apart_and_the_stop_token_is_recorded(tiny_policy):
    stops = tiny_policy.stop_ids("\n")
    done = tiny_policy.generate(requests_of(tiny_policy, num_samples=15, cap=6)).completions
    assert {c.stop for c in done} == {StopReason.STOP, StopReason.CAP}
    for c in done:
        assert (c.tokens[-1] in stops) == (c.stop is StopReason.STOP)
        assert not stops & set(c.tokens[:-1])
        assert len(c.tokens) == 6 or c.stop is StopReason.STOP


def test_each_distinct_prompt_is_prefilled_once_and_the_account_adds_up(tiny_policy):
    requests = requests_of(tiny_policy, num_samples=30)  # prompts of 13, 10 and 3 characters; 90 rows in a tile of 64
    seen = []
    generation = tiny_policy.generate(requests, progress=lambda finished, total: seen.append((finished, total)))
    done, account = generation.completions, generation.cost
    assert account.num_prefilled == 13  # "1 +" and "1 + 1 = 2\n" begin "1 + 1 = 2\n3 +"
    assert account.num_prompt_tokens == 30 * (13 + 10 + 3)
    assert account.num_generated == sum(len(c.tokens) for c in done)
    # a decode step runs a token that is not its row's last, once for all rows that are the same so far
    firsts = [{c.tokens[:n] for c in done[30 * p : 30 * p + 30] for n in range(1, len(c.tokens))} for p in range(3)]
    assert sum(map(len, firsts)) <= account.num_decoded < account.num_generated - 90
    assert seen == [(i, 90) for i in range(1, 91)]


def test_samples_are_one_branch_until_they_draw_differently(tiny_policy):
    greedy = requests_of(tiny_policy, num_samples=8, draw=Draw.GREEDY, prompts=("1 + 1 = 2\n3 +",))
    done = tiny_policy.generate(greedy)
    assert len({c.tokens for c in done.completions}) == 1
    assert done.cost.num_decoded == len(done.completions[0].tokens) - 1
    drawn = requests_of(tiny_policy, num_samples=8, prompts=("1 + 1 = 2\n3 +",))  # all eight enter together
    done = tiny_policy.generate(drawn)
    prefixes = {c.tokens[:n] for c in done.completions for n in range(1, len(c.tokens))}
    assert done.cost.num_decoded == len(prefixes)


def test_no_requests_make_no_completions(tiny_policy):
    assert tiny_policy.generate([]) == Generation(completions=(), cost=GenerationCost())


def test_same_key_same_completion_and_other_key_another(tiny_policy):
    one, two = (tiny_policy.generate(requests_of(tiny_policy, num_samples=8)).completions for _ in range(2))
    assert one == two
    assert len({c.tokens for c in one[8:16]}) > 1


def test_the_global_torch_generator_is_left_alone(tiny_policy):
    before = torch.random.get_rng_state()
    tiny_policy.generate(requests_of(tiny_policy, num_samples=2))
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_prompt_beyond_the_context_is_refused_with_its_numbers(tiny_policy):
    request = GenerateRequest(
        prompt_tokens=(5,) * 1020, key=1, sampling=SamplingParams(max_new_tokens=10), stop_ids=frozenset()
    )
    with pytest.raises(PromptTooLongError, match=r"1020 tokens plus max_new_tokens=10 is 1030; .* holds 1024.*to 4"):
        tiny_policy.generate([request])


def test_a_sliding_window_model_is_refused_by_the_name_of_its_layers():
    from transformers import MistralConfig, MistralForCausalLM

    config = MistralConfig(
        vocab_size=32, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, sliding_window=8,
    )  # fmt: skip
    with (
        torch.random.fork_rng(devices=[]),
        pytest.raises(UnsupportedModelError, match=r"SlidingWindow.*full attention"),
    ):
        CausalModel(MistralForCausalLM(config))


@pytest.mark.parametrize("family", ["GPT2", "Qwen2", "GPTNeoX", "Phi"])
def test_other_families_generate_what_their_own_forward_pass_says(family):
    import transformers

    from deadheat.policy.engine import generate

    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4} if family == "GPT2" else {
        "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2,
    }  # fmt: skip
    special = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    config = getattr(transformers, f"{family}Config")(vocab_size=50, **sizes, **special)
    with torch.random.fork_rng(devices=[]):
        module = transformers.AutoModelForCausalLM.from_config(config).eval()
    for index, parameter in enumerate(module.parameters()):
        if parameter.dim() > 1:  # larger weights than the library's 0.02, so that logits are far apart
            wave = torch.arange(parameter.numel(), dtype=torch.float32).mul(0.7 + index).sin()
            parameter.data.copy_(wave.view(parameter.shape) * 0.5)
    prompts = [(1, 2, 3), (4,), (5, 6, 7, 8, 9)]
    requests = [
        GenerateRequest(
            prompt_tokens=p, key=9, sampling=SamplingParams(draw=Draw.GREEDY, max_new_tokens=6), stop_ids=frozenset()
        )
        for p in prompts
    ]
    done = generate(CausalModel(module), requests, str, num_rows=4, margins=True).completions
    for prompt, completion in zip(prompts, done, strict=True):
        with torch.no_grad():
            logits = module(input_ids=torch.tensor([[*prompt, *completion.tokens]])).logits[0]
        logprobs = logits.log_softmax(-1)[len(prompt) - 1 : -1]
        expected = logprobs.gather(1, torch.tensor(completion.tokens)[:, None])[:, 0]
        assert list(completion.plain_logprobs) == pytest.approx(expected.tolist(), abs=1e-4)
        assert min(completion.margins) < 1e-3 or logprobs.argmax(-1).tolist() == list(completion.tokens)


@pytest.mark.smollm2
@pytest.mark.timeout(600)
def test_on_the_real_model_company_changes_no_draw(smollm2):
    questions = [f"Problem: 12 + 35\nAnswer: 47\n\nProblem: {a} + {b}\nAnswer:" for a, b in ((3, 4), (21, 13), (40, 9))]
    requests = requests_of(smollm2, num_samples=12, cap=5, prompts=(*questions, "Once upon"))
    together = list(smollm2.generate(requests).completions)  # 48 requests: the tile is refilled
    order = permutation(4, len(requests)).tolist()
    shuffled = smollm2.generate([requests[i] for i in order]).completions
    assert [shuffled[order.index(i)] for i in range(len(requests))] == together
    assert in_batches(smollm2, requests[:14], 7) == together[:14]
    assert [smollm2.generate([r]).completions[0] for r in requests[::16]] == together[::16]

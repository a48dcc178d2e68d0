"""Beside a bfloat16 model the trained matrices and their moments are float32: small updates arrive, moments decay."""

from collections.abc import Callable

import pytest
import torch
from pydantic import ValidationError

from deadheat.policy import AdapterConfig, Branches, LanguageModel, PolicyConfig, load_policy
from deadheat.tasks import Task
from deadheat.train import Entry, TrainBatch
from deadheat.train.config import CreditConfig, UpdateConfig
from deadheat.train.loop import Updater
from deadheat.types import GenerateRequest, SamplingParams

ANSWERS = (" 21\n", " 5\n", " 13\n", " 9\n")
LIVE, TIED = (1.0, -1.0, 0.5, -0.5), (0.0, 0.0, 0.0, 0.0)


@pytest.fixture
def policies(addition: Task) -> dict[str, LanguageModel]:
    texts = [problem.prompt + addition.gold_text(problem) for problem in addition.training]
    adapter = AdapterConfig(rank=4, alpha=8)
    return {
        dtype: load_policy(PolicyConfig(model="tiny:addition", adapter=adapter, dtype=dtype), key=1, warm_texts=texts)
        for dtype in ("float32", "bfloat16")
    }


def test_as_many_entries_move_as_in_float32_and_the_second_moment_decays(
    policies: dict[str, LanguageModel], lesson: Callable[..., Entry]
) -> None:
    moved, decay = {}, {}
    for dtype, policy in policies.items():
        made = Updater(policy, UpdateConfig(learning_rate=1e-5), CreditConfig(), SamplingParams(max_new_tokens=8))
        assert {p.dtype for p in made.parameters.values()} == {torch.float32}
        made.step(TrainBatch(step=1, entries=(lesson(0, ANSWERS, LIVE),)))  # B leaves zero, so that A has a gradient
        before = {name: p.detach().clone() for name, p in made.parameters.items()}
        made.step(TrainBatch(step=2, entries=(lesson(1, ANSWERS, LIVE),)))
        changed = [(p != before[name]).float().mean() for name, p in made.parameters.items()]
        moved[dtype] = float(torch.stack(changed).mean())
        states = [made.optimizer.state[p]["exp_avg_sq"] for p in made.parameters.values()]
        assert {state.dtype for state in states} == {torch.float32}
        held = [state.clone() for state in states]
        made.step(TrainBatch(step=3, entries=(lesson(2, ANSWERS, TIED),)))
        # A zero gradient leaves v ← 0.999·v; in bfloat16 that rounds back to v.
        some = [(now[was > 1e-30] / was[was > 1e-30]).mean() for now, was in zip(states, held, strict=True)]
        decay[dtype] = float(torch.stack(some).mean())
    assert moved["float32"] > 0.9
    assert moved["bfloat16"] > 0.99 * moved["float32"]
    assert decay["float32"] == pytest.approx(0.999, abs=1e-5)
    assert decay["bfloat16"] == pytest.approx(0.999, abs=1e-5)


def test_draw_and_update_have_the_same_bits_in_bfloat16(
    policies: dict[str, LanguageModel], lesson: Callable[..., Entry], addition: Task
) -> None:
    policy = policies["bfloat16"]
    made = Updater(policy, UpdateConfig(learning_rate=1e-2), CreditConfig(), SamplingParams(max_new_tokens=8))
    made.step(TrainBatch(step=1, entries=(lesson(0, ANSWERS, LIVE),)))
    prompt = policy.encode(addition.training[0].prompt, chat=False)
    stops, sampling = policy.stop_ids("\n"), SamplingParams(max_new_tokens=8)
    requests = [GenerateRequest(prompt_tokens=prompt, key=key, sampling=sampling, stop_ids=stops) for key in range(6)]
    done = policy.generate(requests).completions
    with torch.no_grad():
        (read,) = policy.logprobs([Branches(prompt_tokens=prompt, completion_tokens=tuple(c.tokens for c in done))])
    assert [tuple(row.tolist()) for row in read] == [c.plain_logprobs for c in done]


def test_full_fine_tuning_in_bfloat16_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"would be rounded away\. Wanted dtype = 'float32', or adapter\.kind"):
        PolicyConfig(dtype="bfloat16", adapter=AdapterConfig(kind="full"))

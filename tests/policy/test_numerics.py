"""Batch company: a hundred real prompts, random companies, and a measurement that notices when the promise is broken."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deadheat.policy import LanguageModel
from deadheat.policy.linear import RowLinear
from deadheat.policy.numerics import ROUNDS, measure
from deadheat.sampling.keys import stream_key
from deadheat.tasks import load_task, parse_task, problem_order
from deadheat.types import Draw, GenerateRequest, SamplingParams

TEXTS = ("1 + 1 = 2\n3 +", "1 + 1 = 2\n", "1 +", "9", "1 + 1 = 2\n12 + 7 = 19\n4 + 30 =")


def quiet(done, note):
    pass


@pytest.fixture(scope="module")
def alone(tiny_policy):
    """Requests of every kind, each made by itself."""
    samplings = (
        SamplingParams(max_new_tokens=9),
        SamplingParams(max_new_tokens=3, temperature=0.6, top_p=0.9),
        SamplingParams(max_new_tokens=6, draw=Draw.INVERSE_CDF),
    )
    requests = [
        GenerateRequest(
            prompt_tokens=tiny_policy.encode(text, chat=False),
            key=stream_key(5, text, sample),
            sampling=samplings[sample % 3],
            stop_ids=tiny_policy.stop_ids("\n"),
        )
        for text in TEXTS
        for sample in range(6)
    ]
    return [(request, tiny_policy.generate([request]).completions[0]) for request in requests]


@settings(max_examples=25)
@given(chosen=st.lists(st.integers(0, 29), min_size=1, max_size=40), rows=st.integers(1, 12))
def test_in_any_company_a_request_gets_the_completion_it_gets_alone(tiny_policy, alone, chosen, rows):
    config = tiny_policy.config.model_copy(update={"tile_rows": rows})
    policy = LanguageModel(tiny_policy.module, tiny_policy.tokenizer, config)
    assert list(policy.generate([alone[i][0] for i in chosen]).completions) == [alone[i][1] for i in chosen]


def test_the_measurement_holds_on_the_tiny_policy_and_counts_its_rounds(tiny_policy):
    prompts = [tiny_policy.encode(text, chat=False) for text in TEXTS]
    rounds = []
    found = measure(tiny_policy, prompts, num_tokens=6, tell=lambda done, note: rounds.append(done))
    assert found.holds
    assert sum(rounds) == ROUNDS * 5
    assert found.update_gap == 0 and [c.gap for c in found.companies] == [0.0] * 5
    assert 0 < found.one_by_one_gap < 1e-4
    assert all(kernel.ignores_row_count for kernel in found.kernels)


def test_the_measurement_notices_numbers_that_depend_on_the_number_of_rows(tiny_policy, monkeypatch):
    honest = RowLinear.product
    monkeypatch.setattr(RowLinear, "product", lambda self, rows: honest(self, rows) * (1 + 1e-4 * len(rows)))
    found = measure(tiny_policy, [tiny_policy.encode(text, chat=False) for text in TEXTS], num_tokens=6, tell=quiet)
    assert not found.holds
    assert found.companies[0].num_equal < 5 and found.companies[0].gap > 0
    assert found.update_gap > 0


@pytest.mark.smollm2
@pytest.mark.timeout(900)
def test_a_hundred_real_prompts_are_equal_in_every_company_and_in_the_update(smollm2):
    task = load_task(parse_task({"name": "addition"}))
    problems = problem_order(task.training, seed=1).batch(1, 100)
    found = measure(smollm2, [smollm2.encode(p.prompt, chat=task.chat) for p in problems], num_tokens=3, tell=quiet)
    assert [(c.name, c.num_equal) for c in found.companies] == [
        ("batches of 1", 100),
        ("batches of 7", 100),
        ("batches of 32", 100),
        ("shuffled", 100),
        ("refilled tile of 5", 100),
    ]
    assert (found.update_equal, found.num_tokens) == (found.num_tokens, 300)
    assert found.one_by_one_gap < 1e-4

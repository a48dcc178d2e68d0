"""Draws: equal to their definitions, held to their distributions, with fixed keys (so a pass or a fail is for good)."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from deadheat.errors import DivergedError
from deadheat.sampling.draws import (
    _contenders_on_device,
    _contenders_on_host,
    exponential_race,
    greedy,
    gumbel_max,
    gumbel_max_naive,
    horvitz_thompson,
    inverse_cdf,
    pick_by_weight,
    self_normalised,
    without_replacement,
)
from deadheat.sampling.keys import position_key, stream_key, token_salts, token_uniforms53, uniform53
from deadheat.sampling.torch_keys import token_uniforms53_torch
from deadheat.sampling.warp import warped_logprobs
from deadheat.types import SamplingParams

FALSE_ALARM = 1e-4  # chance that a correct sampler fails one of the distribution tests, over the choice of its key


def logits_of(num_rows, num_tokens, scale, label):
    u = np.stack([token_uniforms53(stream_key(5, label, b), 0, token_salts(num_tokens)) for b in range(num_rows)])
    return torch.from_numpy((u / 2**53 - 0.5).astype(np.float32) * scale)


@pytest.mark.parametrize("scale", [0.0, 1.0, 20.0, 200.0])
@pytest.mark.parametrize("sampling", [SamplingParams(), SamplingParams(top_k=3), SamplingParams(top_p=0.5)])
def test_the_fast_path_never_changes_a_draw_or_a_margin(scale, sampling):
    logprobs = warped_logprobs(logits_of(8, 5000, scale, "fast"), sampling)
    keys = list(range(100, 108))
    for position in range(6):
        fast = gumbel_max(logprobs, key=keys, positions=[position] * 8)
        slow = gumbel_max_naive(logprobs, key=keys, positions=[position] * 8)
        assert fast.tokens_B.tolist() == slow.tokens_B.tolist()
        assert fast.margins_B.tolist() == slow.margins_B.tolist()


@given(st.lists(st.one_of(st.just(-math.inf), st.floats(-60, 0)), min_size=1, max_size=40), st.integers(0, 2**64 - 1))
@settings(max_examples=150)
def test_fast_and_slow_agree_on_any_row_with_cuts_and_ties(values, key):
    if all(v == -math.inf for v in values):
        values[0] = 0.0
    row = torch.log_softmax(torch.tensor([values], dtype=torch.float64), dim=-1)
    fast, slow = (draw(row, key=[key], positions=[3]) for draw in (gumbel_max, gumbel_max_naive))
    assert fast.tokens_B.tolist() == slow.tokens_B.tolist()
    assert fast.margins_B.tolist() == slow.margins_B.tolist()


def test_exponential_race_equals_gumbel_max_draw_for_draw():
    logprobs = torch.log_softmax(logits_of(50, 300, 8.0, "race"), dim=-1)
    keys = list(range(50))
    for position in range(4):
        race = exponential_race(logprobs, key=keys, positions=[position] * 50)
        maximum = gumbel_max(logprobs, key=keys, positions=[position] * 50)
        assert race.tokens_B.tolist() == maximum.tokens_B.tolist()
        assert race.margins_B == pytest.approx(maximum.margins_B, abs=1e-9)


def test_a_row_with_no_possible_token_is_refused():
    for value in (-math.inf, math.nan):
        with pytest.raises(DivergedError, match=r"rows \[0\] of 1 .* wanted at least one finite"):
            gumbel_max(torch.full((1, 4), value), key=[1], positions=[0])


@pytest.mark.parametrize("draw", [gumbel_max, inverse_cdf])
def test_draws_follow_the_warped_distribution(draw):
    # 20,000 draws at p = 8/15, 4/15, 2/15, 1/15: G = 2 sum O ln(O/E) against chi-square with 3 degrees of freedom.
    weights = np.array([8.0, 4.0, 2.0, 1.0])
    p, n = weights / weights.sum(), 20_000
    logprobs = torch.from_numpy(np.log(p)).expand(n, -1)
    tokens = draw(logprobs, key=[stream_key(9, "g-test", i) for i in range(n)], positions=[2] * n).tokens_B
    observed = np.bincount(tokens, minlength=4)
    g = 2 * np.sum(observed * np.log(observed / (n * p)))
    assert g < chi2.isf(FALSE_ALARM, df=3)


def test_positions_of_one_key_are_independent_draws():
    # pairs of draws at positions t, t+1 of one key over two even tokens: four cells of n/4, 3 degrees of freedom
    n = 8000
    logprobs = torch.log(torch.tensor([[0.5, 0.5]])).expand(2 * n, -1)
    tokens = gumbel_max(logprobs, key=[77] * (2 * n), positions=list(range(2 * n))).tokens_B
    cells = np.bincount(2 * tokens[::2] + tokens[1::2], minlength=4)
    assert 2 * np.sum(cells * np.log(cells / (n / 4))) < chi2.isf(FALSE_ALARM, df=3)


def test_inverse_cdf_reproduces_the_published_vectors():
    # weights 1, 2, 3, 10 with the four uniforms of the published key pick 3, 0, 3, 3
    key, weights = 0x4FF47A90746F7B8D, np.array([1, 2, 3, 10], dtype=np.uint64)
    assert [pick_by_weight(weights, uniform53(key, t)) for t in range(4)] == [3, 0, 3, 3]


def test_inverse_cdf_is_exact_beyond_64_bits():
    # total 2^36: u53 * total needs 89 bits. u53 = 2^53 - 1 gives r = 2^36 - 1, inside the last weight alone.
    weights = np.full(2**4, 2**32, dtype=np.uint64)
    assert pick_by_weight(weights, 2**53 - 1) == 15
    assert pick_by_weight(weights, 0) == 0
    assert pick_by_weight(weights, 2**49) == 1  # r = 2^32 exactly: the first running sum does not exceed it


def test_a_zero_weight_is_never_picked():
    weights = np.array([0, 5, 0, 5], dtype=np.uint64)
    assert {pick_by_weight(weights, u) for u in range(0, 2**53, 2**46)} == {1, 3}


def test_greedy_takes_the_lowest_id_among_equals_and_says_the_gap():
    picks = greedy(torch.tensor([[0.0, 3.0, 3.0], [5.0, 1.0, 2.0]]))
    assert picks.tokens_B.tolist() == [1, 0]
    assert picks.margins_B.tolist() == [0.0, 3.0]


def test_same_key_same_draws_and_other_key_other_draws():
    logprobs = torch.log_softmax(logits_of(64, 100, 1.0, "twice"), dim=-1)
    one, two, other = (
        gumbel_max(logprobs, key=[k0 + i for i in range(64)], positions=[0] * 64).tokens_B for k0 in (0, 0, 1000)
    )
    assert one.tobytes() == two.tobytes()
    assert one.tobytes() != other.tobytes()


def test_torch_words_equal_numpy_words():
    keys, positions = [0, 2**64 - 1, 0x4FF47A90746F7B8D], [0, 7, 3]
    words = np.array([position_key(k0, t) for k0, t in zip(keys, positions, strict=True)], dtype=np.uint64)
    torch_words = token_uniforms53_torch(words, 1000, torch.device("cpu")).numpy()
    numpy_words = [token_uniforms53(k0, t, token_salts(1000)) for k0, t in zip(keys, positions, strict=True)]
    assert torch_words.astype(np.uint64).tolist() == np.stack(numpy_words).tolist()


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_the_device_path_keeps_the_contenders_of_the_host_path(scale):
    logprobs = torch.log_softmax(logits_of(5, 3000, scale, "device"), dim=-1)
    words = np.array([position_key(k0, 4) for k0 in range(5)], dtype=np.uint64)
    bars = np.array([8.0, 8.0, 80.0, 800.0, 8e6])
    host, device = (f(logprobs, words, bars) for f in (_contenders_on_host, _contenders_on_device))
    for name in ("rows", "tokens", "logprobs"):
        assert getattr(host, name).tolist() == getattr(device, name).tolist()


def test_drawing_two_of_three_without_replacement_has_its_first_order_chances():
    # Plackett-Luce on 1/2, 1/3, 1/6. P(first = i) = p_i; the pair {0,1} has 1/2 * (1/3)/(1/2) + 1/3 * (1/2)/(2/3)
    # = 1/3 + 1/4 = 7/12, the pair {0,2} 1/2 * 1/3 + 1/6 * (1/2)/(5/6) = 1/6 + 1/10 = 4/15, {1,2} the rest, 3/20.
    phi, n = np.log([1 / 2, 1 / 3, 1 / 6]), 6000
    pairs = [frozenset(without_replacement(phi, num_draws=2, key=i).indices_k.tolist()) for i in range(n)]
    observed = np.array([pairs.count(frozenset(s)) for s in ((0, 1), (0, 2), (1, 2))])
    expected = n * np.array([7 / 12, 4 / 15, 3 / 20])
    assert 2 * np.sum(observed * np.log(observed / expected)) < chi2.isf(FALSE_ALARM, df=2)


def test_horvitz_thompson_is_unbiased_and_the_self_normalised_form_is_its_own_ratio():
    # truth: 0.5 * 1 + 0.3 * 2 + 0.2 * 5 = 2.1; 4,000 keyed draws, mean within 4 standard errors (false alarm 6e-5)
    phi, f = np.log([0.5, 0.3, 0.2]), np.array([1.0, 2.0, 5.0])
    drawn = [without_replacement(phi, num_draws=2, key=stream_key(3, "ht", i)) for i in range(4000)]
    estimates = np.array([horvitz_thompson(d, f[d.indices_k]) for d in drawn])
    assert abs(estimates.mean() - 2.1) < 4 * estimates.std() / math.sqrt(len(estimates))
    first = drawn[0]
    ratio = horvitz_thompson(first, f[first.indices_k]) / horvitz_thompson(first, np.ones(2))
    assert self_normalised(first, f[first.indices_k]) == pytest.approx(ratio)

"""Warping: one order, ties and crossing tokens kept, hand-worked masses."""

import pytest
import torch

from deadheat.sampling.warp import plain_logprobs, warped_logprobs
from deadheat.types import SamplingParams


def masses(*weights):
    return torch.tensor(weights, dtype=torch.float64).log()


def probs(logits, **sampling):
    return warped_logprobs(logits, SamplingParams(**sampling)).exp().tolist()


def test_temperature_two_takes_square_roots_of_the_odds():
    # odds 9:1 become 3:1
    assert probs(masses(9.0, 1.0), temperature=2.0) == pytest.approx([0.75, 0.25])


def test_ties_at_the_kth_value_are_all_kept():
    # k = 2 and two tokens share second place: 4/8, 2/8, 2/8 and the fourth is cut
    assert probs(masses(4.0, 2.0, 2.0, 1.0), top_k=2) == pytest.approx([0.5, 0.25, 0.25, 0.0])


def test_the_token_that_crosses_top_p_is_kept():
    # 0.5 < 0.6, so the second (0.25) is kept though 0.75 > 0.6; the third starts at 0.75 and is cut
    assert probs(masses(8.0, 4.0, 2.0, 2.0), top_p=0.6) == pytest.approx([2 / 3, 1 / 3, 0.0, 0.0])


def test_mass_exactly_top_p_needs_no_further_token():
    assert probs(masses(2.0, 1.0, 1.0), top_p=0.5) == pytest.approx([1.0, 0.0, 0.0])


def test_equal_masses_enter_top_p_by_ascending_id():
    assert probs(masses(1.0, 1.0, 1.0, 1.0), top_p=0.5) == pytest.approx([0.5, 0.5, 0.0, 0.0])


def test_temperature_acts_before_top_k_and_top_k_before_top_p():
    # weights 16, 4, 1, 1 at temperature 2 are 4, 2, 1, 1; k = 2 leaves 2/3, 1/3; p = 0.6 keeps the first alone.
    # In the other order (p first, on 4/8, 2/8, 1/8, 1/8) the second would cross 0.6 and stay.
    assert probs(masses(16.0, 4.0, 1.0, 1.0), temperature=2.0, top_k=2, top_p=0.6) == pytest.approx([1, 0, 0, 0])


def test_bfloat16_logits_are_promoted():
    logits = torch.tensor([1.0, 2.0], dtype=torch.bfloat16)
    assert plain_logprobs(logits).dtype == torch.float32
    assert plain_logprobs(logits)[1].item() == pytest.approx(-0.3132617)  # -ln(1 + e^-1)


def test_gradients_are_finite_where_tokens_are_cut():
    logits = masses(8.0, 4.0, 2.0, 2.0).requires_grad_()
    warped_logprobs(logits, SamplingParams(top_p=0.6))[0].backward()
    # d/dz of log softmax over the two kept: 1 - 2/3, -1/3, and nothing for the cut
    assert logits.grad.tolist() == pytest.approx([1 / 3, -1 / 3, 0.0, 0.0])

"""Clipped ratios, dual clip and the KL term against sums done by hand, and their gradients in float64."""

import math

import numpy as np
import pytest
import torch

from deadheat.train.config import Importance, Loss, UpdateConfig
from deadheat.train.drift import Drift, drift_of
from deadheat.train.objective import GroupLogprobs, Objective, group_objective

# Probabilities of the tokens of two completions: now, when they were drawn, and under the reference.
NOW = ((0.5, 0.3), (0.1, 0.8, 0.6))
DRAWN = ((0.25, 0.3), (0.2, 0.2, 0.6))  # ratios 2, 1 and ½, 4, 1
REFERENCE = ((0.25, 0.3), (0.2, 0.8, 0.6))
ADVANTAGES = np.array([1.0, -0.5])


def logs(rows, *, learned: bool = False) -> list[torch.Tensor]:
    return [torch.tensor(row, dtype=torch.float64).log().requires_grad_(learned) for row in rows]


def objective(now_G: list[torch.Tensor], *, kl: bool = False, **settings: object) -> Objective:
    group = GroupLogprobs(
        now_G=now_G, advantages_G=ADVANTAGES, drawn_G=logs(DRAWN), reference_G=logs(REFERENCE) if kl else None
    )
    return group_objective(group, UpdateConfig(**settings), max_length=4)


def slopes(now_G: list[torch.Tensor]) -> list[float]:
    return [slope for row in now_G if row.grad is not None for slope in row.grad.tolist()]


# Token by token, bounds 0.8 and 1.28, A = 1 then −½:
#   ρ 2 → min(2, 1.28) = 1.28, no gradient       ρ ½ → min(−0.25, −0.4) = −0.4, no gradient
#   ρ 1 → 1, gradient 1                          ρ 4 → min(−2, −0.64) = −2, gradient −½·4 = −2
#                                                ρ 1 → −0.5, gradient −0.5
# Sums 2.28 and −2.9. With a dual clip at 3 the −2 becomes −½·3 = −1.5 without gradient: −2.4.
@pytest.mark.parametrize(
    ("loss", "dual_clip", "value", "pulls"),
    [
        (Loss.SEQUENCE_SUM, None, 2.28 - 2.9, [0, 1, 0, -2, -0.5]),
        (Loss.TOKEN_MEAN, None, 2.28 - 2.9, [0, 1, 0, -2, -0.5]),
        (Loss.SEQUENCE_MEAN, None, 2.28 / 2 - 2.9 / 3, [0, 1 / 2, 0, -2 / 3, -0.5 / 3]),
        (Loss.FIXED_LENGTH, None, (2.28 - 2.9) / 4, [0, 1 / 4, 0, -2 / 4, -0.5 / 4]),
        (Loss.SEQUENCE_SUM, 3.0, 2.28 - 2.4, [0, 1, 0, 0, -0.5]),
        (Loss.SEQUENCE_MEAN, 3.0, 2.28 / 2 - 2.4 / 3, [0, 1 / 2, 0, 0, -0.5 / 3]),
    ],
)
def test_the_clipped_objective_is_the_sum_done_by_hand(
    loss: Loss, dual_clip: float | None, value: float, pulls: list[float]
) -> None:
    now_G = logs(NOW, learned=True)
    found = objective(now_G, importance="token", loss=loss, dual_clip=dual_clip).policy
    found.backward()
    assert found.item() == pytest.approx(value, rel=1e-12)
    assert slopes(now_G) == pytest.approx(pulls, rel=1e-12, abs=1e-15)


def test_the_bounds_are_separate() -> None:
    # Bounds 0.4 and 3: ρ 2 and ½ lie within. (2 + 1) − ½·(½ + 4 + 1) = 3 − 2.75.
    found = objective(logs(NOW), importance="token", clip_low=0.6, clip_high=2.0).policy
    assert found.item() == pytest.approx(0.25, rel=1e-12)


def test_a_sequence_shares_the_geometric_mean_of_its_ratios() -> None:
    # First: √(2·1) = 1.414 > 1.28 at A = 1: two tokens of 1.28, no gradient. Second: (½·4·1)^(1/3) = 2^(1/3) = 1.26 at
    # A = −½: three tokens of −½·1.26. Each ℓ moves all three by a third: −½·1.26 in all.
    now_G, cube = logs(NOW, learned=True), 2 ** (1 / 3)
    found = objective(now_G, importance="sequence").policy
    found.backward()
    assert found.item() == pytest.approx(2 * 1.28 - 1.5 * cube, rel=1e-12)
    assert slopes(now_G) == pytest.approx([0, 0, *[-cube / 2] * 3], rel=1e-12, abs=1e-15)


# k3 where now is ½ and the reference ¼: ½ + ln 2 − 1. Where now is 0.1 and the reference 0.2: 2 − ln 2 − 1. Elsewhere 0.
HALVED, DOUBLED = math.log(2) - 0.5, 1 - math.log(2)


@pytest.mark.parametrize(
    ("loss", "value", "pulls"),
    [
        # The logarithms cancel: ½. The slope of k3 in ℓ is 1 − reference/now: ½ and −1.
        (Loss.SEQUENCE_SUM, 0.5, [0.5, 0, -1, 0, 0]),
        (Loss.TOKEN_MEAN, 0.5, [0.5, 0, -1, 0, 0]),
        (Loss.SEQUENCE_MEAN, HALVED / 2 + DOUBLED / 3, [0.25, 0, -1 / 3, 0, 0]),
        (Loss.FIXED_LENGTH, 0.125, [0.125, 0, -0.25, 0, 0]),
    ],
)
@pytest.mark.parametrize("importance", list(Importance))
def test_the_kl_term_is_the_sum_done_by_hand_whatever_the_ratio(
    loss: Loss, value: float, pulls: list[float], importance: Importance
) -> None:
    now_G = logs(NOW, learned=True)
    found = objective(now_G, kl=True, loss=loss, importance=importance).kl
    assert found is not None
    found.backward()
    assert found.item() == pytest.approx(value, rel=1e-12)
    assert slopes(now_G) == pytest.approx(pulls, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("weighting", ["after_sum", "before_sum"])
@pytest.mark.parametrize(
    ("importance", "dual_clip"),
    [
        (Importance.NONE, None),
        (Importance.TOKEN, None),
        (Importance.TOKEN, 3.0),
        (Importance.SEQUENCE, None),
        (Importance.SEQUENCE, 1.1),
    ],
)
@pytest.mark.parametrize("loss", list(Loss))
def test_every_objective_passes_the_gradient_check_in_float64(loss, importance, dual_clip, weighting) -> None:
    config = {"loss": loss, "importance": importance, "dual_clip": dual_clip, "weighting": weighting}

    def terms(*now_G: torch.Tensor) -> torch.Tensor:
        found = objective(list(now_G), kl=True, **config)
        assert found.kl is not None
        return torch.stack([found.policy, found.kl])

    assert torch.autograd.gradcheck(terms, tuple(logs(NOW, learned=True)), eps=1e-6, atol=1e-8, rtol=1e-6)


@pytest.mark.parametrize("importance", [Importance.TOKEN, Importance.SEQUENCE])
@pytest.mark.parametrize("loss", list(Loss))
def test_where_nothing_has_moved_the_clipped_gradient_is_the_plain_one(loss: Loss, importance: Importance) -> None:
    found = {}
    for kind in (Importance.NONE, importance):
        now_G = logs(NOW, learned=True)
        group = GroupLogprobs(now_G=now_G, advantages_G=ADVANTAGES, drawn_G=logs(NOW))
        config = UpdateConfig(loss=loss, importance=kind)
        group_objective(group, config, max_length=4).policy.backward()
        found[kind] = slopes(now_G)
    assert found[importance] == pytest.approx(found[Importance.NONE], rel=1e-12)


def test_a_ratio_without_the_log_probabilities_of_generation_is_refused() -> None:
    group = GroupLogprobs(now_G=logs(NOW), advantages_G=ADVANTAGES)
    with pytest.raises(ValueError, match="no log-probabilities from when it was drawn"):
        group_objective(group, UpdateConfig(importance="token"), max_length=4)


def test_what_moved_is_counted_token_by_token() -> None:
    group = GroupLogprobs(now_G=logs(NOW), advantages_G=ADVANTAGES, drawn_G=logs(DRAWN), reference_G=logs(REFERENCE))
    drift = drift_of(group, UpdateConfig(importance="token", dual_clip=3.0))
    # Ratios 2, 1, ½, 4, 1: their mean is 1.7. k3 = ρ − ln ρ − 1, and the logarithms add to ln(2·½·4) = ln 4.
    assert drift.per_compared(drift.ratio_sum) == pytest.approx(1.7, rel=1e-12)
    assert drift.per_compared(drift.kl_drawn_sum) == pytest.approx((8.5 - math.log(4) - 5) / 5, rel=1e-12)
    # 2 is above 1.28 at A = 1; ½ is below 0.8 and 4 above the dual clip at A = −½.
    assert (drift.num_clipped_low, drift.num_clipped_high, drift.num_clipped_dual) == (1, 1, 1)
    assert drift.kl_reference == pytest.approx(0.1, rel=1e-12)  # ½ over five tokens
    both = drift + drift
    assert (both.num_compared, both.per_compared(both.ratio_sum)) == (10, pytest.approx(1.7))


def test_what_was_not_recorded_is_not_counted() -> None:
    drift = drift_of(GroupLogprobs(now_G=logs(NOW), advantages_G=ADVANTAGES), UpdateConfig())
    assert drift == Drift()
    assert (drift.per_compared(drift.ratio_sum), drift.kl_reference) == (None, None)

"""Our arithmetic on two public training runs of one question a step, logged as step, mean reward and loss.

A step whose eight rewards agree has no loss, or that of its KL term alone. The reading of these logs is tested with the
audits (tests/audit/test_real_data.py); here the same steps go through our own advantages and losses.
"""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from deadheat.credit import Estimator, advantages, is_tied
from deadheat.train.config import UpdateConfig
from deadheat.train.objective import GroupLogprobs, group_objective

LOGS = Path(__file__).parents[2] / ".." / "shared" / "data" / "training_logs"
SIZE = 8
# Eight completions of 1 to 8 tokens whose log-probabilities and reference are no round numbers.
NOW = [torch.linspace(-2.3, -0.1, length, dtype=torch.float64) for length in range(1, SIZE + 1)]
REFERENCE = [row - 0.37 for row in NOW]


def logged(name: str) -> pl.DataFrame:
    path = LOGS / name
    if not path.exists():
        pytest.skip(f"the public training log {name} is not on this machine")
    return pl.read_csv(path)


def group_of(mean: float, *, kl: bool) -> GroupLogprobs:
    """Eight rewards of 0 and 1 with this mean, credited as those runs did: Bessel's SD plus 1e-4."""
    right = round(SIZE * mean)
    assert right == SIZE * mean
    rewards_G = np.array([1.0] * right + [0.0] * (SIZE - right))
    (advantages_G,) = advantages([rewards_G], estimator=Estimator.STANDARDISED, ddof=1, eps=1e-4)
    return GroupLogprobs(now_G=NOW, advantages_G=advantages_G, reference_G=REFERENCE if kl else None)


def test_tied_steps_of_the_run_without_kl_have_a_loss_of_exactly_zero_and_live_ones_have_not() -> None:
    table = logged("rasbt_ch06_rlvr_grpo_original_no_kl_metrics.csv")
    ours, theirs = [], []
    for mean, loss in table.select("reward_avg", "loss").iter_rows():
        objective = group_objective(group_of(mean, kl=False), UpdateConfig(), max_length=SIZE)
        assert objective.kl is None
        ours.append(objective.policy.item() == 0.0)
        theirs.append(loss == 0.0)
    assert ours == theirs
    assert sum(ours) == 269


def test_tied_steps_of_the_run_with_kl_have_the_loss_of_their_kl_term_alone() -> None:
    table = logged("rasbt_7_5_plus_kl_metrics.csv")
    alone = 0
    for mean, loss, kl_loss in table.select("reward_avg", "loss", "kl_loss").iter_rows():
        objective = group_objective(group_of(mean, kl=True), UpdateConfig(), max_length=SIZE)
        assert objective.kl is not None
        whole = -objective.policy / SIZE + 0.02 * objective.kl / SIZE
        only_kl = whole.item() == (0.02 * objective.kl / SIZE).item()
        # exp(−0.37) + 0.37 − 1 = 0.0607 for each of 36 tokens
        assert objective.kl.item() == pytest.approx(36 * 0.060734, rel=1e-4)
        assert only_kl == (loss == kl_loss)
        alone += only_kl
    assert alone == 464


def test_our_advantages_have_the_spread_that_the_run_logged() -> None:
    # SD of s-standardised rewards is s/(s + 1e-4): one right of eight, s = √(1/8·7/8·8/7) = 0.35355, gives 0.999717.
    table = logged("rasbt_7_5_plus_kl_metrics.csv")
    for mean, average, spread in table.select("reward_avg", "adv_avg", "adv_std").iter_rows():
        advantages_G = group_of(mean, kl=False).advantages_G
        assert advantages_G.mean() == pytest.approx(average, abs=1e-6)
        assert advantages_G.std(ddof=1) == pytest.approx(spread, abs=1.5e-6)
        assert is_tied(advantages_G) == (spread == 0.0)

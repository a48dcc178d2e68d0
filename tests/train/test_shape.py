"""Training rewards after the gate and the length terms, against numbers worked out by hand."""

import math

import numpy as np
import pytest

from deadheat.credit import GroupKind
from deadheat.errors import ConfigError
from deadheat.train import Shaping, train_batch
from deadheat.train.config import CreditConfig, ScorerConfig
from deadheat.types import Completion, Group, Problem, Rollout, Score, StopReason

PROBLEM = Problem(task="sums", problem_id="1", prompt="1+1=", reference="2")


def rollout(length: int, value: float | None, *, sample: int = 0, text: str = "") -> Rollout:
    tokens = tuple(range(length))
    completion = Completion(
        tokens=tokens, logprobs=(-1.0,) * length, plain_logprobs=(-1.0,) * length, margins=None, text=text,
        stop=StopReason.STOP, key=sample,
    )  # fmt: skip
    correct = None if value is None else value > 0.5
    score = Score(value=value, correct=correct, unscored="it raised" if value is None else None)
    return Rollout(problem=PROBLEM, sample=sample, completion=completion, score=score)


def group(*rollouts: Rollout) -> Group:
    return Group(problem=PROBLEM, prompt_tokens=(1, 2, 3, 4), rollouts=rollouts)


def reward_of(shaping: Shaping, rollout: Rollout) -> float:
    return float(shaping.rewards(group(rollout)).shaped_G[0])


def test_a_reward_is_left_alone_where_nothing_is_asked_for() -> None:
    assert reward_of(Shaping(cap=100), rollout(100, 0.75)) == 0.75
    assert math.isnan(reward_of(Shaping(cap=100), rollout(3, None)))


@pytest.mark.parametrize(
    ("length", "reward"),
    [
        (79, 1.0),
        (80, 1.0),  # 100 − 20: the last length that costs nothing
        (85, 0.875),  # ½·5/20 = 1/8
        (100, 0.5),  # cut by the cap: the whole factor
    ],
)
def test_the_overlong_penalty_grows_in_a_line_to_its_factor_at_the_cap(length: int, reward: float) -> None:
    shaping = Shaping(cap=100, overlong_buffer=20, overlong_factor=0.5)
    assert reward_of(shaping, rollout(length, 1.0)) == reward
    assert reward_of(shaping, rollout(length, 0.0)) == reward - 1.0, "wrong answers lose as much"


def test_length_costs_right_answers_in_proportion_and_wrong_ones_only_if_asked() -> None:
    # 0.2·25/100 = 0.05
    assert reward_of(Shaping(cap=100, length_cost=0.2), rollout(25, 1.0)) == pytest.approx(0.95)
    assert reward_of(Shaping(cap=100, length_cost=0.2), rollout(25, 0.0)) == 0.0
    assert reward_of(Shaping(cap=100, length_cost=0.2, length_cost_of="all"), rollout(25, 0.0)) == pytest.approx(-0.05)


def test_an_all_right_group_of_unequal_lengths_becomes_live_and_its_raw_rewards_stay() -> None:
    # Rewards 1 − 0.1·(10, 20, 30)/100 = .99, .98, .97: centred +.01, 0, −.01.
    held = group(*(rollout(length, 1.0, sample=i) for i, length in enumerate((10, 20, 30))))
    (credited,) = train_batch(
        [held],
        scorer=ScorerConfig(length_cost=0.1),
        credit=CreditConfig(estimator="centred"),
        shaping=Shaping(cap=100, length_cost=0.1),
        seed=1,
        step=1,
    ).entries
    assert credited.rewards_G == pytest.approx((0.99, 0.98, 0.97))
    assert credited.mean_advantages_G == pytest.approx([0.01, 0.0, -0.01])
    assert credited.kind is GroupKind.LIVE
    assert [r.score.value for r in credited.group.rollouts] == [1.0, 1.0, 1.0]


def test_an_unscored_rollout_stays_unscored_whatever_its_length() -> None:
    held = group(rollout(100, None), rollout(100, 1.0, sample=1), rollout(100, 0.0, sample=2))
    shaping = Shaping(cap=100, overlong_buffer=50)
    (credited,) = train_batch(
        [held], scorer=ScorerConfig(), credit=CreditConfig(estimator="centred"), shaping=shaping, seed=1, step=1
    ).entries
    # 1 − 1 and 0 − 1: mean −½.
    assert np.array_equal(credited.rewards_G, (np.nan, 0.0, -1.0), equal_nan=True)
    assert np.array_equal(credited.mean_advantages_G, [0.0, 0.5, -0.5])


def test_a_buffer_longer_than_the_cap_is_refused(run_config, addition) -> None:
    config = run_config(scorer={"overlong_buffer": 20}, sampling={"max_new_tokens": 12})
    with pytest.raises(ConfigError, match=r"overlong_buffer is 20 tokens and a completion may have 12"):
        Shaping.of(config, addition)
    assert Shaping.of(run_config(scorer={"overlong_buffer": 4, "overlong_factor": 0.5}), addition) == Shaping(
        cap=addition.max_new_tokens, overlong_buffer=4, overlong_factor=0.5
    )

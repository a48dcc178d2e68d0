"""Losses against sums done by hand and against finite differences in float64."""

import numpy as np
import pytest
import torch

from deadheat.policy import Branches
from deadheat.train.config import Loss, UpdateConfig
from deadheat.train.objective import GroupLogprobs, group_objective, units

# Two completions: ℓ = (−1, −2) with A = 1, and ℓ = (−3) with A = −½.
LOGPROBS = ((-1.0, -2.0), (-3.0,))
ADVANTAGES = np.array([1.0, -0.5])


def tensors(rows=LOGPROBS) -> list[torch.Tensor]:
    return [torch.tensor(row, dtype=torch.float64, requires_grad=True) for row in rows]


def plain(rows, advantages, *, max_length: int, **settings: object) -> torch.Tensor:
    """The objective without a ratio and without a KL term."""
    group = GroupLogprobs(now_G=rows, advantages_G=advantages)
    return group_objective(group, UpdateConfig(**settings), max_length=max_length).policy


@pytest.mark.parametrize("weighting", ["after_sum", "before_sum"])
@pytest.mark.parametrize(
    ("loss", "value", "slopes", "divisor"),
    [
        # 1·(−1 − 2) − ½·(−3) = −3 + 1.5; each token pulls with its completion's advantage; two sequences.
        (Loss.SEQUENCE_SUM, -1.5, [[1.0, 1.0], [-0.5]], 2),
        # The same sum over three tokens.
        (Loss.TOKEN_MEAN, -1.5, [[1.0, 1.0], [-0.5]], 3),
        # 1·(−3/2) − ½·(−3/1) = 0; the longer completion's tokens pull half as hard.
        (Loss.SEQUENCE_MEAN, 0.0, [[0.5, 0.5], [-0.5]], 2),
        # (−3 + 1.5)/4 with a cap of four tokens; every token pulls a quarter.
        (Loss.FIXED_LENGTH, -0.375, [[0.25, 0.25], [-0.125]], 2),
    ],
)
def test_each_loss_is_the_sum_done_by_hand(
    loss: Loss, value: float, slopes: list[list[float]], divisor: int, weighting: str
) -> None:
    logprobs = tensors()
    objective = plain(logprobs, ADVANTAGES, loss=loss, weighting=weighting, max_length=4)
    assert objective.item() == value
    objective.backward()
    assert [row.grad.tolist() for row in logprobs if row.grad is not None] == slopes
    assert units([len(row) for row in LOGPROBS], loss) == divisor


def test_weighting_before_or_after_the_sum_rounds_apart_but_pulls_with_the_same_bits() -> None:
    values = torch.linspace(-3.7, -0.1, 101)
    found = {}
    for weighting in ("after_sum", "before_sum"):
        logprobs = values.clone().requires_grad_()
        objective = plain([logprobs], np.array([0.3]), weighting=weighting, max_length=1)
        objective.backward()
        found[weighting] = (objective.item(), logprobs.grad)
    (after, pull_after), (before, pull_before) = found["after_sum"], found["before_sum"]
    # −0.3·101·1.9 = −57.57, in float32 to a few units in the last place of 2^-18.
    assert after == pytest.approx(-57.57, rel=1e-6)
    assert abs(after - before) <= 8 * 2.0**-18
    assert torch.equal(pull_after, pull_before)


@pytest.mark.parametrize("weighting", ["after_sum", "before_sum"])
@pytest.mark.parametrize("loss", list(Loss))
def test_the_gradient_is_that_of_finite_differences_in_float64(loss: Loss, weighting: str) -> None:
    # A bigram model of five tokens: ℓ = log softmax of the row of the token before. Central differences with h = 1e-5 are
    # off by h² times a third derivative over six and by rounding over h, both near 1e-10.
    table = (torch.arange(25.0, dtype=torch.float64).sin() * 2).reshape(5, 5).requires_grad_()
    completions, advantages = ((1, 3, 3), (0,), (4, 2)), np.array([1.0, -0.75, 0.5])

    def objective() -> torch.Tensor:
        logprobs = table.log_softmax(dim=-1)
        rows = [logprobs[[0, *tokens[:-1]], list(tokens)] for tokens in completions]
        return plain(rows, advantages, loss=loss, weighting=weighting, max_length=4)

    objective().backward()
    slopes = torch.zeros(25, dtype=torch.float64)
    with torch.no_grad():
        flat = table.view(-1)
        for place in range(25):
            held, ends = flat[place].item(), []
            for shift in (1e-5, -1e-5):
                flat[place] = held + shift
                ends.append(objective().item())
            flat[place] = held
            slopes[place] = (ends[0] - ends[1]) / 2e-5
    assert table.grad is not None
    assert torch.allclose(table.grad.flatten(), slopes, rtol=1e-8, atol=1e-9)


def in_float64(policy) -> None:
    """Weights and layers in double precision; the model's own normalisation would go through float32."""
    policy.module.double()
    for name, layer in list(policy.module.named_modules()):
        if type(layer).__name__.endswith("RMSNorm"):
            norm = torch.nn.RMSNorm(layer.weight.shape, eps=layer.variance_epsilon, dtype=torch.float64)
            norm.weight = layer.weight
            policy.module.set_submodule(name, norm)


@pytest.mark.parametrize("loss", [Loss.SEQUENCE_SUM, Loss.SEQUENCE_MEAN])
def test_a_step_along_the_policys_gradient_raises_the_objective_by_its_length(loss, addition, new_policy) -> None:
    # (f(θ + h·g/|g|) − f(θ − h·g/|g|))/2h = |g|·(1 + c·h²) with c near 3,500 here, and rounding of 1e-16·|f|/h: at h = 1e-6
    # both are below 1e-8 in float64. In float32 no step is small enough for the one and large enough for the other.
    def gradient(policy) -> torch.Tensor:
        objective(policy).backward()
        return torch.cat([parameter.grad.double().flatten() for parameter in policy.module.parameters()])

    def objective(policy) -> torch.Tensor:
        logprobs = policy.logprobs([branches])[0]
        return plain(logprobs, np.array([1.0, -0.75, 0.5]), loss=loss, max_length=8)

    policy, exact = new_policy("full"), new_policy("full")
    in_float64(exact)
    branches = Branches(
        prompt_tokens=policy.encode(addition.training[0].prompt, chat=False),
        completion_tokens=tuple(policy.encode(answer, chat=False) for answer in (" 21\n", " 2\n", " 210\n")),
    )
    pull = gradient(exact)
    norm = float(pull.norm())
    step, ends = 1e-6, []
    start = torch.nn.utils.parameters_to_vector(exact.module.parameters()).detach().clone()
    with torch.no_grad():
        for shift in (step, -step):
            torch.nn.utils.vector_to_parameters(start + shift / norm * pull, exact.module.parameters())
            ends.append(objective(exact).item())
    assert norm > 1
    assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(norm, rel=1e-7)
    # The policy's own gradient, in float32, is the same vector but for rounding through some thirty layers of sums.
    assert float((gradient(policy) - pull).norm()) < 1e-4 * norm

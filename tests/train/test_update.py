"""One optimiser step: what tied groups add, which divisor is used, what is clipped, what is refused."""

from collections.abc import Callable, Sequence

import pytest
import torch

from deadheat.errors import DivergedError
from deadheat.policy import LanguageModel, chosen_logprobs
from deadheat.train import Entry, TrainBatch
from deadheat.train.config import CreditConfig, UpdateConfig
from deadheat.train.loop import Updater
from deadheat.types import SamplingParams

ANSWERS = (" 21\n", " 5\n", " 13\n", " 9\n")  # 4, 3, 4 and 3 characters, a token each
LIVE = (1.0, -1.0, 0.5, -0.5)
TIED = (0.0, 0.0, 0.0, 0.0)

Lessons = Callable[..., Entry]
Policies = Callable[..., LanguageModel]


def updater(
    policy: LanguageModel, *, temperature: float = 1.0, credit: dict | None = None, **update: object
) -> Updater:
    sampling = SamplingParams(max_new_tokens=8, temperature=temperature)
    return Updater(policy, UpdateConfig(**update), CreditConfig(**(credit or {})), sampling)


def gradients(made: Updater) -> dict[str, torch.Tensor]:
    return {name: parameter.grad.clone() for name, parameter in made.parameters.items()}


def weights(made: Updater) -> dict[str, torch.Tensor]:
    return {name: parameter.detach().clone() for name, parameter in made.parameters.items()}


def moments(made: Updater) -> dict[str, torch.Tensor]:
    return {
        f"{name}/{moment}": made.optimizer.state[parameter][moment].clone()
        for name, parameter in made.parameters.items()
        for moment in ("exp_avg", "exp_avg_sq", "step")
    }


def same_bits(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> bool:
    assert left.keys() == right.keys()
    return all(left[name].numpy().tobytes() == right[name].numpy().tobytes() for name in left)


def test_three_tied_groups_of_four_quarter_the_step_under_all_groups(new_policy: Policies, lesson: Lessons) -> None:
    # 4 groups × 4 sequences, one group live: divisors 16 and 4, so the gradients differ by exactly 4, a power of two.
    batch = [lesson(0, ANSWERS, TIED), lesson(1, ANSWERS, LIVE), lesson(2, ANSWERS, TIED), lesson(3, ANSWERS, TIED)]
    made = {
        name: updater(new_policy(), credit={"denominator": name}, clip_norm=None)
        for name in ("all_groups", "signal_groups")
    }
    reports = {name: each.step(TrainBatch(entries=tuple(batch), step=1)) for name, each in made.items()}
    for report in reports.values():
        assert (report.divisors.all_groups, report.divisors.signal_groups) == (16, 4)
        assert report.grad_norm_signal_groups == 4 * report.grad_norm_all_groups
    assert reports["all_groups"].grad_norm == reports["all_groups"].grad_norm_all_groups > 0
    assert reports["signal_groups"].grad_norm == reports["all_groups"].grad_norm_signal_groups
    assert reports["signal_groups"].loss == 4 * reports["all_groups"].loss
    wide, narrow = gradients(made["signal_groups"]), gradients(made["all_groups"])
    assert same_bits(wide, {name: 4 * gradient for name, gradient in narrow.items()})


def test_token_mean_divides_by_tokens_of_all_or_of_live_groups(new_policy: Policies, lesson: Lessons) -> None:
    # Live: 4 + 3 + 4 + 3 = 14 tokens. Tied: 4 + 4 = 8. Divisors 22 and 14.
    batch = [lesson(0, ANSWERS, LIVE), lesson(1, (" 21\n", " 13\n"), (0.0, 0.0))]
    report = updater(new_policy(), loss="token_mean", clip_norm=None).step(TrainBatch(entries=tuple(batch), step=1))
    assert (report.divisors.all_groups, report.divisors.signal_groups) == (22, 14)
    assert report.grad_norm_signal_groups / report.grad_norm_all_groups == pytest.approx(22 / 14, rel=1e-12)


def trajectory(lesson: Lessons) -> list[list[Entry]]:
    """Seven batches: the second, fourth and fifth hold nothing but ties, the others one live group among ties."""
    live = [[True, False], [False, False], [False, True], [False, False], [False, False], [True, True], [True, False]]
    return [
        [
            lesson(3 * step + place, ANSWERS, [(-1) ** step * a for a in LIVE] if is_live else TIED)
            for place, is_live in enumerate(row)
        ]
        for step, row in enumerate(live)
    ]


def walk(
    policy: LanguageModel, batches: Sequence[Sequence[Entry]], mode: str, **update: object
) -> list[tuple[dict, dict]]:
    credit = {"zero_signal": mode}
    made = updater(policy, credit=credit, learning_rate=1e-3, weight_decay=0.1, warmup_steps=2, **update)
    states = []
    for step, batch in enumerate(batches, start=1):
        made.step(TrainBatch(entries=tuple(batch), step=step))
        states.append((weights(made), moments(made)))
    return states


@pytest.mark.parametrize("update", [{}, {"importance": "token", "updates_per_batch": 2}])
@pytest.mark.parametrize("kind", ["lora", "full"])
def test_skipping_tied_groups_gives_the_same_bits_as_passing_them_backward(
    new_policy: Policies, lesson: Lessons, kind: str, update: dict
) -> None:
    batches = trajectory(lesson)
    slow, fast = (walk(new_policy(kind), batches, mode, **update) for mode in ("backward", "zero_grad_step"))
    for step, ((slow_weights, slow_moments), (fast_weights, fast_moments)) in enumerate(zip(slow, fast, strict=True)):
        assert same_bits(slow_weights, fast_weights), f"parameters after batch {step + 1}"
        assert same_bits(slow_moments, fast_moments), f"moments after batch {step + 1}"
    assert not same_bits(slow[1][0], slow[0][0]), "a zero gradient still steps: momentum and decay move the weights"


def test_making_no_step_on_a_batch_of_ties_is_another_trajectory(new_policy: Policies, lesson: Lessons) -> None:
    batches = trajectory(lesson)
    zero, skip = (walk(new_policy(), batches, mode) for mode in ("zero_grad_step", "skip_step"))
    assert same_bits(zero[0][0], skip[0][0]), "the first batch is live: both step"
    assert same_bits(skip[1][0], skip[0][0]) and same_bits(skip[1][1], skip[0][1]), "nothing moves on the second"
    name = next(name for name in skip[1][1] if name.endswith("lora_B.default.weight/exp_avg"))
    # First moment m: kept by a skipped step, 0.9·m after a step on zero.
    assert torch.allclose(zero[1][1][name], 0.9 * zero[0][1][name], rtol=1e-6, atol=0)
    assert not torch.equal(zero[-1][0][name.removesuffix("/exp_avg")], skip[-1][0][name.removesuffix("/exp_avg")])
    steps = [state[1][name.replace("exp_avg", "step")].item() for state in (zero[-1], skip[-1])]
    assert steps == [7.0, 4.0], "three of seven batches were ties"


def test_weight_decay_acts_on_a_zero_gradient_step_and_not_on_a_skipped_one(
    new_policy: Policies, lesson: Lessons
) -> None:
    # AdamW with fresh moments and zero gradient: w ← w·(1 − rate·decay) = w·(1 − 0.01·0.5) = 0.995·w.
    tied = [lesson(0, ANSWERS, TIED)]
    for mode, factor in (("zero_grad_step", 0.995), ("skip_step", 1.0)):
        made = updater(new_policy(), credit={"zero_signal": mode}, learning_rate=0.01, weight_decay=0.5)
        before = weights(made)
        report = made.step(TrainBatch(entries=tuple(tied), step=1))
        assert report.stepped is (mode == "zero_grad_step")
        for name, after in weights(made).items():
            assert torch.allclose(after, factor * before[name], rtol=1e-6, atol=0)


@pytest.mark.parametrize("kind", ["lora", "full"])
def test_a_zero_gradient_step_fills_every_trainable_parameter(new_policy: Policies, lesson: Lessons, kind: str) -> None:
    made = updater(new_policy(kind))
    report = made.step(TrainBatch(entries=(lesson(0, ANSWERS, TIED), lesson(1, ANSWERS, TIED)), step=1))
    assert (report.grad_norm, report.loss, report.tokens_backward) == (0.0, 0.0, 0)
    trainable = list(made.parameters.values())
    assert len(trainable) == len([p for p in new_policy(kind).module.parameters() if p.requires_grad]) > 0
    for parameter in trainable:
        assert parameter.grad is not None and not parameter.grad.any()
        assert made.optimizer.state[parameter]["step"].item() == 1.0


def test_the_logged_norm_is_the_one_before_clipping(new_policy: Policies, lesson: Lessons) -> None:
    batch = [lesson(0, ANSWERS, LIVE), lesson(1, ANSWERS, LIVE)]
    free, bound = updater(new_policy(), clip_norm=None), updater(new_policy(), clip_norm=0.01)
    loose, tight = (
        free.step(TrainBatch(entries=tuple(batch), step=1)),
        bound.step(TrainBatch(entries=tuple(batch), step=1)),
    )
    norm = torch.sqrt(sum(g.double().square().sum() for g in gradients(free).values())).item()
    assert loose.grad_norm == pytest.approx(norm, rel=1e-5)
    assert tight.grad_norm == loose.grad_norm > 0.01
    assert (loose.clipped, tight.clipped) == (False, True)
    clipped = torch.sqrt(sum(g.double().square().sum() for g in gradients(bound).values())).item()
    assert clipped == pytest.approx(0.01, rel=1e-3)  # torch divides by norm + 1e-6


def test_the_learning_rate_climbs_in_equal_steps_to_its_peak(new_policy: Policies, lesson: Lessons) -> None:
    made = updater(new_policy(), learning_rate=0.4, warmup_steps=3)
    tied = [lesson(0, ANSWERS, TIED)]
    rates = [made.step(TrainBatch(entries=tuple(tied), step=step)).learning_rate for step in range(1, 7)]
    assert rates == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.4, 0.4], rel=1e-12)


def test_a_step_towards_an_answer_makes_it_more_probable_and_the_other_less(
    new_policy: Policies, lesson: Lessons
) -> None:
    batch = [lesson(0, (" 21\n", " 5\n"), (1.0, -1.0))]
    made = updater(policy := new_policy(), learning_rate=1e-3)
    with torch.no_grad():
        before = [row.sum().item() for row in policy.logprobs([batch[0].group])[0]]
    made.step(TrainBatch(entries=tuple(batch), step=1))
    with torch.no_grad():
        after = [row.sum().item() for row in policy.logprobs([batch[0].group])[0]]
    assert after[0] > before[0] + 0.01
    assert after[1] < before[1] - 0.01


def test_a_small_budget_bounds_what_a_pass_keeps_and_leaves_the_gradient(new_policy: Policies, lesson: Lessons) -> None:
    batch = [lesson(index, ANSWERS, LIVE) for index in range(4)]
    kept, columns, made = [], [], []
    for budget in (4096, 100):
        policy = new_policy()
        policy.config = policy.config.model_copy(update={"max_update_tokens": budget})
        largest = widest = 0
        for scored in policy.read_passes([item.group for item in batch], chosen_logprobs()):
            held = saved_tensors([t for p in scored.parts for t in p.values_G])
            sizes = {t.data_ptr(): t.nbytes for t in held}
            widest = max(widest, scored.num_computed)
            largest = max(largest, sum(size for where, size in sizes.items() if where not in weights_at(policy)))
        kept.append(largest)
        columns.append(widest)
        made.append(updater(policy, clip_norm=None))
        assert made[-1].step(TrainBatch(entries=tuple(batch), step=1)).tokens_backward > 100
    assert columns[1] <= 100 < columns[0]
    assert kept[1] / kept[0] == pytest.approx(columns[1] / columns[0], rel=0.1), (
        "memory grows with the tokens of a pass"
    )
    for name, gradient in gradients(made[0]).items():
        assert torch.allclose(gradient, gradients(made[1])[name], rtol=1e-3, atol=1e-5), name


def weights_at(policy: LanguageModel) -> set[int]:
    return {parameter.data_ptr() for parameter in policy.module.parameters()}


def saved_tensors(outputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """Everything that the graph behind some tensors keeps for the way back."""
    found, seen, stack = [], set(), [t.grad_fn for t in outputs]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        held = [getattr(node, name) for name in dir(node) if name.startswith("_saved_") or name == "saved_tensors"]
        for value in held:
            found += [t for t in (value if isinstance(value, tuple) else (value,)) if isinstance(t, torch.Tensor)]
        stack += [parent for parent, _ in node.next_functions]
    return found


@pytest.mark.parametrize("advantage", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_is_refused_before_the_weights_are_touched(
    new_policy: Policies, lesson: Lessons, advantage: float
) -> None:
    made = updater(new_policy())
    before = weights(made)
    with pytest.raises(DivergedError, match=r"step 7: .*wanted finite numbers\. The weights are those of step 6"):
        made.step(TrainBatch(entries=(lesson(0, ANSWERS, (advantage, 0.0, 0.0, 0.0)),), step=7))
    assert same_bits(weights(made), before)


def test_questions_that_share_a_pass_change_rounding_only(new_policy: Policies, lesson: Lessons) -> None:
    batch = [lesson(index, ANSWERS, LIVE) for index in range(3)]
    one, three = (updater(new_policy(), clip_norm=None, questions_per_pass=number) for number in (1, 3))
    alone, together = (
        one.step(TrainBatch(entries=tuple(batch), step=1)),
        three.step(TrainBatch(entries=tuple(batch), step=1)),
    )
    assert together.loss == pytest.approx(alone.loss, rel=1e-4)
    for name, gradient in gradients(one).items():
        assert torch.allclose(gradient, gradients(three)[name], rtol=1e-3, atol=1e-5), name


def test_the_warped_distribution_is_another_gradient_and_at_temperature_one_the_same(
    new_policy: Policies, lesson: Lessons
) -> None:
    batch = [lesson(0, ANSWERS, LIVE)]

    def norm(scored_under: str, temperature: float) -> float:
        made = updater(new_policy(), temperature=temperature, scored_under=scored_under, clip_norm=None)
        return made.step(TrainBatch(entries=tuple(batch), step=1)).grad_norm

    assert norm("warped", 1.0) == pytest.approx(norm("plain", 1.0), rel=1e-5)
    assert norm("plain", 2.0) == norm("plain", 1.0), "plain log-probabilities know no temperature"
    assert abs(norm("warped", 2.0) / norm("plain", 2.0) - 1) > 0.1


def test_tokens_are_counted_once_where_shared_and_per_completion_where_not(
    new_policy: Policies, lesson: Lessons
) -> None:
    # Prompt P; completions of 4, 3, 4, 3 tokens, whose last is predicted and never fed: 3 + 2 + 3 + 2 = 10 of their own.
    # They all begin with a blank, which the trie shares: 10 − 3 = 7 beside the prompt.
    live, tied = lesson(0, ANSWERS, LIVE), lesson(1, ANSWERS, TIED)
    prompts = [len(each.group.prompt_tokens) for each in (live, tied)]
    report = updater(new_policy()).step(TrainBatch(entries=(live, tied), step=1))
    assert report.tokens_backward == prompts[0] + 7
    assert report.tokens_unshared == 4 * prompts[0] + 10 + 4 * prompts[1] + 10

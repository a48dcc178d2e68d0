"""Ratio, KL term, parts and several updates of one batch, through the policy."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from deadheat.credit import GroupKind
from deadheat.errors import ConfigError, DivergedError
from deadheat.policy import LanguageModel
from deadheat.train import Entry, TrainBatch
from deadheat.train.config import CreditConfig, UpdateConfig
from deadheat.train.loop import Updater
from deadheat.train.update import UpdateReport
from deadheat.types import GenerateRequest, Group, Rollout, SamplingParams

ANSWERS = (" 21\n", " 5\n", " 13\n", " 9\n")  # 4, 3, 4 and 3 characters, a token each
LIVE = (1.0, -1.0, 0.5, -0.5)
TIED = (0.0, 0.0, 0.0, 0.0)

Lessons = Callable[..., Entry]
Policies = Callable[..., LanguageModel]


def updater(policy: LanguageModel, *, credit: dict | None = None, **update: object) -> Updater:
    sampling = SamplingParams(max_new_tokens=8)
    return Updater(policy, UpdateConfig(**{"clip_norm": None, **update}), CreditConfig(**(credit or {})), sampling)


def stepped(policy: LanguageModel, batch: list[Entry], **settings: object) -> tuple[UpdateReport, torch.Tensor]:
    """The report and the gradient, as one vector, of one step."""
    made = updater(policy, **settings)
    report = made.step(TrainBatch(entries=tuple(batch), step=1))
    return report, torch.cat([p.grad.flatten() for p in made.parameters.values() if p.grad is not None])


def apart(left: torch.Tensor, right: torch.Tensor) -> float:
    """|left − right| / |right|."""
    return float((left - right).norm() / right.norm())


@pytest.mark.parametrize("importance", ["token", "sequence"])
@pytest.mark.parametrize("loss", ["sequence_sum", "token_mean", "sequence_mean", "fixed_length"])
def test_one_update_of_a_batch_has_the_gradient_without_a_ratio(
    new_policy: Policies, lesson: Lessons, loss: str, importance: str
) -> None:
    batch = [lesson(0, ANSWERS, LIVE), lesson(1, ANSWERS, TIED), lesson(2, ANSWERS, LIVE[::-1])]
    plain, wanted = stepped(new_policy(), batch, loss=loss)
    clipped, found = stepped(new_policy(), batch, loss=loss, importance=importance)
    assert apart(found, wanted) < 1e-6
    assert clipped.grad_norm == pytest.approx(plain.grad_norm, rel=1e-6)
    # At ratio 1 the loss is −Σ A·scale·L / divisor, the plain one −Σ A·scale·Σℓ / divisor: another number, one gradient.
    drift = clipped.drift
    assert drift.per_compared(drift.ratio_sum) == pytest.approx(1.0, abs=1e-6)
    assert drift.per_compared(drift.kl_drawn_sum) == pytest.approx(0.0, abs=1e-9)
    assert drift.num_clipped_low == drift.num_clipped_high == 0
    assert drift.num_compared == 2 * 14, "the tied group was skipped"


def test_what_generation_recorded_is_the_denominator_and_agrees_with_the_update(new_policy: Policies, addition) -> None:
    policy = new_policy()
    prompt = policy.encode(addition.training[0].prompt, chat=False)
    sampling = SamplingParams(max_new_tokens=8, temperature=1.3)
    requests = [
        GenerateRequest(prompt_tokens=prompt, key=key, sampling=sampling, stop_ids=policy.stop_ids("\n"))
        for key in (3, 5, 7, 11)
    ]
    drawn = policy.generate(requests).completions
    problem = addition.training[0]
    rollouts = tuple(Rollout(problem=problem, sample=i, completion=c) for i, c in enumerate(drawn))
    batch = [
        Entry(
            group=Group(problem=problem, prompt_tokens=prompt, rollouts=rollouts),
            rewards_G=np.zeros(4),
            advantages_G=tuple(np.full(len(c.tokens), a) for c, a in zip(drawn, LIVE, strict=True)),
            kind=GroupKind.LIVE,
        )
    ]
    _, wanted = stepped(new_policy(), batch)
    report, found = stepped(new_policy(), batch, importance="token")
    # The update's log-probabilities are those of the draw, so every ratio is 1.
    assert report.drift.per_compared(report.drift.ratio_sum) == pytest.approx(1.0, abs=1e-6)
    assert apart(found, wanted) < 1e-6


def test_later_updates_of_a_batch_move_the_ratio_and_clip_it(new_policy: Policies, lesson: Lessons) -> None:
    batch = [lesson(0, ANSWERS, LIVE), lesson(1, ANSWERS, LIVE)]
    made = updater(new_policy(), importance="token", updates_per_batch=4, learning_rate=0.02)
    report = made.step(TrainBatch(entries=tuple(batch), step=1))
    assert (report.num_updates, report.stepped) == (4, True)
    assert {made.optimizer.state[p]["step"].item() for p in made.parameters.values()} == {4.0}
    drift = report.drift
    assert drift.num_compared == 4 * 2 * 14
    assert drift.per_compared(drift.kl_drawn_sum) > 1e-3
    assert 0 < drift.num_clipped_low + drift.num_clipped_high < drift.num_compared
    once = updater(new_policy()).step(TrainBatch(entries=tuple(batch), step=1))
    assert report.tokens_backward == 4 * once.tokens_backward
    assert report.tokens_unshared == 4 * once.tokens_unshared
    # 14 tokens of each of two live groups: a completion is delivered once, however often it is passed.
    assert report.tokens_delivered == once.tokens_delivered == 28


def test_an_all_tied_batch_makes_as_many_zero_steps_as_a_live_one(new_policy: Policies, lesson: Lessons) -> None:
    tied = [lesson(0, ANSWERS, TIED)]
    for mode, count in (("zero_grad_step", 3), ("skip_step", 0)):
        credit = {"zero_signal": mode}
        report = updater(new_policy(), credit=credit, importance="token", updates_per_batch=3).step(
            TrainBatch(entries=tuple(tied), step=1)
        )
        assert (report.num_updates, report.stepped, report.tokens_backward) == (count, count > 0, 0)
        assert (report.tokens_delivered, report.loss, report.grad_norm) == (0, 0.0, 0.0)


def test_a_later_update_that_breaks_says_which_weights_are_left(new_policy: Policies, lesson: Lessons) -> None:
    made = updater(new_policy(), importance="token", updates_per_batch=2, learning_rate=1e30)
    with pytest.raises(DivergedError, match=r"The weights are those of update 1 of step 5\."):
        made.step(TrainBatch(entries=(lesson(0, ANSWERS, LIVE),), step=5))


BACKWARD = {"zero_signal": "backward"}


def moved(policy: LanguageModel, lesson: Lessons) -> LanguageModel:
    """The policy after three steps towards one answer."""
    made = updater(policy, learning_rate=5e-3)
    for step in (1, 2, 3):
        made.step(TrainBatch(entries=(lesson(0, (" 21\n", " 5\n"), (1.0, -1.0)),), step=step))
    return policy


def test_the_reference_is_the_model_before_training(new_policy: Policies, lesson: Lessons) -> None:
    policy, branches = new_policy(), lesson(3, ANSWERS, LIVE).group
    with torch.no_grad():
        (before,) = policy.logprobs([branches])
    moved(policy, lesson)
    trainable = {name for name, p in policy.module.named_parameters() if p.requires_grad}
    with policy.reference():
        (reference,) = policy.logprobs([branches])
    with torch.no_grad():
        (after,) = policy.logprobs([branches])
    for row, start, now in zip(reference, before, after, strict=True):
        assert not row.requires_grad
        assert torch.allclose(row, start, rtol=0, atol=1e-5)
        assert float((now - start).abs().max()) > 0.01
    assert {name for name, p in policy.module.named_parameters() if p.requires_grad} == trainable, "still trainable"


def test_full_fine_tuning_has_no_reference(new_policy: Policies, lesson: Lessons) -> None:
    with (
        pytest.raises(ConfigError, match=r"trains every weight .* wanted policy.adapter.kind = 'lora'"),
        new_policy("full").reference(),
    ):
        pass


def test_a_tied_batch_has_the_loss_of_its_kl_term_alone_and_a_step_lowers_it(
    new_policy: Policies, lesson: Lessons
) -> None:
    policy = moved(new_policy(), lesson)
    batch = [lesson(3, ANSWERS, TIED), lesson(4, ANSWERS, TIED)]

    def logprobs() -> list[torch.Tensor]:
        return [row for item in batch for row in policy.logprobs([item.group])[0]]

    def divergence() -> float:
        with policy.reference():
            reference = logprobs()
        with torch.no_grad():
            rows = zip(
                logprobs(),
                reference,
                strict=True,
            )
            return sum(float(((r - n).double().exp() - (r - n).double() - 1).sum()) for n, r in rows)

    before = divergence()
    report = updater(policy, credit=BACKWARD, kl_coef=0.25, learning_rate=1e-3).step(
        TrainBatch(entries=tuple(batch), step=1)
    )
    # 8 sequences: ¼·Σ k3 / 8. 28 tokens.
    assert before > 1e-3
    assert report.loss == pytest.approx(0.25 * before / 8, rel=1e-4)
    assert report.drift.kl_reference == pytest.approx(before / 28, rel=1e-4)
    assert report.tokens_reference == report.tokens_backward > 0
    assert report.grad_norm > 0 and report.divisors.signal_groups == 0
    assert divergence() < before


def test_the_kl_term_of_tied_groups_is_in_the_gradient_and_has_the_divisor_of_all_groups(
    new_policy: Policies, lesson: Lessons
) -> None:
    # Divisors of the objective 8 and 4, of the KL term 8 in both: g_signal − g_all = the objective's 1/4 − 1/8.
    batch = [lesson(3, ANSWERS, LIVE), lesson(4, ANSWERS, TIED)]
    found = {}
    for name in ("all_groups", "signal_groups"):
        for kl_coef in (0.0, 0.25):
            report, found[name, kl_coef] = stepped(
                moved(new_policy(), lesson), batch, credit={**BACKWARD, "denominator": name}, kl_coef=kl_coef
            )
            assert (report.grad_norm_all_groups is None) == (name == "signal_groups" and kl_coef > 0)
            assert (report.grad_norm_signal_groups is None) == (name == "all_groups" and kl_coef > 0)
    kl = found["all_groups", 0.25] - found["all_groups", 0.0]
    assert apart(found["signal_groups", 0.25] - found["signal_groups", 0.0], kl) < 1e-4
    assert apart(found["signal_groups", 0.0], 2 * found["all_groups", 0.0]) < 1e-6
    assert kl.norm() > 0


def test_a_fresh_adapter_is_its_own_reference(new_policy: Policies, lesson: Lessons) -> None:
    report = updater(new_policy(), credit=BACKWARD, kl_coef=1.0).step(
        TrainBatch(entries=(lesson(0, ANSWERS, TIED),), step=1)
    )
    assert report.loss == pytest.approx(0.0, abs=1e-9)
    assert report.drift.kl_reference == pytest.approx(0.0, abs=1e-9)


def test_each_part_of_a_batch_has_its_own_divisor_and_counts_alike(new_policy: Policies, lesson: Lessons) -> None:
    # Part a: 14 + 14 tokens, one group tied. Part b: 7 tokens. The gradient is the mean of the parts' own.
    a = [lesson(0, ANSWERS, LIVE, part="a"), lesson(1, ANSWERS, TIED, part="a")]
    b = [lesson(2, ANSWERS[:2], (1.0, -1.0), part="b")]
    settings = {"loss": "token_mean"}
    (_, alone_a), (_, alone_b) = (stepped(new_policy(), part, **settings) for part in (a, b))
    report, both = stepped(new_policy(), a + b, **settings)
    assert apart(both, (alone_a + alone_b) / 2) < 1e-6
    assert (report.divisors.all_groups, report.divisors.signal_groups) == (35, 21)
    # Under signal_groups part a would double and part b stay: no factor turns one gradient into the other.
    assert (report.grad_norm_all_groups, report.grad_norm_signal_groups) == (report.grad_norm, None)


def test_parts_alike_in_their_ties_keep_both_step_sizes(new_policy: Policies, lesson: Lessons) -> None:
    batch = [
        lesson(i, ANSWERS, LIVE if i % 2 else TIED, part="a" if i < 2 else "b")  # one live, one tied in each
        for i in range(4)
    ]
    report, found = stepped(new_policy(), batch)
    assert report.grad_norm_signal_groups == 2 * report.grad_norm_all_groups > 0
    # Two parts of 8 sequences each: 1/(2·8) = 1/16, as without parts.
    undivided = [replace(entry, part="") for entry in batch]
    assert apart(found, stepped(new_policy(), undivided)[1]) < 1e-6


def test_questions_of_several_parts_share_a_pass(new_policy: Policies, lesson: Lessons) -> None:
    batch = [lesson(0, ANSWERS, LIVE, part="a"), lesson(1, ANSWERS[:2], (1.0, -1.0), part="b")]
    one, many = (
        stepped(new_policy(), batch, questions_per_pass=size, importance="token", dual_clip=3.0)[1] for size in (1, 2)
    )
    assert apart(many, one) < 1e-4


def test_log_probabilities_of_another_length_than_the_completion_are_refused(
    new_policy: Policies, lesson: Lessons
) -> None:
    held = lesson(0, ANSWERS, LIVE)
    first = held.group.rollouts[0]
    short = replace(first.completion, plain_logprobs=first.completion.plain_logprobs[:-1])
    group = replace(held.group, rollouts=(replace(first, completion=short), *held.group.rollouts[1:]))
    torn = replace(held, group=group)
    with pytest.raises(ValueError, match="completion 0 has 4 tokens and 3 recorded log-probabilities"):
        updater(new_policy(), importance="token").step(TrainBatch(entries=(torn,), step=1))

"""A flat group: G draws of each problem, each at an address that names no arm."""

import hashlib
from collections.abc import Sequence

import pytest

from deadheat.policy import LanguageModel
from deadheat.rollouts import Address, DrawSpec, draw_groups
from deadheat.sampling.keys import Purpose
from deadheat.types import Group, Problem, SamplingParams

SPEC = DrawSpec(task="sums", chat=False, stop_text="\n", sampling=SamplingParams(max_new_tokens=6))
FIRST = Address(seed=3, purpose=Purpose.TRAIN, step=1)
PROBLEMS = tuple(
    Problem(task="sums", problem_id=str(a), prompt=f"1 + 1 = 2\n{a} + {a + 1} =", reference=str(2 * a + 1))
    for a in range(4)
)


def tokens(drawn: Sequence[Group]) -> list[tuple[tuple[int, ...], ...]]:
    return [group.completion_tokens for group in drawn]


def test_the_address_of_a_draw_is_seed_purpose_task_problem_step_and_sample_and_nothing_else(
    tiny_policy: LanguageModel,
) -> None:
    drawn = draw_groups(tiny_policy, PROBLEMS[:1], SPEC, address=FIRST, group_size=2).groups

    # The message by hand: u16 length + domain, text with a u32 length before it, integers in eight bytes, big-endian.
    def text(value: str) -> bytes:
        return len(value).to_bytes(4, "big") + value.encode()

    def number(value: int) -> bytes:
        return value.to_bytes(8, "big")

    domain = b"deadheat/rollout/v1"
    digest = hashlib.sha256(b"1 + 1 = 2\n0 + 1 =").hexdigest()
    head = len(domain).to_bytes(2, "big") + domain
    messages = [
        head + number(3) + text("train") + text("sums") + text(digest) + number(1) + number(sample) for sample in (0, 1)
    ]
    wanted = [int.from_bytes(hashlib.sha256(message).digest()[:8], "big") for message in messages]
    assert [rollout.completion.key for rollout in drawn[0].rollouts] == wanted


def test_two_arms_draw_the_same_tokens_and_another_seed_step_or_purpose_draws_others(
    tiny_policy: LanguageModel,
) -> None:
    first = draw_groups(tiny_policy, PROBLEMS, SPEC, address=FIRST, group_size=4).groups
    again = draw_groups(tiny_policy, PROBLEMS, SPEC, address=FIRST, group_size=4).groups
    assert first == again
    others = (
        Address(seed=4, purpose=Purpose.TRAIN, step=1),
        Address(seed=3, purpose=Purpose.TRAIN, step=2),
        Address(seed=3, purpose=Purpose.EVAL, step=1),
    )
    for address in others:
        drawn = draw_groups(tiny_policy, PROBLEMS, SPEC, address=address, group_size=4).groups
        keys = {rollout.completion.key for group in drawn for rollout in group.rollouts}
        assert not keys & {rollout.completion.key for group in first for rollout in group.rollouts}
        assert tokens(drawn) != tokens(first)


def test_extra_draws_continue_the_sample_index(tiny_policy: LanguageModel) -> None:
    whole = draw_groups(tiny_policy, PROBLEMS[:2], SPEC, address=FIRST, group_size=5).groups
    begun = draw_groups(tiny_policy, PROBLEMS[:2], SPEC, address=FIRST, group_size=3).groups
    extra = draw_groups(tiny_policy, PROBLEMS[:2], SPEC, address=FIRST, group_size=2, first_sample=3).groups
    assert [[rollout.sample for rollout in group.rollouts] for group in extra] == [[3, 4], [3, 4]]
    for all_five, three, two in zip(whole, begun, extra, strict=True):
        assert three.with_more(two) == all_five


def test_a_draw_does_not_depend_on_which_problems_are_drawn_beside_it(tiny_policy: LanguageModel) -> None:
    together = draw_groups(tiny_policy, PROBLEMS, SPEC, address=FIRST, group_size=3).groups
    alone = [draw_groups(tiny_policy, [p], SPEC, address=FIRST, group_size=3).groups[0] for p in reversed(PROBLEMS)]
    assert tokens(together) == tokens(alone[::-1])


def test_groups_come_back_in_problem_order_with_the_prompts_length(tiny_policy: LanguageModel) -> None:
    drawn = draw_groups(tiny_policy, PROBLEMS, SPEC, address=FIRST, group_size=2).groups
    assert [d.problem.problem_id for d in drawn] == ["0", "1", "2", "3"]
    # One token per character: "1 + 1 = 2\n0 + 1 =" has ten characters with its line end and seven after it.
    assert [d.prompt_length for d in drawn] == [17] * 4
    assert all(len(group.rollouts) == 2 for group in drawn)


@pytest.mark.parametrize("group_size", [1, 3])
def test_no_problems_are_no_groups(tiny_policy: LanguageModel, group_size: int) -> None:
    assert draw_groups(tiny_policy, [], SPEC, address=FIRST, group_size=group_size).groups == ()

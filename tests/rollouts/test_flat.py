"""A flat group: G draws of each problem, each at an address that names no arm."""

import hashlib

import pytest

from deadheat.policy import LanguageModel
from deadheat.rollouts import Address, DrawSpec, draw_groups
from deadheat.sampling.keys import Purpose
from deadheat.types import Drawn, Problem, SamplingParams

SPEC = DrawSpec(task="sums", chat=False, stop_text="\n", sampling=SamplingParams(max_new_tokens=6))
FIRST = Address(seed=3, purpose=Purpose.TRAIN, step=1)
PROBLEMS = tuple(
    Problem(task="sums", problem_id=str(a), prompt=f"1 + 1 = 2\n{a} + {a + 1} =", reference=str(2 * a + 1))
    for a in range(4)
)


def tokens(drawn: list[Drawn]) -> list[list[tuple[int, ...]]]:
    return [[completion.tokens for completion in d.completions] for d in drawn]


def test_the_address_of_a_draw_is_seed_purpose_task_problem_step_and_sample_and_nothing_else(
    tiny_policy: LanguageModel,
) -> None:
    drawn = draw_groups(tiny_policy, PROBLEMS[:1], SPEC, address=FIRST, group_size=2)

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
    assert [completion.key for completion in drawn[0].completions] == wanted


def test_two_arms_draw_the_same_tokens_and_another_seed_step_or_purpose_draws_others(
    tiny_policy: LanguageModel,
) -> None:
    first = draw_groups(tiny_policy, PROBLEMS, SPEC, address=FIRST, group_size=4)
    again = draw_groups(tiny_policy, PROBLEMS, SPEC, address=FIRST, group_size=4)
    assert first == again
    others = (
        Address(seed=4, purpose=Purpose.TRAIN, step=1),
        Address(seed=3, purpose=Purpose.TRAIN, step=2),
        Address(seed=3, purpose=Purpose.EVAL, step=1),
    )
    for address in others:
        drawn = draw_groups(tiny_policy, PROBLEMS, SPEC, address=address, group_size=4)
        keys = {completion.key for d in drawn for completion in d.completions}
        assert not keys & {completion.key for d in first for completion in d.completions}
        assert tokens(drawn) != tokens(first)


def test_extra_draws_continue_the_sample_index(tiny_policy: LanguageModel) -> None:
    whole = draw_groups(tiny_policy, PROBLEMS[:2], SPEC, address=FIRST, group_size=5)
    begun = draw_groups(tiny_policy, PROBLEMS[:2], SPEC, address=FIRST, group_size=3)
    extra = draw_groups(tiny_policy, PROBLEMS[:2], SPEC, address=FIRST, group_size=2, first_sample=3)
    assert [d.first_sample for d in extra] == [3, 3]
    for all_five, three, two in zip(whole, begun, extra, strict=True):
        assert three.completions + two.completions == all_five.completions


def test_a_draw_does_not_depend_on_which_problems_are_drawn_beside_it(tiny_policy: LanguageModel) -> None:
    together = draw_groups(tiny_policy, PROBLEMS, SPEC, address=FIRST, group_size=3)
    alone = [draw_groups(tiny_policy, [p], SPEC, address=FIRST, group_size=3)[0] for p in reversed(PROBLEMS)]
    assert tokens(together) == tokens(alone[::-1])


def test_groups_come_back_in_problem_order_with_the_prompts_length(tiny_policy: LanguageModel) -> None:
    drawn = draw_groups(tiny_policy, PROBLEMS, SPEC, address=FIRST, group_size=2)
    assert [d.problem.problem_id for d in drawn] == ["0", "1", "2", "3"]
    # One token per character: "1 + 1 = 2\n0 + 1 =" has ten characters with its line end and seven after it.
    assert [d.prompt_length for d in drawn] == [17] * 4
    assert all(len(d.completions) == 2 for d in drawn)


@pytest.mark.parametrize("group_size", [1, 3])
def test_no_problems_are_no_groups(tiny_policy: LanguageModel, group_size: int) -> None:
    assert draw_groups(tiny_policy, [], SPEC, address=FIRST, group_size=group_size) == []

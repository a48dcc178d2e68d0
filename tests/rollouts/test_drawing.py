"""Which draws the three strategies make, which they keep, and that nothing but addresses and grades decides it."""

import numpy as np
import pytest

from deadheat.policy import LanguageModel
from deadheat.rollouts import STRATEGIES, Drawing, DrawPlan, Keep, Pool, draw_groups
from deadheat.tasks import load_task, parse_task
from deadheat.types import Group, Score

from .scripted import FIRST, SPEC, play, rewards_of, script

DYNAMIC, ADAPTIVE, FLAT = Drawing.DYNAMIC, Drawing.ADAPTIVE, Drawing.FLAT


def test_flat_draws_each_problem_once_and_learns_from_all() -> None:
    played = play(FLAT, [script("a", "00"), script("b", "01")])
    assert played.calls == [[("a", 0), ("a", 1), ("b", 0), ("b", 1)]]
    assert played.kept == [("a", [0, 1]), ("b", [0, 1])]
    batch = played.batch
    assert (batch.num_problems, batch.num_never_mixed, batch.num_groups, batch.num_rounds) == (2, 1, 2, 1)


def test_dynamic_tries_a_tied_problem_anew_with_its_sample_index_continued_and_keeps_its_first_mixed_group() -> None:
    # b agrees twice, then 0 1 at samples 4 and 5; its earlier draws are not pooled, although 0 0 1 1 would be mixed.
    played = play(DYNAMIC, [script("a", "10"), script("b", "00 11 01 01"), script("c", "01")])
    assert played.calls == [
        [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("c", 0), ("c", 1)],
        [("b", 2), ("b", 3)],
        [("b", 4), ("b", 5)],
    ]
    assert played.kept == [("a", [0, 1]), ("b", [4, 5]), ("c", [0, 1])]
    assert played.not_kept == [("b", [0, 1]), ("b", [2, 3])]
    batch = played.batch
    # 5 draws of two; two tokens a rollout, four rollouts not kept.
    assert (batch.num_problems, batch.num_never_mixed) == (3, 0)
    assert (batch.num_groups, batch.num_rollouts, batch.num_rounds, batch.tokens_not_kept) == (5, 10, 3, 8)


def test_dynamic_drops_what_never_mixes_and_fills_its_place_with_the_next_problem_of_the_order() -> None:
    # Two rounds. a and c are dropped; d and e take the two places; d is dropped too and f takes its place.
    reserve = [script("d", "11 11"), script("e", "00 10"), script("f", "01"), script("g", "01")]
    played = play(DYNAMIC, [script("a", "00 00"), script("b", "01"), script("c", "11 11")], reserve, max_rounds=2)
    assert [sorted({name for name, _ in call}) for call in played.calls] == [
        ["a", "b", "c"],
        ["a", "c"],
        ["d", "e"],
        ["d", "e"],
        ["f"],
    ]
    assert played.kept == [("b", [0, 1]), ("e", [2, 3]), ("f", [0, 1])]
    assert (played.batch.num_problems, played.batch.num_never_mixed) == (6, 3)
    assert played.batch.num_rollouts == 2 * len(played.kept) + 2 * len(played.not_kept) == 20


def test_dynamic_stops_at_its_refills_and_at_the_last_problem_with_a_short_or_empty_batch() -> None:
    tied = [script(name, "00") for name in "abcdefgh"]
    none = play(DYNAMIC, tied[:2], tied[2:], max_rounds=1, max_refills=2)
    assert none.kept == [] and none.batch.num_rounds == 3
    assert [name for name, _ in none.not_kept] == list("abcdef"), "two places, filled twice"
    out = play(DYNAMIC, tied[:2], [tied[2], script("z", "01")], max_rounds=1, max_refills=9)
    assert out.kept == [("z", [0, 1])] and out.batch.num_rounds == 2


def test_adaptive_pools_rounds_until_both_grades_are_there() -> None:
    played = play(
        ADAPTIVE, [script("a", "10"), script("b", "00 00 01"), script("c", "11 00"), script("d", "0000 0000")]
    )
    assert played.calls == [
        [(name, sample) for name in "abcd" for sample in (0, 1)],
        [(name, sample) for name in "bcd" for sample in (2, 3)],
        [(name, sample) for name in "bd" for sample in (4, 5)],
        [("d", 6), ("d", 7)],
    ]
    # b: the first draw and sample 5, the first that differs. d gave up: its first two draws, a tied group.
    assert played.kept == [("a", [0, 1]), ("b", [0, 5]), ("c", [0, 2]), ("d", [0, 1])]
    assert played.not_kept == [("b", [1, 2, 3, 4]), ("c", [1, 3]), ("d", [2, 3, 4, 5, 6, 7])]
    batch = played.batch
    assert (batch.num_problems, batch.num_never_mixed, batch.num_groups, batch.num_rounds) == (4, 1, 10, 4)


@pytest.mark.parametrize(
    ("keep", "pool", "kept"),
    [
        # First four agree: the first three and the draw that broke the tie, whatever comes after it.
        (Keep.FIRST_G, "0000 0011", [0, 1, 2, 6]),
        (Keep.FIRST_G, "1111 0100", [0, 1, 2, 4]),
        # Mixed at once: the first four, as flat draws them.
        (Keep.FIRST_G, "0001", [0, 1, 2, 3]),
        (Keep.BALANCED, "0001", [0, 1, 2, 3]),
        # Two and two, the first of each; three right draws later are not needed.
        (Keep.BALANCED, "0000 0111", [0, 1, 5, 6]),
        # One right draw is all there is.
        (Keep.BALANCED, "0000 0100", [0, 1, 2, 5]),
        (Keep.BALANCED, "1111 1011", [0, 1, 2, 5]),
        # Unscored draws are kept only where scored ones run out.
        (Keep.FIRST_G, "?000 ?100", [1, 2, 3, 5]),
        (Keep.BALANCED, "??00 0100", [2, 3, 4, 5]),
        (Keep.BALANCED, "???? ?01?", [0, 1, 5, 6]),
        (Keep.FIRST_G, "???? ?01?", [0, 1, 5, 6]),
        # Half grades: the pool's mean is 0.5·2/8 = 0.125, so both halves are above it.
        (Keep.BALANCED, "0000 0h0h", [0, 1, 5, 7]),
    ],
)
def test_which_four_of_a_pool_are_kept(keep: Keep, pool: str, kept: list[int]) -> None:
    played = play(ADAPTIVE, [script("a", pool)], group_size=4, keep=keep, max_rounds=2)
    assert played.kept == [("a", kept)]
    assert sorted(sample for _, samples in played.kept + played.not_kept for sample in samples) == list(
        range(len(pool.replace(" ", "")))
    )


def test_an_odd_group_keeps_one_more_of_the_lower_grade() -> None:
    # G = 3: one above the mean, two below.
    assert play(ADAPTIVE, [script("a", "000 111")], group_size=3, keep=Keep.BALANCED).kept == [("a", [0, 1, 3])]


@pytest.mark.parametrize("drawing", list(Drawing))
def test_what_is_kept_can_be_recomputed_from_the_rewards_alone(drawing: Drawing) -> None:
    scripts = ["01", "00 01", "11 11 10", "00 00 00 00", "11 11 11 11", "?? 01", "?1 ?1 ?0 01", "hh h1"]
    problems = [script(str(i), grades) for i, grades in enumerate(scripts)]
    played = play(drawing, problems, max_refills=0)
    drawn: dict[str, dict[int, float]] = {}
    for group in (*played.batch.kept, *played.batch.not_kept):
        of_problem = drawn.setdefault(group.problem.problem_id, {})
        of_problem |= {r.sample: x for r, x in zip(group.rollouts, rewards_of(group).tolist(), strict=True)}
    chosen = {
        name: list(
            STRATEGIES[drawing].choose(
                Pool(
                    rewards_N=np.array([rewards[sample] for sample in sorted(rewards)]),
                    group_size=2,
                    origins_N=(None,) * len(rewards),
                ),
                played.batch.plan.options,
            )
        )
        for name, rewards in drawn.items()
    }
    assert {name: samples for name, samples in chosen.items() if samples} == dict(played.kept)


def graded_by_parity(groups: list[Group]) -> list[Group]:
    """Right where the answer has an even number of characters: a grade that real texts differ in."""
    return [
        group.with_scores([Score(value=float(len(r.completion.text) % 2 == 0)) for r in group.rollouts])
        for group in groups
    ]


@pytest.mark.parametrize("drawing", [DYNAMIC, ADAPTIVE])
def test_the_first_round_is_what_flat_draws_and_later_ones_continue_its_samples(
    tiny_policy: LanguageModel, drawing: Drawing
) -> None:
    task = load_task(parse_task({"name": "addition", "limit": 20, "held_out": 100}))
    problems = task.training[:6]
    plan = DrawPlan(
        problems=problems,
        reserve=(),
        spec=SPEC,
        address=FIRST,
        group_size=2,
        options=STRATEGIES[drawing].options(max_rounds=4),
        score=graded_by_parity,
        rewards=rewards_of,
    )
    batch = STRATEGIES[drawing].draw(tiny_policy, plan)
    again = STRATEGIES[drawing].draw(tiny_policy, plan)
    drawn = {
        (group.problem.problem_id, rollout.sample): rollout.completion
        for group in (*batch.kept, *batch.not_kept)
        for rollout in group.rollouts
    }
    assert batch.cost.num_generated == sum(len(completion.tokens) for completion in drawn.values()), "of all rounds"
    # One flat group of eight holds every draw that any number of rounds of two can make.
    flat = draw_groups(tiny_policy, problems, SPEC, address=FIRST, group_size=8).groups
    whole = {(group.problem.problem_id, r.sample): r.completion for group in flat for r in group.rollouts}
    assert drawn == {place: whole[place] for place in drawn}
    assert {(problem.problem_id, sample) for problem in problems for sample in (0, 1)} <= set(drawn)
    assert len(drawn) > 12, "some problem was drawn again"
    assert again.kept == batch.kept

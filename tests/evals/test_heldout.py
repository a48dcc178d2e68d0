"""Held-out evaluation: every answer kept, unscored ones left out of the accuracy, the same noise at every step."""

from dataclasses import replace

import pytest

from deadheat.evals import EvalSpec, Evaluation, evaluate
from deadheat.policy import LanguageModel
from deadheat.rollouts import DrawSpec
from deadheat.sampling.keys import Purpose, rollout_key
from deadheat.scorers import per_text
from deadheat.types import Completion, Draw, Group, Problem, Rollout, SamplingParams, Score, StopReason

PROBLEMS = tuple(
    Problem(task="sums", problem_id=str(a), prompt=f"1 + 1 = 2\n{a} + {a + 1} =", reference=str(2 * a + 1))
    for a in range(5)
)


@per_text
def exact(problem: Problem, text: str) -> Score:
    """Right where the line is the sum."""
    right = text.strip() == problem.reference
    return Score(value=float(right), correct=right, answer=text.strip())


def spec(draw: Draw, *, samples: int = 1, seed: int = 1) -> EvalSpec:
    sampling = SamplingParams(draw=draw, max_new_tokens=6)
    return EvalSpec(
        problems=PROBLEMS,
        draw=DrawSpec(task="sums", chat=False, stop_text="\n", sampling=sampling),
        samples=samples,
        seed=seed,
    )


def answer(score: Score) -> Group:
    completion = Completion(
        tokens=(1,), logprobs=(0.0,), plain_logprobs=(0.0,), margins=None, text="", stop=StopReason.CAP, key=1
    )
    rollout = Rollout(problem=PROBLEMS[0], sample=0, completion=completion, score=score)
    return Group(problem=PROBLEMS[0], prompt_tokens=(1, 2, 3), rollouts=(rollout,))


def test_an_unscored_answer_is_left_out_and_an_unparsed_one_is_wrong() -> None:
    right = Score(value=1.0, correct=True, answer="3")
    wrong = Score(value=0.0, correct=False, answer="4")
    unparsed = Score(value=0.0, correct=False, parsed=False)
    unscored = Score(value=None, unscored="checker ran past 5 s")
    held = Evaluation(groups=tuple(map(answer, [right, wrong, unparsed, unscored, right])))
    # Right 2 of right + wrong + unparsed + right = 4 graded; the fifth is counted apart.
    assert (held.num_correct, held.num_graded, held.num_unparsed, held.num_unscored) == (2, 4, 1, 1)
    assert held.accuracy == 0.5


def test_where_nothing_is_graded_there_is_no_accuracy() -> None:
    held = Evaluation(groups=(answer(Score(value=None, unscored="no checker")),))
    assert held.accuracy is None
    assert Evaluation(groups=()).accuracy is None


def test_greedy_answers_do_not_depend_on_the_seed_and_drawn_ones_do(tiny_policy: LanguageModel) -> None:
    def texts(draw: Draw, seed: int) -> list[str]:
        held = evaluate(tiny_policy, exact, spec(draw, samples=1 if draw is Draw.GREEDY else 4, seed=seed))
        return [rollout.completion.text for rollout in held.rollouts]

    assert texts(Draw.GREEDY, 1) == texts(Draw.GREEDY, 2)
    assert texts(Draw.GUMBEL_MAX, 1) == texts(Draw.GUMBEL_MAX, 1)
    assert texts(Draw.GUMBEL_MAX, 1) != texts(Draw.GUMBEL_MAX, 2)


def test_answers_are_drawn_at_step_zero_in_pool_order_and_graded_as_they_stand(tiny_policy: LanguageModel) -> None:
    held = evaluate(tiny_policy, exact, spec(Draw.GUMBEL_MAX, samples=3))
    assert [group.problem for group in held.groups] == list(PROBLEMS)
    assert [rollout.sample for rollout in held.rollouts] == [0, 1, 2] * 5
    assert [rollout.completion.key for rollout in held.groups[2].rollouts] == [
        rollout_key(seed=1, purpose=Purpose.EVAL, task="sums", problem_digest=PROBLEMS[2].digest, step=0, sample=sample)
        for sample in range(3)
    ]
    right = sum(rollout.completion.text.strip() == rollout.problem.reference for rollout in held.rollouts)
    assert (held.num_correct, held.num_graded) == (right, 15)
    assert held.accuracy == pytest.approx(right / 15)


def test_a_smaller_pool_is_answered_as_the_beginning_of_the_larger_one(tiny_policy: LanguageModel) -> None:
    whole = evaluate(tiny_policy, exact, spec(Draw.GUMBEL_MAX, samples=2))
    part = evaluate(tiny_policy, exact, replace(spec(Draw.GUMBEL_MAX, samples=2), problems=PROBLEMS[:3]))
    assert part.groups == whole.groups[:3]

"""Verdicts of evaluations written by hand."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from deadheat.archive import Credited, RolloutSource, plain, rollout_frame, write_json, write_table
from deadheat.errors import StatsError
from deadheat.race import RaceConfig, judge, parse_race
from deadheat.race.verdict import EQUAL_TOKENS
from deadheat.race.words import floor_words, notes_of, pair_sentence, reasons_words
from deadheat.stats import Words
from deadheat.train import EVALS, Ending, Outcome, RunIdentity, StepRecord, step_file
from deadheat.train.ledger import write_steps
from deadheat.types import Completion, Problem, Rollout, Score, StopReason

Grades = Sequence[bool | None]  # one item each; None: unscored

RECORD = StepRecord(
    step=1,
    num_problems=4,
    num_never_mixed=0,
    num_groups_drawn=4,
    num_rollouts_drawn=16,
    num_rounds=1,
    tokens_not_kept=0,
    num_live=2,
    num_all_right=1,
    num_all_wrong=1,
    num_tied_other=0,
    num_unscored_groups=0,
    num_rollouts=16,
    num_scored=16,
    num_correct=8,
    num_unparsed=0,
    num_capped=0,
    mean_raw_reward=0.5,
    mean_reward=0.5,
    mean_length=4.0,
    signed_token_mass=0.0,
    mean_surprise=0.7,
    stepped=True,
    num_updates=1,
    loss=0.0,
    learning_rate=1e-3,
    grad_norm=1.0,
    clipped=False,
    units_all_groups=16,
    units_signal_groups=8,
    grad_norm_all_groups=1.0,
    grad_norm_signal_groups=2.0,
    mean_ratio=1.0,
    kl_drawn=0.0,
    kl_reference=None,
    clip_low_frac=None,
    clip_high_frac=None,
    clip_dual_frac=None,
    tokens_prefilled=10,
    tokens_generated=10,
    tokens_idle=0,
    tokens_delivered=5,
    tokens_backward=5,
    tokens_padded=0,
    tokens_unshared=20,
    tokens_reference=0,
    flop=100.0,
)


@pytest.fixture(scope="module")
def race(small_text: str) -> RaceConfig:
    text = small_text.replace("seeds = 2", "seeds = 3").replace("pool = 16", "pool = 10")
    return parse_race(text.replace('samples = 2\ndraw = "gumbel_max"', ""), source="hand.toml")


def write_run(
    folder: Path, identity: RunIdentity, evaluations: Mapping[int, Grades], *, tokens: int = 10, **outcome: object
) -> None:
    """A finished run that gave these grades at these steps."""
    run = folder / identity.folder
    for step, grades in evaluations.items():
        source = RolloutSource(
            run="small", arm=identity.arm, seed=identity.seed, purpose="eval", step=step, temperature=1.0
        )
        rows = [_answer(item, grade) for item, grade in enumerate(grades)]
        write_table(step_file(run, EVALS, step), rollout_frame(source, rows))
    last = max(evaluations)
    write_steps(run, [replace(RECORD, step=step, tokens_generated=tokens) for step in range(1, last + 1)])
    held = {"ending": Ending.STEPS, "step": last, "num_active": last, "peak_step": last, "converged_step": None}
    write_json(run / "outcome.json", asdict(Outcome(**{**held, "pool": 10, "message": None, **outcome})))


def _answer(item: int, grade: bool | None) -> Credited:
    problem = Problem(task="addition", problem_id=f"item-{item}", prompt=f"{item}?", reference="1")
    score = (
        Score(value=None, unscored="checker ran past 5 s")
        if grade is None
        else Score(value=float(grade), correct=grade, answer="1" if grade else "0")
    )
    completion = Completion(
        tokens=(1,), logprobs=(0.0,), plain_logprobs=(0.0,), margins=None, text="1", stop=StopReason.STOP, key=1
    )
    rollout = Rollout(problem=problem, sample=0, completion=completion, score=score)
    return Credited(rollout=rollout, prompt_length=2, reward=score.value, advantage=None, kind="")


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., None]:
    def put(arm: str, seed: int, evaluations: Mapping[int, Grades], **more: object) -> None:
        write_run(tmp_path, RunIdentity(race="small", arm=arm, seed=seed), evaluations, **more)

    return put


def right(*items: int) -> list[bool]:
    """Ten items, these right."""
    return [item in items for item in range(10)]


NONE, ALL = right(), right(*range(10))


def test_an_arm_that_wins_every_item_in_every_seed_is_called(write, race: RaceConfig, tmp_path: Path) -> None:
    for seed in race.seeds:
        write("checker", seed, {0: NONE, 4: ALL})
        write("plant", seed, {0: NONE, 4: NONE})
    verdict = judge(tmp_path, race)
    (pair,) = verdict.pairs
    final = pair.final.verdict
    # Pooled 10–0: p = 2·2⁻¹⁰ = 0.001953125.
    assert (final.pooled.wins, final.pooled.losses, final.pooled.ties) == (10, 0, 0)
    assert final.test.p_value == 0.001953125
    assert final.words is Words.CALLED_A
    assert pair_sentence(pair).startswith(
        "Called: checker beats plant. checker − plant = +100.0 pp [+100.0, +100.0], n = 10 held-out items × 3 seeds"
    )
    assert reasons_words(pair) == ""
    assert [arm.gain.learned for arm in verdict.arms if arm.gain] == [True, False]
    assert (verdict.missing, verdict.diverged) == ((), ())


def test_the_winner_may_be_the_second_arm(write, race: RaceConfig, tmp_path: Path) -> None:
    for seed in race.seeds:
        write("checker", seed, {0: NONE, 4: NONE})
        write("plant", seed, {0: NONE, 4: ALL})
    (pair,) = judge(tmp_path, race).pairs
    assert pair.final.verdict.words is Words.CALLED_B
    assert pair_sentence(pair).startswith("Called: plant beats checker. checker − plant = −100.0 pp")


def test_a_gap_that_one_seed_contradicts_is_not_called_however_significant(
    write, race: RaceConfig, tmp_path: Path
) -> None:
    # Seeds 1 and 2: ten wins each. Seed 3: nine ties and a loss. Pooled sums are +2 on nine items, +1 on the tenth: 10–0.
    for seed in (1, 2):
        write("checker", seed, {0: NONE, 4: ALL})
        write("plant", seed, {0: NONE, 4: NONE})
    write("checker", 3, {0: NONE, 4: right(*range(9))})
    write("plant", 3, {0: NONE, 4: ALL})
    (pair,) = judge(tmp_path, race).pairs
    final = pair.final.verdict
    assert (final.pooled.wins, final.pooled.losses) == (10, 0)
    assert final.words is Words.NOT_CALLED
    assert reasons_words(pair) == "at least one seed's own net is not on the pooled side"


def test_a_small_gap_is_not_called_and_the_catchable_gap_stands_beside_it(
    write, race: RaceConfig, tmp_path: Path
) -> None:
    # Every seed: items 0, 1, 2 for checker, item 9 for plant. Pooled 3–1: p = 2·(1 + 4)/16 = 0.625.
    for seed in race.seeds:
        write("checker", seed, {0: NONE, 4: right(0, 1, 2, 3, 4)})
        write("plant", seed, {0: NONE, 4: right(3, 4, 9)})
    (pair,) = judge(tmp_path, race).pairs
    final = pair.final.verdict
    assert (final.pooled.wins, final.pooled.losses, final.pooled.ties) == (3, 1, 6)
    assert final.test.p_value == 0.625
    assert final.words is Words.NOT_CALLED
    # (5 − 3)/10 in each seed.
    assert pair_sentence(pair).startswith("Not called. checker − plant = +20.0 pp [")
    assert reasons_words(pair) == "the pooled votes are not significant"
    assert floor_words(pair).startswith(("smallest gap called 4 times in 5: ", "none"))
    assert pair.final.floor is not None and final.discordance_frac == pytest.approx(0.4)


def test_where_few_items_are_decided_the_floor_line_says_that_no_gap_could_have_been_called(
    write, race: RaceConfig, tmp_path: Path
) -> None:
    # Every seed: item 0 for checker, the other nine tied. One pooled vote: p = 2·2⁻¹ = 1 however it falls.
    for seed in race.seeds:
        write("checker", seed, {0: NONE, 4: right(0, 1)})
        write("plant", seed, {0: NONE, 4: right(1)})
    (pair,) = judge(tmp_path, race).pairs
    assert floor_words(pair) == (
        "none: only 1 of 10 items was decided, too few for any gap, however one-sided, to be called 4 times in 5"
    )


def test_where_seeds_lie_far_apart_the_floor_line_lays_it_on_their_spread(
    write, race: RaceConfig, tmp_path: Path
) -> None:
    # Seeds 1 and 2: ten wins each; seed 3: ten losses. χ² of the 3×2 table = 30, far above its 2 degrees of freedom.
    for seed in race.seeds:
        write("checker", seed, {0: NONE, 4: NONE if seed == 3 else ALL})
        write("plant", seed, {0: NONE, 4: ALL if seed == 3 else NONE})
    (pair,) = judge(tmp_path, race).pairs
    equal, at_spread = floor_words(pair).split("; ")
    assert equal.startswith("smallest gap called 4 times in 5: ") and equal.endswith(" pp with equal seeds")
    assert at_spread.startswith("none at the seeds' own spread τ̂ = ")
    assert at_spread.endswith(" pp, where seeds agree on a winner too seldom")


def test_where_no_arm_gained_there_is_nothing_to_rank_whatever_the_votes_say(
    write, race: RaceConfig, tmp_path: Path
) -> None:
    for seed in race.seeds:
        write("checker", seed, {0: ALL, 4: ALL})
        write("plant", seed, {0: ALL, 4: NONE})
    (pair,) = judge(tmp_path, race).pairs
    assert pair.final.verdict.rule_words is Words.CALLED_A
    assert pair.final.verdict.words is Words.NOTHING_TO_RANK
    assert pair_sentence(pair).startswith("Nothing learned, nothing to rank: no arm's gain over step 0 clears zero.")


def test_a_seed_that_one_arm_has_not_finished_is_left_out_and_named(write, race: RaceConfig, tmp_path: Path) -> None:
    for seed in race.seeds:
        write("checker", seed, {0: NONE, 4: ALL})
    for seed in (1, 3):
        write("plant", seed, {0: NONE, 4: NONE})
    verdict = judge(tmp_path, race)
    (pair,) = verdict.pairs
    assert pair.seeds == (1, 3)
    assert pair.final.verdict.num_seeds == 2
    assert verdict.missing == ("plant/seed-2",)
    assert "plant/seed-2 has no outcome yet and is left out" in notes_of(verdict, race)


def test_with_no_seed_in_common_there_is_no_verdict_and_an_arm_alone_keeps_its_gain(
    write, race: RaceConfig, tmp_path: Path
) -> None:
    write("checker", 1, {0: NONE, 4: ALL})
    write("plant", 2, {0: NONE, 4: NONE})
    verdict = judge(tmp_path, race)
    assert verdict.pairs == ()
    assert [arm.gain.gain for arm in verdict.arms if arm.gain] == [1.0, 0.0]
    assert len(verdict.missing) == 4
    assert judge(tmp_path / "empty", race).pairs == ()


def test_an_unscored_answer_is_left_out_of_votes_shares_and_gains_and_counted(
    write, race: RaceConfig, tmp_path: Path
) -> None:
    for seed in race.seeds:
        write("checker", seed, {0: NONE, 4: [None, *ALL[1:]] if seed == 1 else ALL})
        write("plant", seed, {0: NONE, 4: NONE})
    verdict = judge(tmp_path, race)
    (pair,) = verdict.pairs
    tally = pair.final.verdict.seeds[0].tally
    assert (tally.wins, tally.losses, tally.ties, tally.missing) == (9, 0, 0, 1)
    # Item 0 still has the votes of two seeds, so all ten are pooled.
    assert pair.final.verdict.pooled.wins == 10
    first = verdict.arms[0].runs[0]
    assert first.share is not None
    assert (first.share.estimate, first.share.n, first.share.left_out, first.num_unscored) == (1.0, 9, 1, 1)
    # 29 graded cells, all right; as a zero the thirtieth would have made it 96.7%.
    assert verdict.arms[0].gain is not None and verdict.arms[0].gain.gain == 1.0
    assert pair.final.difference.estimate == 1.0
    assert "1 of 60 final held-out answers are unscored and left out, never counted as wrong" in notes_of(verdict, race)


def test_a_diverged_run_is_read_at_its_last_evaluation_and_named(write, race: RaceConfig, tmp_path: Path) -> None:
    for seed in race.seeds:
        write("checker", seed, {0: NONE, 4: ALL})
        write("plant", seed, {0: NONE, 2: right(0)} if seed == 2 else {0: NONE, 4: NONE})
    broken = {"ending": Ending.DIVERGED, "step": 3, "message": "loss nan"}
    write("plant", 2, {0: NONE, 2: right(0)}, **broken)
    verdict = judge(tmp_path, race)
    assert verdict.diverged == ("plant/seed-2",)
    assert verdict.pairs[0].final.steps_b == (4, 2, 4)
    assert "plant/seed-2 diverged and is read at its last evaluation" in notes_of(verdict, race)
    # Steps that all six runs were evaluated at: only step 0.
    assert [point.step for point in verdict.pairs[0].checkpoints] == [0]


def test_peak_and_converged_are_read_where_every_run_has_them_and_marked_as_selected(
    write, race: RaceConfig, tmp_path: Path
) -> None:
    for seed in race.seeds:
        write("checker", seed, {0: NONE, 2: ALL, 4: right(0)}, peak_step=2, converged_step=2)
        write("plant", seed, {0: NONE, 2: NONE, 4: right(1)}, peak_step=4)
    (pair,) = judge(tmp_path, race).pairs
    assert [contrast.reading for contrast in pair.contrasts] == ["final", "peak", EQUAL_TOKENS]
    final, peak, _ = pair.contrasts
    assert (final.selected_on, peak.selected_on) == (None, "the 10 items it is read on")
    assert (peak.steps_a, peak.steps_b) == ((2, 2, 2), (4, 4, 4))
    # Peak against peak: ten right against one, so +90 points; at the end one each: 0.
    assert peak.difference.estimate == pytest.approx(0.9)
    assert final.difference.estimate == 0.0


def test_at_equal_tokens_the_spendthrift_arm_is_read_earlier(write, race: RaceConfig, tmp_path: Path) -> None:
    # checker: 10 tokens a step, 40 by step 4. plant: 20 a step, so within 40 tokens it stands at step 2.
    for seed in race.seeds:
        write("checker", seed, {0: NONE, 2: right(0), 4: right(0, 1)})
        write("plant", seed, {0: NONE, 2: right(0), 4: ALL}, tokens=20)
    contrast = judge(tmp_path, race).pairs[0].contrasts[-1]
    assert contrast.reading == EQUAL_TOKENS
    assert (contrast.steps_a, contrast.steps_b) == ((4, 4, 4), (2, 2, 2))
    # Two right against one of ten.
    assert contrast.difference.estimate == pytest.approx(0.1)


def test_arms_with_different_pools_are_read_on_the_items_they_share(write, race: RaceConfig, tmp_path: Path) -> None:
    for seed in race.seeds:
        write("checker", seed, {0: NONE, 4: ALL})
        write("plant", seed, {0: NONE[:6], 4: NONE[:6]})
    (pair,) = judge(tmp_path, race).pairs
    assert pair.final.verdict.n == 6


def test_arms_without_a_common_item_cannot_be_compared(write, race: RaceConfig, tmp_path: Path) -> None:
    write("checker", 1, {0: ALL, 4: ALL})
    run = tmp_path / "plant" / "seed-1"
    write("plant", 1, {0: [], 4: []})
    source = RolloutSource(run="small", arm="plant", seed=1, purpose="eval", step=0, temperature=1.0)
    for step in (0, 4):
        write_table(step_file(run, EVALS, step), rollout_frame(source, [_answer(11, True)]))
    with pytest.raises(StatsError, match=r"no item in common. Wanted the same held-out pool in both arms"):
        judge(tmp_path, race)


def test_a_verdict_is_a_function_of_the_folder(write, race: RaceConfig, tmp_path: Path) -> None:
    for seed in race.seeds:
        write("checker", seed, {0: NONE, 4: right(0, 1, 2)})
        write("plant", seed, {0: NONE, 4: right(2, 3)})
    assert plain(judge(tmp_path, race)) == plain(judge(tmp_path, race))

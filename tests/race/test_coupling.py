"""Arms share their draws before the first update: checked, refused where they do not, named where they only partly do."""

import shutil
from pathlib import Path

import polars as pl
import pytest

from deadheat.archive import read_table, write_table
from deadheat.errors import UncoupledError
from deadheat.race import RaceConfig, RaceResult, load_race, parse_race, run_race
from deadheat.race.coupling import check_step_one, drawing_differences
from deadheat.race.executors import run_in_process
from deadheat.race.words import coupling_words
from deadheat.train import ROLLOUTS, step_file

PARTLY = """
[[arm]]
name = "base"

[[arm]]
name = "short"
sampling.max_new_tokens = 2

[[arm]]
name = "wide"
rollouts.group_size = 6

[[arm]]
name = "hot"
sampling.temperature = 1.5

[[arm]]
name = "slow"
update.learning_rate = 1e-4
"""


@pytest.fixture(scope="module")
def partly(tmp_path_factory: pytest.TempPathFactory, small_text: str) -> tuple[RaceConfig, Path]:
    """One step of five arms, of which three change how rollouts are drawn."""
    head = small_text[: small_text.index("[[arm]]")]
    text = head.replace("seeds = 2", "seeds = 1").replace("steps = 4", "steps = 1").replace("pool = 16", "pool = 2")
    race = parse_race(text + PARTLY, source="partly.toml")
    folder = tmp_path_factory.mktemp("partly") / "partly"
    assert run_in_process(race, folder, observe=lambda progress: None) == []
    return race, folder


def first_batch(folder: Path, arm: str, seed: int = 1) -> Path:
    return step_file(folder / arm / f"seed-{seed}", ROLLOUTS, 1)


def with_token(path: Path, row: int, place: int, token: int) -> None:
    """Rewrite one token of one rollout."""
    rows = read_table(path)
    ids = rows["token_ids"].to_list()
    ids[row][place] = token
    write_table(path, rows.with_columns(pl.Series("token_ids", ids, dtype=pl.List(pl.Int32))))


def test_arms_with_equal_drawing_settings_take_an_identical_first_step(finished: RaceResult, small: RaceConfig) -> None:
    for seed in small.seeds:
        checker, plant = (read_table(first_batch(finished.folder, arm, seed)) for arm in small.arms)
        for column in ("key", "prompt", "token_ids", "logprobs", "completion", "raw_reward"):
            assert checker[column].equals(plant[column]), column
    # 3 questions × 4 attempts in each of two seeds.
    assert [(c.seed, c.num_shared, c.differing) for c in finished.verdict.couplings] == [(1, 12, ()), (2, 12, ())]
    assert coupling_words(finished.verdict.couplings) == [
        "checker and plant are coupled: 24 step-one rollouts over 2 seeds are token-identical"
    ]


def test_one_token_of_difference_is_named_and_refused(copied: Path, small: RaceConfig) -> None:
    path = first_batch(copied, "plant", seed=2)
    with_token(path, row=5, place=0, token=3)
    name = read_table(path)["problem_id"][5]
    with pytest.raises(UncoupledError) as caught:
        check_step_one(copied, small.name, small.arms, seed=2)
    said = str(caught.value)
    # Row 5 is the second of four attempts at the second question.
    assert said.startswith(f"seed 2, step 1, problem {name}, sample 1: arm 'checker' drew ")
    assert "the race is refused" in said and "Check that nothing but the overridden keys differs" in said
    assert check_step_one(copied, small.name, small.arms, seed=1)[0].num_shared == 12


def test_a_race_whose_second_arm_draws_otherwise_stops_there(copied: Path, small: RaceConfig, small_text: str) -> None:
    # The first arm's records are not what this race would draw: its second arm, run anew, meets them at step one.
    with_token(first_batch(copied, "checker", seed=2), row=0, place=0, token=3)
    shutil.rmtree(copied / "plant" / "seed-2")
    (copied / "verdict.json").unlink()
    with pytest.raises(UncoupledError, match=r"seed 2, step 1, .* the race is refused"):
        run_race(small, small_text, copied, resume=True, observe=lambda progress: None)
    assert not (copied / "verdict.json").exists()
    assert not (copied / "plant" / "seed-2" / "outcome.json").exists()
    assert (copied / "plant" / "seed-1" / "outcome.json").exists()


def test_arms_that_change_the_drawing_are_partly_coupled_and_say_in_what(partly: tuple[RaceConfig, Path]) -> None:
    race, folder = partly
    found = {(c.arm_a, c.arm_b): c for c in check_step_one(folder, race.name, race.arms, seed=1)}
    assert len(found) == 10  # five arms, ten pairs
    base = {b: (found["base", b].num_shared, found["base", b].differing) for b in ("short", "wide", "hot", "slow")}
    assert base == {
        "short": (12, ("sampling.max_new_tokens",)),  # the cap does not change an address
        "wide": (12, ("rollouts.group_size",)),  # the first 4 of 6 attempts at each of 3 questions
        "hot": (0, ("sampling.temperature",)),  # another distribution: nothing to compare
        "slow": (12, ()),  # a learning rate draws nothing
    }
    words = coupling_words([found["base", "short"]])[0]
    assert words.startswith("base and short are partly coupled, differing in sampling.max_new_tokens: 12 step-one")


def test_a_shorter_cap_draws_a_prefix_of_the_longer(partly: tuple[RaceConfig, Path]) -> None:
    _, folder = partly
    long, short = (read_table(first_batch(folder, arm))["token_ids"].to_list() for arm in ("base", "short"))
    assert all(whole[:2] == cut for whole, cut in zip(long, short, strict=True))
    assert any(len(whole) > 2 for whole in long)


def test_under_a_shorter_cap_only_what_both_drew_is_compared(partly: tuple[RaceConfig, Path], tmp_path: Path) -> None:
    race, folder = partly
    copy = Path(shutil.copytree(folder, tmp_path / "partly"))
    path = first_batch(copy, "base")
    row = next(i for i, ids in enumerate(read_table(path)["token_ids"].to_list()) if len(ids) > 2)
    arms = {name: race.arms[name] for name in ("base", "short")}
    with_token(path, row=row, place=2, token=3)
    assert check_step_one(copy, race.name, arms, seed=1)[0].num_shared == 12
    with_token(path, row=row, place=1, token=3)
    with pytest.raises(UncoupledError):
        check_step_one(copy, race.name, arms, seed=1)


def test_an_arm_without_a_first_step_yet_is_left_out(copied: Path, small: RaceConfig) -> None:
    first_batch(copied, "plant").unlink()
    assert check_step_one(copied, small.name, small.arms, seed=1) == []


def test_grading_and_training_settings_leave_arms_coupled_and_drawing_settings_do_not(small: RaceConfig) -> None:
    checker = small.arms["checker"]
    assert drawing_differences(checker, small.arms["plant"]) == ()
    hotter = checker.model_copy(update={"sampling": checker.sampling.model_copy(update={"top_p": 0.9, "top_k": 5})})
    assert drawing_differences(checker, hotter) == ("sampling.top_k", "sampling.top_p")


def test_a_grading_option_of_a_task_leaves_arms_coupled() -> None:
    race = load_race("cipher")
    assert drawing_differences(race.arms["per_char"], race.arms["exact"]) == ()
    assert drawing_differences(race.arms["exact"], race.arms["exact-G16"]) == (
        "rollouts.group_size",
        "rollouts.questions_per_step",
    )

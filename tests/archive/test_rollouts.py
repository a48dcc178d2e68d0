"""Rollouts survive the way to Parquet and back; torn and newer files are refused by name."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deadheat.archive import (
    ROLLOUT_SCHEMA,
    Credited,
    RolloutSource,
    groups_of,
    read_table,
    read_tables,
    rollout_frame,
    write_table,
)
from deadheat.errors import ArchiveError
from deadheat.types import Completion, Problem, Rollout, Score, StopReason

numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)
columns = st.dictionaries(st.text(), st.text() | st.integers(-(2**53), 2**53) | numbers, max_size=3)


@st.composite
def scores(draw: st.DrawFn) -> Score:
    reason = draw(st.none() | st.text())
    return Score(
        value=None if reason is not None else draw(numbers),
        correct=draw(st.none() | st.booleans()),
        answer=draw(st.none() | st.text()),
        parsed=draw(st.booleans()),
        parts=draw(st.dictionaries(st.text(), numbers, max_size=2)),
        unscored=reason,
    )


@st.composite
def attempts(draw: st.DrawFn, problem: Problem, sample: int) -> Rollout:
    steps = draw(st.lists(st.tuples(st.integers(0, 2**31 - 1), numbers, numbers), max_size=4))
    completion = Completion(
        tokens=tuple(token for token, _, _ in steps),
        logprobs=tuple(logprob for _, logprob, _ in steps),
        plain_logprobs=tuple(plain for _, _, plain in steps),
        margins=None,
        text=draw(st.text()),
        stop=draw(st.sampled_from(StopReason)),
        key=draw(st.integers(0, 2**64 - 1)),
    )
    return Rollout(problem=problem, sample=sample, completion=completion, score=draw(scores()))


@st.composite
def batches(draw: st.DrawFn) -> list[Credited]:
    prompts = draw(st.lists(st.text(), min_size=1, max_size=3, unique=True))
    made = []
    for index, prompt in enumerate(prompts):
        problem = Problem(
            task="t", problem_id=f"p{index}", prompt=prompt, reference=draw(st.text()), columns=draw(columns)
        )
        for sample in range(draw(st.integers(1, 3))):
            made.append(
                Credited(
                    rollout=draw(attempts(problem, sample)),
                    prompt_length=index + 1,
                    prompt_tokens=(7,) * (index + 1),
                    reward=draw(st.none() | numbers),
                    advantage=draw(st.none() | numbers),
                    kind="live",
                )
            )
    return made


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batch=batches())
def test_every_rollout_comes_back_as_it_went_whatever_was_written(tmp_path: Path, batch: list[Credited]) -> None:
    source = RolloutSource(run="r", arm="a", seed=1, purpose="train", step=2, temperature=0.7)
    path = tmp_path / "step-00002.parquet"
    write_table(path, rollout_frame(source, batch))
    frame = read_table(path)
    assert frame.schema == ROLLOUT_SCHEMA
    back = groups_of(frame)
    assert [rollout for group in back for rollout in group.rollouts] == [item.rollout for item in batch]
    assert frame["reward"].to_list() == [item.reward for item in batch]
    assert frame["advantage"].to_list() == [item.advantage for item in batch]
    assert [group.prompt_length for group in back] == list(range(1, len(back) + 1))


def test_an_unscored_attempt_has_null_rewards_and_its_reason(source: RolloutSource, credited: list[Credited]) -> None:
    frame = rollout_frame(source, credited)
    assert frame["raw_reward"].to_list() == [1.0, 0.0, 1.0, None]
    assert frame["unscored"].to_list() == [None, None, None, "checker raised ValueError: no"]
    # Mean over the three scored: 2/3, where counting the fourth as zero would say 1/2.
    assert frame["reward"].mean() == pytest.approx(2 / 3)


def test_a_row_names_its_group_by_arm_seed_purpose_step_prompt_and_temperature(
    source: RolloutSource, credited: list[Credited]
) -> None:
    frame = rollout_frame(source, credited)
    # First 16 hex digits of SHA-256 of "Problem: 1+2\nAnswer:", by coreutils sha256sum.
    assert frame["group_id"][0] == "checker/1/train/3/" + frame["problem_digest"][0][:16] + "/1"
    assert frame["problem_digest"][0] == credited[0].rollout.problem.digest
    assert frame["group_id"].n_unique() == 2
    assert frame["key"].to_list() == [2**64 - 1, 2**64 - 2, 2**64 - 1, 2**64 - 2]


def test_equal_rows_make_equal_bytes(tmp_path: Path, source: RolloutSource, credited: list[Credited]) -> None:
    for name in ("a", "b"):
        write_table(tmp_path / name, rollout_frame(source, credited))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_torn_file_is_an_archive_error_that_names_it(
    tmp_path: Path, source: RolloutSource, credited: list[Credited]
) -> None:
    path = tmp_path / "step-00003.parquet"
    write_table(path, rollout_frame(source, credited))
    whole = path.read_bytes()
    for torn in (b"", whole[: len(whole) // 2], whole[:-1], whole[:4] + b"\0" * (len(whole) - 4)):
        path.write_bytes(torn)
        with pytest.raises(ArchiveError, match=r"step-00003\.parquet cannot be read as Parquet .*--resume"):
            read_table(path)


def test_a_newer_schema_is_refused_and_the_current_one_read(tmp_path: Path) -> None:
    frame = pl.DataFrame({"n": [1]})
    frame.write_parquet(tmp_path / "new", metadata={"deadheat.schema": "2"})
    with pytest.raises(ArchiveError, match=r"schema version 2, newer than 1. Upgrade deadheat"):
        read_table(tmp_path / "new")
    frame.write_parquet(tmp_path / "now", metadata={"deadheat.schema": "1"})
    assert read_table(tmp_path / "now").equals(frame)


def test_a_version_that_is_no_number_is_refused_too(tmp_path: Path) -> None:
    pl.DataFrame({"n": [1]}).write_parquet(tmp_path / "odd", metadata={"deadheat.schema": "two"})
    with pytest.raises(ArchiveError, match=r"two"):
        read_table(tmp_path / "odd")


def test_no_files_at_all_are_a_question_about_the_path() -> None:
    with pytest.raises(ArchiveError, match=r"no Parquet file to read; wanted at least one. Check the folder's path"):
        read_tables([])

"""`verify` names whatever no longer says what it said, even where somebody has sealed the folder anew."""

from pathlib import Path

import polars as pl
import pytest

from deadheat.archive import read_json, read_table, seal, write_json, write_table
from deadheat.errors import ArchiveError
from deadheat.race import RaceResult, Verification, verify_race
from deadheat.train import EVALS, ROLLOUTS, step_file


def verify(folder: Path) -> Verification:
    return verify_race(folder, observe=lambda part: None)


def found(folder: Path) -> list[tuple[str, str]]:
    return [(finding.file, finding.what) for finding in verify(folder).findings]


def rewrite(path: Path, row: int, **values: object) -> dict[str, object]:
    """Change cells of one row; the row as it was."""
    rows = read_table(path)
    before = rows.row(row, named=True)
    index = pl.int_range(pl.len())
    for column, value in values.items():
        cell = pl.when(index == row).then(pl.lit(value, dtype=rows.schema[column])).otherwise(pl.col(column))
        rows = rows.with_columns(cell.alias(column))
    write_table(path, rows)
    return before


def test_a_finished_race_holds_and_says_how_much_was_checked(finished: RaceResult) -> None:
    checked = verify(finished.folder)
    assert checked.findings == () and checked.holds
    # 4 runs: 4 steps × 3 questions × 4 attempts = 48 advantages each; evaluations at 0, 2 and 4 of 16 items × 2 answers.
    assert checked.num_advantages == 4 * 48
    assert checked.num_rows == 4 * (48 + 3 * 32)
    assert checked.num_files == sum(
        path.is_file() and path.name not in {".lock", "manifest.json"} for path in finished.folder.rglob("*")
    )


def test_one_flipped_bit_of_one_file_is_named_and_nothing_else(copied: Path) -> None:
    name = "plant/seed-2/checkpoints/step-00002/adapter.safetensors"
    held = bytearray((copied / name).read_bytes())
    held[len(held) // 2] ^= 1
    (copied / name).write_bytes(held)
    assert found(copied) == [(name, "bytes differ from the manifest")]


def test_a_torn_table_is_named_once_as_changed_and_once_as_unreadable(copied: Path) -> None:
    path = step_file(copied / "checker" / "seed-1", ROLLOUTS, 2)
    path.write_bytes(path.read_bytes()[:-9])
    name = "checker/seed-1/rollouts/step-00002.parquet"
    assert found(copied) == [(name, "bytes differ from the manifest"), (name, "cannot be read")]


def test_missing_and_added_files_are_named(copied: Path) -> None:
    (copied / "plant" / "seed-1" / "clock.jsonl").unlink()
    (copied / "plant" / "note.txt").write_text("added")
    assert found(copied) == [
        ("plant/seed-1/clock.jsonl", "missing"),
        ("plant/note.txt", "not in the manifest"),
    ]


def test_a_changed_reward_is_found_although_the_folder_was_sealed_again(copied: Path) -> None:
    path = step_file(copied / "plant" / "seed-1", ROLLOUTS, 3)
    before = rewrite(path, 5, reward=0.25)
    seal(copied)
    (finding,) = verify(copied).findings
    assert finding.file == "plant/seed-1/rollouts/step-00003.parquet"
    # Row 5 is the second attempt at the second question.
    assert finding.what == f"{before['problem_id']} sample 1: reward"
    assert (finding.stored, finding.recomputed) == ("0.25", repr(before["reward"]))


def test_a_changed_raw_reward_is_found_and_what_would_have_followed_from_it(copied: Path) -> None:
    path = step_file(copied / "checker" / "seed-2", ROLLOUTS, 1)
    row = next(i for i, value in enumerate(read_table(path)["raw_reward"]) if value == 0.0)
    before = rewrite(path, row, raw_reward=1.0)
    seal(copied)
    where = f"{before['problem_id']} sample {before['sample']}"
    said = {finding.what: (finding.stored, finding.recomputed) for finding in verify(copied).findings}
    assert said[f"{where}: raw_reward"] == ("1.0", "0.0")
    assert said[f"{where}: reward"] == ("0.0", "1.0"), "the reward that would follow from the stored raw reward"


def test_a_changed_advantage_is_found(copied: Path) -> None:
    path = step_file(copied / "checker" / "seed-1", ROLLOUTS, 1)
    before = rewrite(path, 0, advantage=0.125)
    seal(copied)
    where = f"{before['problem_id']} sample 0: advantage"
    assert found(copied) == [("checker/seed-1/rollouts/step-00001.parquet", where)]


def test_a_changed_kind_of_group_is_found_in_the_rows_and_against_the_ledger(copied: Path) -> None:
    path = step_file(copied / "checker" / "seed-1", ROLLOUTS, 1)
    kinds = read_table(path)["kind"].to_list()
    other = "all_wrong" if kinds[0] == "live" else "live"
    for row in range(4):
        rewrite(path, row, kind=other)
    seal(copied)
    said = [what.rpartition(": ")[2] for _, what in found(copied)]
    assert said == ["kind"] * 4 + ["num_live against steps.parquet"]


def test_a_changed_held_out_answer_is_found_where_it_changes_a_grade_and_where_it_does_not(copied: Path) -> None:
    path = step_file(copied / "checker" / "seed-1", EVALS, 4)
    rows = read_table(path)
    wrong = next(i for i, grade in enumerate(rows["correct"]) if not grade)
    before = rewrite(path, wrong, completion=f" {rows['reference'][wrong]}\n")
    seal(copied)
    where = f"{before['problem_id']} sample {before['sample']}"
    assert [what for _, what in found(copied)] == [
        f"{where}: raw_reward",
        f"{where}: correct",
        f"{where}: answer",
    ]
    rewrite(path, wrong, completion=" 1000\n")
    seal(copied)
    assert [what for _, what in found(copied)] == [f"{where}: answer"]


def test_a_changed_held_out_grade_is_found_and_so_is_what_the_verdict_makes_of_it(copied: Path) -> None:
    path = step_file(copied / "checker" / "seed-1", EVALS, 4)
    wrong = next(i for i, grade in enumerate(read_table(path)["correct"]) if not grade)
    rewrite(path, wrong, correct=True)
    seal(copied)
    files = {name for name, _ in found(copied)}
    assert files == {"checker/seed-1/evals/step-00004.parquet", "looks.json", "verdict.json"}


def test_a_changed_held_out_reward_is_found(copied: Path) -> None:
    path = step_file(copied / "plant" / "seed-1", EVALS, 2)
    before = rewrite(path, 3, reward=0.5)
    seal(copied)
    where = f"{before['problem_id']} sample {before['sample']}: reward"
    assert found(copied) == [("plant/seed-1/evals/step-00002.parquet", where)]


def test_a_changed_figure_of_the_verdict_is_found_by_its_path(copied: Path) -> None:
    held = read_json(copied / "verdict.json")
    held["pairs"][0]["contrasts"][0]["difference"]["estimate"] += 0.01
    held["pairs"][0]["verdict"]["decision"]["words"] = "called(A)"
    held["summary"]["winner"] = "checker"
    write_json(copied / "verdict.json", held)
    seal(copied)
    assert found(copied) == [
        ("verdict.json", "pairs[0].contrasts[0].difference.estimate"),
        ("verdict.json", "pairs[0].verdict.decision.words"),
        ("verdict.json", "summary.winner"),
    ]


def test_a_look_that_is_hidden_is_found_in_the_verdict_and_a_forged_one_in_the_looks(copied: Path) -> None:
    held = read_json(copied / "looks.json")
    (look,) = held["taken"]
    early = {**look, "runs": look["runs"][:2], "num_cells": 32, "share_frac": 0.5}
    write_json(copied / "looks.json", {**held, "taken": [early, look]})
    seal(copied)
    # The digest of the two runs is another; the verdict says look 1, and the folder now says two.
    assert found(copied) == [
        ("looks.json", "taken[0].digest"),
        ("verdict.json", "looks.taken"),
        ("verdict.json", "summary.look"),
    ]
    write_json(copied / "looks.json", {**held, "level": 0.1})
    seal(copied)
    assert found(copied) == [("looks.json", "level")]


def test_looks_that_are_missing_or_saw_too_little_are_found(copied: Path) -> None:
    held = read_json(copied / "looks.json")
    (copied / "looks.json").unlink()
    seal(copied)
    assert found(copied) == [("looks.json", "no look is on record, and a verdict is one")]
    partial = {**held["taken"][0], "runs": ["checker/seed-1", "plant/seed-1"]}
    write_json(copied / "looks.json", {**held, "taken": [partial]})
    seal(copied)
    unseen = [what for name, what in found(copied) if name == "looks.json" and what.startswith("no look saw")]
    assert unseen == ["no look saw checker/seed-2", "no look saw plant/seed-2"]
    write_json(copied / "looks.json", {**held, "taken": ["torn"]})
    seal(copied)
    assert [what for _, what in found(copied)] == ["cannot be recomputed", "cannot be recomputed"]


@pytest.mark.parametrize("figure", ["num_live", "num_rollouts", "num_correct", "tokens_generated"])
def test_a_changed_ledger_is_found_against_the_rows(copied: Path, figure: str) -> None:
    path = copied / "plant" / "seed-2" / "steps.parquet"
    before = rewrite(path, 0, **{figure: read_table(path)[figure][0] + 1})
    seal(copied)
    (finding,) = [finding for finding in verify(copied).findings if finding.file != "verdict.json"]
    assert finding.file == "plant/seed-2/rollouts/step-00001.parquet"
    assert finding.what == f"{figure} against steps.parquet"
    assert (finding.stored, finding.recomputed) == (str(before[figure] + 1), str(before[figure]))


def test_a_wrong_answer_cannot_be_hidden_as_unscored(copied: Path) -> None:
    path = step_file(copied / "checker" / "seed-1", EVALS, 0)
    wrong = next(i for i, grade in enumerate(read_table(path)["correct"]) if not grade)
    before = rewrite(path, wrong, correct=None, raw_reward=None, reward=None, unscored="checker raised")
    seal(copied)
    where = f"{before['problem_id']} sample {before['sample']}"
    said = [what for name, what in found(copied) if name.endswith(".parquet")]
    assert said == [f"{where}: raw_reward", f"{where}: correct"]


def test_a_race_that_never_finished_or_has_no_config_cannot_be_verified(copied: Path, tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"has no manifest.json: the run never finished"):
        verify(tmp_path / "nowhere")
    (copied / "resolved.json").write_text("{")
    with pytest.raises(ArchiveError, match=r"resolved.json cannot be read"):
        verify(copied)

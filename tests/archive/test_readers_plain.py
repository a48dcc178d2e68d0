"""Tables with named columns, our own archives, and the options of `read`."""

import gzip
import json

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deadheat
from deadheat.archive import ARCHIVE_SCHEMA, LogFormat, ReadOptions, read, rollout_frame, write_json, write_table
from deadheat.errors import ArchiveError

from .logs import rewards_by_group, write_lines

RECORDS = [
    {"group": "x", "reward": 1.0, "response": "a", "step": 1},
    {"group": "x", "reward": 0.0, "response": "b", "step": 1},
    {"group": "y", "reward": 0.0, "response": "c", "step": 1},
    {"group": "x", "reward": 1.0, "response": "d", "step": 2},
]
WANTED = [[1.0, 0.0], [0.0], [1.0]]  # 1/x, 1/y, 2/x: one problem at two steps is two groups


def test_the_same_table_is_read_from_every_kind_of_file(tmp_path):
    table = pl.DataFrame(RECORDS)
    table.write_csv(tmp_path / "t.csv")
    table.write_csv(tmp_path / "t.tsv", separator="\t")
    table.write_parquet(tmp_path / "t.parquet")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    write_lines(tmp_path / "t.jsonl", RECORDS)
    (tmp_path / "t.json").write_text(json.dumps(RECORDS, indent=1), encoding="utf-8")
    for name in ("t.csv", "t.tsv", "t.csv.gz", "t.parquet", "t.jsonl", "t.json"):
        archive = read(tmp_path / name)
        frame = archive.rows.collect()
        assert archive.report.format is LogFormat.PLAIN, name
        assert frame["group_id"].to_list() == ["1/x", "1/x", "1/y", "2/x"], name
        assert frame["reward"].to_list() == [1.0, 0.0, 0.0, 1.0], name
        assert frame["completion"].to_list() == ["a", "b", "c", "d"], name
        assert archive.report.recovered == {"explicit": 3}, name
        assert all(frame.schema[column] == ARCHIVE_SCHEMA[column] for column in frame.columns), name


def test_columns_by_other_names_are_named(tmp_path):
    records = [{"q": "a", "points": 1, "speed": 0.5, "tries": 3}, {"q": "a", "points": 0, "speed": 0.25, "tries": 3}]
    for path in (write_lines(tmp_path / "t.jsonl", records), tmp_path / "t.csv"):
        pl.DataFrame(records).write_csv(tmp_path / "t.csv")
        with pytest.raises(ArchiveError, match="any table is read with --map"):
            read(path)
        asked = {"group": "q", "reward": "points", "part:speed": "speed"}
        frame = read(path, options=ReadOptions(map=asked)).rows.collect()
        assert frame["group_id"].to_list() == ["a", "a"]
        assert frame["part:speed"].to_list() == [0.5, 0.25]
        with pytest.raises(
            ArchiveError, match=r"--map reward=score: .* has no such column; it has points, q, speed, tries"
        ):
            read(path, options=ReadOptions(map={"group": "q", "reward": "score"}))
        with pytest.raises(ArchiveError, match="we have no column 'prize'"):
            read(path, options=ReadOptions(map={"group": "q", "reward": "points", "prize": "speed"}))


def test_grades_in_words_stand_for_a_reward_that_is_not_there(tmp_path):
    records = [{"problem_id": 1, "correct": word} for word in ("true", "False", "correct", "no")]
    pl.DataFrame(records).write_csv(tmp_path / "t.csv")
    for path in (write_lines(tmp_path / "t.jsonl", records), tmp_path / "t.csv"):
        archive = read(path)
        frame = archive.rows.collect()
        assert frame["reward"].to_list() == [1.0, 0.0, 1.0, 0.0], path.name
        assert "the grade stands for it" in archive.report.warnings[0]


def test_a_prompt_groups_within_its_step_and_arm(tmp_path):
    records = [
        {"arm": arm, "step": step, "prompt": [{"role": "user", "content": "q"}], "reward": 1, "completion": "a"}
        for arm in ("a", "b")
        for step in (1, 2)
        for _ in range(2)
    ]
    report = read(write_lines(tmp_path / "t.jsonl", records)).report
    assert (report.recovered, report.group_sizes) == ({"prompt text": 4}, {2: 4})


def test_a_log_is_read_as_the_tool_that_is_named(tmp_path):
    records = [{"input": "a", "output": "o", "score": 1, "step": 1}] * 2
    path = write_lines(tmp_path / "t.jsonl", records)
    assert read(path).report.format is LogFormat.VERL
    assert read(path, options=ReadOptions(format="plain")).report.format is LogFormat.PLAIN
    with pytest.raises(ArchiveError, match="no format is called 'verll'; wanted one of deadheat, trl, verl"):
        read(path, options=ReadOptions(format="verll"))
    with pytest.raises(ArchiveError, match="holds no log that is known"):
        read(path, options=ReadOptions(format="trl"))


def test_two_tools_in_one_folder_are_not_mixed(tmp_path):
    write_lines(tmp_path / "a.jsonl", [{"input": "a", "output": "o", "score": 1, "step": 1}])
    write_lines(tmp_path / "b.jsonl", [{"input": "a", "output": "o", "reward": 1}])
    with pytest.raises(ArchiveError, match=r"several tools \(verl: 1 files such as a\.jsonl; openrlhf: 1 files"):
        read(tmp_path)


def test_what_is_no_log_is_described(tmp_path):
    with pytest.raises(ArchiveError, match="does not exist"):
        read(tmp_path / "nothing")
    with pytest.raises(ArchiveError, match="holds no file"):
        read(tmp_path)
    (tmp_path / "notes.md").write_text("hello", encoding="utf-8")
    with pytest.raises(ArchiveError, match=r"notes\.md: of an unknown kind"):
        read(tmp_path)


def test_options_are_checked():
    with pytest.raises(ValueError, match="group_size is 0"):
        ReadOptions(group_size=0)
    with pytest.raises(ValueError, match="line_limit_bytes is 0"):
        ReadOptions(line_limit_bytes=0)


def test_a_run_folder_is_scanned_where_it_lies(tmp_path, source, credited):
    frame = rollout_frame(source, credited)
    write_json(tmp_path / "resolved.json", {"arms": {"checker": {}}})
    write_table(tmp_path / "checker/seed-1/rollouts/step-00003.parquet", frame)
    write_table(tmp_path / "checker/seed-1/steps.parquet", pl.DataFrame({"step": [3], "loss": [0.5]}))
    archive = deadheat.read(tmp_path)
    rows = archive.rows.collect()
    assert archive.report.format is LogFormat.OWN
    assert (archive.report.num_files, archive.report.num_rows, archive.report.num_groups) == (1, 4, 2)
    assert rows["source_file"].unique().to_list() == ["checker/seed-1/rollouts/step-00003.parquet"]
    assert rows["part:exact"].to_list() == [1.0, 0.0, 1.0, None]
    assert rows.select(frame.columns).equals(frame)


def test_older_and_newer_archives_of_ours(tmp_path, source, credited):
    # A version without today's `kind` and `advantage` is read beside a whole one; a newer version is refused.
    frame = rollout_frame(source, credited)
    write_table(tmp_path / "a.parquet", frame)
    write_table(tmp_path / "b.parquet", frame.drop("kind", "advantage").with_columns(step=pl.lit(4)))
    rows = read(tmp_path).rows.collect()
    assert rows["kind"].null_count() == 4
    frame.write_parquet(tmp_path / "c.parquet", metadata={"deadheat.schema": "99"})
    with pytest.raises(ArchiveError, match="schema version 99, newer than 1"):
        read(tmp_path)


@settings(max_examples=25)
@given(order=st.permutations(range(8)))
def test_the_order_of_lines_changes_no_group(tmp_path_factory, order):
    records = [
        {"group": f"g{n // 2}", "sample": n % 2, "reward": float(n % 3 == 0), "response": str(n)} for n in range(8)
    ]
    folder = tmp_path_factory.mktemp("order")
    straight = read(write_lines(folder / "a.jsonl", records))
    mixed = read(write_lines(folder / "b.jsonl", [records[n] for n in order]))
    assert rewards_by_group(straight.rows) == rewards_by_group(mixed.rows)


def test_a_record_of_lists_is_a_group_and_a_list_of_rewards_beside_one_text_is_per_token(tmp_path):
    groups = [
        {"id": 1, "idx": 7, "completion": ["a", "b"], "rewards": [1.0, 0.0]},
        {"id": 2, "idx": 8, "completion": ["c", "d", "e"], "rewards": [0.0, 0.5, 1.0]},
    ]
    tokens = [{"id": 1, "idx": 7, "completion": "a b c", "rewards": [0.0, 0.25, 0.5]}]
    for name, records, wanted in (("g", groups, [[1.0, 0.0], [0.0, 0.5, 1.0]]), ("t", tokens, [[0.75]])):
        pl.DataFrame(records).write_parquet(tmp_path / f"{name}.parquet")
        for path in (write_lines(tmp_path / f"{name}.jsonl", records), tmp_path / f"{name}.parquet"):
            frame = read(path).rows.collect()
            assert list(frame.group_by("group_id", maintain_order=True).agg("reward")["reward"].to_list()) == wanted
            assert frame["problem_id"].unique().sort().to_list() == ["7", "8"][: len(wanted)]

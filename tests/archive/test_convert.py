"""A log as an archive of ours, and back."""

import json

import polars as pl
import pytest

from deadheat.archive import LogFormat, ReadOptions, convert, read, read_table, shards_of
from deadheat.errors import RunFolderError

from .logs import write_lines, write_trl


def test_an_archive_comes_back_as_it_was_read(tmp_path):
    for step in (1, 2, 3):
        write_trl(tmp_path / "log", step, ["a"] * 4 + ["b"] * 4, {"r": [1.0, 0.0, float("nan"), 1.0] * 2})
    first = read(tmp_path / "log")
    written = convert(first, tmp_path / "out", shard_rows=10)
    second = read(tmp_path / "out")
    # 3 steps × 8 rows = 24 rows in shards of 10, 10 and 4.
    assert (written.num_rows, written.num_shards) == (24, 3)
    assert [read_table(path).height for path in sorted((tmp_path / "out").glob("rows-*.parquet"))] == [10, 10, 4]
    order = ["source_file", "source_row"]
    assert second.rows.collect().sort(order).equals(first.rows.collect().sort(order))
    assert second.report.format is LogFormat.OWN
    assert second.report.recovered == first.report.recovered == {"consecutive": 6}
    assert json.loads((tmp_path / "out" / "source.json").read_text())["format"] == "trl"
    assert not list((tmp_path / "out").glob(".whole*"))


def test_lots_of_a_long_run_stay_apart_after_conversion(tmp_path):
    write_trl(tmp_path / "log", 1, ["a"] * 4, {"r": [1.0, 0.0, 0.0, 0.0]})
    convert(read(tmp_path / "log", options=ReadOptions(group_size=2)), tmp_path / "out")
    assert read(tmp_path / "out").report.group_sizes == {2: 2}


def test_group_summaries_are_converted_too(tmp_path):
    path = tmp_path / "steps.csv"
    path.write_text("step,reward_avg,loss\n1,0.25,0.5\n2,1.0,0\n", encoding="utf-8")
    written = convert(read(path), tmp_path / "out")
    assert (written.num_rows, written.num_shards) == (2, 1)
    again = read(tmp_path / "out")
    assert again.summaries is not None
    groups = again.summaries.collect()
    assert groups["k"].to_list() == [1, 4]  # quarters: G = 4
    assert groups["loss"].to_list() == [0.5, 0.0]


def test_a_used_folder_is_refused_and_left_as_it_is(tmp_path):
    archive = read(write_lines(tmp_path / "t.jsonl", [{"group": 1, "reward": 1}]))
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("keep", encoding="utf-8")
    with pytest.raises(RunFolderError, match="is not an empty folder"):
        convert(archive, out)
    assert [path.name for path in out.iterdir()] == ["mine.txt"]


def test_a_transform_changes_every_shard(tmp_path):
    archive = read(write_lines(tmp_path / "t.jsonl", [{"group": n, "reward": n} for n in range(5)]))
    convert(archive, tmp_path / "out", shard_rows=2, transform=lambda rows: rows.with_columns(pl.col("reward") + 1))
    assert read(tmp_path / "out").rows.collect()["reward"].to_list() == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_shards_are_pieces_of_one_pass(tmp_path):
    table = pl.LazyFrame({"n": range(7)})
    assert [shard["n"].to_list() for shard in shards_of(table, shard_rows=3, scratch=tmp_path)] == [
        [0, 1, 2],
        [3, 4, 5],
        [6],
    ]
    with pytest.raises(ValueError, match="shard_rows is 0"):
        next(shards_of(table, shard_rows=0, scratch=tmp_path))

"""Counting shards anywhere and adding them up gives the report of the whole, to the last byte."""

import json
import pickle
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from deadheat.archive import read, write_table
from deadheat.audit import AUDITS, SHARDED, AuditOptions, AuditReport, as_json, audit
from deadheat.audit.questions import ask
from deadheat.audit.shards import Found, ShardedAsk, Task, count_shard, split_groups, tasks_of
from deadheat.errors import ClusterError

OPTIONS = AuditOptions(skill="p1", first_draws=2, noise_floor=0.1, cap=3, group_sizes=(2,))


@pytest.fixture
def log(tmp_path: Path, archive) -> Path:
    """240 rollouts in groups of 4, in files of 34 rows: all files but the last end inside a group (34 = 8·4 + 2)."""
    folder = tmp_path / "log"
    folder.mkdir()
    rows = archive(4, num_groups=60).with_columns(run=pl.lit("r"))
    for number, start in enumerate(range(0, rows.height, 34)):
        part = rows[start : start + 34]
        write_table(folder / f"file-{number}.parquet", part.drop("part:style") if number % 2 else part)
    return folder


def here(tasks: list[Task]) -> Iterator[Found]:
    """The last shard first: the order in which shards end must not matter."""
    return map(count_shard, reversed(tasks))


def text_of(report: AuditReport) -> str:
    parts = [{name: as_json(record) for name, record in part.found.items()} for part in report.parts]
    return json.dumps([{name: as_json(record) for name, record in report.found.items()}, parts])


@pytest.mark.parametrize("num_shards", [1, 3, 100])
@pytest.mark.parametrize("by", [(), ("arm",)])
def test_counting_shards_gives_the_report_of_the_whole(log: Path, num_shards: int, by: tuple[str, ...]) -> None:
    options = AuditOptions(skill="prompt=question 1", first_draws=2, noise_floor=0.1, cap=3, by=by)
    whole = audit(read(log), options=options)
    sharded = audit(read(log), options=options, ask=ShardedAsk(AUDITS, here, num_shards=num_shards))
    assert set(whole.missing) == {"cold"}
    assert text_of(sharded) == text_of(whole)


def test_groups_that_files_cut_are_counted_once_and_together(log: Path) -> None:
    # 8 files end at rows 34, 68, …, 238. Those that are no multiple of 4 cut a group: 34, 102, 170, 238 (68 = 17·4).
    tasks = tasks_of(read(log), ["gate"], OPTIONS, num_shards=100)
    assert len(tasks) == 8 + 1
    assert tasks[0].apart.len() == 4
    rows = [int(SHARDED["gate"].count(_rows(task), OPTIONS, None)[1].table["groups"].sum()) for task in tasks]
    assert (sum(rows), rows[-1]) == (60, 4)


def _rows(task: Task) -> pl.LazyFrame:
    inside = pl.col("group_id").is_in(task.apart.implode())
    return task.shard.rows.filter(inside if task.takes else ~inside)


def test_every_shard_has_every_column_of_the_archive(log: Path) -> None:
    whole = read(log)
    shards = whole.shards(100)
    assert [len(shard.paths) for shard in shards] == [1] * 8
    for shard in shards:
        assert shard.rows.collect_schema() == whole.rows.collect_schema()
    assert sum(shard.rows.collect().height for shard in shards) == 240
    assert len(whole.shards(3)) <= 4, "files of equal columns go together, in lots of ceil(8 / 3)"


def test_a_part_of_an_archive_has_the_same_part_of_its_shards(log: Path) -> None:
    part = read(log).where(pl.col("arm") == "a")
    assert part.rows.collect().height == 120
    assert sum(shard.rows.collect().height for shard in part.shards(100)) == 120


@pytest.mark.parametrize("name", SHARDED)
def test_an_audit_of_sums_is_not_asked_of_the_whole(log: Path, name: str) -> None:
    counted: list[tuple[str, ...]] = []

    def count(tasks: list[Task]) -> Iterator[Found]:
        counted.extend(task.names for task in tasks)
        return here(tasks)

    sharded = ShardedAsk([name], count, num_shards=2)
    whole = read(log)
    assert as_json(sharded(name, whole, OPTIONS)) == as_json(ask(name, whole, OPTIONS))
    assert set(counted) == {(name,)}


def test_rollouts_that_copy_on_purpose_are_left_out_once_wherever_they_lie(tmp_path: Path, archive) -> None:
    # One file holds nothing but 12 exempt rollouts: no group of two is left in it, and its 12 still count.
    rows = archive(2, num_groups=6).with_columns(run=pl.lit("r"), category=pl.lit(None, pl.String))
    write_table(tmp_path / "a.parquet", rows[:12].with_columns(category=pl.lit("terminal")))
    write_table(tmp_path / "b.parquet", rows[12:])
    whole = read(tmp_path)
    found = ShardedAsk(["clones"], here, num_shards=2)("clones", whole, OPTIONS)
    assert found.num_exempt == 12
    assert as_json(found) == as_json(ask("clones", whole, OPTIONS))


def test_group_summaries_are_asked_where_they_are(tmp_path: Path) -> None:
    path = tmp_path / "groups.csv"
    path.write_text("step,group_id,k,group_size\n1,a,0,4\n2,b,2,4\n", encoding="utf-8")

    def never(tasks: list[Task]) -> Iterator[Found]:
        raise AssertionError("there is nothing to count elsewhere")

    found = ShardedAsk(AUDITS, never, num_shards=2)("gate", read(path), AuditOptions())
    assert found.shut_rate is not None and found.shut_rate.estimate == 0.5


def test_split_groups_with_and_without_a_name() -> None:
    ids = ([None, "a"], ["b"], [None, "b"])
    shards = [pl.LazyFrame({"group_id": part}, schema={"group_id": pl.String}) for part in ids]
    assert split_groups(shards).to_list() == [None, "b"]
    assert split_groups(shards[:1]).to_list() == []


def test_what_a_shard_is_told_of_the_course_survives_the_way_to_a_worker(log: Path) -> None:
    (task, *_) = tasks_of(read(log), ["gate", "lengths"], OPTIONS, num_shards=100)
    assert set(task.ends) == {"gate", "lengths"}
    sent = pickle.loads(pickle.dumps(task.ends))
    assert {name: str(end) for name, end in sent.items()} == {name: str(end) for name, end in task.ends.items()}


def test_a_worker_that_cannot_see_a_file_says_which_and_what_to_do(log: Path) -> None:
    tasks = tasks_of(read(log), ["gate"], OPTIONS, num_shards=100)
    shutil.rmtree(log)
    with pytest.raises(ClusterError, match=r"cannot see .*file-0.parquet; put the archive on storage that every node"):
        count_shard(tasks[0])


def test_the_page_on_ray_says_of_every_audit_where_it_is_counted() -> None:
    page = (Path(__file__).parents[2] / "docs" / "ray.md").read_text(encoding="utf-8")
    table = page[page.index("| audit | where |") :]
    rows = [line.split("|")[1:3] for line in table[: table.index("\n\n")].splitlines()[2:]]
    named = {name: where for names, where in rows for name in re.findall(r"`(\w+)`", names)}
    assert set(named) == set(AUDITS)
    assert {name for name, where in named.items() if "shards" in where} == set(SHARDED)

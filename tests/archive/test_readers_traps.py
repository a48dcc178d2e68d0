"""What goes wrong in real logs, one test each: nothing is guessed, and what is not read is said."""

import gzip
import json
import pickle
import struct
import tracemalloc
import zipfile
from pathlib import Path

import polars as pl
import pytest
import zstandard

from deadheat.archive import ReadOptions, read
from deadheat.errors import ArchiveError

from .logs import rewards_by_group, write_lines, write_trl


def verl(prompts_and_scores, step=3):
    return [
        {"input": prompt, "output": f"o{n}", "gts": "1", "score": score, "step": step}
        for n, (prompt, score) in enumerate(prompts_and_scores)
    ]


def test_rows_that_a_worker_balance_reordered_find_their_groups_by_text(tmp_path):
    # Two prompts of two attempts, written a b a b: a run of equal prompts would give four groups of one.
    path = write_lines(tmp_path / "3.jsonl", verl([("a", 1), ("b", 0), ("a", 0), ("b", 0)]))
    archive = read(path)
    assert list(rewards_by_group(archive.rows).values()) == [[0.0, 0.0], [1.0, 0.0]]
    assert archive.report.recovered == {"prompt text": 2}
    assert (archive.report.inferred_size, archive.report.declared_size) == (2, None)


def test_numbers_written_as_text_are_numbers(tmp_path):
    records = verl([("a", "1.0"), ("a", "0.0")])
    for record in records:
        record |= {"format_reward": "0.25", "pred": "42"}
    rows = read(write_lines(tmp_path / "3.jsonl", records)).rows.collect()
    assert rows["reward"].to_list() == [1.0, 0.0]
    assert rows["part:format_reward"].to_list() == [0.25, 0.25]
    assert "part:pred" not in rows.columns  # an answer that looks like a number is no component of the reward
    assert rows["answer"].to_list() == ["42", "42"]


def test_a_reward_that_is_nan_or_no_number_is_unscored_never_zero(tmp_path):
    path = tmp_path / "3.jsonl"
    path.write_text(
        '{"input": "a", "output": "x", "score": NaN, "step": 3}\n'
        '{"input": "a", "output": "y", "score": "n/a", "step": 3}\n'
        '{"input": "a", "output": "z", "score": null, "step": 3}\n'
        '{"input": "a", "output": "w", "score": Infinity, "step": 3}\n',
        encoding="utf-8",
    )
    rows = read(path).rows.collect()
    assert rows["reward"].to_list() == [None] * 4
    assert rows["unscored"].to_list() == [
        "the reward is NaN",
        "the reward is 'n/a', which is no number",
        "there is no reward",
        "the reward is infinite",
    ]


def test_trl_components_are_summed_and_a_row_without_any_is_unscored(tmp_path):
    nan = float("nan")
    write_trl(tmp_path, 1, ["a"] * 4, {"accuracy": [1.0, 0.0, nan, nan], "format": [0.5, 0.5, 0.5, nan]})
    archive = read(tmp_path)
    rows = archive.rows.collect()
    # 1 + .5; 0 + .5; only the format function spoke: .5; neither did: unscored.
    assert rows["reward"].to_list() == [1.5, 0.5, 0.5, None]
    assert rows["part:accuracy"].to_list() == [1.0, 0.0, None, None]
    assert rows["unscored"].to_list() == [None, None, None, "no reward function gave a score (NaN)"]
    assert any("plain sum of accuracy, format" in line for line in archive.report.warnings)
    one = read(tmp_path, options=ReadOptions(map={"reward": "format"})).rows.collect()
    assert one["reward"].to_list() == [0.5, 0.5, 0.5, None]


def test_per_token_rewards_are_summed(tmp_path):
    records = [
        {"input_prompt": "p", "output_response": "r", "score": score, "stop_reason": "stop", "env_extras": {}}
        for score in ([0.0, 0.0, 1.0], [0.0, 0.25, 0.5], 0.5)
    ]
    rows = read(write_lines(tmp_path / "dumped_evals/global_step_40_evals/math.jsonl", records)).rows.collect()
    assert rows["reward"].to_list() == [1.0, 0.75, 0.5]


def test_a_prompt_drawn_twice_in_a_batch_is_two_groups_where_they_stand_together(tmp_path):
    # G = 2 declared; the run of four equal prompts is two lots of two, laid down one after the other.
    write_trl(tmp_path, 1, ["a", "a", "a", "a", "b", "b"], {"r": [1.0, 0.0, 0.0, 0.0, 1.0, 1.0]})
    groups = rewards_by_group(read(tmp_path, options=ReadOptions(group_size=2)).rows)
    assert list(groups.values()) == [[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]]
    assert [name.rpartition("completions_00001.parquet/")[2] for name in groups] == ["0/0", "0/1", "1/0"]


def test_a_prompt_drawn_twice_is_refused_where_only_its_text_tells(tmp_path):
    path = write_lines(tmp_path / "3.jsonl", verl([("a", 1), ("b", 0), ("a", 0), ("b", 0), ("a", 0), ("a", 1)]))
    archive = read(path, options=ReadOptions(group_size=2))
    assert archive.report.num_groups == 1 and archive.report.num_rows == 2
    assert "4 rows share it by prompt text; wanted 2" in archive.report.refused[0].reason


def test_a_run_that_the_group_size_does_not_divide_is_refused(tmp_path):
    # Three of four: the file was cut, or G is another. Neither is guessed.
    write_trl(tmp_path, 1, ["a"] * 4 + ["b"] * 4 + ["c"] * 3, {"r": [1.0] * 11})
    report = read(tmp_path).report
    assert (report.inferred_size, report.num_groups, report.num_refused) == (4, 2, 1)
    assert report.refused[0].reason.startswith("3 rows share it by consecutive; wanted a multiple of 4")


def test_without_a_common_size_recovered_groups_are_kept_with_a_warning(tmp_path):
    path = write_lines(tmp_path / "3.jsonl", verl([("a", 1), ("b", 0), ("b", 1), ("c", 0), ("c", 1), ("c", 1)]))
    report = read(path).report
    assert (report.num_groups, report.inferred_size) == (3, None)
    assert "none covers half of the 3 recovered groups" in report.warnings[-1]


def test_a_last_line_cut_off_is_refused_by_its_number_and_the_rest_is_read(tmp_path):
    path = write_lines(tmp_path / "3.jsonl", verl([("a", 1), ("a", 0)]))
    with path.open("a", encoding="utf-8") as file:
        file.write('{"input": "a", "output": "o')
    report = read(path).report
    assert report.num_rows == 2
    assert report.refused[0].where == "3.jsonl, line 3"
    assert report.refused[0].reason.startswith("the last line is cut off")


def test_a_broken_line_in_the_middle_is_refused_by_its_number(tmp_path):
    path = tmp_path / "3.jsonl"
    good = json.dumps(verl([("a", 1)])[0])
    path.write_text(f"{good}\n[1, 2]\n{{oops}}\n\n{good}\n", encoding="utf-8")
    report = read(path).report
    assert report.num_rows == 2
    assert [piece.where for piece in report.refused] == ["3.jsonl, line 2", "3.jsonl, line 3"]


def test_a_half_written_parquet_file_is_reported_and_the_others_are_read(tmp_path):
    write_trl(tmp_path, 1, ["a"] * 2, {"r": [1.0, 0.0]})
    torn = write_trl(tmp_path, 2, ["b"] * 2, {"r": [1.0, 0.0]})
    torn.write_bytes(torn.read_bytes()[:-40])
    report = read(tmp_path).report
    assert (report.num_files, report.num_rows) == (1, 2)
    assert report.refused[0].where == "completions/completions_00002.parquet"
    assert "its writer died or is still writing" in report.refused[0].reason


def test_steps_with_other_columns_are_one_table(tmp_path):
    write_trl(tmp_path, 1, ["a"] * 2, {"accuracy": [1.0, 0.0]})
    write_trl(tmp_path, 2, ["b"] * 2, {"accuracy": [1, 1], "format": [0.5, 0.0]}, note=["x", "y"])
    rows = read(tmp_path).rows.sort("step", "sample").collect()
    assert rows["reward"].to_list() == [1.0, 0.0, 1.5, 1.0]
    assert rows["part:format"].to_list() == [None, None, 0.5, 0.0]


def test_a_generation_that_served_two_updates_counts_once(tmp_path):
    first = write_trl(tmp_path, 1, ["a"] * 2, {"r": [1.0, 0.0]})
    again = pl.read_parquet(first).with_columns(step=pl.lit(2))
    again.write_parquet(first.with_name("completions_00002.parquet"))
    report = read(tmp_path).report
    assert (report.num_rows, report.num_groups) == (2, 1)
    assert "one generation that served several updates" in report.refused[0].reason


def test_files_without_rows_are_named(tmp_path):
    write_trl(tmp_path, 1, ["a"] * 2, {"r": [1.0, 0.0]})
    write_trl(tmp_path, 2, [], {"r": []})
    (tmp_path / "completions" / "notes.jsonl").write_bytes(b"")
    warnings = read(tmp_path).report.warnings
    assert "completions/completions_00002.parquet has no rows" in warnings
    assert "completions/notes.jsonl is empty" in warnings


def test_a_table_of_no_rows_is_an_empty_archive(tmp_path):
    pl.DataFrame({"group": [], "reward": []}, schema={"group": pl.String, "reward": pl.Float64}).write_parquet(
        tmp_path / "t.parquet"
    )
    archive = read(tmp_path / "t.parquet")
    assert archive.report.num_rows == archive.rows.collect().height == 0


def test_bytes_that_are_no_text_cost_no_rollout(tmp_path):
    path = tmp_path / "3.jsonl"
    path.write_bytes(
        b'{"input": "a", "output": "bad \xff byte", "score": 1, "step": 3}\n'
        b'{"input": "a", "output": "half a pair \\ud83d", "score": 0, "step": 3}\n'
    )
    archive = read(path)
    assert archive.rows.collect()["completion"].to_list() == ["bad � byte", "half a pair ?"]
    assert archive.report.warnings == (
        "3.jsonl: 1 lines hold bytes that are no UTF-8; they were read with those replaced",
    )


def test_a_line_of_two_gigabytes_is_passed_over_in_bounded_memory(tmp_path):
    path = tmp_path / "3.jsonl"
    good = (json.dumps(verl([("a", 1)])[0]) + "\n").encode()
    with path.open("wb") as file, zstandard.ZstdCompressor(level=1).stream_writer(file) as packed:
        packed.write(good)
        packed.write(b'{"input": "')
        block = b"a" * 2**24
        for _ in range(128):  # 128 × 16 MiB = 2 GiB in one line
            packed.write(block)
        packed.write(b'"}\n')
        packed.write(good)
    tracemalloc.start()
    archive = read(path, options=ReadOptions(line_limit_bytes=2**24))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert archive.report.num_rows == 2
    assert archive.report.refused[0].where == "3.jsonl, line 2"
    assert archive.report.refused[0].reason.startswith("2,147,483,661 bytes long; wanted at most 16,777,216")
    assert peak < 64 * 2**20


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_what_stands_before_a_damaged_place_of_a_compressed_file_is_read(tmp_path, pack):
    lines = "".join(json.dumps(record) + "\n" for record in verl([(f"p{n}", 1) for n in range(40_000)]))
    path = tmp_path / "3.jsonl"
    path.write_bytes(pack(lines.encode())[:-40])
    report = read(path, options=ReadOptions(group_size=1)).report
    assert 20_000 < report.num_rows < 40_000
    assert report.num_refused >= 1


def test_names_that_look_like_patterns_are_names(tmp_path):
    for step in (1, 2):
        write_trl(tmp_path / "[run] *", step, ["a"] * 2, {"r": [1.0, 0.0]})
    assert read(tmp_path).report.num_rows == 4


class Bomb:
    """What a pickle may do when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def test_pickles_are_never_executed(tmp_path):
    canary = tmp_path / "canary"
    folder = tmp_path / "dumped_data"
    folder.mkdir()
    (folder / "global_step_1_training_input.pkl").write_bytes(pickle.dumps(Bomb(canary)))
    with zipfile.ZipFile(folder / "0.pt", "w") as archive:
        archive.writestr("0/data.pkl", pickle.dumps(Bomb(canary), protocol=2))
        archive.writestr("0/version", "3")
    with pytest.raises(ArchiveError, match="gave no rollout") as error:
        read(folder)
    assert "could run any code and is never loaded" in str(error.value)
    assert "weights_only=False" in str(error.value)  # the conversion to run where the file is trusted
    assert not canary.exists()


def eval_log(path, members, *, zstd=()):
    """An Inspect log whose members are written in this order, some by method 93."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as log:
        for name, value in members:
            data = json.dumps(value).encode()
            if name in zstd:
                log.writestr(zipfile.ZipInfo(name), zstandard.ZstdCompressor().compress(data), zipfile.ZIP_STORED)
            else:
                log.writestr(name, data)
    if zstd:
        _mark_zstd(path, zstd)
    return path


def _mark_zstd(path, names):
    """Set the method of stored members to 93 in their local and central headers."""
    data = bytearray(path.read_bytes())
    for signature, method_at, name_at in ((b"PK\x03\x04", 8, 30), (b"PK\x01\x02", 10, 46)):
        at = data.find(signature)
        while at >= 0:
            size = struct.unpack_from("<H", data, at + name_at - 4 if signature == b"PK\x03\x04" else at + 28)[0]
            if data[at + name_at : at + name_at + size].decode("utf-8", "replace") in names:
                struct.pack_into("<H", data, at + method_at, 93)
            at = data.find(signature, at + 4)
    path.write_bytes(bytes(data))


def graded(sample, epoch, grade):
    return f"samples/{sample}_epoch_{epoch}.json", {
        "id": sample,
        "epoch": epoch,
        "input": "q",
        "target": "t",
        "output": {"completion": f"{sample}/{epoch}", "choices": [{"stop_reason": "stop"}]},
        "scores": {"match": {"value": grade, "answer": "t"}},
    }


HEADER = ("header.json", {"status": "success", "eval": {"task": "t", "config": {"epochs": 2}}})


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_zip_member_written_again_later_wins(tmp_path):
    log = eval_log(tmp_path / "a.eval", [graded(1, 1, "I"), graded(1, 2, "C"), graded(1, 1, "C"), HEADER])
    archive = read(log)
    assert list(rewards_by_group(archive.rows).values()) == [[1.0, 1.0]]
    assert "1 members were written again later" in archive.report.warnings[0]


def test_zstd_members_are_read(tmp_path):
    members = [graded(1, 1, "C"), graded(1, 2, "P"), HEADER]
    log = eval_log(tmp_path / "a.eval", members, zstd=("samples/1_epoch_1.json", "samples/1_epoch_2.json"))
    with zipfile.ZipFile(log) as archive:
        assert [info.compress_type for info in archive.infolist()] == [93, 93, 8]
    assert list(rewards_by_group(read(log).rows).values()) == [[1.0, 0.5]]


def test_letters_are_grades_and_a_sample_that_failed_has_none(tmp_path):
    broken = ("samples/2_epoch_2.json", {"id": 2, "epoch": 2, "input": "q", "scores": None, "error": {"message": "no"}})
    members = [graded(1, 1, "C"), graded(1, 2, "I"), graded(2, 1, "N"), broken, ("header.json", {"status": "started"})]
    archive = read(eval_log(tmp_path / "a.eval", members))
    assert list(rewards_by_group(archive.rows).values()) == [[1.0, 0.0], [0.0, None]]
    assert "the log's status is 'started'" in archive.report.warnings[0]


def test_a_torn_zip_is_named(tmp_path):
    log = eval_log(tmp_path / "a.eval", [graded(1, 1, "C"), HEADER])
    log.write_bytes(log.read_bytes()[:-30])
    with pytest.raises(ArchiveError, match="no whole zip archive"):
        read(log)


def test_ties_come_from_rewards_not_from_what_a_trainer_says_of_itself(tmp_path):
    # TRL scales by the batch's spread, so that a tied group can have a nonzero "std"; here the log's own column lies.
    write_trl(tmp_path, 1, ["a"] * 2 + ["b"] * 2, {"r": [1.0, 1.0, 1.0, 0.0]}, frac_reward_zero_std=["0.0"] * 4)
    spread = read(tmp_path).rows.group_by("group_id").agg(pl.col("reward").n_unique()).collect()["reward"]
    assert sorted(spread) == [1, 2]

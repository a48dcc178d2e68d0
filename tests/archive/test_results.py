"""Reading per-item results of any tool."""

import gzip
import json
import zipfile

import pytest

from deadheat.archive.results import ReadOptions, ResultFormat, read_results
from deadheat.errors import ArchiveError


def lines(path, rows):
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


def test_the_same_table_is_read_from_every_kind_of_file(tmp_path):
    text = "seed,item,score\n1,x,1\n1,y,\n2,x,0.5\n"
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    (tmp_path / "t.tsv.gz").write_bytes(gzip.compress(text.replace(",", "\t").encode()))
    rows = [{"seed": 1, "item": "x", "score": 1}, {"seed": 1, "item": "y"}, {"seed": 2, "item": "x", "score": 0.5}]
    lines(tmp_path / "t.jsonl", rows)
    (tmp_path / "t.json").write_text(json.dumps(rows), encoding="utf-8")
    read_results(tmp_path / "t.csv").frame.rename({"value": "score"}).write_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.tsv.gz", "t.jsonl", "t.json", "t.parquet"):
        found = read_results(tmp_path / name)
        assert found.frame.rows() == [("1", "x", 1.0), ("1", "y", None), ("2", "x", 0.5)], name
        assert (found.num_missing, found.value_column, found.seed_column) == (1, "score", "seed")


def test_words_booleans_and_lists_of_one_are_scores(tmp_path):
    rows = [{"id": n, "correct": value} for n, value in enumerate(["true", "False", " 0.25 ", "", "nan", "C"])]
    found = read_results(lines(tmp_path / "t.jsonl", rows)).frame["value"].to_list()
    assert found == [1.0, 0.0, 0.25, None, None, 1.0]
    listed = [{"idx": 0, "score": [True]}, {"idx": 1, "score": [False]}]
    assert read_results(lines(tmp_path / "l.jsonl", listed)).frame["value"].to_list() == [1.0, 0.0]
    with pytest.raises(ArchiveError, match="column 'correct' holds 'maybe'"):
        read_results(lines(tmp_path / "w.jsonl", [{"id": 0, "correct": "maybe"}]))


def test_columns_by_other_names_are_asked_for(tmp_path):
    path = lines(tmp_path / "t.jsonl", [{"q": "a", "points": 3, "run": 7}])
    with pytest.raises(
        ArchiveError, match=r"no column that names the item; it has q, points, run\. Name it with --item"
    ):
        read_results(path)
    with pytest.raises(ArchiveError, match="no score by a usual name"):
        read_results(path, ReadOptions(item="q"))
    found = read_results(path, ReadOptions(item="q", value="points", seed="run"))
    assert found.frame.rows() == [("7", "a", 3.0)]
    with pytest.raises(ArchiveError, match="has no column 'mark'"):
        read_results(path, ReadOptions(item="q", value="mark"))


def test_two_filters_of_one_harness_log_are_not_averaged(tmp_path):
    rows = [
        {
            "doc_id": n,
            "doc_hash": f"h{n}" * 8,
            "resps": [],
            "filter": kept,
            "metrics": ["exact_match"],
            "exact_match": v,
        }
        for n, by_filter in enumerate([(0, 1), (0, 0)])
        for kept, v in zip(("strict", "flexible"), by_filter, strict=True)
    ]
    path = lines(tmp_path / "samples.jsonl", rows)
    with pytest.raises(ArchiveError, match=r"differ in column 'filter' \(flexible, strict\)"):
        read_results(path)
    found = read_results(path, ReadOptions(where=(("filter", "flexible"),)))
    assert found.format is ResultFormat.LM_EVAL
    assert found.frame["value"].to_list() == [1.0, 0.0]
    assert found.frame["item"][0] == "0-h0h0h0h0h0h0"


def test_strata_are_not_mistaken_for_what_tells_records_apart(tmp_path):
    # Every item stands under one task: nothing is mixed.
    path = lines(tmp_path / "t.jsonl", [{"id": n, "task": f"t{n % 2}", "score": 1} for n in range(4)])
    assert read_results(path).frame.height == 4


def test_an_inspect_log_with_several_scorers_wants_one_named(tmp_path):
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as log:
        log.writestr("header.json", json.dumps({"status": "cancelled"}))
        for n, (value, parts) in enumerate([("C", {"a": 1, "b": 0}), ("N", {"a": 0, "b": 1})]):
            scores = {"match": {"value": value}, "rubric": {"value": parts}}
            log.writestr(f"samples/{n}_epoch_1.json", json.dumps({"id": n, "epoch": 1, "scores": scores}))
        log.writestr("samples/2_epoch_1.json", json.dumps({"id": 2, "epoch": 1, "scores": None, "error": {}}))
    with pytest.raises(ArchiveError, match=r"has the scores match, rubric\.a, rubric\.b"):
        read_results(path)
    found = read_results(path, ReadOptions(value="match"))
    # C is 1 and N (no answer) is 0, as Inspect reads them; the sample that failed has no score.
    assert found.frame["value"].to_list() == [1.0, 0.0, None]
    assert found.notes == ("log.eval: the log's status is 'cancelled', so samples may be missing",)
    assert read_results(path, ReadOptions(value="rubric.b")).frame["value"].to_list() == [0.0, 1.0, None]


def test_torn_and_foreign_files_are_named(tmp_path):
    (tmp_path / "torn.jsonl").write_text('{"id": 1, "score": 1}\n{"id": 2, "sc', encoding="utf-8")
    with pytest.raises(ArchiveError, match=r"torn\.jsonl, line 2 is not JSON"):
        read_results(tmp_path / "torn.jsonl")
    (tmp_path / "torn.csv.gz").write_bytes(gzip.compress(b"id,score\n1,1\n" * 50)[:-9])
    with pytest.raises(ArchiveError, match="cannot be read as text"):
        read_results(tmp_path / "torn.csv.gz")
    (tmp_path / "x.eval").write_bytes(b"no zip")
    with pytest.raises(ArchiveError, match="not a whole Inspect log"):
        read_results(tmp_path / "x.eval")
    (tmp_path / "x.parquet").write_bytes(b"no parquet")
    with pytest.raises(ArchiveError, match="not a readable Parquet file"):
        read_results(tmp_path / "x.parquet")
    (tmp_path / "x.xlsx").write_bytes(b"")
    with pytest.raises(ArchiveError, match=r"\.xlsx suffix; wanted \.csv"):
        read_results(tmp_path / "x.xlsx")
    with pytest.raises(ArchiveError, match="It is a folder: a checkpoint of a run is written RUN:arm@final"):
        read_results(tmp_path)
    (tmp_path / "empty.csv").write_text("id,score\n", encoding="utf-8")
    with pytest.raises(ArchiveError, match="has no records"):
        read_results(tmp_path / "empty.csv")

"""`deadheat ledger`."""

import json

import pytest

from deadheat.errors import ConfigError, StatsError

ADD = ("--date", "2026-07", "--claim", "the margin will not repeat", "--refuted-by", "a second margin of 6 points")


def test_predictions_and_outcomes_are_chained_and_scored_side_by_side(run, parsed, tmp_path):
    path = tmp_path / "ledger.jsonl"
    for name in ("one", "two", "three"):
        run("ledger", "add", path, "--id", name, *ADD, "--number", "margin=6.7:points", "--number", "floor=35.4:points")
    out = ("--date", "2026-08", "--claim", "read again")
    run("ledger", "add", path, "--id", "one-read", *out, "--about", "one", "--result", "hit")
    run("ledger", "add", path, "--id", "two-read", *out, "--about", "two", "--result", "refuted", "--after-the-fact")
    score = parsed("ledger", "score", path)
    names = {
        group: [item["prediction"]["draft"]["entry_id"] for item in score[group]]
        for group in ("hits", "refuted", "open")
    }
    assert names == {"hits": ["one"], "refuted": ["two"], "open": ["three"]}
    assert (score["n"], score["after_the_fact"]) == (3, 1)
    text = run("ledger", "score", path).stdout
    assert "1 hit, 1 refuted, 0 undecided, 1 open" in text and "†" in text
    entries = parsed("ledger", "list", path)
    assert [entry["previous"] for entry in entries[1:]] == [entry["hash"] for entry in entries[:-1]]
    assert entries[0]["draft"]["numbers"][0] == {"name": "margin", "value": 6.7, "unit": "points"}
    run("ledger", "list", path, "--plot", tmp_path / "margins.svg")
    assert "three" in (tmp_path / "margins.svg").read_text(encoding="utf-8")


def test_tampering_and_reordering_are_named_with_their_line(run, tmp_path):
    path = tmp_path / "ledger.jsonl"
    for name in ("one", "two", "three"):
        run("ledger", "add", path, "--id", name, *ADD)
    assert "holds: 3 entries" in run("ledger", "verify", path).stdout
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([lines[0], lines[2], lines[1]]) + "\n", encoding="utf-8")
    assert "BROKEN at line 2: reordered" in run("ledger", "verify", path, code=1).stdout
    path.write_text("\n".join([lines[0], lines[1].replace("repeat", "vanish"), lines[2]]) + "\n", encoding="utf-8")
    assert "BROKEN at line 2: altered" in run("ledger", "verify", path, code=1).stdout
    with pytest.raises(StatsError, match="line 2: altered"):
        run("ledger", "add", path, "--id", "four", *ADD)
    assert json.loads(run("ledger", "verify", path, "--json", code=1).stdout)["holds"] is False


def test_the_bundled_prediction_is_listed(run, parsed):
    (entry,) = parsed("ledger", "list")
    assert entry["draft"]["entry_id"] == "dcpo-aime24"
    assert "1 predictions: 0 hit, 0 refuted, 0 undecided, 1 open" in run("ledger", "score").stdout


def test_evidence_is_kept_by_its_digest(run, parsed, tmp_path):
    evidence = tmp_path / "numbers.csv"
    evidence.write_bytes(b"abc")
    path = tmp_path / "ledger.jsonl"
    run("ledger", "add", path, "--id", "one", *ADD, "--evidence", evidence)
    # SHA-256 of "abc", FIPS 180-2 appendix B.1.
    assert parsed("ledger", "list", path)[0]["draft"]["digest"].startswith("ba7816bf8f01cfea414140de5dae2223")


def test_what_is_no_entry_is_refused(run, tmp_path):
    path = tmp_path / "ledger.jsonl"
    with pytest.raises(StatsError, match="must say what would refute it"):
        run("ledger", "add", path, "--id", "one", "--date", "2026-07", "--claim", "so")
    with pytest.raises(ConfigError, match="wanted hit, refuted, undecided"):
        run("ledger", "add", path, "--id", "one", *ADD, "--result", "won")
    with pytest.raises(ConfigError, match="NAME=VALUE"):
        run("ledger", "add", path, "--id", "one", *ADD, "--number", "margin")
    with pytest.raises(ConfigError, match="is not a file"):
        run("ledger", "verify", path)

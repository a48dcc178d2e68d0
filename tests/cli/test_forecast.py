"""`deadheat forecast`."""

import json

import pytest
from rich.cells import cell_len

from deadheat.archive import write_json
from deadheat.errors import ConfigError, StatsError

RACE = """
name = "addition"
question = "Does it teach?"

[forecast]
id = "addition-1"
date = "2026-07-01"
words = "the checker leads by 2 points"
gap_pp = 2.0
low_pp = -1.0
high_pp = 5.0
refuted_by = "an interval below 0"
rescore = [{ trigger = "the interval excludes 0", scoring = "peak" }]
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """A race file stands for runs/NAME of the working folder: nothing that a user ran there is read."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def race(tmp_path):
    path = tmp_path / "race.toml"
    path.write_text(RACE, encoding="utf-8")
    return path


def test_a_forecast_is_locked_and_readings_are_held_against_it(run, parsed, race, tmp_path):
    ledger = tmp_path / "forecasts.jsonl"
    assert "locked addition-1: +2 pp [-1, +5]" in run("forecast", "lock", race, ledger).stdout
    words = ("--reading", "fresh:0.65:-1.6:2.9:2000", "--reading", "small:-3:-5:-1:300:lenient")
    small, fresh = parsed("forecast", "score", race, ledger, *words)["readings"]  # by pool size
    # [−1.6, 2.9] holds 0 and 2; [−5, −1] holds neither, lies on the other side, and its scoring was never locked.
    assert (fresh["contains_zero"], fresh["contains_prediction"], fresh["side"]) == (True, True, "predicted side")
    assert (small["contains_zero"], small["contains_prediction"], small["side"]) == (False, False, "opposite side")
    assert (fresh["planned"], small["planned"]) == (True, False)
    late = parsed("forecast", "score", race, ledger, *words[:2], "--after-the-fact")["readings"][0]
    assert late["planned"] is False
    path = tmp_path / "forecast.svg"
    text = run("forecast", "score", race, ledger, *words, "--plot", path).stdout
    assert "†" in text and "forecast" in path.read_text(encoding="utf-8")
    assert max(map(cell_len, text.splitlines())) <= 80


def test_a_forecast_after_step_one_is_refused(run, race, run_folder, tmp_path):
    folder = run_folder({"a": {1: {0: [0, 1]}}})
    (folder / "a" / "seed-1" / "rollouts").mkdir()
    (folder / "a" / "seed-1" / "rollouts" / "step-00003.parquet").write_bytes(b"")
    with pytest.raises(StatsError, match="3 training steps have run"):
        run("forecast", "lock", race, tmp_path / "forecasts.jsonl", "--run", folder)
    assert not (tmp_path / "forecasts.jsonl").exists()


def test_a_forecast_that_was_edited_after_it_was_locked_is_refused(run, race, tmp_path):
    ledger = tmp_path / "forecasts.jsonl"
    run("forecast", "lock", race, ledger)
    reading = ("--reading", "fresh:0.65:-1.6:2.9:2000")
    race.write_text(RACE.replace("gap_pp = 2.0", "gap_pp = 0.6"), encoding="utf-8")
    with pytest.raises(StatsError, match="differs from the locked one in numbers"):
        run("forecast", "score", race, ledger, *reading)
    race.write_text(RACE.replace("Does it teach?", "Does it learn?"), encoding="utf-8")
    with pytest.raises(StatsError, match="differs from the locked one in digest"):
        run("forecast", "score", race, ledger, *reading)


def test_a_forecast_of_its_own_names_its_plan(run, parsed, tmp_path):
    own, plan, ledger = tmp_path / "own.toml", tmp_path / "plan.yaml", tmp_path / "l.jsonl"
    own.write_text(RACE[RACE.index("[forecast]") :], encoding="utf-8")
    plan.write_bytes(b"abc")
    with pytest.raises(StatsError, match="a forecast and no plan"):
        run("forecast", "lock", own, ledger)
    digest = parsed("forecast", "lock", own, ledger, "--plan", plan)["draft"]["digest"]
    assert digest.startswith("ba7816bf8f01cfea414140de5dae2223")  # SHA-256 of "abc"


def test_readings_come_from_a_races_verdict(parsed, race, tmp_path):
    folder, ledger = tmp_path / "run", tmp_path / "l.jsonl"
    interval = {"estimate": 0.03, "low": 0.01, "high": 0.05, "n": 200}
    contrasts = [{"reading": name, "difference": interval} for name in ("final", "peak", "converged")]
    write_json(folder / "verdict.json", {"pairs": [{"contrasts": contrasts}]})
    parsed("forecast", "lock", race, ledger)
    readings = parsed("forecast", "score", race, ledger, "--run", folder)["readings"]
    planned = {r["reading"]["name"]: r["planned"] for r in readings}
    assert planned == {"final": True, "peak": True, "converged": False}  # peak is the locked re-scoring
    assert readings[0]["reading"]["gap_pp"] == pytest.approx(3.0)


def test_what_is_missing_is_named(run, race, tmp_path):
    ledger = tmp_path / "l.jsonl"
    with pytest.raises(StatsError, match="holds no forecast 'addition-1'; lock it before the first step"):
        run("forecast", "score", race, ledger, "--reading", "x:1:0:2:9")
    run("forecast", "lock", race, ledger)
    with pytest.raises(ConfigError, match="no reading was given"):
        run("forecast", "score", race, ledger)
    with pytest.raises(ConfigError, match="wanted NAME:GAP:LOW:HIGH:N"):
        run("forecast", "score", race, ledger, "--reading", "x:1:0")
    race.write_text(RACE.replace('date = "2026-07-01"\n', ""), encoding="utf-8")
    with pytest.raises(StatsError, match="wanted id, date, words"):
        run("forecast", "score", race, ledger, "--reading", "x:1:0:2:9")
    assert json.loads(ledger.read_text(encoding="utf-8"))["kind"] == "forecast"

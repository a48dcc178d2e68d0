"""A `[forecast]` in a race file: locked into the folder before the first step, refused after it."""

import json

import pytest

from deadheat.archive import read_json, write_text
from deadheat.errors import StatsError
from deadheat.race import parse_race
from deadheat.race.forecast import LEDGER, lock_in_folder
from deadheat.stats.forecast_file import readings_of_verdict

from .conftest import SMALL

FORECAST = """
[forecast]
id = "small-1"
date = "2026-07-01"
words = "the checker leads"
gap_pp = 2.0
low_pp = -1.0
high_pp = 5.0
refuted_by = "an interval below 0"
"""


def test_a_forecast_is_no_part_of_the_plan():
    assert parse_race(SMALL + FORECAST, source="race").resolved() == parse_race(SMALL, source="race").resolved()


def test_the_forecast_is_locked_once_and_may_not_change(tmp_path):
    lock_in_folder(tmp_path, SMALL)
    assert not (tmp_path / LEDGER).exists()
    lock_in_folder(tmp_path, SMALL + FORECAST)
    entry = json.loads((tmp_path / LEDGER).read_text(encoding="utf-8"))
    assert (entry["kind"], entry["entry_id"]) == ("forecast", "small-1")
    write_text(tmp_path / "checker/seed-1/rollouts/step-00001.parquet", "")
    lock_in_folder(tmp_path, SMALL + FORECAST)  # a resumed race brings the same one
    with pytest.raises(StatsError, match="differs from the locked one in numbers"):
        lock_in_folder(tmp_path, SMALL + FORECAST.replace("gap_pp = 2.0", "gap_pp = 1.0"))


def test_a_forecast_that_comes_after_step_one_is_refused(tmp_path):
    write_text(tmp_path / "checker/seed-1/rollouts/step-00001.parquet", "")
    with pytest.raises(StatsError, match="1 training steps have run"):
        lock_in_folder(tmp_path, SMALL + FORECAST)


def test_a_forecast_is_held_against_the_readings_of_a_races_record(finished):
    record = read_json(finished.folder / "verdict.json")
    final, *others = readings_of_verdict(record)
    effect = finished.verdict.pairs[0].verdict.effect
    assert (final.name, final.scoring, final.num_items) == ("final", "primary", 16)
    assert (final.gap_pp, final.low_pp, final.high_pp) == (100 * effect.estimate, 100 * effect.low, 100 * effect.high)
    assert [reading.scoring for reading in others] == [reading.name for reading in others] != []

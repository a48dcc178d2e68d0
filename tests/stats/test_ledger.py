"""The census, the ledger's chain, and forecasts."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from deadheat.errors import StatsError
from deadheat.stats.census import (
    bundled_census,
    census,
    read_claims,
    releases_census,
    seeds_census,
)
from deadheat.stats.floors import Zone
from deadheat.stats.forecast import Forecast, PoolReading, Rescore, Side, lock_forecast, score_forecast
from deadheat.stats.ledger import (
    Damage,
    Draft,
    Entry,
    EntryKind,
    Number,
    Result,
    append_entry,
    bundled_ledger,
    check_ledger,
    read_ledger,
    score_ledger,
)


def prediction(entry_id: str, **changes: object) -> Draft:
    fields: dict[str, object] = {
        "kind": EntryKind.PREDICTION,
        "entry_id": entry_id,
        "date": "2026-07",
        "claim": "a margin of 6.7 points does not survive",
        "numbers": (Number(name="floor", value=35.4, unit="points"),),
        "refuted_by": "a larger re-evaluation that finds it",
    }
    return Draft(**{**fields, **changes})  # type: ignore[arg-type]


def outcome(entry_id: str, about: str, result: Result, *, after_the_fact: bool = False) -> Draft:
    return Draft(
        kind=EntryKind.OUTCOME,
        entry_id=entry_id,
        date="2026-09-01",
        claim="re-evaluated",
        about=about,
        result=result,
        after_the_fact=after_the_fact,
    )


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.jsonl"
    for draft in (prediction("one"), prediction("two"), prediction("three"), outcome("o1", "one", Result.REFUTED)):
        append_entry(path, draft)
    return path


def damage_after(path: Path, lines: list[str]) -> tuple[int, Damage]:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    found = check_ledger(path)
    assert found is not None
    return found.line, found.damage


def test_hits_and_refutations_are_scored_side_by_side(ledger: Path) -> None:
    append_entry(ledger, outcome("o2", "two", Result.HIT, after_the_fact=True))
    score = score_ledger(read_ledger(ledger))
    ids = [[item.prediction.draft.entry_id for item in part] for part in (score.hits, score.refuted, score.open)]
    assert ids == [["two"], ["one"], ["three"]]
    assert (score.n, score.after_the_fact) == (3, 1)


def test_the_last_outcome_of_a_prediction_stands(ledger: Path) -> None:
    append_entry(ledger, outcome("o2", "one", Result.UNDECIDED))
    assert [item.prediction.draft.entry_id for item in score_ledger(read_ledger(ledger)).undecided] == ["one"]


def test_an_edited_line_is_named_as_altered(ledger: Path) -> None:
    lines = ledger.read_text(encoding="utf-8").splitlines()
    lines[1] = lines[1].replace("35.4", "5.4")
    assert damage_after(ledger, lines) == (2, Damage.ALTERED)


def test_swapped_lines_are_named_as_reordered(ledger: Path) -> None:
    lines = ledger.read_text(encoding="utf-8").splitlines()
    lines[1], lines[2] = lines[2], lines[1]
    assert damage_after(ledger, lines) == (2, Damage.REORDERED)


def test_a_removed_line_is_named_at_its_successor(ledger: Path) -> None:
    lines = ledger.read_text(encoding="utf-8").splitlines()
    assert damage_after(ledger, lines[:1] + lines[2:]) == (2, Damage.PREDECESSOR_MISSING)


def test_a_torn_last_line_is_named_and_nothing_is_appended_to_it(ledger: Path) -> None:
    text = ledger.read_text(encoding="utf-8")
    ledger.write_text(text[:-40], encoding="utf-8")
    found = check_ledger(ledger)
    assert found is not None and (found.line, found.damage) == (4, Damage.UNREADABLE)
    with pytest.raises(StatsError, match="line 4: unreadable"):
        append_entry(ledger, prediction("four"))


def test_the_hash_is_of_canonical_json_anybody_can_recompute(ledger: Path) -> None:
    line = json.loads(ledger.read_text(encoding="utf-8").splitlines()[0])
    own = line.pop("hash")
    canonical = json.dumps(line, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert hashlib.sha256(canonical).hexdigest() == own
    assert line["previous"] == "0" * 64


@pytest.mark.parametrize(
    ("draft", "message"),
    [
        (prediction("one"), "empty or taken"),
        (prediction("new", refuted_by=""), "must say what would refute it"),
        (prediction("new", date="July"), "wanted YYYY-MM"),
        (outcome("new", "missing", Result.HIT), "wanted the id of an earlier prediction"),
        (outcome("new", "o1", Result.HIT), "wanted the id of an earlier prediction"),
    ],
)
def test_entries_that_could_not_be_scored_are_refused(ledger: Path, draft: Draft, message: str) -> None:
    before = ledger.read_bytes()
    with pytest.raises(StatsError, match=message):
        append_entry(ledger, draft)
    assert ledger.read_bytes() == before


def test_the_bundled_ledger_holds_one_open_prediction() -> None:
    score = score_ledger(bundled_ledger())
    assert [item.prediction.draft.entry_id for item in score.open] == ["dcpo-aime24"]
    assert {n.name: n.value for n in score.open[0].prediction.draft.numbers}["floor"] == 35.4


PLAN = Forecast(
    forecast_id="gsm8k-1.5b",
    date="2026-05-01",
    plan_digest="ab" * 32,
    words="the reward model leads by about 2 points",
    gap_pp=-2.0,
    low_pp=-4.0,
    high_pp=0.0,
    refuted_by="an interval above 0",
    rescores=(Rescore(trigger="the interval excludes zero", scoring="content match"),),
)


def lock(tmp_path: Path, steps_run: int) -> Entry:
    return lock_forecast(tmp_path / "forecasts.jsonl", PLAN, steps_run=steps_run)


def test_a_forecast_is_locked_with_its_plans_digest_before_the_first_step(tmp_path: Path) -> None:
    entry = lock(tmp_path, 0)
    assert entry.draft.kind is EntryKind.FORECAST
    assert entry.draft.digest == "ab" * 32
    assert "content match" in entry.draft.claim


def test_a_forecast_is_refused_once_step_one_has_run(tmp_path: Path) -> None:
    with pytest.raises(StatsError, match="1 training steps have run"):
        lock(tmp_path, 1)
    assert not (tmp_path / "forecasts.jsonl").exists()


def test_readings_at_two_pool_sizes_are_scored_the_same_way() -> None:
    # +1.0 [−3.2, 5.2] at 500 items, −.65 [−2.9, 1.6] at 2,000; predicted −2.
    readings = [
        PoolReading(name="large", gap_pp=-0.65, low_pp=-2.9, high_pp=1.6, num_items=2000),
        PoolReading(name="small", gap_pp=1.0, low_pp=-3.2, high_pp=5.2, num_items=500),
    ]
    scored = score_forecast(PLAN, readings).readings
    assert [reading.reading.num_items for reading in scored] == [500, 2000]
    assert [(r.contains_zero, r.contains_prediction, r.side) for r in scored] == [
        (True, True, Side.OPPOSITE),
        (True, True, Side.PREDICTED),
    ]


def test_a_scoring_decided_afterwards_is_marked() -> None:
    def planned(**changes: object) -> bool:
        fields = {"name": "x", "gap_pp": 0.2, "low_pp": -1.0, "high_pp": 1.4, "num_items": 500}
        reading = PoolReading(**{**fields, **changes})  # type: ignore[arg-type]
        return score_forecast(PLAN, [reading]).readings[0].planned

    assert planned()
    assert planned(scoring="content match")
    assert not planned(scoring="another rule")
    assert not planned(after_the_fact=True)


def test_one_of_the_five_bundled_claims_is_clear_and_the_middle_one_is_at_29_hundredths() -> None:
    table = bundled_census()
    assert (table.totals.n, table.totals.clear, table.totals.significant_only, table.totals.below) == (5, 1, 0, 4)
    assert table.totals.median_ratio == pytest.approx(0.2875, abs=5e-5)
    ratios = {row.claim.paper.split(" ")[0]: round(row.reading.ratio, 2) for row in table.rows}
    assert ratios == {"LongRLVR": 1.27, "NSR": 0.57, "VAPO": 0.29, "Beyond": 0.21, "DCPO": 0.19}


def test_records_that_repeat_their_questions_are_counted_as_questions() -> None:
    # 15.73/(2.80158·sqrt(2·.7317·.2683/200)) = 15.73/12.41; the 600 records claimed would give 2.19.
    (row,) = [row for row in bundled_census().rows if row.claim.paper.startswith("LongRLVR")]
    assert (row.claim.num_items, round(row.reading.ratio, 2)) == (200, 1.27)


def test_every_bundled_row_names_its_source_its_words_and_a_date_and_none_rests_on_memory() -> None:
    table = bundled_census()
    assert table.apart == ()
    for row in (*(row.claim for row in table.rows), *releases_census()):
        assert row.source and row.quote and re.fullmatch(r"\d{4}-\d\d(-\d\d)?", row.date), row
        assert "memory" not in row.confidence + row.source
    assert seeds_census().source and seeds_census().date


def test_averaged_claims_are_marked_as_bounds() -> None:
    assert [row.claim.paper[:3] for row in bundled_census().rows if row.upper_bound] == ["NSR"]


def test_twenty_seven_of_twenty_nine_papers_state_neither_seeds_nor_spread() -> None:
    found = seeds_census()
    assert (found.neither, found.both, found.n) == (27, 2, 29)


def test_none_of_the_six_releases_prints_an_interval_at_its_headline() -> None:
    found = releases_census()
    assert len(found) == 6
    assert not any(release.interval_at_headline for release in found)
    assert {release.release: release.downstream_n for release in found}["Tulu / RewardBench 2"] == 113 + 17
    assert [release.num_seeds for release in found if release.release == "GRM"] == [1]


def test_a_claim_file_of_ones_own_is_scored(tmp_path: Path) -> None:
    path = tmp_path / "claims.csv"
    header = "status,paper,version,benchmark,num_items,baseline,baseline_kind,baseline_pct,ours_pct\n"
    path.write_text(header + "scored,X,1,B,30,Y,closest method,40,46.7\n", encoding="utf-8")
    row = census(read_claims(path)).rows[0]
    assert (round(row.reading.ratio, 3), row.reading.zone) == (0.189, Zone.BELOW)
    path.write_text(header + "scored,X,1,B,30,Y,closest method,0.40,467\n", encoding="utf-8")
    with pytest.raises(StatsError, match="row 2"):
        read_claims(path)
    path.write_text(header + "great,X,1,B,30,Y,closest method,40,46.7\n", encoding="utf-8")
    with pytest.raises(StatsError, match="statuses are"):
        read_claims(path)
    path.write_text("paper,N\nX,30\n", encoding="utf-8")
    with pytest.raises(StatsError, match="are missing"):
        read_claims(path)

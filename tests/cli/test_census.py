"""`deadheat census`."""

import json

import pytest
from rich.cells import cell_len

from deadheat.errors import ConfigError, StatsError

HEADER = "status,paper,version,benchmark,num_items,baseline,baseline_kind,baseline_pct,ours_pct"


def test_one_of_the_five_bundled_margins_is_clear_of_its_floor(parsed):
    found = parsed("census")
    totals = found["totals"]
    assert (totals["n"], totals["clear"], totals["below"], totals["left_out"]) == (5, 1, 4, 0)
    # VAPO's, the middle one: 10.4/(2.80158·sqrt(2·.25/30)) = 10.4/36.17.
    assert totals["median_ratio"] == pytest.approx(0.2875, abs=5e-5)
    dcpo = next(row for row in found["rows"] if row["claim"]["paper"].startswith("DCPO"))
    assert dcpo["reading"]["ratio"] == pytest.approx(0.189, abs=0.001)


def test_counts_of_claims_that_somebody_chose_bear_no_interval(run, parsed):
    for words in ((), ("--seeds",), ("--releases",)):
        text, record = run("census", *words).stdout, json.dumps(parsed("census", *words))
        assert "95%" not in text and "[" not in text
        assert "Wilson" not in record and '"level"' not in record and '"low"' not in record


def test_a_floor_above_100_points_is_not_printed_as_a_number(run, tmp_path):
    # 2.80158·sqrt(2·.25/2) = 140.08 points.
    path = tmp_path / "claims.csv"
    path.write_text(f"{HEADER}\nscored,P,v1,B,2,base,untrained,50,80\n")
    text = run("census", path).stdout
    assert ">100" in text and "140" not in text and "cannot be reached" in text


def test_a_claim_file_of_ones_own_is_read(run, parsed, tmp_path):
    path = tmp_path / "claims.csv"
    path.write_text(f"{HEADER}\nscored,P,v1,B,100,base,untrained,50,80\nexcluded,Q,v1,B,9,b,untrained,5,6\n")
    found = parsed("census", path)
    # z·sqrt(2·.25/100) = 19.81 points; 30/19.81 = 1.514.
    assert found["rows"][0]["reading"]["ratio"] == pytest.approx(1.514, abs=0.001)
    assert (found["totals"]["n"], found["totals"]["left_out"]) == (1, 1)
    path.write_text(HEADER.replace("ours_pct", "ours") + "\nscored,P,v1,B,100,base,untrained,50,80\n")
    with pytest.raises(StatsError, match=r"columns \['ours_pct'\] are missing"):
        run("census", path)
    with pytest.raises(ConfigError, match="is not a file"):
        run("census", tmp_path / "none.csv")


def test_the_two_other_censuses_are_bundled(run, parsed):
    seeds = parsed("census", "--seeds")
    assert (seeds["neither"], seeds["both"], seeds["n"]) == (27, 2, 29)
    assert len(parsed("census", "--releases")) == 6
    with pytest.raises(ConfigError, match="give one"):
        run("census", "--seeds", "--releases")


@pytest.mark.parametrize("words", [(), ("--seeds",), ("--releases",)])
def test_every_page_is_one_screen(run, words):
    lines = run("census", *words).stdout.splitlines()
    assert len(lines) <= 24 and max(map(cell_len, lines)) <= 80


def test_the_figure_sets_margins_against_floors(run, tmp_path):
    path = tmp_path / "census.svg"
    run("census", "--plot", path)
    text = path.read_text(encoding="utf-8")
    assert "detection floor" in text and "DCPO" in text

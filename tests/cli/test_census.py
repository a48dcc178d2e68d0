"""`deadheat census`."""

import pytest
from rich.cells import cell_len

from deadheat.errors import ConfigError, StatsError

HEADER = "status,paper,version,benchmark,num_items,baseline,baseline_kind,baseline_pct,ours_pct"


def test_three_of_the_eight_bundled_margins_are_clear_of_their_floor(parsed):
    found = parsed("census")
    totals = found["totals"]
    assert (totals["n"], totals["clear"], totals["below"]) == (8, 3, 5)
    assert totals["median_ratio"] == pytest.approx(0.43, abs=0.005)
    dcpo = next(row for row in found["rows"] if row["claim"]["paper"].startswith("DCPO"))
    assert dcpo["reading"]["ratio"] == pytest.approx(0.189, abs=0.001)
    assert all(row["claim"]["status"] != "scored" for row in found["apart"])


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

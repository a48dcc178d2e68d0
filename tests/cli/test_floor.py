"""`deadheat floor`."""

import subprocess
import sys

import pytest
from rich.cells import cell_len

from deadheat.errors import StatsError


def test_a_margin_of_6_7_points_on_thirty_items_is_a_fifth_of_its_floor(parsed):
    # z·sqrt(2·.4·.6/30) = 2.80158·.126491 = .354376; 6.7/35.4376 = .18906; the bar is 1.95996/2.80158 = .6996 of it.
    report = parsed("floor", "--n", 30, "--p", 0.40, "--margin", 6.7)
    assert report["floor_pp"] == pytest.approx(35.44, abs=0.005)
    assert report["ratio"] == pytest.approx(0.189, abs=0.0005)
    assert report["significance_bar_pp"] == pytest.approx(24.79, abs=0.005)
    assert (report["zone"], report["items_needed"]) == ("below", 840)


def test_the_page_says_what_n_would_make_the_margin_visible_on_one_screen(run):
    lines = run("floor", "--n", 30, "--p", 0.40, "--margin", 6.7).stdout.splitlines()
    assert len(lines) <= 24 and max(map(cell_len, lines)) <= 80
    assert any("840 items" in line for line in lines)


def test_votes_are_read_as_a_lead_over_decided_votes(parsed):
    # w = 80/166, D = 6/166 = 3.61 points; 2.80158·2·sqrt(w(1−w)/166) = 21.73 points.
    report = parsed("floor", "--wins", 80, "--losses", 86, "--ties", 7)
    assert report["margin_pp"] == pytest.approx(100 * 6 / 166)
    assert report["floor_pp"] == pytest.approx(21.73, abs=0.005)
    assert report["floor"]["left_out"] == 7
    # Exact: 2·P(X ≤ 80), X ~ Binomial(166, ½).
    assert report["win_share"]["test"]["p_value"] == pytest.approx(0.69808, abs=1e-5)


def test_the_page_of_votes_has_one_test_and_it_is_the_exact_one(run):
    # 2/2⁶ = .03125.
    text = run("floor", "--wins", 6, "--losses", 0).stdout
    assert "p = 0.0312, exact two-sided binomial" in text
    assert "normal" not in text


@pytest.mark.parametrize(
    ("words", "floor_pp", "limit", "reachable_from"),
    [
        # 2.80158·sqrt(2·.25/2) = 140.08 points; (1.4008)²·2 = 3.92 items.
        (("--n", 2, "--p", 0.5), 140.08, "no two accuracies differ by more than 100 points", 4),
        # 2.80158·sqrt(.1/20) = 19.81 points of 10 that differ; 7.84888/.1 = 78.5 items.
        (("--n", 20, "--discordance", 0.1), 19.81, "the 10.00% of items on which the sides differ", 79),
        # w = ¾: 2.80158·2·sqrt(.1875/4) = 121.31; (1.2131)²·4 = 5.89 votes.
        (("--wins", 3, "--losses", 1), 121.31, "no lead is larger than 100% of the decided votes", 6),
    ],
)
def test_a_floor_that_no_gap_can_reach_says_so(parsed, run, words, floor_pp, limit, reachable_from):
    report = parsed("floor", *words)
    assert report["floor_pp"] == pytest.approx(floor_pp, abs=0.005)
    assert limit in report["unreachable"] and report["reachable_from"] == reachable_from
    text = " ".join(run("floor", *words).stdout.replace("┃", " ").split())
    assert "No true gap is significant in 80% of reruns" in text and "points cannot be reached: no" in text
    assert "The floor is" not in text


def test_a_floor_that_can_be_reached_has_no_such_words(parsed):
    report = parsed("floor", "--n", 30, "--p", 0.40)
    assert (report["unreachable"], report["reachable_from"]) == ("", None)
    # d = .5 on 16 items: 2.80158·sqrt(.5/16) = 49.5 points of 50 that differ.
    assert parsed("floor", "--n", 16, "--discordance", 0.5)["unreachable"] == ""


def test_the_answer_pays_for_neither_tables_nor_figures_nor_templates():
    # Measured: .57 s of processor time, .36 s for numpy, typer, rich and scipy.special alone.
    heavy = ("polars", "matplotlib", "scipy.stats", "scipy.optimize", "jinja2", "torch")
    script = (
        "import atexit, sys; from deadheat.cli import main; sys.argv = 'deadheat floor --n 30 --p .4'.split();"
        f"atexit.register(lambda: print([m for m in {heavy} if m in sys.modules])); main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("words", "floor_pp"),
    [
        (("--n", 500, "--discordance", 0.226), 5.956),  # 2.80158·sqrt(.226/500)
        (("--n", 30, "--p", 0.5, "--avg-k", 4, "--item-variance", 0.15), 30.26),  # .15 + .10/4 = .175
        (("--n", 30, "--p", 0.4, "--n-b", 120, "--p-b", 0.4), 28.016),  # sqrt(.24/30 + .24/120) = .1
        (("--n", 600, "--p", 0.7317, "--distinct", 200, "--icc", 0.246), 8.754),  # n_eff = 600/1.492 = 402.1
    ],
)
def test_every_kind_of_comparison_has_its_own_floor(parsed, words, floor_pp):
    assert parsed("floor", *words)["floor_pp"] == pytest.approx(floor_pp, abs=0.005)


def test_averages_without_an_item_variance_are_said_to_be_an_upper_bound(run):
    # One tool divides everything by k and prints 6.3 points here; the plain floor is 35.44.
    text = run("floor", "--n", 30, "--p", 0.40, "--avg-k", 32).stdout
    assert "35.44" in text and "upper bound" in text


def test_two_kinds_at_once_and_missing_numbers_are_refused(run):
    with pytest.raises(StatsError, match="wanted one of them"):
        run("floor", "--n", 30, "--wins", 3, "--losses", 2, "--discordance", 0.2)
    with pytest.raises(StatsError, match="--n, the number of items"):
        run("floor", "--p", 0.4)
    with pytest.raises(StatsError, match=r"0\.40, not 40"):
        run("floor", "--n", 30, "--p", 40)


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_a_figure_is_written(run, tmp_path, suffix):
    path = tmp_path / f"floor.{suffix}"
    run("floor", "--n", 30, "--p", 0.40, "--margin", 6.7, "--plot", path)
    start = path.read_bytes()[:200]
    assert (b"<svg" in path.read_bytes()[:1000]) if suffix == "svg" else start.startswith(b"\x89PNG")

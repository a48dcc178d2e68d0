"""`deadheat power`."""

import numpy as np
import pytest
from rich.cells import cell_len

from deadheat.errors import ConfigError, StatsError


def test_the_two_part_rule_calls_three_points_at_500_items_and_three_seeds_in_57_percent_of_reruns(parsed):
    words = ("power", "--gap", 3, "--discordance", 0.226, "--n", 500, "--seeds", 3, "--rule", "two_part")
    report = parsed(*words)
    assert report["catch_rate"] == pytest.approx(0.567, abs=0.005)
    assert 100 * report["smallest"]["gap"] == pytest.approx(3.91, abs=0.05)
    assert 100 * report["pooled_floor"]["floor_frac"] == pytest.approx(3.44, abs=0.005)
    assert (report["rate"]["reruns"], report["rate"]["model"], report["key"]) == (200_000, "iid(d=0.226)", 1)
    more = next(c for c in report["grid"] if (c["num_items"], c["num_seeds"]) == (2000, 3))
    assert more["rate_frac"] == pytest.approx(0.99, abs=0.01)


def test_the_page_is_one_screen_and_shows_the_grid(run):
    words = ("power", "--gap", 3, "--discordance", 0.226, "--n", 500, "--seeds", 3, "--reruns", 4000)
    lines = run(*words).stdout.splitlines()
    assert len(lines) <= 24 and max(map(cell_len, lines)) <= 80
    assert sum("items" in line and "%" in line for line in lines) >= 4


def test_seeds_that_differ_are_a_model_of_their_own(parsed):
    # τ = 2 points costs the rule about .09 of the .567 that equal seeds give; drawn item by item: .478.
    words = ("--gap", 3, "--discordance", 0.226, "--n", 500, "--seeds", 3, "--reruns", 50_000, "--tau", 2)
    assert parsed("power", *words, "--rule", "two_part")["catch_rate"] == pytest.approx(0.478, abs=0.01)


def test_a_gap_of_zero_prints_how_often_each_rule_errs(run, parsed):
    # 3 seeds × 200 items spread by 10 points: 19.4% under the two-part rule, at most 6.5% over seeds and items.
    words = ("power", "--gap", 0, "--discordance", 0.3, "--n", 200, "--seeds", 3, "--tau", 10, "--reruns", 20_000)
    assert parsed(*words, "--rule", "two_part")["false_call_rate"] == pytest.approx(0.194, abs=0.02)
    assert parsed(*words)["false_call_rate"] < 0.065
    text = run(*words).stdout
    assert "With no true gap, a winner is called in" in text and "both sides together" in text


def test_one_seed_says_these_runs_only_and_a_gap_out_of_reach_says_so(run):
    text = run("power", "--gap", 5, "--discordance", 0.3, "--n", 200, "--reruns", 5000).stdout
    assert "shown for these runs only" in " ".join(text.replace("┃", "").split())
    two = run("power", "--discordance", 0.1, "--n", 100, "--seeds", 2, "--reruns", 5000).stdout
    assert "no gap up to 10 points, the most there can be" in " ".join(two.replace("┃", "").split())


def test_the_discordance_and_the_concentration_are_measured_first(parsed, table):
    # Votes sit on 100 of 400 items; there each seed's vote is +, − or a tie with chance 0.4, 0.3, 0.3.
    rng = np.random.Generator(np.random.Philox(key=5))
    votes = np.zeros((3, 400))
    votes[:, :100] = rng.choice([1, -1, 0], p=[0.4, 0.3, 0.3], size=(3, 100))
    a, b = table("a.csv", (votes > 0).astype(int)), table("b.csv", (votes < 0).astype(int))
    report = parsed("power", "--gap", 2, "--from", a, "--from", b, "--reruns", 4000)
    measured = report["measured"]
    assert measured["discordance_frac"] == pytest.approx(np.abs(votes).mean())
    assert measured["share_frac"] == pytest.approx(0.25, abs=0.05)
    assert measured["decided"] == int((votes.sum(axis=0) != 0).sum()) < measured["expected_decided"]
    models = [rate["model"].split("(")[0] for rate in report["models"]]
    assert models[:2] == ["mixture", "iid"] and models[-1] == "empirical"
    assert report["n"] == 400


def test_options_that_contradict_each_other_are_refused(run, table):
    with pytest.raises(ConfigError, match="wanted --discordance and --n"):
        run("power", "--gap", 3)
    with pytest.raises(ConfigError, match="--from measures the votes"):
        run("power", "--from", table("a.csv", [[1]]), "--discordance", 0.2)
    with pytest.raises(ConfigError, match="two vote models"):
        run("power", "--n", 9, "--discordance", 0.2, "--tau", 1, "--share", 0.5)
    with pytest.raises(StatsError, match="cannot exceed the share"):
        run("power", "--n", 9, "--discordance", 0.02, "--gap", 3)


def test_two_equal_tables_carry_no_information_about_their_noise(run, table):
    a, b = table("a.csv", [[1, 0, 1]]), table("b.csv", [[1, 0, 1]])
    with pytest.raises(StatsError, match="none of 3 items is decided"):
        run("power", "--gap", 1, "--from", a, "--from", b)


def test_a_figure_is_written_with_a_line_per_number_of_seeds(run, tmp_path):
    path = tmp_path / "power.svg"
    words = ("--gap", 3, "--discordance", 0.226, "--n", 500, "--seeds", 3, "--reruns", 2000)
    run("power", *words, "--plot", path)
    text = path.read_text(encoding="utf-8")
    assert "3 seeds" in text and "called (%)" in text

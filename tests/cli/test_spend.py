"""`deadheat spend`."""

import numpy as np
import pytest
from rich.cells import cell_len

from deadheat.errors import ConfigError, StatsError

PRICES = "seed=3.5,pair=0.005,judge=0.3"


def test_five_dollars_after_three_seeds_of_325_items_buy_a_seed(parsed):
    # One seed with its 325 pairs and 300 pairs more: SE 6.235; 333 questions, 999 pairs: 7.112.
    words = ("--budget", 5, "--prices", PRICES, "--se", 7.25, "--ratio", 12.4, "--seeds", 3, "--n", 325)
    steps = parsed("spend", *words)["plan"]["steps"]
    assert (steps[0]["add_seeds"], steps[0]["add_questions"]) == (1, 75)
    assert steps[0]["se"] == pytest.approx(6.235, abs=0.0005)
    questions = next(step for step in steps if step["add_seeds"] == 0 and step["add_judges"] == 0 and step["cost"] > 0)
    assert questions["se"] == pytest.approx(7.112, abs=0.0005)


def test_the_split_is_measured_from_two_files(parsed, table):
    # Seeds 1 and 2 differ by their whole mean: A − B is +1 on all items of seed 1, 0 on all of seed 2; no item noise.
    a, b = table("a.csv", [[1] * 4, [0] * 4]), table("b.csv", [[0] * 4, [0] * 4])
    split = parsed("spend", "--budget", 4, "--prices", PRICES, "--from", a, "--from", b)["plan"]["split"]
    assert split["seed_var"] == pytest.approx(0.5)  # var(1, 0) with ddof = 1
    assert (split["item_var"], split["residual_var"]) == (0.0, 0.0)


def test_judges_and_repeats_are_told_apart_by_a_column(parsed, tmp_path):
    # Judge j says v, judge k says v + 1: they correlate at 1 and count as one. Two scorings differ by ±0.1: var .02.
    rng = np.random.Generator(np.random.Philox(key=3))
    rows = ["seed,item,judge,value"]
    for seed in (1, 2, 3):
        for item in range(20):
            v = rng.standard_normal()
            rows += [f"{seed},i{item},{j},{v + up + e}" for j, up in (("j", 0), ("k", 1)) for e in (-0.1, 0.1)]
    path = tmp_path / "judged.csv"
    path.write_text("\n".join(rows), encoding="utf-8")
    split = parsed("spend", "--budget", 4, "--prices", PRICES, "--from", path, "--judge", "judge")["plan"]["split"]
    assert split["jitter_var"] == pytest.approx(0.02)
    assert split["judge_correlation"] == pytest.approx(1.0)
    assert split["allocation"] == {"num_seeds": 3, "num_pairs": 60, "num_judges": 2, "num_repeats": 2}


def test_steps_are_ranked_by_how_often_a_gap_is_called(run, parsed, table):
    rng = np.random.Generator(np.random.Philox(key=4))
    votes = rng.choice([1, -1, 0], p=[0.2, 0.1, 0.7], size=(2, 60))
    a, b = table("a.csv", (votes > 0).astype(int)), table("b.csv", (votes < 0).astype(int))
    words = ("--budget", 4, "--prices", PRICES, "--from", a, "--from", b, "--gap", 5)
    assert parsed("spend", *words)["plan"]["ranked_by"] == "power"
    found = parsed("spend", *words, "--rule", "two_part")
    rates = [step["catch"]["rate_frac"] for step in found["plan"]["steps"]]
    assert rates == sorted(rates, reverse=True) and rates[-1] == found["plan"]["now"]["catch"]["rate_frac"]
    assert found["measured"]["discordance_frac"] == pytest.approx(np.abs(votes).mean())
    lines = run("spend", *words).stdout.splitlines()
    assert len(lines) <= 27 and max(map(cell_len, lines)) <= 80


def test_what_cannot_be_priced_is_refused(run, table):
    with pytest.raises(ConfigError, match="wanted seed=PRICE,pair=PRICE,judge=PRICE"):
        run("spend", "--budget", 5, "--prices", "seed=3.5,pair=cheap", "--se", 1)
    with pytest.raises(ConfigError, match="all of --se, --ratio"):
        run("spend", "--budget", 5, "--prices", PRICES)
    one = table("a.csv", [[1, 0]])
    with pytest.raises(StatsError, match="at least 2 of each"):
        run("spend", "--budget", 5, "--prices", PRICES, "--from", one, "--from", one)


def test_a_figure_is_written(run, tmp_path):
    path = tmp_path / "spend.png"
    words = ("--budget", 5, "--prices", PRICES, "--se", 7.25, "--ratio", 12.4, "--seeds", 3, "--n", 325)
    run("spend", *words, "--plot", path)
    assert path.read_bytes().startswith(b"\x89PNG")

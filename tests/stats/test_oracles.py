"""Every figure of tests/golden/oracles.json that belongs to statistics, asserted by its id within its tolerance."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from deadheat.stats.floors import (
    detection_floor,
    floor_multiplier,
    pooled_votes_floor,
    read_margin,
    two_standard_errors,
    win_share_floor,
)
from deadheat.stats.groups import candidates, gate_probability
from deadheat.stats.intervals import clopper_pearson, mean_score, mean_sd, wilson, win_share
from deadheat.stats.power import agreement_chance, catch_rate, smallest_gap
from deadheat.stats.resampling import Level, bootstrap
from deadheat.stats.significance import binomial_two_sided
from deadheat.stats.spend import scale_cost
from deadheat.stats.variance import Allocation, effective_judges, split_from_se, variance_at
from deadheat.stats.vote_models import Design, IidVotes
from deadheat.stats.votes import Rule, Tally

ORACLES = json.loads((Path(__file__).parents[1] / "golden" / "oracles.json").read_text(encoding="utf-8"))["oracles"]
STATS = [oracle for oracle in ORACLES if oracle["room"] == "stats"]
KEY = 20_260_701
RATE_TOLERANCE = 0.005  # Monte-Carlo catch rates
GAP_TOLERANCE_PP = 0.05  # smallest catchable gaps

Inputs = dict[str, Any]


def floor_pp(given: Inputs) -> float:
    return detection_floor(given["N"], given["p"]).floor_pp


def ratio(given: Inputs) -> float:
    return read_margin(given["margin"] / 100, detection_floor(given["N"], given["p"])).ratio


def margin_of(given: Inputs) -> float:
    return given["ours"] - given["baseline"]


def p_of(given: Inputs) -> float:
    return binomial_two_sided(given["wins"], given["losses"]).p_value


def share_pct(given: Inputs) -> float:
    return 100 * win_share(given["wins"], given["losses"]).estimate


def share_cost_pp(given: Inputs) -> float:
    return 100 * (win_share(*given["raw"]).estimate - win_share(*given["corr"]).estimate)


def interval_pct(given: Inputs) -> list[float]:
    interval = wilson(given["k"], given["n"])
    return [100 * interval.low, 100 * interval.high]


def unpaired_p(given: Inputs) -> float:
    """What the formula for two independent accuracies would have said of a win share: not offered, shown here."""
    n = given["wins"] + given["losses"]
    lead = abs(given["wins"] - given["losses"]) / n
    return float(2 * norm.sf(lead / detection_floor(n, given["wins"] / n).se_frac))


def catch(given: Inputs) -> float:
    design = Design(num_items=given["N"], num_seeds=given["S"], rule=Rule.TWO_PART)
    return catch_rate(given["gap"], IidVotes(discordance_frac=given["d"]), design, key=KEY, reruns=150_000).rate_frac


def catchable_pp(given: Inputs) -> float:
    design = Design(num_items=given["N"], num_seeds=given["S"], rule=Rule.TWO_PART)
    found = smallest_gap(IidVotes(discordance_frac=given["d"]), design, key=KEY, reruns=60_000)
    assert found.gap is not None
    return 100 * found.gap


def se_after(given: Inputs) -> float:
    split = split_from_se(given["se"], given["ratio"], Allocation(num_seeds=given["seeds"], num_pairs=given["pairs"]))
    bought = Allocation(
        num_seeds=given["seeds"] + given["extra_seeds"], num_pairs=given["pairs"] + given["extra_pairs"]
    )
    return math.sqrt(variance_at(split, bought))


def per_dollar(given: Inputs) -> float:
    """Cut in SE per currency unit of one more seed (with its own 325 pairs) over that of 100 pairs."""
    now = Allocation(num_seeds=given["seeds"], num_pairs=given["pairs"])
    split = split_from_se(given["se"], given["ratio"], now)
    own = given["pairs"] / given["seeds"]
    seed = Allocation(num_seeds=given["seeds"] + 1, num_pairs=given["pairs"] + own)
    pairs = Allocation(num_seeds=given["seeds"], num_pairs=given["pairs"] + 100)
    seed_cut = (split.se - math.sqrt(variance_at(split, seed))) / given["seed_price"]
    pair_cut = (split.se - math.sqrt(variance_at(split, pairs))) / (100 * given["pair_price"])
    return seed_cut / pair_cut


def terms_ratio(given: Inputs) -> float:
    now = Allocation(num_seeds=given["seeds"], num_pairs=given["pairs"])
    split = split_from_se(given["se"], given["ratio"], now)
    return (split.seed_var / given["seeds"]) / (split.residual_var / given["pairs"])


def fresh_mean(given: Inputs) -> float:
    """The mean of the fresh items that, pooled with the first 500, gives the printed pooled mean."""
    first, fresh = given["sizes"]
    needed = (given["pooled"] * (first + fresh) - given["mean500"] * first) / fresh
    pooled = mean_score([given["mean500"] - 1] + [given["mean500"] + 1] + [needed] * 6)  # 2 : 6 is 500 : 1,500
    assert pooled.interval.estimate == pytest.approx(given["pooled"])
    return needed


def cells_reproduced(cells: list[Inputs]) -> int:
    def same(cell: Inputs) -> bool:
        values = cell["seeds"] if "seeds" in cell else [100 * count / cell["n"] for count in cell["counts"]]
        found = mean_sd(values)
        return abs(found.mean - cell["mean"]) <= 0.0051 and abs(found.sd - cell["sd"]) <= 0.0051

    return sum(same(cell) for cell in cells)


def means_reproduced(given: Inputs) -> int:
    def same(row: Inputs) -> bool:
        counts = [round(diff * row["n"] / 100) for diff in row["seed_diffs_pp"]]
        return abs(100 * sum(counts) / (3 * row["n"]) - row["mean_pp"]) <= 0.0051

    return sum(same(row) for row in given["rows"])


def table_like(row: Inputs) -> np.ndarray:
    """A 3 × N table in points with the printed seed differences, item variance V and covariance C between seeds.

    Flat width → V (variance V/(3N)); question width → C (variance (3V + 6C)/(9N)). The columns are orthonormal noise
    mixed to have exactly these moments.
    """
    n = row["n"]
    half = [(high - low) / (2 * 1.959964) for low, high in row["intervals_pp"]]
    variance = 3 * n * half[2] ** 2
    covariance = (9 * n * half[1] ** 2 - 3 * variance) / 6
    noise = np.random.Generator(np.random.Philox(key=n)).standard_normal((n, 4))
    noise -= noise.mean(axis=0)
    basis = np.linalg.qr(noise)[0][:, :3] * math.sqrt(n)
    matrix = np.full((3, 3), covariance) + np.eye(3) * (variance - covariance)
    mixed = np.linalg.cholesky(matrix) @ basis.T
    return np.asarray(mixed + np.array(row["seed_diffs_pp"])[:, None])


def crossed_widths_reproduced(given: Inputs) -> int:
    def same(row: Inputs) -> bool:
        found = bootstrap(table_like(row), Level.CROSSED, key=KEY)
        printed = row["intervals_pp"][0][1] - row["intervals_pp"][0][0]
        return abs((found.high - found.low) / printed - 1) < 0.06

    return sum(same(row) for row in given["rows"])


def row_twelve(given: Inputs) -> list[float]:
    diffs = [1.0] * given["plus"] + [-1.0] * given["minus"] + [0.0] * given["zero"]
    interval = bootstrap([diffs], Level.QUESTION, key=KEY)
    return [100 * interval.low, 100 * interval.high]


def win_share_part(part: str) -> Callable[[Inputs], float]:
    def read(given: Inputs) -> float:
        reading = win_share_floor(given["wins"], given["losses"])
        return {
            "D": 100 * reading.lead_frac,
            "floor": reading.floor.floor_pp,
            "ratio": reading.ratio,
            "z": reading.z,
            "p": 2 * norm.sf(reading.z),  # the source's normal p; the reading itself holds the exact binomial
        }[part]

    return read


NAMED: dict[str, Callable[[Inputs], Any]] = {
    "floor.const": lambda g: floor_multiplier(g["alpha"], g["power"]),
    "floor.sigbar": lambda g: read_margin(0.1, detection_floor(30, 0.4)).bar_ratio,
    "floor.aime_step": lambda g: 100 * wilson(1, g["N"]).estimate,
    "floor.onequestion_range": lambda g: [100 * wilson(1, n).estimate for n in g["N"]],
    "floor.dcpo": floor_pp,
    "floor.dcpo.questions": lambda g: g["margin"] / (100 * wilson(1, g["N"]).estimate),
    "floor.n500.se": lambda g: detection_floor(g["N"], g["p"]).se_frac,
    "floor.n500.6pt": lambda g: 100 * two_standard_errors(g["N"], g["p"]),
    "floor.n384.se": lambda g: 100 * detection_floor(g["N"], g["p"]).se_frac / math.sqrt(2),
    "floor.nsr": floor_pp,
    "floor.longrlvr": floor_pp,
    "floor.longrlvr.worst": ratio,
    "floor.longrlvr.N": lambda g: g["per_cell"] * g["tasks"] * g["lengths"],
    "floor.r1": lambda g: [floor_pp(g), ratio(g)],
    "floor.magistral": lambda g: [floor_pp(g), ratio(g)],
    "floor.aime_range": lambda g: [detection_floor(g["N"], p).floor_pp for p in g["p"]],
    "census.noseed": lambda g: 100 * wilson(g["neither"], g["papers"]).estimate,
    "ties.sum": lambda g: [Tally(wins=w, losses=n, ties=t, missing=0).cast for w, n, t in g["tallies"]],
    "lencost.s1": share_cost_pp,
    "lencost.s3": share_cost_pp,
    "ci.widths": lambda g: [high - low for low, high in g["intervals"]],
    "gate.121/250": lambda g: wilson(g["k"], g["n"]).estimate,
    "gate.61/250": lambda g: [
        wilson(g["all_wrong"] + g["all_right"], g["n"]).estimate,
        100 * wilson(g["all_wrong"], g["n"]).estimate,
        100 * wilson(g["all_right"], g["n"]).estimate,
    ],
    "judge.neff": lambda g: effective_judges(g["k"], g["r"]),
    "split.1000prompts": se_after,
    "split.seed+300": se_after,
    "split.6.2": se_after,
    "split.perdollar": per_dollar,
    "split.S_over_P": terms_ratio,
    "misc.avg": lambda g: [mean_sd(values).mean for values in g["per_set"]],
    "misc.lead": lambda g: [a - b for a, b in zip(g["first"], g["second"], strict=True)],
    "misc.3x": lambda g: g["discordance"][0] / g["discordance"][1],
    "misc.7B": lambda g: [g["params"][1] / g["params"][0]] + [scale_cost(cost, *g["params"]) for cost in g["costs"]],
    "hid.rate": lambda g: [100 * wilson(k, n).estimate for k, n in g["counts"]],
    "bits": lambda g: [candidates(bits) for bits in g["entropy_bits"]],
    "orders": lambda g: [math.log10(g["alpha"]) - binomial_two_sided(w, n).log10_p for w, n in g["tallies"]],
    "mix2000": fresh_mean,
    "002.table1_sd": lambda g: cells_reproduced(g["arms"]),
    "002.table5c": lambda g: cells_reproduced(g["cells"]),
    "002.table2b_means": means_reproduced,
    "002.table2b_twolevel": crossed_widths_reproduced,
    "002.row12_item": row_twelve,
}
FAMILIES: dict[str, Callable[[Inputs], Any]] = {
    "p.": p_of,
    "share.": share_pct,
    "ci.": interval_pct,
    "gate.": lambda g: gate_probability(g["p"], g["n"]),
    "unan.": lambda g: agreement_chance(g["p"], g["n"]),
    "catch.": catch,
}


def reader(oracle_id: str) -> Callable[[Inputs], Any] | None:
    """The function that recomputes an oracle, by its id, its ending, or its family."""
    if oracle_id in NAMED:
        return NAMED[oracle_id]
    if oracle_id.endswith(".pooled"):
        return lambda g: pooled_votes_floor(g["N"], g["S"], g["d"]).floor_pp
    if oracle_id.startswith("mdg."):
        return catchable_pp
    if oracle_id.startswith("ws."):
        part = oracle_id.split(".")[2]
        return unpaired_p if part == "p_unpaired" else win_share_part(part)
    if oracle_id.endswith(".ratio"):
        return ratio
    if oracle_id.endswith(".margin"):
        return margin_of
    return next((read for family, read in FAMILIES.items() if oracle_id.startswith(family)), None)


def tolerance(oracle: Inputs) -> float:
    if oracle["id"].startswith("catch."):
        return RATE_TOLERANCE
    if oracle["id"].startswith("mdg.") and not oracle["id"].endswith(".pooled"):
        return GAP_TOLERANCE_PP
    return float(oracle["tol"])


def test_all_150_oracles_are_here_and_118_of_them_are_asserted_below() -> None:
    assert len(ORACLES) == len({oracle["id"] for oracle in ORACLES}) == 150
    assert len(STATS) == 118
    assert [oracle["id"] for oracle in STATS if reader(oracle["id"]) is None] == []
    assert {oracle["room"] for oracle in ORACLES} == {"stats", "credit", "scorers", "audit", "train", "evals", "docs"}


def test_every_oracle_that_is_not_strict_says_why() -> None:
    loose = [oracle for oracle in ORACLES if not oracle["strict"]]
    assert len(loose) == 16
    assert all(oracle["note"] for oracle in loose)


@pytest.mark.parametrize("oracle", STATS, ids=[oracle["id"] for oracle in STATS])
def test_oracle(oracle: Inputs) -> None:
    read = reader(oracle["id"])
    assert read is not None
    if oracle["id"] == "p.floor_of_old_code":
        # An absolute tolerance floors p at about 1e-15, eight orders above the exact 1.669e-23.
        assert read(oracle["inputs"]) == pytest.approx(1.6688970678401393e-23, rel=1e-9)
        assert read(oracle["inputs"]) < oracle["computed"] * 1e-7
        return
    if oracle["id"].startswith("p."):
        # p-values span 29 orders of magnitude: relative, and far inside the printed tolerance.
        assert read(oracle["inputs"]) == pytest.approx(oracle["computed"], rel=1e-9)
    assert read(oracle["inputs"]) == pytest.approx(oracle["computed"], abs=tolerance(oracle), rel=0)


def test_the_published_36_to_51_is_clopper_pearson_while_wilson_prints_37_to_51() -> None:
    exact = clopper_pearson(83, 191)
    assert (round(100 * exact.low), round(100 * exact.high)) == (36, 51)
    assert round(100 * wilson(83, 191).low) == 37

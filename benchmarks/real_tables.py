"""What public tables show about margins and floors: the figures of docs/statistics, and the numbers beside them.

    python benchmarks/real_tables.py DATA [OUT]

DATA is a folder with `rollouts_reasoning_gym` (GSM8K graded item by item before and after a training run) and
`judges_alpaca_eval` (57 models against one baseline on 805 prompts); OUT is docs/figures by default.
"""

import sys
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np

from deadheat.archive.results import ReadOptions, read_results
from deadheat.reports.floors import FloorPoint, scatter_against_floor
from deadheat.reports.ink import save_figure
from deadheat.reports.instruments import census_figure, comparison_figure, floor_figure, power_figure
from deadheat.stats.census import bundled_census
from deadheat.stats.comparison import Side, compare
from deadheat.stats.floor_question import FloorQuestion, floor_report
from deadheat.stats.floors import Zone, floor_from_se, read_margin
from deadheat.stats.neighbours import neighbours
from deadheat.stats.planning import plan_power
from deadheat.stats.significance import binomial_two_sided
from deadheat.stats.verdict import Terms
from deadheat.stats.vote_models import Design, IidVotes

KEY, JUDGE = 1, "weighted_alpaca_eval_gpt4_turbo"


def gsm8k(data: Path, out: Path) -> None:
    """A published gain of under a point, item by item."""
    trained, base = (
        Side(name=name, frame=read_results(data / f"rollouts_reasoning_gym/matheval_gsm8k_{stem}.jsonl.gz").frame)
        for name, stem in (("trained", "rlft"), ("base", "base"))
    )
    found = compare(trained, base, Terms(), key=KEY)
    save_figure(comparison_figure(found), out / "gsm8k-gain.svg")
    verdict = found.verdict
    votes, effect = verdict.votes, verdict.effect
    print(
        f"GSM8K, {found.n:,} items: {votes.pooled.wins}–{votes.pooled.losses}, p = {votes.test.p_value:.3f}; "
        f"{100 * effect.estimate:+.2f} pp, {effect.level:.0%} interval [{100 * effect.low:+.2f}, {100 * effect.high:+.2f}]: "
        f"{verdict.sentence}"
    )


def preferences(data: Path) -> tuple[list[str], np.ndarray]:
    """Models by their mean preference, best first, and their preferences [models, prompts]."""
    options = ReadOptions(where=(("judge", JUDGE),), keep=("model",))
    rows = read_results(data / "judges_alpaca_eval/preferences_numeric.csv.gz", options).frame
    wide = rows.pivot(on="model", index="item", values="value").drop("item")
    table_MN = wide.to_numpy().T - 1
    order = np.argsort(-np.nanmean(table_MN, axis=1), kind="stable")
    return [wide.columns[m] for m in order], table_MN[order]


TIE_BANDS = (0.0, 0.1, 0.5)


def pair_zone(a_N: np.ndarray, b_N: np.ndarray) -> tuple[float, float, Zone, tuple[bool, ...]]:
    """Margin and paired floor in points, the zone, and at each tie band whether the votes are significant."""
    gap_N = (a_N - b_N)[~np.isnan(a_N - b_N)]
    floor = floor_from_se(float(gap_N.std(ddof=1)) / np.sqrt(gap_N.size), gap_N.size, "paired")
    reading = read_margin(float(gap_N.mean()), floor)
    tests = [binomial_two_sided(int((gap_N > band).sum()), int((gap_N < -band).sum())) for band in TIE_BANDS]
    return 100 * reading.margin_frac, floor.floor_pp, reading.zone, tuple(test.p_value < 0.05 for test in tests)


def leaderboard(data: Path, out: Path) -> None:
    """How many pairs of a leaderboard its own prompts can tell apart."""
    names, table_MN = preferences(data)
    for label, pairs in (
        ("all pairs", list(combinations(range(len(names)), 2))),
        ("neighbours", list(pairwise(range(len(names))))),
    ):
        read = [pair_zone(table_MN[a], table_MN[b]) for a, b in pairs]
        zones = [zone for _, _, zone, _ in read]
        called = [sum(flags) for flags in zip(*(flags for *_, flags in read), strict=True)]
        print(
            f"AlpacaEval, {len(names)} models, {label}: {len(pairs)}; clear {zones.count(Zone.CLEAR)}, "
            f"significant only {zones.count(Zone.SIGNIFICANT_NOT_REPEATABLE)}, below {zones.count(Zone.BELOW)}; "
            f"votes significant at tie bands {TIE_BANDS}: {called}"
        )
    ranking = neighbours(table_MN, names)
    plain = sum(pair.p_value < ranking.alpha for pair in ranking.pairs)
    print(
        f"AlpacaEval, neighbours separated after Holm: {ranking.num_separated} of {len(ranking.pairs)} (p < "
        f"{ranking.alpha:g} before: {plain}), n = {ranking.n} prompts that every model has"
    )
    points = [
        FloorPoint(label=f"{names[a]} over {names[b]}", margin_pp=margin, floor_pp=floor, kind=zone.value)
        for a, b in pairs
        for margin, floor, zone, _ in [pair_zone(table_MN[a], table_MN[b])]
    ]
    save_figure(scatter_against_floor(points), out / "leaderboard-neighbours.svg")


def main(data: Path, out: Path) -> None:
    """Every figure, every number."""
    out.mkdir(parents=True, exist_ok=True)
    gsm8k(data, out)
    leaderboard(data, out)
    save_figure(floor_figure(floor_report(FloorQuestion(n=30, p=0.40, margin_frac=0.067))), out / "floor.svg")
    plan = plan_power(0.03, IidVotes(discordance_frac=0.226), Design(num_items=500, num_seeds=3), key=KEY)
    save_figure(power_figure(plan), out / "power.svg")
    save_figure(census_figure(bundled_census()), out / "census.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else "docs/figures"))

"""Ratios of the statistics room against plain alternatives, in one run on this machine.

    python benchmarks/stats.py

The interval of a 3 × 500 table against 4,000 crossed resamples of scipy.stats.bootstrap, which is what a script would
otherwise run; catch rates at R = 200,000 against an item-level NumPy simulation of the same rule, agreement checked
first; the commands `floor`, `power` and `verdict` against importing NumPy, Typer, Rich and scipy.special. Times are
processor seconds, the best of several.
"""

import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import scipy
from scipy.stats import bootstrap as scipy_bootstrap

from deadheat.stats.effect import paired_effect
from deadheat.stats.power import catch_rate, critical_wins, smallest_gap
from deadheat.stats.vote_models import Design, IidVotes, vote_components
from deadheat.stats.votes import Rule

RESAMPLES, RERUNS, GAP = 4000, 200_000, 0.03
MODEL = IidVotes(discordance_frac=0.226)
TWO_PART = Design(num_items=500, num_seeds=3, rule=Rule.TWO_PART)
IMPORTS = "import numpy, typer, rich.console, scipy.special"


def best_s(run: Callable[[], object], repeats: int = 3) -> float:
    """Processor seconds of the fastest repeat."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def table(shape: tuple[int, int], *, graded: bool) -> np.ndarray:
    """Votes, or real-valued differences."""
    noise = np.random.Generator(np.random.Philox(key=1)).standard_normal(shape)
    return np.sign(np.round(noise / 1.6)) if graded else noise


def scipy_crossed_s(values: np.ndarray, resamples: int = 1000) -> float:
    """Seconds of RESAMPLES crossed resamples: seed and item indices as two samples, a vectorised statistic."""
    rng = np.random.default_rng(1)

    def mean(seeds: np.ndarray, items: np.ndarray, axis: int = -1) -> np.ndarray:
        return np.asarray(values[seeds.astype(int)[..., :, None], items.astype(int)[..., None, :]].mean(axis=(-2, -1)))

    def run() -> object:
        indices = (np.arange(values.shape[0]), np.arange(values.shape[1]))
        return scipy_bootstrap(
            indices, mean, n_resamples=resamples, method="percentile", vectorized=True, batch=100, rng=rng
        )

    return best_s(run) * RESAMPLES / resamples


def item_level(reruns: int = 4000) -> tuple[float, float]:
    """The two-part rule on item-level votes, vectorised over reruns: its rate, and seconds per rerun."""
    rng = np.random.default_rng(2)
    critical = critical_wins(TWO_PART.num_items, TWO_PART.alpha)
    d, rates = MODEL.discordance_frac, []

    def run() -> None:
        u = rng.random((reruns, TWO_PART.num_seeds, TWO_PART.num_items))
        votes = np.where(u < (d + GAP) / 2, 1, np.where(u < d, -1, 0)).astype(np.int8)
        sums = votes.sum(axis=1)
        wins, losses = (sums > 0).sum(axis=1), (sums < 0).sum(axis=1)
        rates.append(float(((wins >= critical[wins + losses]) & (votes.sum(axis=2) > 0).all(axis=1)).mean()))

    seconds = best_s(run)
    return float(np.mean(rates)), seconds / reruns


def command_s(command: Sequence[str], repeats: int = 5) -> float:
    """Processor seconds of a whole process, the best of several."""
    times = []
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def commands(folder: Path) -> dict[str, list[str]]:
    """The three commands that answer at once, on files of 3 seeds × 200 items."""
    rng = np.random.Generator(np.random.Philox(key=2))
    for name, share in (("a", 0.65), ("b", 0.5)):
        rows = [
            json.dumps({"seed": s, "item": n, "score": int(right)})
            for s in range(3)
            for n, right in enumerate(rng.random(200) < share)
        ]
        (folder / f"{name}.jsonl").write_text("\n".join(rows), encoding="utf-8")
    deadheat = [str(Path(sys.executable).with_name("deadheat"))]
    return {
        "floor": [*deadheat, "floor", "--n", "30", "--p", "0.40", "--margin", "6.7"],
        "power": [*deadheat, "power", "--gap", "3", "--discordance", "0.226", "--n", "500", "--seeds", "3"],
        "verdict": [*deadheat, "verdict", str(folder / "a.jsonl"), str(folder / "b.jsonl")],
    }


def main() -> None:
    """Print every ratio."""
    print(
        f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, "
        f"NumPy {np.__version__}, SciPy {scipy.__version__}"
    )
    for graded in (True, False):
        values = table((3, 500), graded=graded)
        ours = best_s(lambda: [paired_effect(values, grades=graded) for _ in range(200)]) / 200  # noqa: B023
        kind = "votes" if graded else "real values"
        print(f"interval of 3 × 500 {kind}: {1e3 * ours:.2f} ms")
        print(
            f"  scipy.stats.bootstrap, {RESAMPLES:,} crossed resamples: {scipy_crossed_s(values) / ours:,.0f}× as long"
        )
    slow_rate, slow = item_level()
    fast = catch_rate(GAP, MODEL, TWO_PART, key=1, reruns=RERUNS).rate_frac
    if abs(fast - slow_rate) > 0.02:
        raise SystemExit(f"the item-level simulation says {slow_rate:.3f} and the counts {fast:.3f}: nothing is timed")
    one = best_s(lambda: catch_rate(GAP, MODEL, TWO_PART, key=1, reruns=RERUNS))
    print(f"catch rate of the two-part rule, R = {RERUNS:,}: {one:.2f} s")
    print(f"  item-level simulation: {slow * RERUNS / one:.1f}× as long")
    held = Design(num_items=500, num_seeds=3)
    gap = best_s(lambda: smallest_gap(vote_components(0.226), held, key=1, reruns=RERUNS), 1)
    print(f"smallest gap over seeds and items, R = {RERUNS:,}: {gap:.2f} s")
    base = command_s([sys.executable, "-c", IMPORTS])
    print(f"{IMPORTS}: {base:.2f} s")
    with tempfile.TemporaryDirectory() as folder:
        for name, command in commands(Path(folder)).items():
            print(f"  deadheat {name}: {command_s(command) / base:.2f}× as long")


if __name__ == "__main__":
    main()

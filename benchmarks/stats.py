"""Ratios of the statistics room against plain alternatives, in one run on this machine.

    python benchmarks/stats.py [PYTHON_WITH_RLIABLE]

Crossed bootstrap (4,000 resamples of 3 × 500) per resample against scipy.stats.bootstrap and, where one is named,
rliable (it needs packages older than ours, hence an interpreter of its own); peak memory at 1,000,000 items; catch
rate at R = 200,000 against an item-level NumPy simulation of the same rule; smallest_catchable_gap as a multiple of
one catch-rate call. Times are processor seconds, the best of three.
"""

import platform
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy
from scipy.stats import bootstrap as scipy_bootstrap

from deadheat.stats.bootstrap import bootstrap
from deadheat.stats.power import catch_rate, critical_wins, smallest_catchable_gap
from deadheat.stats.vote_models import Design, IidVotes

RLIABLE = """
import sys, time
import numpy as np
from rliable import library
values, reps = np.load(sys.argv[1]), int(sys.argv[2])
start = time.process_time()
library.get_interval_estimates({"d": values}, lambda x: np.array([x.mean()]), reps=reps)
print(time.process_time() - start)
"""
RESAMPLES, RERUNS = 4000, 200_000
DESIGN, MODEL = Design(num_items=500, num_seeds=3), IidVotes(discordance_frac=0.226)


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


def scipy_per_resample_s(values: np.ndarray, resamples: int = 1000) -> float:
    """The same crossed interval from SciPy: seed and item indices as two samples, a vectorised statistic."""
    rng = np.random.default_rng(1)

    def mean(seeds: np.ndarray, items: np.ndarray, axis: int = -1) -> np.ndarray:
        return np.asarray(values[seeds.astype(int)[..., :, None], items.astype(int)[..., None, :]].mean(axis=(-2, -1)))

    def run() -> object:
        indices = (np.arange(values.shape[0]), np.arange(values.shape[1]))
        return scipy_bootstrap(
            indices, mean, n_resamples=resamples, method="percentile", vectorized=True, batch=100, rng=rng
        )

    return best_s(run) / resamples


def rliable_per_resample_s(values: np.ndarray, interpreter: str | None, resamples: int = 500) -> float | None:
    """rliable's interval of the same table (runs × tasks) under an interpreter that has it; None: not asked."""
    if interpreter is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npy"
        np.save(path, values)
        command = [interpreter, "-W", "ignore", "-c", RLIABLE, str(path), str(resamples)]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) / resamples


def item_level_s(reruns: int = 2000) -> float:
    """Seconds per rerun of the two-part rule on item-level votes, vectorised over reruns."""
    rng = np.random.default_rng(2)
    critical = critical_wins(DESIGN.num_items, DESIGN.alpha)
    d, gap = MODEL.discordance_frac, 0.03

    def run() -> object:
        u = rng.random((reruns, DESIGN.num_seeds, DESIGN.num_items))
        votes = np.where(u < (d + gap) / 2, 1, np.where(u < d, -1, 0)).astype(np.int8)
        sums = votes.sum(axis=1)
        wins, losses = (sums > 0).sum(axis=1), (sums < 0).sum(axis=1)
        return ((wins >= critical[wins + losses]) & (votes.sum(axis=2) > 0).all(axis=1)).mean()

    return best_s(run) / reruns


def peak_mib(run: Callable[[], object]) -> float:
    """Peak of traced allocations, MiB."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def main(interpreter: str | None) -> None:
    """Print every ratio."""
    print(
        f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, "
        f"NumPy {np.__version__}, SciPy {scipy.__version__}"
    )
    for graded in (True, False):
        values = table((3, 500), graded=graded)
        ours = best_s(lambda values=values: bootstrap(values, key=1, resamples=RESAMPLES)) / RESAMPLES
        kind = "votes" if graded else "real values"
        print(f"crossed bootstrap, 3 × 500 {kind}: {1e6 * ours:.2f} µs per resample")
        print(f"  scipy.stats.bootstrap, crossed: {scipy_per_resample_s(values) / ours:.1f}× as long")
        theirs = rliable_per_resample_s(values, interpreter)
        print(
            "  rliable: not asked (name an interpreter that has it)"
            if theirs is None
            else f"  rliable: {theirs / ours:.1f}× as long"
        )
    million = table((3, 1_000_000), graded=False)
    print(
        f"1,000,000 items, real values, 20 resamples: peak {peak_mib(lambda: bootstrap(million, key=1, resamples=20)):.0f}"
        f" MiB beside a table of {million.nbytes / 2**20:.0f} MiB"
    )
    one = best_s(lambda: catch_rate(0.03, MODEL, DESIGN, key=1, reruns=RERUNS))
    print(
        f"catch rate, R = {RERUNS:,}: {one:.2f} s; item-level simulation {item_level_s() * RERUNS / one:.1f}× as long"
    )
    gap = best_s(lambda: smallest_catchable_gap(MODEL, DESIGN, key=1, reruns=RERUNS), 1)
    print(f"smallest_catchable_gap, R = {RERUNS:,}: {gap:.2f} s, {gap / one:.1f} catch-rate calls")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)

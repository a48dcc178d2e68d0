"""Tables of right/wrong answers for `deadheat verdict` to read, one for each thing it says; the same under every run.

python benchmarks/drawn_tables.py called > called.csv

called      5 seeds × 500 questions, 30% of answers differ, a true gap of 10 points, seeds spread by 3
dead-heat   5 seeds × 1,319 questions, 10% differ, no gap
not-called  3 seeds × 200 questions, 30% differ, no gap, seeds spread by 5
same-items  3 seeds × 200 questions: A ahead on 30 and B on 20 under every seed, on nearly the same questions
"""

import sys

import numpy as np

DRAWN = {  # seeds, questions, share of answers that differ, gap, spread of the seeds
    "called": (5, 500, 0.3, 0.10, 0.03),
    "dead-heat": (5, 1319, 0.1, 0.0, 0.0),
    "not-called": (3, 200, 0.3, 0.0, 0.05),
}


def votes(name: str) -> np.ndarray:
    """[S, N] who is ahead: 1 for A, −1 for B, 0 for neither."""
    if name == "same-items":
        place = np.arange(200)
        ahead, behind = ((place >= start) & (place < start + num) for start, num in ((0, 30), (100, 20)))
        return np.stack([np.roll(ahead.astype(int) - behind, seed) for seed in range(3)])
    seeds, items, d, gap, tau = DRAWN[name]
    rng = np.random.Generator(np.random.Philox(key=1))
    own = gap + tau * rng.standard_normal((seeds, 1))
    u = rng.random((seeds, items))
    return (u < (d + own) / 2).astype(int) - (u > 1 - (d - own) / 2)


def main(name: str) -> None:
    """One row an answer."""
    print("arm,seed,item,score")
    for seed, row in enumerate(votes(name), start=1):
        for item, vote in enumerate(row, start=1):
            both = item % 2 if vote == 0 else 0  # where neither is ahead, every other question is right on both sides
            print(f"a,{seed},q{item},{both or int(vote > 0)}\nb,{seed},q{item},{both or int(vote < 0)}")


if __name__ == "__main__":
    main(sys.argv[1])

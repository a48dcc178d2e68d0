"""A verdict on somebody else's numbers: two tables of grades, seeds × items, and the two-part rule. No model, no torch.

    python examples/verdict_from_tables.py

Recipe A answers a few more of the 40 questions than recipe B, the same ones under each of three seeds. From how many on
is that a win?
"""

import numpy as np
from numpy.typing import NDArray

from deadheat.sampling.keys import stream_key
from deadheat.stats import Verdict, paired_floor, two_part_rule, votes_from_scores

KEY = stream_key(1, "example")  # the address of the simulation behind the catchable gap: same key, same digits


def tables(num_extra: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Grades [S, N] of 3 seeds and 40 items: B has items 0–19 right, A the same and `num_extra` more."""
    a_SN, b_SN = np.zeros((3, 40)), np.zeros((3, 40))
    a_SN[:, : 20 + num_extra] = 1
    b_SN[:, :20] = 1
    return a_SN, b_SN


def judge(num_extra: int) -> Verdict:
    """The two-part rule on those tables, A against B."""
    a_SN, b_SN = tables(num_extra)
    return two_part_rule(votes_from_scores(a_SN, b_SN), key=KEY)


def main() -> None:
    """Print the verdict on leads of 3, 5 and 6 questions."""
    for num_extra in (3, 5, 6):
        verdict = judge(num_extra)
        floor = paired_floor(verdict.n, verdict.discordance_frac)
        print(
            f"{num_extra} of 40 items, all for A: {verdict.words.value}, p = {verdict.test.p_value:.4f}; "
            f"gap {100 * verdict.gap_frac:.1f} pp, paired floor {floor.floor_pp:.1f} pp at n = {verdict.n}"
        )


if __name__ == "__main__":
    main()

"""A verdict on somebody else's numbers: two tables of grades, seeds × items. No model, no torch.

    python examples/verdict_from_tables.py

Recipe A is right on more of the 200 questions than recipe B. The same mean lead is called where three seeds agree on it,
is a matter of these runs only where one seed carries it, and is a dead heat where it is small enough.
"""

import numpy as np
from numpy.typing import NDArray

import deadheat


def grades(right_S: list[int], *, shift: int) -> NDArray[np.float64]:
    """[S, N] three seeds × 200 items; seed s has right_S[s] items right, on items of its own."""
    table_SN = np.zeros((3, 200))
    for s, right in enumerate(right_S):
        table_SN[s, (np.arange(right) * 7 + 31 * s + shift) % 200] = 1
    return table_SN


def main() -> None:
    """Print the verdict on three pairs of recipes."""
    base = grades([80, 82, 81], shift=0)
    for what, right_S in (("seeds agree", [110, 114, 109]), ("one seed leads", [150, 96, 87]), ("close", [83, 80, 84])):
        found = deadheat.verdict(grades(right_S, shift=3), base, within=0.10)
        effect = found.verdict.effect
        print(
            f"{what}: {found.words}; {100 * effect.estimate:+.1f} pp, {effect.level:.0%} "
            f"[{100 * effect.low:+.1f}, {100 * effect.high:+.1f}], n = {effect.n} items × {effect.num_seeds} seeds"
        )


if __name__ == "__main__":
    main()

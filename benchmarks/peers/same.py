"""Whether two sides computed the same thing, from the arrays each wrote before anything was timed; if not, nothing is."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

LOGPROB_GAP = 1e-4
GRADIENT_GAP = 1e-3  # of the largest entry
NEAR_TIE = 1e-3  # logits this close may change places by rounding

Array = NDArray[np.float32]


def same_updates(folder: Path) -> str:
    """Log-probabilities of the same answers, and the gradient of the same loss."""
    with np.load(folder / "ours.npz") as ours, np.load(folder / "theirs.npz") as theirs:
        if set(ours) != set(theirs):
            raise SystemExit(f"the sides wrote other arrays: {sorted(set(ours) ^ set(theirs))[:4]}")
        gap = gap_of(ours["logprobs"], theirs["logprobs"])
        names = set(ours) - {"logprobs"}
        scale = max(float(np.abs(theirs[name]).max()) for name in names)
        gradient_gap = max(gap_of(ours[name], theirs[name]) for name in names) / scale
        num = ours["logprobs"].size
    if not (gap <= LOGPROB_GAP and gradient_gap <= GRADIENT_GAP):
        raise SystemExit(
            f"the sides differ by {gap:.1e} in log-probability (wanted {LOGPROB_GAP:g}) and by {gradient_gap:.1e} of the "
            f"largest gradient (wanted {GRADIENT_GAP:g}): nothing was timed"
        )
    return f"{num} log-probs within {gap:.1e}, {len(names)} gradient matrices within {gradient_gap:.1e} of the largest entry"


def same_rollouts(folder: Path, lengths_B: Sequence[int]) -> str:
    """Greedy tokens, which may part only at a near tie, and the log-probabilities up to there."""
    with np.load(folder / "ours.npz") as ours, np.load(folder / "theirs.npz") as theirs:
        tokens, others = ours["tokens"], theirs["tokens"]
        gap, equal, start = 0.0, 0, 0
        for row, length in enumerate(lengths_B):
            end = start + length
            common = agreeing(tokens[start:end], others[start:end])
            equal += common == length
            if common < length and ours["margins"][start + common] > NEAR_TIE:
                raise SystemExit(
                    f"row {row} parts at token {common} of {length}, where our first choice leads by "
                    f"{ours['margins'][start + common]:.1e} (wanted under {NEAR_TIE:g}): nothing was timed"
                )
            stretch = slice(start, start + common)
            gap = max(gap, gap_of(ours["logprobs"][stretch], theirs["logprobs"][stretch]))
            start = end
    if not gap <= LOGPROB_GAP:
        raise SystemExit(
            f"the sides differ by {gap:.1e} in log-probability (wanted {LOGPROB_GAP:g}): nothing was timed"
        )
    return (
        f"{equal} of {len(lengths_B)} greedy completions equal, the others up to a near tie; log-probs within {gap:.1e}"
    )


def gap_of(ours: Array, theirs: Array) -> float:
    """The largest difference.

    Example:
        >>> gap_of(np.array([1.0, 2.0]), np.array([1.0, 2.5]))
        0.5
    """
    if ours.shape != theirs.shape:
        raise SystemExit(f"the sides wrote arrays of shape {ours.shape} and {theirs.shape}")
    return float(np.abs(ours - theirs).max(initial=0.0))


def agreeing(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> int:
    """How many tokens agree before the first that does not.

    Example:
        >>> agreeing(np.array([5, 6, 7]), np.array([5, 9, 7]))
        1
    """
    differ = np.flatnonzero(ours != theirs)
    return int(differ[0]) if len(differ) else len(ours)

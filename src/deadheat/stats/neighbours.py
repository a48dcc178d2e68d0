"""Which neighbours of a ranking its items tell apart: models sorted by mean score, each held against the next.

The differences better − worse of a neighbour pair are read by `paired_effect` over items, one seed to a model: what is
separated are these very models on fresh items, and another training seed may turn them. Holm over the M − 1 pairs keeps
the chance of any false separation at alpha.

Which models are neighbours is chosen by the same scores that are then tested. Sorting puts close models side by side, so
among equal models it makes false separations rarer; the intervals of the gaps are those of pairs named beforehand, and a
pair that is separated here is no evidence that its members hold places k and k + 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from deadheat.errors import StatsError
from deadheat.stats.effect import Effect, paired_effect
from deadheat.stats.holm import holm, holm_levels


@dataclass(frozen=True, kw_only=True)
class NeighbourPair:
    """Two models next to each other in the ranking."""

    better: str
    worse: str
    effect: Effect  # better − worse, in the unit of the scores, at the pair's own level after Holm
    p_value: float  # plain, of the reading over items
    p_adjusted: float  # after Holm over all neighbour pairs
    separated: bool  # p_adjusted < alpha; the interval then leaves 0


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Models by mean score, with what their shared items tell apart."""

    names: tuple[str, ...]  # best first; equal means in the order given
    means: tuple[float, ...]  # over the items that every model has
    pairs: tuple[NeighbourPair, ...]  # M − 1, best first
    n: int  # items that every model has
    left_out: int  # items missing under some model
    alpha: float  # chance of any false separation
    method: str = "neighbours chosen by these scores; t over items, Holm"

    @property
    def num_separated(self) -> int:
        """Pairs that are told apart."""
        return sum(pair.separated for pair in self.pairs)


def neighbours(scores_MN: ArrayLike, names: Sequence[str], *, alpha: float = 0.05) -> Ranking:
    """Rank models by mean score and say which neighbours are separated; NaN where a score is missing.

    Example:
        x is ahead of y on all 20 items, y and z are equal: 2·p of the first pair is below .05, the second has p = 1.
        >>> ranking = neighbours([[0] * 20, [1] * 20, [0] * 20], ["y", "x", "z"])
        >>> ranking.names, [pair.separated for pair in ranking.pairs]
        (('x', 'y', 'z'), [True, False])
    """
    scores = np.asarray(scores_MN, dtype=np.float64)
    if scores.ndim != 2 or scores.shape[0] != len(names) or len(names) < 2:
        raise StatsError(f"scores have shape {scores.shape} for {len(names)} names; wanted models × items, two or more")
    known_N = ~np.isnan(scores).any(axis=0)
    if not known_N.any():
        raise StatsError("no item is scored under every model; rank on shared items only")
    shared = scores[:, known_N]
    means_M = shared.mean(axis=1)
    order = np.argsort(-means_M, kind="stable")
    grades = bool((shared >= 0).all() and (shared <= 1).all())
    gaps = [paired_effect(shared[[a]] - shared[[b]], grades=grades) for a, b in pairwise(order)]
    p_values = [gap.p_items for gap in gaps]
    return Ranking(
        names=tuple(names[m] for m in order),
        means=tuple(means_M[order].tolist()),
        pairs=tuple(
            NeighbourPair(
                better=names[a],
                worse=names[b],
                effect=gap.at(level),
                p_value=gap.p_items,
                p_adjusted=adjusted,
                separated=adjusted < alpha,
            )
            for (a, b), gap, level, adjusted in zip(
                pairwise(order), gaps, holm_levels(p_values, alpha), holm(p_values), strict=True
            )
        ),
        n=int(known_N.sum()),
        left_out=int((~known_N).sum()),
        alpha=alpha,
    )

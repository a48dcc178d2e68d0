"""Ranks of several models on one set of items, and which of them the items can tell apart.

Items are drawn again, the same draw for all models; a pair is separated where the better one stays ahead in at least
the asked-for share of resamples (ties count half). Ranks get percentile intervals from the same resamples.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat.errors import StatsError
from deadheat.sampling.keys import derive, generator

DOMAIN_RANKING = "deadheat/ranking/v1"
_CHUNK_CELLS = 4_000_000


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One model's place."""

    name: str
    mean: float
    rank: int  # 1 is best; equal means share the better rank
    rank_low: int  # best rank in the interval
    rank_high: int  # worst rank in the interval


@dataclass(frozen=True, kw_only=True)
class RankSeparation:
    """A ranking with what the items can tell apart."""

    standings: tuple[Standing, ...]  # best first
    ahead_frac: tuple[tuple[float, ...], ...]  # [M, M] share of resamples in which row is ahead of column, ties half
    separated_pairs: int  # pairs whose order holds in at least `level` of the resamples
    num_pairs: int
    n: int  # items that every model has
    left_out: int  # items missing under some model
    level: float
    resamples: int
    key: int
    method: str = "items resampled once for all models"

    @property
    def separated_frac(self) -> float:
        """Rank separation: separated pairs over pairs."""
        return self.separated_pairs / self.num_pairs


def rank_separation(
    scores_MN: ArrayLike, names: Sequence[str], *, key: int, resamples: int = 2000, level: float = 0.95
) -> RankSeparation:
    """Rank models by mean score and say which pairs are separated.

    Example:
        >>> ranking = rank_separation([[1, 1, 1, 1], [0, 0, 0, 0]], ["x", "y"], key=1, resamples=100)
        >>> ranking.separated_frac, ranking.standings[0].name
        (1.0, 'x')
    """
    scores = np.asarray(scores_MN, dtype=np.float64)
    if scores.ndim != 2 or scores.shape[0] != len(names) or len(names) < 2:
        raise StatsError(f"scores have shape {scores.shape} for {len(names)} names; wanted models × items, two or more")
    known_N = ~np.isnan(scores).any(axis=0)
    if not known_N.any():
        raise StatsError("no item is scored under every model; rank on shared items only")
    kept = scores[:, known_N]
    means_RM = _resampled_means(kept, key, resamples)
    means_M = kept.mean(axis=1)
    ahead = _ahead(means_RM)
    ranks_RM = 1 + (means_RM[:, None, :] > means_RM[:, :, None] + 1e-12).sum(axis=2)
    tail = (1 - level) / 2
    low_M = np.quantile(ranks_RM, tail, axis=0, method="lower")
    high_M = np.quantile(ranks_RM, 1 - tail, axis=0, method="higher")
    rank_M = 1 + (means_M[None, :] > means_M[:, None]).sum(axis=1)
    upper = np.triu_indices(len(names), 1)
    return RankSeparation(
        standings=tuple(
            Standing(
                name=names[m],
                mean=float(means_M[m]),
                rank=int(rank_M[m]),
                rank_low=min(int(low_M[m]), int(rank_M[m])),
                rank_high=max(int(high_M[m]), int(rank_M[m])),
            )
            for m in np.argsort(-means_M, kind="stable")
        ),
        ahead_frac=tuple(map(tuple, ahead.tolist())),
        separated_pairs=int((np.maximum(ahead, ahead.T)[upper] >= level).sum()),
        num_pairs=upper[0].size,
        n=int(known_N.sum()),
        left_out=int((~known_N).sum()),
        level=level,
        resamples=resamples,
        key=key,
    )


def _resampled_means(scores_MN: NDArray[np.float64], key: int, resamples: int) -> NDArray[np.float64]:
    rng, num_items = generator(derive(DOMAIN_RANKING, key)), scores_MN.shape[1]
    rows = max(1, _CHUNK_CELLS // num_items)
    parts = []
    for start in range(0, resamples, rows):
        size = min(rows, resamples - start)
        drawn = rng.integers(0, num_items, size=(size, num_items)) + np.arange(size)[:, None] * num_items
        weights = np.bincount(drawn.ravel(), minlength=size * num_items).reshape(size, num_items)
        parts.append(weights.astype(np.float64) @ scores_MN.T / num_items)
    return np.concatenate(parts)


def _ahead(means_RM: NDArray[np.float64]) -> NDArray[np.float64]:
    gap = means_RM[:, :, None] - means_RM[:, None, :]
    return np.asarray(((gap > 1e-12) + 0.5 * (np.abs(gap) <= 1e-12)).mean(axis=0))

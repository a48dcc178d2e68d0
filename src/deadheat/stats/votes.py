"""Votes: per seed and item, +1 where A is better, 0 for a tie, −1 where B is better, NaN where either is missing.

Everything later reads them through three counts: a seed's own tally, an item's pooled vote (the sign of its sum over
seeds), and the seeds' decided tallies side by side, whose homogeneity is a χ² on the S×2 table.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat.errors import StatsError
from deadheat.stats.distributions import chi2_tail


class Rule(StrEnum):
    """How a winner is called."""

    SEEDS_AND_ITEMS = "seeds_and_items"  # the mean's interval over seeds and items leaves 0: `effect.py`
    TWO_PART = "two_part"  # pooled sign votes significant, and every seed's net strictly on the winner's side
    STRICT_MAJORITY = "strict_majority"  # as two_part, an item voting only where more than half of the seeds agree
    PER_SEED = "per_seed"  # every seed's net on one side, and more than half of the seeds significant on their own
    POOLED = "pooled"  # pooled sign votes significant; seeds are not asked


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Wins, ties and losses of A."""

    wins: int
    ties: int
    losses: int
    missing: int  # votes not cast

    @property
    def net(self) -> int:
        """Wins − losses."""
        return self.wins - self.losses

    @property
    def decided(self) -> int:
        """Wins + losses."""
        return self.wins + self.losses

    @property
    def cast(self) -> int:
        """Wins + ties + losses."""
        return self.decided + self.ties


@dataclass(frozen=True, kw_only=True)
class SeedHomogeneity:
    """Do the seeds tell one story?"""

    chi2: float  # Pearson χ² of the S×2 table of decided votes
    dof: int  # seeds with a decided vote, minus one
    p_value: float  # in (0, 1]; 1 where there is nothing to compare
    tau_frac: float  # spread of the seeds' own gaps beyond item noise, as a share of all items
    seed_gaps_frac: tuple[float, ...]  # [S] (wins − losses)/votes cast
    n: int  # decided votes
    left_out: int  # ties and missing votes
    level: float | None  # None: a p-value carries no level
    method: str = "Pearson χ² on seeds × {win, loss}; τ̂ by the method of moments"


def check_votes(votes_SN: ArrayLike) -> NDArray[np.float64]:
    """The votes as a float table [S, N], or what is wrong with them."""
    votes = np.asarray(votes_SN, dtype=np.float64)
    if votes.ndim == 1:
        votes = votes[None, :]
    if votes.ndim != 2 or votes.size == 0:
        raise StatsError(f"votes have shape {votes.shape}; wanted seeds × items with at least one of each")
    seen = np.unique(votes[~np.isnan(votes)])
    strange = seen[~np.isin(seen, (-1.0, 0.0, 1.0))]
    if strange.size:
        raise StatsError(
            f"votes hold {strange[:3].tolist()}; wanted +1, 0, −1 or NaN: turn scores into votes with votes_from_scores"
        )
    return votes


def votes_from_scores(a_SN: ArrayLike, b_SN: ArrayLike, *, tie_band: float = 0.0) -> NDArray[np.float64]:
    """[S, N] sign of a − b, 0 within the tie band, NaN where either side is missing.

    Example:
        >>> votes_from_scores([[1.0, 0.0, 0.5]], [[0.0, 1.0, 0.4]], tie_band=0.2).tolist()
        [[1.0, -1.0, 0.0]]
    """
    a, b = np.asarray(a_SN, dtype=np.float64), np.asarray(b_SN, dtype=np.float64)
    if a.shape != b.shape:
        raise StatsError(f"A has shape {a.shape} and B {b.shape}; wanted the same seeds and items on both sides")
    if not tie_band >= 0:
        raise StatsError(f"tie_band is {tie_band}; wanted at least 0 (twice a scorer's wobble is a common choice)")
    gap = a - b
    return np.where(np.isnan(gap), np.nan, np.where(np.abs(gap) <= tie_band, 0.0, np.sign(gap)))


def check_axes(table_SN: ArrayLike, axes: Sequence[str]) -> NDArray[np.float64]:
    """The table [S, N], refused where its named axes say that it lies on its side."""
    table = np.asarray(table_SN, dtype=np.float64)
    names = tuple(name.lower().rstrip("s") for name in axes)
    if names in (("item", "seed"), ("question", "seed"), ("prompt", "seed")):
        raise StatsError(f"axes are {tuple(axes)}, shape {table.shape}; wanted seeds × items: pass the transpose")
    if names[:1] != ("seed",) or len(names) != table.ndim:
        raise StatsError(f"axes are {tuple(axes)} for a table of {table.ndim} axes; wanted ('seed', 'item')")
    return table


def tally(votes_N: NDArray[np.float64]) -> Tally:
    """Count the votes.

    Example:
        >>> tally(np.array([1.0, 1.0, 0.0, -1.0, np.nan]))
        Tally(wins=2, ties=1, losses=1, missing=1)
    """
    return Tally(
        wins=int((votes_N > 0).sum()),
        ties=int((votes_N == 0).sum()),
        losses=int((votes_N < 0).sum()),
        missing=int(np.isnan(votes_N).sum()),
    )


def pooled_votes(votes_SN: NDArray[np.float64], *, strict_majority: bool = False) -> NDArray[np.float64]:
    """[N] each item's vote: sign of its sum over seeds, NaN where no seed voted.

    One vote and two silences is a vote; +, −, 0 abstains. Under `strict_majority` more than half of the votes cast on
    the item must be on one side.

    Example:
        >>> pooled_votes(np.array([[1.0, 1.0], [0.0, -1.0], [0.0, 0.0]])).tolist()
        [1.0, 0.0]
        >>> pooled_votes(np.array([[1.0, 1.0], [0.0, 1.0], [0.0, -1.0]]), strict_majority=True).tolist()
        [0.0, 1.0]
    """
    cast_N = (~np.isnan(votes_SN)).sum(axis=0)
    if strict_majority:
        ups_N, downs_N = (votes_SN > 0).sum(axis=0), (votes_SN < 0).sum(axis=0)
        sign_N = (2 * ups_N > cast_N).astype(np.float64) - (2 * downs_N > cast_N)
    else:
        sign_N = np.sign(np.nansum(votes_SN, axis=0))
    return np.where(cast_N > 0, sign_N, np.nan)


def discordance(votes_SN: NDArray[np.float64]) -> float:
    """Share of the votes cast that are decided, all seeds together."""
    cast = int((~np.isnan(votes_SN)).sum())
    return float((np.abs(np.nan_to_num(votes_SN)) > 0).sum() / cast) if cast else 0.0


def expected_pooled_decided(num_items: int, num_seeds: int, discordance_frac: float) -> float:
    """Items whose pooled vote is decided if votes fall independently and evenly: N·(1 − P(sum of S votes = 0)).

    Fewer seen than expected means that the noise sits on a share of the items.

    Example:
        S = 2, d = ½: P(0,0) = ¼, P(+,−) or (−,+) = 2·(1/16); 1 − 3/8 = 5/8 of 80 items.
        >>> expected_pooled_decided(80, 2, 0.5)
        50.0
    """
    d = discordance_frac
    tied = sum(
        math.comb(num_seeds, 2 * j) * math.comb(2 * j, j) * (d / 2) ** (2 * j) * (1 - d) ** (num_seeds - 2 * j)
        for j in range(num_seeds // 2 + 1)
    )
    return num_items * (1 - tied)


def seed_homogeneity(votes_SN: ArrayLike) -> SeedHomogeneity:
    """χ² on the S×2 decided table, and τ̂, the spread of the seeds' own gaps.

    τ̂² = max(0, var(g_s) − mean((d_s − g_s²)/n_s)) with g_s = (w − l)/n_s, ddof = 1: what is left of the seeds' spread
    once each seed's own item noise is taken off (method of moments, DerSimonian and Laird 1986 with equal weights).
    """
    votes = check_votes(votes_SN)
    return homogeneity_of_tallies([tally(row) for row in votes])


def homogeneity_of_tallies(tallies: Sequence[Tally]) -> SeedHomogeneity:
    """`seed_homogeneity` from counts.

    Example:
        >>> raw = [Tally(wins=w, losses=l, ties=325 - w - l, missing=0) for w, l in ((185, 57), (106, 109), (202, 41))]
        >>> result = homogeneity_of_tallies(raw)
        >>> round(result.chi2, 1), f"{result.p_value:.1e}"
        (69.1, '9.9e-16')
    """
    decided = [t for t in tallies if t.decided]
    value = _chi2(np.array([[t.wins, t.losses] for t in decided], dtype=np.float64)) if len(decided) > 1 else 0.0
    dof = max(len(decided) - 1, 0)
    cast = [t for t in tallies if t.cast]
    return SeedHomogeneity(
        chi2=value,
        dof=dof,
        p_value=chi2_tail(value, dof) if dof else 1.0,
        tau_frac=_tau(cast),
        seed_gaps_frac=tuple(t.net / t.cast if t.cast else math.nan for t in tallies),
        n=sum(t.decided for t in tallies),
        left_out=sum(t.ties + t.missing for t in tallies),
        level=None,
    )


def _chi2(table_S2: NDArray[np.float64]) -> float:
    total = table_S2.sum()
    expected = table_S2.sum(axis=1, keepdims=True) * table_S2.sum(axis=0, keepdims=True) / total
    filled = expected > 0
    return float(((table_S2 - expected)[filled] ** 2 / expected[filled]).sum())


def _tau(tallies: Sequence[Tally]) -> float:
    if len(tallies) < 2:
        return 0.0
    gaps = np.array([t.net / t.cast for t in tallies])
    noise = np.array([(t.decided / t.cast - g * g) / t.cast for t, g in zip(tallies, gaps, strict=True)])
    return math.sqrt(max(0.0, float(gaps.var(ddof=1) - noise.mean())))

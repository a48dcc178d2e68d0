"""The power of a rule: how often it calls a true gap, and the smallest gap it calls four times out of five.

Simulated reruns come from `vote_models`. The gap g is (wins − losses)/all items. As a difference of decided win
shares it is g/d, and only that one compares with `win_share_floor`; both are in every record.

The two parts of the rule pull against each other: a further seed sharpens the pooled test and is one more chance to
point the other way (`agreement_chance`).
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import binom, norm

from deadheat.errors import StatsError
from deadheat.sampling.keys import derive, generator
from deadheat.stats.vote_models import Design, Reruns, VoteModel
from deadheat.stats.votes import Rule

DOMAIN_POWER = "deadheat/power/v1"
_CHUNK_RERUNS = 50_000
_GAP_TOLERANCE = 5e-5


@dataclass(frozen=True, kw_only=True)
class CatchRate:
    """How often the rule calls the better side."""

    rate_frac: float  # share of reruns calling A
    wrong_frac: float  # share of reruns calling B
    se_frac: float  # Monte-Carlo standard error of the rate
    gap_frac: float  # true (wins − losses)/all items
    win_share_gap_frac: float  # the same as a decided win-share difference, g/d
    design: Design
    model: str  # vote model and its parameters
    reruns: int  # R
    key: int  # address of the randomness
    pooled_decided: float  # mean number of items with a decided pooled vote
    n: int  # items per rerun
    level: float  # 1 − alpha
    left_out: int = 0
    method: str = "Monte Carlo over vote counts"


@dataclass(frozen=True, kw_only=True)
class CatchableGap:
    """The smallest true gap that the rule calls often enough."""

    gap_frac: float | None  # as (wins − losses)/all items; None: not even a gap of d is called that often
    win_share_gap_frac: float | None  # as a decided win-share difference, g/d
    target_frac: float  # catch rate asked for
    design: Design
    model: str  # vote model and its parameters
    reruns: int  # R
    key: int  # address of the randomness
    n: int  # items per rerun
    level: float  # 1 − alpha
    left_out: int = 0
    method: str = "bracketed root of the catch rate on common random numbers"


@dataclass(frozen=True, kw_only=True)
class _Calls:
    """Counts over reruns."""

    called_a: int
    called_b: int
    pooled_decided: int


def catch_rate(gap_frac: float, model: VoteModel, design: Design, *, key: int, reruns: int = 200_000) -> CatchRate:
    """Share of simulated reruns in which the rule calls the truly better side.

    With R = 400,000 reruns: N = 500, d = .226, g = .03, S = 3 → .567; N = 2,000, d = .2256 → .990.
    """
    if reruns < 1:
        raise StatsError(f"{reruns} reruns; wanted at least 1")
    if abs(gap_frac) > model.discordance_frac:
        raise StatsError(
            f"gap is {gap_frac:.4g} with discordance {model.discordance_frac:.4g}; a gap cannot exceed the share of "
            "items that differ: give both as shares of all items"
        )
    calls = _simulate(gap_frac, model, design, key, reruns)
    rate = calls.called_a / reruns
    return CatchRate(
        rate_frac=rate,
        wrong_frac=calls.called_b / reruns,
        se_frac=math.sqrt(rate * (1 - rate) / reruns),
        gap_frac=gap_frac,
        win_share_gap_frac=gap_frac / model.discordance_frac if model.discordance_frac else 0.0,
        design=design,
        model=model.label,
        reruns=reruns,
        key=key,
        pooled_decided=calls.pooled_decided / reruns,
        n=design.num_items,
        level=1 - design.alpha,
    )


def smallest_catchable_gap(
    model: VoteModel, design: Design, *, key: int, target_frac: float = 0.80, reruns: int = 200_000
) -> CatchableGap:
    """The smallest gap called at least `target_frac` of the time.

    The catch rate is read from the same key at every candidate, so that neighbouring candidates share their noise. On
    the normal scale, Φ⁻¹(rate), it is nearly straight in the gap: a bracket is stepped out from the closed form of all
    votes pooled and narrowed to 0.005 points by bisection with inverse interpolation (Brent 1973).
    """
    if not 0 < target_frac < 1:
        raise StatsError(f"target is {target_frac}; wanted a catch rate strictly between 0 and 1, such as 0.80")

    @functools.cache
    def shortfall(gap: float) -> float:
        called = _simulate(gap, model, design, key, reruns).called_a
        return float(norm.ppf(target_frac) - norm.ppf((called + 0.5) / (reruns + 1)))

    gap = _first_root(shortfall, _one_se(model, design), model.most_gap_frac * (1 - 1e-6))
    return CatchableGap(
        gap_frac=gap,
        win_share_gap_frac=None if gap is None else gap / model.discordance_frac,
        target_frac=target_frac,
        design=design,
        model=model.label,
        reruns=reruns,
        key=key,
        n=design.num_items,
        level=1 - design.alpha,
    )


def agreement_chance(p: float, num_seeds: int) -> float:
    """p^S: chance that every seed lands on the side each lands on with chance p.

    Example:
        >>> round(agreement_chance(0.8, 3), 3)
        0.512
    """
    if not 0 <= p <= 1 or num_seeds < 1:
        raise StatsError(f"p is {p} with {num_seeds} seeds; wanted a chance in [0, 1] and at least one seed")
    return p**num_seeds


def critical_wins(num_items: int, alpha: float) -> NDArray[np.int64]:
    """[N+1] at m decided votes, the fewest wins whose exact two-sided p is below alpha; m + 1 where none is.

    Example:
        5–0 has p = .0625 and 6–0 has p = .03125.
        >>> critical_wins(6, 0.05).tolist()
        [1, 2, 3, 4, 5, 6, 6]
    """
    m = np.arange(num_items + 1)
    wins = np.maximum(binom.isf(alpha / 2, m, 0.5).astype(np.int64) - 1, 0)
    for _ in range(4):
        wins = np.where((wins <= m) & (2 * binom.sf(wins - 1, m, 0.5) >= alpha), wins + 1, wins)
    return np.asarray(wins, dtype=np.int64)


def _first_root(shortfall: Callable[[float], float], unit: float, most: float) -> float | None:
    """Where a falling shortfall crosses 0 on [0, most]; `unit` is about the gap that one normal unit costs."""
    if most <= 0:
        return None
    start = min(3.1 * unit, most)
    low = high = start
    if shortfall(start) > 0:
        while shortfall(high) > 0:
            if high >= most:
                return None
            low, high = high, min(high + (1.4 * shortfall(high) + 0.05) * unit, most)
    else:
        while shortfall(low) <= 0:
            if low <= 0:
                return 0.0
            low, high = max(low + (1.4 * shortfall(low) - 0.05) * unit, 0.0), low
    return float(brentq(shortfall, low, high, xtol=_GAP_TOLERANCE))


def _one_se(model: VoteModel, design: Design) -> float:
    """Standard error of the gap if all votes were pooled as independent."""
    return math.sqrt(model.discordance_frac / (design.num_items * design.num_seeds))


def _simulate(gap: float, model: VoteModel, design: Design, key: int, reruns: int) -> _Calls:
    rng = generator(derive(DOMAIN_POWER, key))
    critical = critical_wins(design.num_items, design.alpha)
    parts = [
        _apply(design.rule, model.sample(gap, design, min(_CHUNK_RERUNS, reruns - start), rng), critical)
        for start in range(0, reruns, _CHUNK_RERUNS)
    ]
    return _Calls(
        called_a=sum(part.called_a for part in parts),
        called_b=sum(part.called_b for part in parts),
        pooled_decided=sum(part.pooled_decided for part in parts),
    )


def _apply(rule: Rule, runs: Reruns, critical: NDArray[np.int64]) -> _Calls:
    """Read a batch of reruns under a rule."""
    decided_R = runs.wins_R + runs.losses_R
    bar_R = critical[decided_R]
    a_R, b_R = runs.wins_R >= bar_R, runs.losses_R >= bar_R
    if rule is Rule.PER_SEED:
        bar_RS, half = critical[runs.ups_RS + runs.downs_RS], runs.ups_RS.shape[1] / 2
        a_R = (runs.ups_RS >= bar_RS).sum(axis=1) > half
        b_R = (runs.downs_RS >= bar_RS).sum(axis=1) > half
    if rule is not Rule.POOLED:
        a_R &= (runs.ups_RS > runs.downs_RS).all(axis=1)
        b_R &= (runs.ups_RS < runs.downs_RS).all(axis=1)
    return _Calls(called_a=int(a_R.sum()), called_b=int(b_R.sum()), pooled_decided=int(decided_R.sum()))

"""The power of a rule: how often it calls a true gap, and the smallest gap it calls four times out of five.

Simulated reruns come from `vote_models`. For votes the gap g is (wins − losses)/all items; as a difference of decided
win shares it is g/d, and only that one compares with `win_share_floor`. A gap of 0 gives the false-call rate, both
sides together.

The rule over seeds and items reads sums of squares alone, so its smallest gap is searched with the normal model of
its components (`Components`); the vote rules read the votes themselves. With one seed that rule calls nothing: its
rate is then that of *these runs only*.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import StatsError
from deadheat.sampling.keys import derive, generator
from deadheat.stats.distributions import binomial_at_most_array, normal_quantile, t_quantile
from deadheat.stats.effect import Part, Parts, items_variance
from deadheat.stats.vote_models import (
    Ballots,
    Components,
    Design,
    Layouts,
    Model,
    Reruns,
    UncoupledComponents,
)
from deadheat.stats.votes import Rule

DOMAIN_POWER = "deadheat/power/v2"
_CHUNK_RERUNS = 50_000
_PILOT_RERUNS = 20_000
_MOST_STEPS = 30
_HOPELESS = 1e6  # guesses beyond which no gap is looked for: too few reruns reach no rate of 80%
_CLOSE = 3e-3  # on the normal scale of a rate: a thousandth of a rate of 80%
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class CatchRate:
    """How often the rule calls the better side."""

    rate_frac: float  # share of reruns calling A
    wrong_frac: float  # share of reruns calling B
    se_frac: float  # Monte-Carlo standard error of the rate
    gap: float  # true difference; (wins − losses)/all items for votes
    win_share_gap_frac: float | None  # the same as a decided win-share difference, g/d; None: no votes
    design: Design
    model: str  # model and its parameters
    reruns: int  # R
    key: int  # address of the randomness
    pooled_decided: float | None  # mean number of items with a decided pooled vote; None: no votes
    n: int  # items per rerun
    level: float  # 1 − alpha
    left_out: int = 0
    method: str = "Monte Carlo"

    @property
    def false_call_frac(self) -> float:
        """Both sides: at a gap of 0, how often a winner is called where there is none."""
        return self.rate_frac + self.wrong_frac

    @property
    def these_runs_only(self) -> bool:
        """One seed under the rule over seeds and items: the rate of *these runs only*, never of *called*."""
        return self.design.rule is Rule.SEEDS_AND_ITEMS and self.design.num_seeds == 1


@dataclass(frozen=True, kw_only=True)
class SmallestGap:
    """The smallest true gap that the rule calls often enough."""

    gap: float | None  # in the unit of the differences; None: no gap that the model can carry is called that often
    win_share_gap_frac: float | None  # as a decided win-share difference, g/d; None: no votes, or no such gap
    most_gap: float  # the largest gap the model can carry: d for votes, 1 for grades
    target_frac: float  # power asked for
    design: Design
    model: str  # model and its parameters
    reruns: int  # R
    key: int  # address of the randomness
    n: int  # items per rerun
    level: float  # 1 − alpha
    left_out: int = 0
    method: str = "root of the rate on common random numbers"


@dataclass(frozen=True, kw_only=True)
class _Calls:
    """Counts over reruns."""

    called_a: int
    called_b: int
    pooled_decided: int


def catch_rate(gap: float, model: Model, design: Design, *, key: int, reruns: int = 200_000) -> CatchRate:
    """Share of simulated reruns in which the rule calls the truly better side.

    Two-part rule, R = 400,000: N = 500, d = .226, g = .03, S = 3 → .567; N = 2,000, d = .2256 → .990.
    """
    if reruns < 1:
        raise StatsError(f"{reruns} reruns; wanted at least 1")
    if abs(gap) > model.most_gap + 1e-12:
        raise StatsError(
            f"gap is {gap:.4g} and the model carries {model.most_gap:.4g} at most; a gap cannot exceed the share of "
            "items that differ: give both as shares of all items"
        )
    calls = _simulate(gap, model, design, key, reruns)
    rate, d = calls.called_a / reruns, getattr(model, "discordance_frac", None)
    return CatchRate(
        rate_frac=rate,
        wrong_frac=calls.called_b / reruns,
        se_frac=math.sqrt(rate * (1 - rate) / reruns),
        gap=gap,
        win_share_gap_frac=None if d is None else gap / d if d else 0.0,
        design=design,
        model=model.label,
        reruns=reruns,
        key=key,
        pooled_decided=None if isinstance(model, (Components, UncoupledComponents)) else calls.pooled_decided / reruns,
        n=design.num_items,
        level=1 - design.alpha,
    )


def smallest_gap(
    model: Model, design: Design, *, key: int, target_frac: float = 0.80, reruns: int = 200_000
) -> SmallestGap:
    """The smallest gap called at least `target_frac` of the time.

    The rate is read from the same key at every candidate, so that neighbouring candidates share their noise. On the
    normal scale, Φ⁻¹(rate), it is nearly straight in the gap: secant steps inside a bracket find its root.
    """
    if not 0 < target_frac < 1:
        raise StatsError(f"target is {target_frac}; wanted a rate strictly between 0 and 1, such as 0.80")

    most, pilot = model.most_gap * (1 - 1e-6), min(reruns, _PILOT_RERUNS)

    @functools.cache
    def excess(gap: float, size: int = pilot) -> float:
        called = _simulate(gap, model, design, key, size).called_a
        return normal_quantile((called + 0.5) / (size + 1)) - normal_quantile(target_frac)

    found = _root(excess, _guess(model, design, target_frac), most)
    if found and reruns > pilot:  # one Newton step on all reruns, the slope from the pilot's
        slope = (excess(found) - excess(0.95 * found)) / (0.05 * found)
        found = min(found - excess(found, reruns) / slope, most)
    d = getattr(model, "discordance_frac", None)
    return SmallestGap(
        gap=found,
        win_share_gap_frac=None if found is None or not d else found / d,
        most_gap=model.most_gap,
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


@functools.lru_cache(maxsize=16)
def critical_wins(num_items: int, alpha: float) -> NDArray[np.int64]:
    """[N+1] at m decided votes, the fewest wins whose exact two-sided p is below alpha; m + 1 where none is.

    Example:
        5–0 has p = .0625 and 6–0 has p = .03125.
        >>> critical_wins(6, 0.05).tolist()
        [1, 2, 3, 4, 5, 6, 6]
    """
    m = np.arange(num_items + 1)
    low, high = m // 2, m + 1  # the answer lies in (low, high]: half of the votes are never significant
    while (high - low > 1).any():
        middle = (low + high) // 2
        significant = 2 * binomial_at_most_array(m - middle, m) < alpha
        high, low = np.where(significant, middle, high), np.where(significant, low, np.maximum(low, middle))
    return np.asarray(high, dtype=np.int64)


def parts_of(layouts: Layouts, num_seeds: int, num_items: int) -> Parts[Floats]:
    """The variance parts of many tables at once, as `effect` computes them for one."""
    num, grades = num_items, layouts.grades
    items = items_variance(layouts.column_ss_R, layouts.mean_R, num, grades=grades)
    item_part = Part(variance=items, df=np.full(1, num + 1.0 if grades else max(num - 1.0, 1e-9)))
    if num_seeds == 1:
        return Parts(seeds=None, items=item_part, noise=(), least_df=1.0)
    noise_df = (num_seeds - 1) * (num - 1)
    noise = layouts.residual_ss_R / max(noise_df, 1) / (num_seeds * num)
    seeds = layouts.row_ss_R / (num_seeds - 1) / num_seeds
    return Parts(
        seeds=Part(variance=seeds, df=np.full(1, num_seeds - 1.0)),
        items=item_part,
        noise=(Part(variance=noise, df=np.full(1, float(noise_df))),),
        least_df=num_seeds - 1.0,
    )


def _guess(model: Model, design: Design, target: float) -> float:
    """About the smallest gap: (quantile of the rule + quantile of the power) standard errors."""
    bar = normal_quantile(1 - design.alpha / 2)
    if design.rule is Rule.SEEDS_AND_ITEMS and design.num_seeds > 1:
        bar = t_quantile(1 - design.alpha / 2, design.num_seeds - 1)
    return max((bar + normal_quantile(target)) * model.unit_se(design), 1e-12)


def _root(excess: Callable[[float], float], guess: float, most: float) -> float | None:
    """Where a rising function crosses 0 on [0, most], from a guess."""
    if most <= 0:
        return None
    low = high = min(guess, most)
    while excess(high) < 0:
        if high >= min(most, _HOPELESS * guess):
            return None
        low, high = high, min(1.25 * high, most)
    while excess(low) > 0:
        if low < 1e-3 * guess:
            return 0.0
        low, high = low / 1.25, low
    for _ in range(_MOST_STEPS):
        if abs(excess(high)) < _CLOSE or high - low <= 1e-4 * high:
            return high
        slope = (excess(high) - excess(low)) / (high - low)
        gap = min(max(low - excess(low) / slope, low + 0.05 * (high - low)), high - 0.05 * (high - low))
        if abs(excess(gap)) < _CLOSE:
            return gap
        low, high = (gap, high) if excess(gap) < 0 else (low, gap)
    return (low + high) / 2


def _simulate(gap: float, model: Model, design: Design, key: int, reruns: int) -> _Calls:
    rng = generator(derive(DOMAIN_POWER, key))
    parts = [
        _calls(model.sample(gap, design, min(_CHUNK_RERUNS, reruns - start), rng), design)
        for start in range(0, reruns, _CHUNK_RERUNS)
    ]
    return _Calls(
        called_a=sum(part.called_a for part in parts),
        called_b=sum(part.called_b for part in parts),
        pooled_decided=sum(part.pooled_decided for part in parts),
    )


def _calls(runs: Reruns, design: Design) -> _Calls:
    """Read a batch of reruns under a rule."""
    decided = 0 if runs.ballots is None else int((runs.ballots.wins_R + runs.ballots.losses_R).sum())
    if design.rule is Rule.SEEDS_AND_ITEMS:
        parts = runs.parts
        if runs.layouts is not None:
            parts = parts_of(runs.layouts, design.num_seeds, design.num_items)
        assert parts is not None, "a model gives layouts or parts"
        clear_R = _leaves_zero(parts, runs.mean_R, design.alpha)
        a_R, b_R = clear_R & (runs.mean_R > 0), clear_R & (runs.mean_R < 0)
    elif runs.ballots is None:
        raise StatsError(f"the {design.rule.value} rule reads votes, and the model has scores; wanted a model of votes")
    else:
        a_R, b_R = _by_votes(runs.ballots, design)
    return _Calls(called_a=int(a_R.sum()), called_b=int(b_R.sum()), pooled_decided=decided)


def _leaves_zero(parts: Parts[Floats], mean_R: Floats, alpha: float) -> NDArray[np.bool_]:
    """p below alpha; readings whose degrees of freedom vary are computed only where those of one quantile leave 0."""
    clear_R = np.ones(mean_R.size, dtype=bool)
    several = [part for part in (parts.seeds, parts.both()) if part is not None and part.df.size > 1]
    for part in (parts.items, parts.seeds):
        if part is not None and part.df.size == 1:
            bar = t_quantile(1 - alpha / 2, float(part.df[0]))
            clear_R &= mean_R**2 > bar**2 * part.variance
    for part in several:
        left = np.flatnonzero(clear_R)
        own = Part(variance=part.variance[left], df=part.df[left])
        clear_R[left] = own.p_value(mean_R[left]) < alpha
    return clear_R


def _by_votes(runs: Ballots, design: Design) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    critical = critical_wins(design.num_items, design.alpha)
    bar_R = critical[runs.wins_R + runs.losses_R]
    a_R, b_R = runs.wins_R >= bar_R, runs.losses_R >= bar_R
    if design.rule is Rule.PER_SEED:
        bar_RS, half = critical[runs.ups_RS + runs.downs_RS], runs.ups_RS.shape[1] / 2
        a_R = (runs.ups_RS >= bar_RS).sum(axis=1) > half
        b_R = (runs.downs_RS >= bar_RS).sum(axis=1) > half
    if design.rule is not Rule.POOLED:
        a_R &= (runs.ups_RS > runs.downs_RS).all(axis=1)
        b_R &= (runs.ups_RS < runs.downs_RS).all(axis=1)
    return a_R, b_R

"""What a planned comparison would call: how often, the grid around it, the smallest gap, and other models of votes.

Planned from a stated discordance, or from a table already at hand: then the table's own components (seeds, items,
residual) are measured first, and each model of its votes stands beside them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from deadheat.errors import StatsError
from deadheat.stats.concentration import MeasuredVotes, measure_votes
from deadheat.stats.effect import paired_effect
from deadheat.stats.floors import Floor, pooled_votes_floor
from deadheat.stats.power import CatchRate, SmallestGap, catch_rate, smallest_gap
from deadheat.stats.vote_models import (
    Components,
    Design,
    IidVotes,
    MixtureVotes,
    Model,
    SeedEffects,
    VoteModel,
    empirical_votes,
    vote_components,
)
from deadheat.stats.votes import Rule, check_votes

GRID_SEEDS = (1, 2, 3, 5, 8)
GRID_FACTORS = (0.5, 1.0, 2.0, 4.0)
_GRID_RERUNS = 4000
_MANY_VOTES = 30  # decided votes in a seed beyond which sums of squares are normal enough to stand for them


@dataclass(frozen=True, kw_only=True)
class GridCell:
    """One planned size."""

    num_items: int
    num_seeds: int
    rate_frac: float | None  # how often the gap is called; None: no gap was asked for
    smallest_pp: float | None  # smallest gap called at the power, points; None: a gap was asked for, or none is


@dataclass(frozen=True, kw_only=True)
class PowerPlan:
    """The power of a rule at one design."""

    catch_rate: float | None  # share of reruns that call the better side; None: no gap was asked for
    false_call_rate: float  # share of reruns that call either side where there is no gap
    rate: CatchRate | None  # the catch rate with everything it was computed from
    false_call: CatchRate
    smallest: SmallestGap  # smallest gap called at the target rate
    pooled_floor: Floor  # z·√(d/(N·S)): all votes as if independent, lower than what any rule here calls
    grid: tuple[GridCell, ...]  # n × seeds, seeds turning fastest
    models: tuple[CatchRate, ...]  # the same gap under every model the table allows; empty: no table or no gap
    measured: MeasuredVotes | None  # None: the discordance was stated
    n: int  # items
    level: float  # 1 − alpha
    left_out: int  # items of the table without any vote
    key: int


def plan_power(
    gap_frac: float | None,
    model: VoteModel,
    design: Design,
    *,
    key: int,
    target_frac: float = 0.80,
    reruns: int = 200_000,
) -> PowerPlan:
    """Rates, grid and smallest gap of one model of votes."""
    searched = _searched(model, design)
    enough = design.num_items * model.discordance_frac >= _MANY_VOTES
    return _plan(gap_frac, searched if enough else model, searched, design, key, target_frac, reruns)


def plan_power_from_votes(
    votes_SN: ArrayLike,
    gap_frac: float | None,
    design: Design,
    *,
    key: int,
    target_frac: float = 0.80,
    reruns: int = 200_000,
) -> PowerPlan:
    """The same, planned from a table: its own components, or its noise concentrated as measured for a vote rule."""
    votes = check_votes(votes_SN)
    measured = measure_votes(votes)
    if not measured.discordance_frac:
        raise StatsError(f"none of {measured.n} items is decided; such a table carries no information about its noise")
    models = models_of(measured, votes, design)
    first: Model = models[0]
    if design.rule is Rule.SEEDS_AND_ITEMS:
        found = paired_effect(votes, alpha=design.alpha, grades=True)
        first = Components(
            seed_var=found.spread.tau**2 if found.spread else 0.0,
            item_var=found.item_var,
            residual_var=found.residual_var,
            discordance_frac=measured.discordance_frac,
        )
    report = _plan(gap_frac, first, first, design, key, target_frac, reruns)
    rates = () if gap_frac is None else tuple(_rates(gap_frac, models, design, key, min(reruns, 50_000)))
    return replace(report, models=rates, measured=measured, left_out=measured.left_out)


def models_of(measured: MeasuredVotes, votes_SN: ArrayLike, design: Design) -> list[VoteModel]:
    """Vote models with the table's parameters: concentrated (or even) first, then even, spread seeds, the table itself."""
    d = measured.discordance_frac
    even = IidVotes(discordance_frac=d)
    models: list[VoteModel] = []
    if measured.share_frac is not None and measured.share_frac < 0.995:
        models.append(MixtureVotes(discordance_frac=d, share_frac=measured.share_frac))
    models.append(even)
    if measured.tau_frac > 0:
        models.append(SeedEffects(discordance_frac=d, tau_frac=measured.tau_frac))
    if design.num_seeds == measured.num_seeds:
        models.append(empirical_votes(votes_SN))
    return models


def _searched(model: VoteModel, design: Design) -> Model:
    """What smallest gaps and grids are searched with: sums of squares suffice for the rule over seeds and items."""
    if design.rule is not Rule.SEEDS_AND_ITEMS or isinstance(model, MixtureVotes):
        return model
    return vote_components(model.discordance_frac, tau_frac=getattr(model, "tau_frac", 0.0))


def _plan(
    gap: float | None, model: Model, searched: Model, design: Design, key: int, target: float, reruns: int
) -> PowerPlan:
    rate = None if gap is None else catch_rate(gap, model, design, key=key, reruns=reruns)
    none = rate if rate is not None and gap == 0 else catch_rate(0.0, model, design, key=key, reruns=reruns // 10)
    d = float(np.clip(getattr(model, "discordance_frac", 0.0) or 0.0, 0.0, 1.0))
    return PowerPlan(
        catch_rate=None if rate is None else rate.rate_frac,
        false_call_rate=none.false_call_frac,
        rate=rate,
        false_call=none,
        smallest=smallest_gap(searched, design, key=key, target_frac=target, reruns=reruns),
        pooled_floor=pooled_votes_floor(design.num_items, design.num_seeds, d, alpha=design.alpha, power=target),
        grid=tuple(_grid(gap, searched, design, key, target)),
        models=(),
        measured=None,
        n=design.num_items,
        level=1 - design.alpha,
        left_out=0,
        key=key,
    )


def _rates(gap: float, models: Sequence[VoteModel], design: Design, key: int, reruns: int) -> list[CatchRate]:
    return [catch_rate(gap, m, design, key=key, reruns=reruns) for m in models if abs(gap) < m.most_gap]


def _grid(gap: float | None, model: Model, design: Design, key: int, target: float) -> list[GridCell]:
    cells = []
    for factor in GRID_FACTORS:
        for num_seeds in sorted({*GRID_SEEDS, design.num_seeds}):
            size = replace(design, num_items=max(1, round(factor * design.num_items)), num_seeds=num_seeds)
            rate, smallest = None, None
            if gap is None:
                found = smallest_gap(model, size, key=key, target_frac=target, reruns=_GRID_RERUNS).gap
                smallest = None if found is None else 100 * found
            else:
                called = catch_rate(gap, model, size, key=key, reruns=_GRID_RERUNS)
                rate = called.false_call_frac if gap == 0 else called.rate_frac
            cells.append(GridCell(num_items=size.num_items, num_seeds=num_seeds, rate_frac=rate, smallest_pp=smallest))
    return cells

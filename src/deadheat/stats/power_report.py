"""What a planned comparison would catch: one catch rate, the grid around it, the smallest gap, and other vote models.

Planned from a stated discordance, or from a table already at hand: then the votes' discordance, the spread of the
seeds and the share of items that the noise sits on are measured first, and each is a model of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from numpy.typing import ArrayLike

from deadheat.errors import StatsError
from deadheat.stats.concentration import MeasuredVotes, measure_votes
from deadheat.stats.floors import Floor, pooled_votes_floor
from deadheat.stats.power import CatchableGap, CatchRate, catch_rate, smallest_catchable_gap
from deadheat.stats.vote_models import (
    MOST_PATTERN_SEEDS,
    Design,
    IidVotes,
    MixtureVotes,
    SeedEffects,
    VoteModel,
    empirical_votes,
)

GRID_SEEDS = (1, 2, 3, 5, 8)
GRID_FACTORS = (0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True, kw_only=True)
class GridCell:
    """One planned size."""

    num_items: int
    num_seeds: int
    rate_frac: float | None  # catch rate; None: no gap was asked for
    pooled_floor_pp: float  # closed form of all votes pooled, percentage points


@dataclass(frozen=True, kw_only=True)
class PowerReport:
    """The power of a rule at one design."""

    catch_rate: float | None  # share of reruns that call the better side; None: no gap was asked for
    rate: CatchRate | None  # the same with everything it was computed from
    smallest: CatchableGap  # smallest gap called at the target rate
    pooled_floor: Floor  # z·sqrt(d/(N·S)), lower than what the rule catches
    grid: tuple[GridCell, ...]  # n × seeds, seeds turning fastest
    models: tuple[CatchRate, ...]  # the same gap under every model the table allows; empty: no table or no gap
    measured: MeasuredVotes | None  # None: the discordance was stated
    n: int  # items
    level: float  # 1 − alpha
    left_out: int  # items of the table without any vote
    key: int


def power_report(
    gap_frac: float | None,
    model: VoteModel,
    design: Design,
    *,
    key: int,
    target_frac: float = 0.80,
    reruns: int = 200_000,
) -> PowerReport:
    """Catch rate, grid and smallest gap of one model."""
    rate = None if gap_frac is None else catch_rate(gap_frac, model, design, key=key, reruns=reruns)
    return PowerReport(
        catch_rate=None if rate is None else rate.rate_frac,
        rate=rate,
        smallest=smallest_catchable_gap(model, design, key=key, target_frac=target_frac, reruns=min(reruns, 100_000)),
        pooled_floor=pooled_votes_floor(
            design.num_items, design.num_seeds, model.discordance_frac, alpha=design.alpha, power=target_frac
        ),
        grid=tuple(_grid(gap_frac, model, design, key, min(reruns, 10_000))),
        models=(),
        measured=None,
        n=design.num_items,
        level=1 - design.alpha,
        left_out=0,
        key=key,
    )


def power_from_votes(
    votes_SN: ArrayLike,
    gap_frac: float | None,
    design: Design,
    *,
    key: int,
    target_frac: float = 0.80,
    reruns: int = 200_000,
) -> PowerReport:
    """The same, planned from a table: its noise concentrated as measured, other models beside it."""
    measured = measure_votes(votes_SN)
    if not measured.discordance_frac:
        raise StatsError(f"none of {measured.n} items is decided; such a table carries no information about its noise")
    models = models_of(measured, votes_SN, design)
    report = power_report(gap_frac, models[0], design, key=key, target_frac=target_frac, reruns=reruns)
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
    if design.num_seeds == measured.num_seeds <= MOST_PATTERN_SEEDS:
        models.append(empirical_votes(votes_SN))
    return models


def _rates(gap: float, models: Sequence[VoteModel], design: Design, key: int, reruns: int) -> list[CatchRate]:
    return [catch_rate(gap, m, design, key=key, reruns=reruns) for m in models if abs(gap) < m.most_gap_frac]


def _grid(gap: float | None, model: VoteModel, design: Design, key: int, reruns: int) -> list[GridCell]:
    cells = []
    for factor in GRID_FACTORS:
        for num_seeds in sorted({*GRID_SEEDS, design.num_seeds}):
            size = replace(design, num_items=max(1, round(factor * design.num_items)), num_seeds=num_seeds)
            rate = None if gap is None else catch_rate(gap, model, size, key=key, reruns=reruns).rate_frac
            floor = pooled_votes_floor(size.num_items, num_seeds, model.discordance_frac, alpha=design.alpha)
            cells.append(
                GridCell(num_items=size.num_items, num_seeds=num_seeds, rate_frac=rate, pooled_floor_pp=floor.floor_pp)
            )
    return cells

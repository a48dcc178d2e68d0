"""Reading a comparison along training, and how often an early reading points the wrong way.

Per pair of arms and checkpoint: the contrast with its interval. Against the converged reading: sign flips,
checkpoints on the converged side, readings that separate from zero, pairs of significant readings with opposite
signs.

Summaries of each arm's curve up to a checkpoint (point reading, running mean, recent slope, peak so far, mean of the
last k) are scored by whether their difference has the converged sign, over all pair × checkpoint cells before
convergence.

`four_readings` puts the four defensible readings of the same runs side by side. Whatever was selected on a pool says
so.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import StatsError
from deadheat.stats.effect import Effect, leaves_zero, paired_effect
from deadheat.stats.gains import are_grades
from deadheat.stats.intervals import Interval, wilson
from deadheat.stats.significance import SignTest, binomial_two_sided
from deadheat.stats.votes import Tally, pooled_votes, tally, votes_from_scores

Floats = NDArray[np.float64]


class PoolStatus(StrEnum):
    """Whether a pool may still confirm anything."""

    INSPECTED = "inspected"  # a setting or checkpoint was chosen while seeing it
    CONFIRMATORY = "confirmatory"  # nothing was chosen on it


@dataclass(frozen=True, kw_only=True)
class ArmCurve:
    """One arm's grades along training."""

    arm: str
    steps: tuple[int, ...]  # [C] ascending
    grades_CSN: Floats  # [C, S, N] NaN where missing
    converged: tuple[int, ...]  # [S] index into steps at which each seed had converged

    def __post_init__(self) -> None:
        if self.grades_CSN.ndim != 3 or self.grades_CSN.shape[0] != len(self.steps):
            raise StatsError(
                f"{self.arm}: grades have shape {self.grades_CSN.shape} for {len(self.steps)} checkpoints; "
                "wanted checkpoints × seeds × items"
            )
        if list(self.steps) != sorted(set(self.steps)):
            raise StatsError(f"{self.arm}: steps {self.steps} are not ascending without repeats")
        if len(self.converged) != self.grades_CSN.shape[1] or not all(0 <= c < len(self.steps) for c in self.converged):
            raise StatsError(f"{self.arm}: converged is {self.converged}; wanted one checkpoint index per seed")


class Summary(StrEnum):
    """What is read off a curve up to a checkpoint."""

    POINT = "point"  # the reading at the checkpoint
    RUNNING_MEAN = "running mean"  # mean of all readings so far
    RECENT_SLOPE = "recent slope"  # least-squares slope of the last k readings
    PEAK = "peak so far"  # best reading so far
    LAST_MEAN = "mean of last k"  # mean of the last k readings


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A − B at one checkpoint."""

    step: int
    effect: Effect

    @property
    def separated(self) -> bool:
        """Clear: the interval leaves 0."""
        return leaves_zero(self.effect.low, self.effect.high)


@dataclass(frozen=True, kw_only=True)
class PairTrajectory:
    """One pair of arms along training."""

    arm_a: str
    arm_b: str
    readings: tuple[Reading, ...]  # [C]
    converged: Effect  # each seed at its own converged checkpoint
    flips: int  # checkpoints whose point estimate lies strictly on the other side of the converged one
    on_converged_side: int  # checkpoints strictly on the converged side
    separated: int  # checkpoints whose interval leaves 0
    opposed_pairs: int  # pairs of separated readings with opposite signs
    n: int  # items
    left_out: int  # items missing everywhere
    level: float


@dataclass(frozen=True, kw_only=True)
class SummaryScore:
    """How often a summary points to the converged side."""

    summary: Summary
    right: int
    cells: int  # pair × checkpoint cells with a converged sign
    share: Interval  # Wilson; cells share runs, so it is narrower than it should be


@dataclass(frozen=True, kw_only=True)
class TrajectoryReading:
    """All pairs of arms, and the summaries scored on them."""

    pairs: tuple[PairTrajectory, ...]
    scores: tuple[SummaryScore, ...]  # point reading first; empty: no checkpoint lies between start and convergence
    window: int  # k of the recent slope and the mean of the last k


@dataclass(frozen=True, kw_only=True)
class NamedReading:
    """One of the four readings."""

    name: str
    pool: PoolStatus  # inspected where a checkpoint was selected on the very pool it is read on
    selected_on: str | None  # pool a checkpoint was selected on; None: none was selected
    pooled: Tally  # pooled votes over items, A against B
    test: SignTest
    seed_nets: tuple[int, ...]  # [S] wins − losses
    effect: Effect  # A − B


@dataclass(frozen=True, kw_only=True)
class FourReadings:
    """The same runs, read four ways."""

    converged_whole_pool: NamedReading
    shared_step_selection_pool: NamedReading
    selected_then_fresh: NamedReading
    final_fresh: NamedReading


def read_trajectory(curves: Sequence[ArmCurve], *, alpha: float = 0.05, window: int = 3) -> TrajectoryReading:
    """Every pair of arms at every shared checkpoint, and how well early summaries foretell the converged sign."""
    if len(curves) < 2:
        raise StatsError(f"{len(curves)} arms; a trajectory is read between at least 2")
    if window < 2:
        raise StatsError(f"window is {window}; a slope wants at least 2 readings")
    pairs = tuple(_pair(a, b, alpha) for a, b in combinations(curves, 2))
    scores = tuple(score for summary in Summary if (score := _score(summary, curves, window, alpha)) is not None)
    return TrajectoryReading(pairs=pairs, scores=scores, window=window)


def at_converged(curve: ArmCurve) -> Floats:
    """[S, N] each seed at its own converged checkpoint."""
    return np.stack([curve.grades_CSN[c, s] for s, c in enumerate(curve.converged)])


def at_peak(curve: ArmCurve, selection_N: NDArray[np.bool_] | None = None) -> Floats:
    """[S, N] each seed at its best checkpoint on the selection items (all when None); first among equals."""
    chosen = curve.grades_CSN if selection_N is None else curve.grades_CSN[:, :, selection_N]
    best_S = np.nanmean(chosen, axis=2).argmax(axis=0)
    return np.stack([curve.grades_CSN[c, s] for s, c in enumerate(best_S)])


def at_step(curve: ArmCurve, step: int) -> Floats:
    """[S, N] all seeds at one step."""
    if step not in curve.steps:
        raise StatsError(f"{curve.arm} has no checkpoint at step {step}; it has {list(curve.steps)}")
    return np.asarray(curve.grades_CSN[curve.steps.index(step)])


def four_readings(
    a: ArmCurve, b: ArmCurve, *, selection_N: NDArray[np.bool_], shared_step: int, alpha: float = 0.05
) -> FourReadings:
    """Converged on the whole pool; a shared step on the selection pool; selected there and read fresh; final, fresh."""
    _check_pair(a, b)
    if selection_N.shape != (a.grades_CSN.shape[2],) or selection_N.all() or not selection_N.any():
        raise StatsError(f"the selection pool marks {int(selection_N.sum())} items; wanted some, and some left fresh")
    fresh_N = ~selection_N

    def read(name: str, values_a: Floats, values_b: Floats, pool: PoolStatus, selected_on: str | None) -> NamedReading:
        votes = votes_from_scores(values_a, values_b)
        pooled = tally(pooled_votes(votes))
        return NamedReading(
            name=name,
            pool=pool,
            selected_on=selected_on,
            pooled=pooled,
            test=binomial_two_sided(pooled.wins, pooled.losses, left_out=pooled.ties + pooled.missing),
            seed_nets=tuple(tally(row).net for row in votes),
            effect=_effect(values_a, values_b, alpha),
        )

    inspected, confirmatory = PoolStatus.INSPECTED, PoolStatus.CONFIRMATORY
    step_a, step_b = at_step(a, shared_step)[:, selection_N], at_step(b, shared_step)[:, selection_N]
    peak_a, peak_b = at_peak(a, selection_N)[:, fresh_N], at_peak(b, selection_N)[:, fresh_N]
    last_a, last_b = a.grades_CSN[-1][:, fresh_N], b.grades_CSN[-1][:, fresh_N]
    return FourReadings(
        converged_whole_pool=read("converged, whole pool", at_converged(a), at_converged(b), inspected, None),
        shared_step_selection_pool=read(f"step {shared_step}, selection pool", step_a, step_b, inspected, None),
        selected_then_fresh=read("selected, fresh pool", peak_a, peak_b, confirmatory, "selection pool"),
        final_fresh=read("final, fresh pool", last_a, last_b, confirmatory, None),
    )


def _pair(a: ArmCurve, b: ArmCurve, alpha: float) -> PairTrajectory:
    _check_pair(a, b)
    readings = tuple(
        Reading(step=step, effect=_effect(a.grades_CSN[c], b.grades_CSN[c], alpha)) for c, step in enumerate(a.steps)
    )
    converged = _effect(at_converged(a), at_converged(b), alpha)
    side = np.sign(converged.estimate)
    signs_C = np.sign([reading.effect.estimate for reading in readings])
    clear = [int(s) for s, reading in zip(signs_C, readings, strict=True) if reading.separated]
    return PairTrajectory(
        arm_a=a.arm,
        arm_b=b.arm,
        readings=readings,
        converged=converged,
        flips=int((signs_C * side < 0).sum()),
        on_converged_side=int((signs_C * side > 0).sum()),
        separated=len(clear),
        opposed_pairs=clear.count(1) * clear.count(-1),
        n=converged.n,
        left_out=converged.left_out,
        level=converged.level,
    )


def _effect(a_SN: Floats, b_SN: Floats, alpha: float) -> Effect:
    return paired_effect(a_SN - b_SN, alpha=alpha, grades=are_grades(a_SN, b_SN))


def _score(summary: Summary, curves: Sequence[ArmCurve], window: int, alpha: float) -> SummaryScore | None:
    """Cells where the summaries' difference has the converged sign; None where none lies before convergence."""
    right = cells = 0
    for a, b in combinations(curves, 2):
        side = np.sign(np.nanmean(at_converged(a)) - np.nanmean(at_converged(b)))
        last = max(*a.converged, *b.converged)
        curve_a, curve_b = np.nanmean(a.grades_CSN, axis=(1, 2)), np.nanmean(b.grades_CSN, axis=(1, 2))
        for c in range(1, last if side else 0):
            gap = _READ[summary](curve_a[: c + 1], window) - _READ[summary](curve_b[: c + 1], window)
            cells += 1
            right += bool(np.sign(gap) == side)
    if not cells:
        return None
    return SummaryScore(summary=summary, right=right, cells=cells, share=wilson(right, cells, 1 - alpha))


def _slope(curve_C: Floats, window: int) -> float:
    recent = curve_C[-window:]
    x = np.arange(recent.size) - (recent.size - 1) / 2
    return float(x @ recent / (x @ x))


_READ: dict[Summary, Callable[[Floats, int], float]] = {
    Summary.POINT: lambda curve, window: float(curve[-1]),
    Summary.RUNNING_MEAN: lambda curve, window: float(curve.mean()),
    Summary.RECENT_SLOPE: _slope,
    Summary.PEAK: lambda curve, window: float(curve.max()),
    Summary.LAST_MEAN: lambda curve, window: float(curve[-window:].mean()),
}


def _check_pair(a: ArmCurve, b: ArmCurve) -> None:
    if a.steps != b.steps or a.grades_CSN.shape != b.grades_CSN.shape:
        raise StatsError(
            f"{a.arm} has {a.grades_CSN.shape} at steps {a.steps}, {b.arm} {b.grades_CSN.shape} at {b.steps}; "
            "wanted the same checkpoints, seeds and items"
        )

"""What a held-out score did between the first and the last evaluation, and whether it lags behind its control.

A score that is not seen to climb is no finding: with 11 slots most growth goes unseen. What is tested is the end against
the control's growth,

    growth      g = (e_c − s_c)/(1 − s_c): of what the control did not have at the start s_c, the share it had at the end
    expected    s + g·(1 − s): the same growth from the skill's own start s
    shortfall   expected − e, its bounds from those of the four shares: each is moved to its unfavourable limit alone,
                and the moves are added as squares (Zou and Donner 2008)

*Frozen* and *behind* say that the score did not climb and the shortfall's interval lies above 0, beside most or few ties;
they name no cause. Where nothing climbed and nothing is shown to lag, as at 0 of 11 → 2 of 11 without a control, the audit
cannot say.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from deadheat.audit.problems import change_text, parts_by_problem
from deadheat.stats.intervals import Interval

_TIES_ARE_NORMAL = 0.5  # of the right draws


class Reading(StrEnum):
    """What the pair says."""

    CONVERGED = "converged"  # most right draws tied, and the held-out score climbed
    FROZEN = "frozen"  # most right draws tied, and the held-out score ended below what the control's growth would give
    LEARNING = "learning"  # most right draws in live groups, and the held-out score climbed
    BEHIND = "behind without ties"  # most right draws in live groups, and it ended below the control's growth
    CANNOT_SAY = "cannot say"  # the held-out score neither climbed nor is shown to lag: too few items, or no control
    UNREAD = "unread"  # no held-out score at two steps to read beside the ties


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """A held-out score at the first and at the last evaluation."""

    start: Interval
    end: Interval
    climb: Interval  # end − start, problems paired


def held_out(own: pl.DataFrame, total: str, level: float) -> HeldOut | None:
    """The share right at both evaluations; None where there are not two."""
    ends = [own.filter((pl.col("purpose") == "eval") & (pl.col("when") == when)) for when in ("start", "end")]
    if not all(end[total].sum() for end in ends):
        return None
    both = parts_by_problem(ends, "right", total)
    first, last = both.parts.shares(both.count_C2, level=level)
    return HeldOut(start=first, end=last, climb=both.change(level=level))


def shortfall(skill: HeldOut, control: HeldOut) -> Interval | None:
    """How far the skill ended below what its control's growth would give from its own start; None: the control grew none.

    Example:
        The control closed all of its gap, 2 of 49 to 49 of 49, so 100% was to be expected; it is 2 of 11.
        >>> from deadheat.stats.intervals import wilson
        >>> from deadheat.stats.shares import change
        >>> def held(k0, k1, n):
        ...     start, end = wilson(k0, n), wilson(k1, n)
        ...     return HeldOut(start=start, end=end, climb=change(start, end, correlation=0.0))
        >>> found = shortfall(held(1, 2, 11), held(2, 49, 49))
        >>> round(found.estimate, 2), round(found.low, 2), shortfall(held(0, 2, 11), held(5, 5, 49))
        (0.82, 0.52, None)
    """
    if control.end.estimate <= control.start.estimate:
        return None
    places = (skill.start, control.start, control.end)
    expected = _expected_end(*(place.estimate for place in places))
    worse = [skill.start.low, control.start.high, control.end.low]  # limits at which less is expected
    better = [skill.start.high, control.start.low, control.end.high]
    down, up = (
        [expected - _expected_end(*_moved([p.estimate for p in places], i, limits[i])) for i in range(3)]
        for limits in (worse, better)
    )
    end = skill.end
    estimate = expected - end.estimate
    return Interval(
        estimate=estimate,
        low=max(estimate - math.hypot(end.high - end.estimate, *down), -1.0),
        high=min(estimate + math.hypot(end.estimate - end.low, *up), 1.0),
        level=end.level,
        n=end.n,
        left_out=0,
        method="share change, against the control's growth",
        note=end.note,
    )


def _expected_end(start: float, control_start: float, control_end: float) -> float:
    """s + g·(1 − s) as 1 − (1 − s)·(1 − e_c)/(1 − s_c)."""
    return 1 - (1 - start) * (1 - control_end) / max(1 - control_start, 1e-12)


def _moved(values: "list[float]", place: int, value: float) -> "list[float]":
    return [*values[:place], value, *values[place + 1 :]]


def read_pair(tied: Interval | None, climb: Interval | None, short: Interval | None) -> Reading:
    """Ties beside what the held-out score did: `climb` is end − start, `short` how far it ended below the control's growth.

    Example:
        6.1% → 93.9% of 33 slots under ties is convergence. 0 of 11 → 2 of 11 is nothing yet; beside a control that went
        from 2 to 49 of 49 it is frozen.
        >>> from deadheat.stats.intervals import wilson
        >>> from deadheat.stats.shares import change
        >>> def climb(k0, k1, n):
        ...     return change(wilson(k0, n), wilson(k1, n), correlation=0.0)
        >>> read_pair(wilson(96, 100), climb(2, 31, 33), None).value
        'converged'
        >>> read_pair(wilson(86, 100), climb(0, 2, 11), None).value
        'cannot say'
        >>> lag = Interval(estimate=0.82, low=0.51, high=0.96, level=0.95, n=11, left_out=0, method="")
        >>> read_pair(wilson(86, 100), climb(0, 2, 11), lag).value, read_pair(wilson(0, 100), climb(0, 2, 11), lag).value
        ('frozen', 'behind without ties')
    """
    if climb is None:
        return Reading.UNREAD
    live = tied is not None and tied.estimate < _TIES_ARE_NORMAL
    if climb.low > 0:
        return Reading.LEARNING if live else Reading.CONVERGED
    if short is not None and short.low > 0:
        return Reading.BEHIND if live else Reading.FROZEN
    return Reading.CANNOT_SAY


def shortfall_text(short: Interval) -> str:
    """In the sentence: above 0 it is a shortfall, else what cannot be told."""
    if short.low > 0:
        bounds = f"[{100 * short.low:.1f}, {100 * short.high:.1f}]"
        return f"{100 * short.estimate:.1f} pp {bounds} below what the control's growth would give"
    return f"{change_text(short)} short of what the control's growth would give"

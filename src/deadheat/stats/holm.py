"""Many comparisons: p-values and interval levels adjusted so that a whole family errs as often as one test says.

With the m p-values sorted, p_(1) ≤ … ≤ p_(m),

    Holm                  adjusted p_(k) = max over j ≤ k of min(1, (m − j + 1)·p_(j))      chance of any false call ≤ α
    Benjamini–Hochberg    adjusted p_(k) = min over j ≥ k of min(1, m/j·p_(j))              share of false calls ≤ α

Both keep the order of the p-values. Holm holds under any dependence; Benjamini–Hochberg under independence or positive
dependence. Sources: Holm 1979; Benjamini and Hochberg 1995.
"""

import math
from collections.abc import Sequence
from itertools import accumulate

from deadheat.errors import StatsError


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given.

    Example:
        Sorted .01, .03, .04: 3·.01 = .03, 2·.03 = .06, and 1·.04 is lifted to the .06 before it.
        >>> holm([0.04, 0.01, 0.03])
        [0.06, 0.03, 0.06]
    """
    order = _ascending(p_values)
    steps = [min(1.0, left * p_values[place]) for left, place in zip(range(len(order), 0, -1), order, strict=True)]
    return _as_given(order, list(accumulate(steps, max)))


def holm_levels(p_values: Sequence[float], alpha: float) -> list[float]:
    """The alpha at which each hypothesis is tested, in the order given; its interval has level 1 − that.

    The k-th smallest of m p-values is held against alpha/(m − k + 1). From the first that is not below its own on, all
    later ones share that one's. So adjusted p < alpha exactly where p < its alpha here: word and interval agree.

    Example:
        .01 < .06/3 is called; .035 is not below .06/2, and .04 is held against the same .03, not against .06.
        >>> holm_levels([0.04, 0.01, 0.035], 0.06)
        [0.03, 0.02, 0.03]
    """
    if not 0 < alpha < 1:
        raise StatsError(f"alpha is {alpha}; wanted strictly between 0 and 1, such as 0.05")
    order, adjusted = _ascending(p_values), holm(p_values)
    levels: list[float] = []
    for left, place in zip(range(len(order), 0, -1), order, strict=True):
        p = p_values[place]
        if adjusted[place] >= alpha:  # at equality the rounding of alpha/left must not turn the answer
            return _as_given(order, levels + [min(alpha / left, p)] * left)
        levels.append(max(alpha / left, math.nextafter(p, 1.0)))
    return _as_given(order, levels)


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Benjamini and Hochberg's adjusted p-values, in the order given.

    Example:
        Sorted .01, .03, .04: 3/1·.01 = .03; 3/2·.03 = .045 is lowered to the 3/3·.04 = .04 after it.
        >>> benjamini_hochberg([0.04, 0.01, 0.03])
        [0.04, 0.03, 0.04]
    """
    order = _ascending(p_values)
    steps = [min(1.0, len(order) / rank * p_values[place]) for rank, place in enumerate(order, start=1)]
    return _as_given(order, list(accumulate(reversed(steps), min))[::-1])


def _ascending(p_values: Sequence[float]) -> list[int]:
    """Places of the p-values, smallest first."""
    if strange := [p for p in p_values if not 0 <= p <= 1]:
        raise StatsError(f"p-values hold {strange[:3]}; wanted numbers within 0 to 1")
    return sorted(range(len(p_values)), key=lambda place: p_values[place])


def _as_given(order: Sequence[int], values_ascending: Sequence[float]) -> list[float]:
    """Values of the sorted hypotheses, put back in the order given."""
    return [value for _, value in sorted(zip(order, values_ascending, strict=True))]

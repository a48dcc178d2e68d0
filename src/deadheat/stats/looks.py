"""Looking again: the level of each look at a growing table, so that all looks together err at most α.

O'Brien and Fleming's spending function gives what may be spent by a share t of the planned information,

    α*(t) = 2 − 2Φ(z/√t),   z = Φ⁻¹(1 − α/2), both sides together

and the nominal level of a look is the one at which a Wiener process, not stopped before, spends the difference to the
look before (Lan and DeMets 1983). The densities between the bounds are integrated on a grid (Armitage, McPherson and
Rowe 1969). t is the share of the planned seed × item cells, never above the information share of the mean, so that the
levels err on the safe side.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import StatsError
from deadheat.stats.distributions import normal_quantile, normal_tail, root

_GRID = 401  # points between the bounds; odd, for Simpson's rule
_WIDEST_Z = 8.0  # a bound beyond which nothing is spent
Floats = NDArray[np.float64]


def spent(share: float, alpha: float) -> float:
    """α*(t): what may be spent by a share t of the planned cells.

    Example:
        z = 1.96: at half of the cells 2 − 2Φ(1.96/√½) = 2 − 2Φ(2.7718) = .00557.
        >>> round(spent(0.5, 0.05), 5), round(spent(1.0, 0.05), 5)
        (0.00557, 0.05)
    """
    if not 0 < alpha < 1:
        raise StatsError(f"alpha is {alpha}; wanted strictly between 0 and 1, such as 0.05")
    return 2 * normal_tail(normal_quantile(1 - alpha / 2) / math.sqrt(share)) if share > 0 else 0.0


def nominal_levels(shares: Sequence[float], alpha: float = 0.05) -> list[float]:
    """The two-sided level that each look's p-value is held against.

    Args:
        shares: t of each look so far, rising, in (0, 1]; the last planned look has t = 1.

    Example:
        Two looks, at half and at all: the first is held against 1.96/√½ = 2.772, the last against a little over 1.96.
        >>> [round(normal_quantile(1 - level / 2), 3) for level in nominal_levels([0.5, 1.0])]
        [2.772, 1.979]
    """
    if not shares or any(not 0 < t <= 1 for t in shares) or list(shares) != sorted(set(shares)):
        raise StatsError(f"looks are at shares {list(shares)}; wanted rising shares of the planned cells, in (0, 1]")
    levels: list[float] = []
    x_X, density_X, before, spent_before = np.zeros(1), np.ones(1), 0.0, 0.0
    for t in shares:
        target = spent(t, alpha) - spent_before
        sd = math.sqrt(t - before)

        def crossing(z: float, t: float = t, sd: float = sd, x_X: Floats = x_X, density_X: Floats = density_X) -> float:
            bound = z * math.sqrt(t)
            beyond_X = np.array([normal_tail((bound - x) / sd) + normal_tail((bound + x) / sd) for x in x_X])
            return float(_integral(beyond_X * density_X, x_X))

        z = root(lambda z, c=crossing, a=target: a - c(z), 0.0, _WIDEST_Z, tolerance=1e-7)  # type: ignore[misc]
        levels.append(2 * normal_tail(z))
        grid_X = np.linspace(-z * math.sqrt(t), z * math.sqrt(t), _GRID)
        step_XX = np.exp(-0.5 * ((grid_X[:, None] - x_X) / sd) ** 2) / (sd * math.sqrt(2 * math.pi))
        density_X = np.array([_integral(row * density_X, x_X) for row in step_XX])
        x_X, before, spent_before = grid_X, t, spent(t, alpha)
    return levels


def _integral(values_X: Floats, x_X: Floats) -> float:
    """Simpson's rule on an even grid of an odd number of points; a single point is a point mass."""
    if x_X.size == 1:
        return float(values_X[0])
    weights_X = np.where(np.arange(x_X.size) % 2, 4.0, 2.0)
    weights_X[[0, -1]] = 1.0
    return float(weights_X @ values_X) * float(x_X[1] - x_X[0]) / 3

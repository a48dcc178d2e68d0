"""All cells, in the order of the table."""

from .calls import by_judge, clusters, complete, dead_heats, families, gains, looks, missing, these_runs, uncoupled
from .cells import Cell
from .intervals import intervals, means, spreads, tests
from .rates import floors, pilots, power, printed_rates
from .side_by_side import side_by_side

GROUPS = (
    complete,
    missing,
    clusters,
    uncoupled,
    by_judge,
    gains,
    these_runs,
    dead_heats,
    families,
    looks,
    intervals,
    spreads,
    means,
    power,
    printed_rates,
    pilots,
    floors,
    tests,
    side_by_side,
)


def all_cells() -> list[Cell]:
    """Every cell, in the order of the table."""
    return [cell for group in GROUPS for cell in group()]

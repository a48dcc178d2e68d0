"""Figures of what a test of some size can show: floors, catch rates, spending, a comparison, a trajectory, a census.

Each takes a record of the statistics room and gives a Matplotlib figure; `ink.save_figure` writes it.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from deadheat.errors import StatsError
from deadheat.reports import ink
from deadheat.reports.figures import Bar, BarPanel, Line, bars, line_figure
from deadheat.reports.floors import Difference, FloorPoint, difference_against_floor, scatter_against_floor
from deadheat.reports.verdict_words import plural
from deadheat.stats.census import Census
from deadheat.stats.comparison import Comparison
from deadheat.stats.floor_question import FloorReport
from deadheat.stats.forecast import ForecastScore
from deadheat.stats.planning import PowerPlan
from deadheat.stats.spend import SpendPlan
from deadheat.stats.trajectory import PairTrajectory

_MOST_STEPS = 6  # of a spending plan that are drawn


def floor_figure(report: FloorReport, *, width_in: float = ink.WIDE_IN) -> Figure:
    """The floor and its significance bar against the number of items, and the margin where one is given."""
    last = max(4 * report.n, 1.2 * (report.items_needed or 0))
    sizes = tuple(float(n) for n in np.linspace(max(1.0, report.n / 2), min(last, 40 * report.n), 24))
    floors = tuple(report.floor_pp * float(np.sqrt(report.n / n)) for n in sizes)
    bar = report.significance_bar_pp / report.floor_pp if report.floor_pp else 0.0
    lines = [
        Line(label="detection floor", x=sizes, y=floors),
        Line(label="significance bar", x=sizes, y=tuple(bar * floor for floor in floors)),
    ]
    if report.margin_pp is not None:
        lines.append(Line(label="margin", x=sizes, y=(abs(report.margin_pp),) * len(sizes)))
    return line_figure(lines, x_label="items", y_label="percentage points", width_in=width_in)


def power_figure(report: PowerPlan, *, width_in: float = ink.WIDE_IN) -> Figure:
    """How often the gap is called against items, a line per number of seeds; without a gap, the smallest gap called."""
    lines, rated = [], report.rate is not None
    for num_seeds in sorted({cell.num_seeds for cell in report.grid}):
        cells = [cell for cell in report.grid if cell.num_seeds == num_seeds]
        cells = [cell for cell in cells if rated or cell.smallest_pp is not None]
        if cells:
            rows = tuple(100 * (cell.rate_frac or 0.0) if rated else cell.smallest_pp or 0.0 for cell in cells)
            sizes = tuple(float(cell.num_items) for cell in cells)
            lines.append(Line(label=plural(num_seeds, "seed"), x=sizes, y=rows))
    if not lines:
        raise StatsError("no gap is called often enough at any of these sizes; there is nothing to draw")
    y_label = "called (%)" if rated else f"smallest gap at {report.smallest.target_frac:.0%} power (percentage points)"
    return line_figure(lines, x_label="items", y_label=y_label, width_in=width_in)


def spend_figure(plan: SpendPlan, *, width_in: float = ink.WIDE_IN) -> Figure:
    """What the best steps leave: the smallest gap called, or how often a stated gap is."""
    steps = [plan.now, *[step for step in plan.steps if step is not plan.now][:_MOST_STEPS]]
    rows = []
    for step in steps:
        bought = [
            f"+{count} {what}"
            for count, what in (
                (step.add_seeds, "seeds"),
                (step.add_questions, "questions"),
                (step.add_judges, "judges"),
            )
            if count
        ]
        value = 100 * step.catch.rate_frac if step.catch else step.smallest.gap if step.smallest else None
        if value is not None:
            rows.append(Bar(label=" ".join(bought) or "nothing", value=value))
    title = "called (%)" if plan.ranked_by == "power" else "smallest gap, in the table's unit"
    return bars([BarPanel(title=title, bars=tuple(rows))], width_in=width_in)


def comparison_figure(comparison: Comparison, *, width_in: float = ink.WIDE_IN) -> Figure:
    """Each seed's difference over items and the pooled one over seeds and items, beside what could not be called."""
    verdict = comparison.verdict
    scale = 100.0 if verdict.is_share else 1.0
    effects = [(f"seed {row.seed}", row.difference) for row in comparison.seed_rows]
    effects = [*effects, ("pooled", verdict.effect)] if len(effects) != 1 else effects
    rows = [
        Difference(
            label=label,
            diff_pp=scale * found.estimate,
            low_pp=scale * found.low,
            high_pp=scale * found.high,
            num_items=found.n,
            pooled=label == "pooled",
        )
        for label, found in effects
        if np.isfinite(found.high)
    ]
    smallest = verdict.instrument.smallest_at_spread or verdict.instrument.smallest
    gap = None if smallest is None or smallest.gap is None else scale * smallest.gap
    return difference_against_floor(
        rows,
        arms=(comparison.name_a, comparison.name_b),
        catchable_gap_pp=gap,
        verdict=comparison.words,
        level=verdict.effect.level,
        power=verdict.terms.power,
        width_in=width_in,
    )


def trajectory_figure(pairs: Sequence[PairTrajectory], *, width_in: float = ink.WIDE_IN) -> Figure:
    """A − B along training with its interval, a line per pair, and zero."""
    lines = [
        Line(
            label=f"{pair.arm_a} − {pair.arm_b}",
            x=tuple(float(reading.step) for reading in pair.readings),
            y=tuple(100 * reading.effect.estimate for reading in pair.readings),
            low=tuple(100 * reading.effect.low for reading in pair.readings),
            high=tuple(100 * reading.effect.high for reading in pair.readings),
        )
        for pair in pairs
    ]
    steps = lines[0].x
    lines.append(Line(label="no difference", x=(steps[0], steps[-1]), y=(0.0, 0.0)))
    return line_figure(lines, x_label="training step", y_label="difference (percentage points)", width_in=width_in)


def census_figure(found: Census, *, width_in: float = ink.WIDE_IN) -> Figure:
    """Each scored claim's margin against its floor."""
    points = [
        FloorPoint(
            label=row.claim.paper.split(" (")[0],
            margin_pp=100 * row.reading.margin_frac,
            floor_pp=row.reading.floor.floor_pp,
            kind=f"against {row.claim.baseline_kind.value}",
        )
        for row in found.rows
    ]
    return scatter_against_floor(points, width_in=width_in)


def margins_figure(margins: Sequence[FloorPoint], *, width_in: float = ink.WIDE_IN) -> Figure:
    """Margins of a ledger's entries against their floors."""
    if not margins:
        raise StatsError("no entry names both a margin and a floor; give --number margin=… and --number floor=…")
    return scatter_against_floor(margins, width_in=width_in)


def forecast_figure(score: ForecastScore, *, width_in: float = ink.WIDE_IN) -> Figure:
    """The forecast and every reading, each with its interval."""
    forecast = score.forecast
    largest = max((scored.reading.num_items for scored in score.readings), default=1)
    rows = [
        Difference(
            label="forecast",
            diff_pp=forecast.gap_pp,
            low_pp=forecast.low_pp,
            high_pp=forecast.high_pp,
            num_items=largest,
            pooled=True,
        )
    ]
    rows += [
        Difference(
            label=scored.reading.name,
            diff_pp=scored.reading.gap_pp,
            low_pp=scored.reading.low_pp,
            high_pp=scored.reading.high_pp,
            num_items=scored.reading.num_items,
        )
        for scored in score.readings
    ]
    return difference_against_floor(
        rows, arms=("A", "B"), catchable_gap_pp=None, verdict=forecast.words, width_in=width_in
    )

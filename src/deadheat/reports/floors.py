"""Differences drawn next to the smallest gap that their instrument can show.

`difference_against_floor` is the picture of a verdict: one row per seed and one pooled, with a band around zero for the
gaps that such a table calls less often than the power asked for. `scatter_against_floor` sets many published margins against
their detection floors.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from deadheat.reports import ink
from deadheat.reports.formats import format_pp, format_signed
from deadheat.stats.distributions import normal_quantile
from deadheat.stats.floors import floor_multiplier

SIGNIFICANCE_BAR = normal_quantile(0.975) / floor_multiplier()  # 0.70: a margin at this share of its floor has p = .05


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One paired difference between two arms."""

    label: str  # "seed 0", "pooled"
    diff_pp: float  # first arm minus second, percentage points
    low_pp: float  # lower end of its interval
    high_pp: float  # upper end of its interval
    num_items: int  # n: paired items
    pooled: bool = False  # True: over all seeds; drawn apart and heavier

    def __post_init__(self) -> None:
        if not self.low_pp <= self.diff_pp <= self.high_pp:
            raise ValueError(
                f"{self.label}: difference {self.diff_pp} with interval [{self.low_pp}, {self.high_pp}]; "
                "wanted low <= difference <= high"
            )


@dataclass(frozen=True, kw_only=True)
class FloorPoint:
    """A margin somebody reported, and the smallest true gap that their test shows reliably."""

    label: str  # the paper and benchmark
    margin_pp: float  # claimed gain, percentage points
    floor_pp: float  # detection floor at its n, percentage points
    kind: str = "claims"  # the series it belongs to: baseline kind, status


def difference_against_floor(
    differences: Sequence[Difference],
    *,
    arms: tuple[str, str],
    catchable_gap_pp: float | None,
    verdict: str,
    level: float = 0.95,
    power: float = 0.80,
    width_in: float = ink.WIDE_IN,
) -> Figure:
    """A row per difference with its interval; the band around 0 holds the gaps that this table calls too seldom.

    `catchable_gap_pp` is the half-width of the band: the gap called with the given power (None: not known, no band).
    `verdict` is the word printed above.
    """
    if not differences:
        raise ValueError("no difference to draw; wanted at least one")
    with ink.house_style():
        height_in = 1.1 + 0.3 * len(differences)
        sheet = ink.sheet(1, width_in=width_in, height_in=height_in)
        (axes,) = sheet.panels
        reach = 1.12 * max([abs(v) for d in differences for v in (d.low_pp, d.high_pp)] + [catchable_gap_pp or 0, 1.0])
        if catchable_gap_pp is not None:
            _band(sheet.figure, axes, catchable_gap_pp, power)
        axes.axvline(0, color=ink.INK, lw=0.8)
        for place, difference in enumerate(differences):
            _row(axes, place, difference, reach)
        _frame(axes, differences, reach)
        narrow = ink.is_narrow(width_in)
        axes.set_title(textwrap.fill(ink.name(verdict, 160), 28 if narrow else 66), color=ink.INK)
        short = tuple(ink.name(arm, 10 if narrow else 24) for arm in arms)
        _directions(axes, short)
        axes.set_xlabel(f"{short[0]} − {short[1]}{chr(10) if narrow else ' '}(pp), {level:.0%} interval")
    return sheet.figure


def _band(figure: Figure, axes: Axes, gap_pp: float, power: float) -> None:
    text = f"under {format_pp(gap_pp).removeprefix('+')}: below {power:.0%} power"
    band = axes.axvspan(-gap_pp, gap_pp, color=ink.MUTED, alpha=0.18, lw=0, label=text)
    figure.legend(handles=[band], loc="outside lower right", handlelength=1.2)


def _row(axes: Axes, place: int, difference: Difference, reach: float) -> None:
    colour = ink.INK if difference.pooled else ink.ARM_COLOURS[0]
    axes.plot(
        [difference.low_pp, difference.high_pp],
        [place, place],
        color=colour,
        lw=2.6 if difference.pooled else 1.4,
        solid_capstyle="butt",
    )
    axes.plot(
        [difference.diff_pp],
        [place],
        marker="D" if difference.pooled else "o",
        ms=6 if difference.pooled else 5,
        color=colour,
        mec=ink.PAPER,
        mew=0.8,
    )
    axes.annotate(
        format_signed(difference.diff_pp),
        (1, place),
        (5, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="center",
        weight="bold" if difference.pooled else "normal",
    )


def _frame(axes: Axes, differences: Sequence[Difference], reach: float) -> None:
    axes.set_yticks(range(len(differences)), [f"{ink.name(d.label)}, n = {d.num_items:,}" for d in differences])
    for tick, difference in zip(axes.get_yticklabels(), differences, strict=True):
        tick.set_fontweight("bold" if difference.pooled else "normal")
    axes.set_ylim(len(differences) - 0.05, -0.75)
    axes.set_xlim(-reach, reach)
    axes.grid(False)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    for place, difference in enumerate(differences):
        if difference.pooled and place:
            axes.axhline(place - 0.5, color=ink.RULE, lw=0.8)


def _directions(axes: Axes, arms: tuple[str, ...]) -> None:
    for x, text, side in ((0, f"← {arms[1]} better", "left"), (1, f"{arms[0]} better →", "right")):
        axes.annotate(
            text,
            (x, 1),
            (0, -2),
            xycoords="axes fraction",
            textcoords="offset points",
            ha=side,
            va="top",
            fontsize=7.5,
            color=ink.MUTED,
        )


def scatter_against_floor(points: Sequence[FloorPoint], *, width_in: float = ink.WIDE_IN) -> Figure:
    """Each margin against its floor. On or above the solid line it is clear; under the dashed one, not significant."""
    if not points:
        raise ValueError("no margin to draw; wanted at least one")
    reach = 1.1 * max(max(abs(point.margin_pp), point.floor_pp) for point in points)
    lowest = min(0.0, 1.15 * min(point.margin_pp for point in points))
    with ink.house_style():
        sheet = ink.sheet(1, width_in=width_in, height_in=3.4)
        (axes,) = sheet.panels
        axes.fill_between([0, reach], [0, reach], [reach, reach], color=ink.LIVE, alpha=0.08, lw=0)
        axes.plot([0, reach], [0, reach], color=ink.INK, lw=1.0, label="margin = detection floor")
        bar = [0, SIGNIFICANCE_BAR * reach]
        axes.plot([0, reach], bar, color=ink.MUTED, lw=1.0, ls=(0, (4, 2)), label="margin = significance bar")
        for index, kind in enumerate(dict.fromkeys(point.kind for point in points)):
            of_kind = [point for point in points if point.kind == kind]
            look: dict[str, Any] = {"color": ink.look(index).colour, "marker": ink.look(index).marker}
            floors, margins = [p.floor_pp for p in of_kind], [p.margin_pp for p in of_kind]
            axes.plot(floors, margins, ls="none", ms=6, mec=ink.PAPER, mew=0.8, label=ink.name(kind), **look)
        if len(points) <= 12:
            _name_points(axes, points, reach)
        axes.set(xlim=(0, reach), ylim=(lowest, reach))
        axes.set_xlabel("detection floor (percentage points)")
        axes.set_ylabel("claimed margin (percentage points)")
        sheet.figure.legend(loc="outside upper left", ncols=2)
    return sheet.figure


def _name_points(axes: Axes, points: Sequence[FloorPoint], reach: float) -> None:
    for point, height in zip(points, _label_heights(points, reach), strict=True):
        right = point.floor_pp > 0.6 * reach
        axes.annotate(
            ink.name(point.label),
            (point.floor_pp, point.margin_pp),
            (-6 if right else 6, height),
            textcoords=("offset points", "data"),
            ha="right" if right else "left",
            va="center",
            fontsize=7.5,
        )


def _label_heights(points: Sequence[FloorPoint], reach: float) -> list[float]:
    """[points] where each label stands: beside its point, or just above the label of a point close by."""
    line, beside = 0.042 * reach, 0.3 * reach  # height of a line of text, and how far labels reach sideways
    heights: dict[int, float] = {}
    for place in sorted(range(len(points)), key=lambda place: points[place].margin_pp):
        point = points[place]
        below = [y + line for other, y in heights.items() if abs(points[other].floor_pp - point.floor_pp) < beside]
        heights[place] = max([point.margin_pp, *below])
    return [heights[place] for place in range(len(points))]

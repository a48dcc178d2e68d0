"""Figures of a run: learning curves, gate curves, step sizes, costs, and a plain line or bar figure.

Each takes frozen records and a width and gives a Matplotlib figure; `ink.figure_block` turns it into a block of a page,
`ink.save_figure` into a file. Intervals come with the records, except the band of a gate curve, which is the Wilson
interval of the pooled and smoothed counts drawn there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from deadheat.reports import ink
from deadheat.stats.intervals import Interval, wilson

Steps = tuple[int, ...]
Values = tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class Curve:
    """How one seed of one arm learned."""

    arm: str
    seed: int
    steps: Steps  # [K] training steps, ascending
    train_reward: Values  # [K] mean reward over the scored rollouts of the step; None: none was scored
    eval_steps: Steps  # [E] steps at which the held-out pool was read, 0 included
    eval_shares: tuple[Interval, ...]  # [E] share right, with its interval and n

    def __post_init__(self) -> None:
        _same_length(f"curve of {self.arm}, seed {self.seed}", steps=self.steps, train_reward=self.train_reward)
        _same_length(f"curve of {self.arm}, seed {self.seed}", eval_steps=self.eval_steps, eval_shares=self.eval_shares)


@dataclass(frozen=True, kw_only=True)
class GateCurve:
    """What the groups of one seed of one arm were, step by step. The four counts add up to the groups drawn."""

    arm: str
    seed: int
    steps: Steps  # [K] training steps, ascending
    live: Steps  # [K] groups whose rewards differ
    all_right: Steps  # [K] tied groups, every rollout right
    all_wrong: Steps  # [K] tied groups, every rollout wrong
    tied_other: Steps  # [K] tied groups with neither grade throughout, unscored ones included

    def __post_init__(self) -> None:
        counts = {"live": self.live, "all_right": self.all_right, "all_wrong": self.all_wrong}
        seen = f"gate curve of {self.arm}, seed {self.seed}"
        _same_length(seen, steps=self.steps, tied_other=self.tied_other, **counts)


@dataclass(frozen=True, kw_only=True)
class StepSizes:
    """The two divisors of one seed of one arm: what each step would have been under either."""

    arm: str
    seed: int
    steps: Steps  # [K] training steps, ascending
    all_groups: Values  # [K] gradient norm (or another step size) dividing by every group; None: no step
    signal_groups: Values  # [K] the same dividing by live groups only; None: no live group

    def __post_init__(self) -> None:
        seen = f"step sizes of {self.arm}, seed {self.seed}"
        _same_length(seen, steps=self.steps, all_groups=self.all_groups, signal_groups=self.signal_groups)


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of a plain figure."""

    label: str
    x: tuple[float, ...]
    y: Values  # one value for each x; None: a gap
    low: Values | None = None  # lower end of the band; None: no band
    high: Values | None = None  # upper end of the band; None: no band

    def __post_init__(self) -> None:
        band = {} if self.low is None or self.high is None else {"low": self.low, "high": self.high}
        _same_length(f"line {self.label!r}", x=self.x, y=self.y, **band)


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One bar: a value, perhaps with an interval."""

    label: str  # what stands beside the bar: an arm
    value: float  # in the unit of its panel
    low: float | None = None  # lower end of the interval; None: none
    high: float | None = None  # upper end of the interval; None: none
    text: str | None = None  # printed at the bar's end; None: the value to three digits


@dataclass(frozen=True, kw_only=True)
class BarPanel:
    """Bars of one unit, side by side in one panel."""

    title: str  # what is measured, with its unit: "generated tokens (millions)"
    bars: tuple[Bar, ...]


def learning_curves(
    curves: Sequence[Curve], *, width_in: float = ink.WIDE_IN, reward_label: str = "mean training reward"
) -> Figure:
    """Held-out accuracy (seeds thin, with intervals; their mean thick) beside training reward.

    The thick line is the mean over the seeds at the steps that every seed of the arm reached, so that a seed that
    stopped early does not bend it. Training reward is smoothed by a centred moving average, whose width the axis says.
    """
    _wanted(curves, "learning curve")
    arms = _arms(curves)
    window = smoothing_window(max(len(curve.steps) for curve in curves))
    with ink.house_style():
        sheet = ink.sheet(2, width_in=width_in, height_in=2.6)
        held_out, training = sheet.panels
        for index, arm in enumerate(arms):
            of_arm = [curve for curve in curves if curve.arm == arm]
            _held_out(held_out, of_arm, index)
            _training(training, of_arm, index, window)
        _label(held_out, x="training step", y="held-out accuracy (%)")
        held_out.set_ylim(bottom=0)
        smoothing = "" if window == 1 else f",\n{window}-step average"
        _label(training, x="training step", y=reward_label + smoothing)
        _arm_legend(sheet.figure, arms)
    return sheet.figure


def _held_out(axes: Axes, curves: Sequence[Curve], index: int) -> None:
    reach = max((max(curve.eval_steps, default=0) for curve in curves), default=0)
    dodge = reach * 0.006
    arm = ink.look(index)
    look: dict[str, Any] = {"color": arm.colour, "zorder": 2.0}
    for place, curve in enumerate(curves):
        offset = dodge * (index + 2 * place - len(curves))
        x = [step + offset for step in curve.eval_steps]
        middle = [100 * share.estimate for share in curve.eval_shares]
        low = [100 * (share.estimate - share.low) for share in curve.eval_shares]
        high = [100 * (share.high - share.estimate) for share in curve.eval_shares]
        axes.errorbar(x, middle, yerr=[low, high], fmt="none", elinewidth=0.8, alpha=0.45, **look)
        axes.plot(x, middle, lw=0.7, alpha=0.6, **look)
        axes.plot(x, middle, ls="none", marker=arm.marker, ms=3.2, mec=ink.PAPER, mew=0.5, **look)
    pairs = [
        dict(zip(curve.eval_steps, (100 * s.estimate for s in curve.eval_shares), strict=True)) for curve in curves
    ]
    shared = [step for step in curves[0].eval_steps if all(step in pair for pair in pairs)]
    mean = [float(np.mean([pair[step] for pair in pairs])) for step in shared]
    axes.plot(shared, mean, lw=2.0, ls=arm.dash, color=arm.colour, zorder=3.0)


def _training(axes: Axes, curves: Sequence[Curve], index: int, window: int) -> None:
    arm = ink.look(index)
    point = arm.marker if max(len(curve.steps) for curve in curves) == 1 else None
    rows = [dict(zip(curve.steps, _gaps(curve.train_reward), strict=True)) for curve in curves]
    for curve in curves:
        axes.plot(curve.steps, smoothed(curve.train_reward, window), lw=0.7, alpha=0.5, color=arm.colour, marker=point)
    shared = [step for step in curves[0].steps if all(step in row for row in rows)]
    mean = tuple(_mean([row[step] for row in rows]) for step in shared)
    axes.plot(shared, smoothed(mean, window), lw=2.0, marker=point, ls=arm.dash, color=arm.colour, zorder=3.0)


def gate_curves(curves: Sequence[GateCurve], *, width_in: float = ink.WIDE_IN) -> Figure:
    """Per arm, the share of groups that were live, all right, all wrong or tied otherwise, over the steps.

    Counts are pooled over seeds and over a centred window of steps; the band around the top of the live share is its
    95% Wilson interval with the pooled number of groups as n. What is above the live share is the shut-gate rate. The
    caption should say how many seeds and groups there are.
    """
    _wanted(curves, "gate curve")
    arms = _arms(curves)
    window = smoothing_window(max(len(curve.steps) for curve in curves))
    with ink.house_style():
        sheet = ink.sheet(len(arms), width_in=width_in, height_in=2.3, share_y=True)
        for axes, arm in zip(sheet.panels, arms, strict=True):
            of_arm = [curve for curve in curves if curve.arm == arm]
            _gate_panel(axes, of_arm, window)
            axes.set_title(ink.name(arm, sheet.title_limit))
            _label(axes, x="training step", y="share of groups (%)" if axes is sheet.panels[0] else None)
        _gate_legend(sheet.figure, window)
    return sheet.figure


def _gate_panel(axes: Axes, curves: Sequence[GateCurve], window: int) -> None:
    pooled = pooled_gate(curves, window)
    counts = np.array([pooled.live, pooled.all_right, pooled.tied_other, pooled.all_wrong], dtype=float)
    total = counts.sum(axis=0)
    shares = 100 * np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)
    colours = (ink.LIVE, ink.ALL_RIGHT, ink.TIED_OTHER, ink.ALL_WRONG)
    axes.stackplot(pooled.steps, shares, colors=colours, linewidth=0, alpha=0.85)
    bounds = [wilson(int(live), int(n)) for live, n in zip(counts[0], total, strict=True) if n]
    drawn = [step for step, n in zip(pooled.steps, total, strict=True) if n]
    axes.fill_between(
        drawn, [100 * b.low for b in bounds], [100 * b.high for b in bounds], color=ink.INK, alpha=0.22, lw=0
    )
    axes.plot(pooled.steps, shares[0], color=ink.INK, lw=1.1)
    axes.set_ylim(0, 100)
    axes.set_xlim(min(pooled.steps), max(max(pooled.steps), min(pooled.steps) + 1))
    axes.grid(False)


def pooled_gate(curves: Sequence[GateCurve], window: int) -> GateCurve:
    """The counts of several seeds of one arm, added up over seeds and over a centred window of steps.

    Example:
        >>> one = GateCurve(arm="a", seed=0, steps=(1, 2, 3), live=(1, 0, 2), all_right=(0, 1, 0),
        ...                 all_wrong=(1, 1, 0), tied_other=(0, 0, 0))
        >>> pooled_gate([one, one], 3).live
        (2, 6, 4)
    """
    steps = sorted({step for curve in curves for step in curve.steps})
    sums = {kind: np.zeros(len(steps), dtype=int) for kind in ("live", "all_right", "all_wrong", "tied_other")}
    for curve in curves:
        places = np.searchsorted(steps, curve.steps)
        for kind, total in sums.items():
            np.add.at(total, places, getattr(curve, kind))
    reach = window // 2
    spread = {
        kind: tuple(int(total[max(0, place - reach) : place + reach + 1].sum()) for place in range(len(steps)))
        for kind, total in sums.items()
    }
    return GateCurve(arm=curves[0].arm, seed=curves[0].seed, steps=tuple(steps), **spread)


def _gate_legend(figure: Figure, window: int) -> None:
    smoothing = "" if window == 1 else f",\n{window}-step window"
    handles = [
        Patch(facecolor=ink.ALL_WRONG, alpha=0.85, label="all wrong"),
        Patch(facecolor=ink.TIED_OTHER, alpha=0.85, label="tied otherwise"),
        Patch(facecolor=ink.ALL_RIGHT, alpha=0.85, label="all right"),
        Patch(facecolor=ink.LIVE, alpha=0.85, label="live"),
        Line2D([], [], color=ink.INK, lw=1.1, label=f"live share, 95% interval{smoothing}"),
    ]
    _legend(figure, handles)


def denominators(
    sizes: Sequence[StepSizes], *, width_in: float = ink.WIDE_IN, size_label: str = "gradient norm"
) -> Figure:
    """The size of each step under both divisors, one panel per arm, mean over the seeds that took it, smoothed."""
    _wanted(sizes, "record of step sizes")
    arms = _arms(sizes)
    window = smoothing_window(max(len(size.steps) for size in sizes))
    with ink.house_style():
        sheet = ink.sheet(len(arms), width_in=width_in, height_in=2.3, share_y=True)
        for axes, (index, arm) in zip(sheet.panels, enumerate(arms), strict=True):
            of_arm = [size for size in sizes if size.arm == arm]
            for kind, dash, width in (("all_groups", "-", 1.8), ("signal_groups", (0, (3.5, 1.6)), 1.4)):
                steps, means = _mean_over_seeds([(size.steps, getattr(size, kind)) for size in of_arm])
                axes.plot(steps, smoothed(means, window), ls=dash, lw=width, color=ink.look(index).colour)
            axes.set_title(ink.name(arm, sheet.title_limit))
            smoothing = "" if window == 1 else f",\n{window}-step average"
            _label(axes, x="training step", y=size_label + smoothing if axes is sheet.panels[0] else None)
        sheet.panels[0].set_ylim(bottom=0)
        solid = Line2D([], [], color=ink.INK, lw=1.8, label="divided by all groups")
        dashed = Line2D([], [], color=ink.INK, lw=1.4, ls=(0, (3.5, 1.6)), label="divided by live groups")
        _legend(sheet.figure, [solid, dashed])
    return sheet.figure


def _mean_over_seeds(rows: Sequence[tuple[Steps, Values]]) -> tuple[list[int], Values]:
    by_step: dict[int, list[float]] = {}
    for steps, values in rows:
        for step, value in zip(steps, _gaps(values), strict=True):
            by_step.setdefault(step, []).append(value)
    ordered = sorted(by_step)
    return ordered, tuple(_mean(by_step[step]) for step in ordered)


def line_figure(lines: Sequence[Line], *, x_label: str, y_label: str, width_in: float = ink.WIDE_IN) -> Figure:
    """Lines with bands, told apart by colour, marker and dash."""
    _wanted(lines, "line")
    with ink.house_style():
        sheet = ink.sheet(1, width_in=width_in, height_in=2.8)
        (axes,) = sheet.panels
        for index, line in enumerate(lines):
            arm = ink.look(index)
            look: dict[str, Any] = {"color": arm.colour, "ls": arm.dash, "marker": arm.marker, "lw": 1.6, "ms": 3.5}
            axes.plot(line.x, _gaps(line.y), label=ink.name(line.label), **look)
            if line.low is not None and line.high is not None:
                axes.fill_between(line.x, _gaps(line.low), _gaps(line.high), color=arm.colour, alpha=0.18, lw=0)
        _label(axes, x=x_label, y=y_label)
        _legend(sheet.figure, axes.get_lines())
    return sheet.figure


def bars(panels: Sequence[BarPanel], *, width_in: float = ink.WIDE_IN) -> Figure:
    """Horizontal bars from zero, a panel per unit, the value printed at each bar's end."""
    _wanted(panels, "panel of bars")
    most = max(len(panel.bars) for panel in panels)
    with ink.house_style():
        sheet = ink.sheet(len(panels), width_in=width_in, height_in=0.62 + 0.27 * most)
        for axes, panel, before in zip(sheet.panels, panels, (None, *panels), strict=False):
            _bar_panel(axes, panel)
            if before is not None and not ink.is_narrow(width_in) and _bar_labels(before) == _bar_labels(panel):
                axes.tick_params(axis="y", labelleft=False)
    return sheet.figure


def _bar_labels(panel: BarPanel) -> list[str]:
    return [bar.label for bar in panel.bars]


def _bar_panel(axes: Axes, panel: BarPanel) -> None:
    places = list(range(len(panel.bars)))
    for place, bar in zip(places, panel.bars, strict=True):
        axes.barh(place, bar.value, height=0.62, color=ink.look(place).colour, alpha=0.85)
        end = bar.value
        if bar.low is not None and bar.high is not None:
            axes.plot([bar.low, bar.high], [place, place], color=ink.INK, lw=1.0)
            end = max(end, bar.high)
        text = f"{bar.value:.3g}" if bar.text is None else bar.text
        axes.annotate(ink.name(text), (end, place), (4, 0), textcoords="offset points", va="center", fontsize=8)
    reach = max((max(bar.value, bar.high or 0.0) for bar in panel.bars), default=0.0)
    axes.set_xlim(0, reach * 1.55 or 1.0)
    axes.set_yticks(places, [ink.name(label) for label in _bar_labels(panel)])
    axes.set_ylim(len(panel.bars) - 0.5, -0.5)
    axes.set_title(ink.name(panel.title))
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", bottom=False, labelbottom=False)
    axes.spines["bottom"].set_visible(False)
    axes.grid(False)


def smoothing_window(num_steps: int) -> int:
    """An odd number of steps, about a tenth of the run, 1 for a short one.

    Example:
        >>> [smoothing_window(n) for n in (12, 20, 60, 100, 1000)]
        [1, 3, 7, 11, 51]
    """
    return 1 if num_steps < 16 else min(51, 2 * (num_steps // 20) + 1)


def smoothed(values: Values, window: int) -> list[float]:
    """Centred moving average over the values there are; NaN where the window holds none.

    Example:
        >>> smoothed((1.0, None, 3.0, 5.0), 3)
        [1.0, 2.0, 4.0, 4.0]
    """
    row = np.array(_gaps(values), dtype=float)
    reach = window // 2
    return [_mean(row[max(0, place - reach) : place + reach + 1].tolist()) for place in range(len(row))]


def _mean(values: Sequence[float]) -> float:
    there = [value for value in values if not np.isnan(value)]
    return float(np.mean(there)) if there else float("nan")


def _gaps(values: Values) -> list[float]:
    return [float("nan") if value is None else float(value) for value in values]


def _arms(records: Sequence[Curve] | Sequence[GateCurve] | Sequence[StepSizes]) -> list[str]:
    return list(dict.fromkeys(record.arm for record in records))


def _label(axes: Axes, *, x: str, y: str | None) -> None:
    axes.set_xlabel(x)
    if y is not None:
        axes.set_ylabel(y)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True, min_n_ticks=2))


def _arm_legend(figure: Figure, arms: Sequence[str]) -> None:
    handles = [
        Line2D(
            [],
            [],
            color=ink.look(index).colour,
            ls=ink.look(index).dash,
            lw=2.0,
            marker=ink.look(index).marker,
            ms=4,
            label=ink.name(arm, 18 if ink.is_narrow(figure.get_figwidth()) else ink.MAX_NAME),
        )
        for index, arm in enumerate(arms)
    ]
    _legend(figure, handles)


def _legend(figure: Figure, handles: Sequence[Artist]) -> None:
    columns = min(len(handles), 2 if ink.is_narrow(figure.get_figwidth()) else 5)
    figure.legend(handles=list(handles), loc="outside upper left", ncols=columns, columnspacing=1.4, handletextpad=0.5)


def _wanted(records: Sequence[object], what: str) -> None:
    if not records:
        raise ValueError(f"no {what} to draw; wanted at least one")


def _same_length(what: str, **rows: Sequence[object]) -> None:
    for (first, one), (second, other) in pairwise(rows.items()):
        if len(one) != len(other):
            raise ValueError(f"{what}: {first} has {len(one)} entries and {second} {len(other)}; wanted as many")

"""The curves of the page *How often is Deadheat wrong?*, drawn from the table in the house style of figures."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from deadheat.reports import ink

from .cells import ALPHA, OTHERS, RULE
from .designs import Votes
from .side_by_side import SEEDS, SIZES, TAUS
from .table import Row

FIGURES = Path(__file__).parents[2] / "docs" / "figures"
NO_GAP, GAP = "rules side by side, no gap", "rules side by side, gap of 6 pp"


def draw(rows: Sequence[Row], folder: Path = FIGURES) -> None:
    """Every figure of the page."""
    ink.save_figure(false_calls(rows), folder / "how-often-wrong.svg")
    ink.save_figure(power(rows), folder / "how-often-right.svg")


def false_calls(rows: Sequence[Row], *, width_in: float = ink.WIDE_IN) -> Figure:
    """False calls against the spread of the seeds, a panel per number of items; the band is ± 2 standard errors."""
    with ink.house_style():
        sheet = ink.sheet(len(SIZES), width_in=width_in, height_in=2.7, share_y=True)
        for axes, items in zip(sheet.panels, SIZES, strict=True):
            for index, reader in enumerate(OTHERS):
                labels = [Votes(seeds=3, items=items, tau=tau).label for tau in TAUS]
                _line(axes, index, reader, [100 * tau for tau in TAUS], _found(rows, NO_GAP, reader, labels))
            axes.axhline(100 * ALPHA, color=ink.MUTED, lw=0.8, ls=(0, (2, 2)))
            axes.set_title(f"3 seeds × {items:,} questions")
            axes.set_xlabel("spread of the seeds' own gaps τ (points)")
        axes.annotate(f"α = {ALPHA:.0%}", (10, 100 * ALPHA), (0, 3), textcoords="offset points", ha="right", fontsize=7)
        top = max(100 * row.rate for row in rows if row.claim == NO_GAP)
        sheet.panels[0].set_ylim(0, 1.05 * top)
        sheet.panels[0].set_ylabel("a winner is called\nwhere there is none (%)")
        _legend(sheet.figure, sheet.panels[0])
    return sheet.figure


def power(rows: Sequence[Row], *, width_in: float = ink.WIDE_IN) -> Figure:
    """Calls of a true gap against the number of seeds."""
    with ink.house_style():
        sheet = ink.sheet(1, width_in=width_in, height_in=2.7)
        (axes,) = sheet.panels
        labels = [Votes(seeds=seeds, items=500, tau=0.03, gap=0.06).label for seeds in SEEDS]
        for index, reader in enumerate(OTHERS):
            if found := _found(rows, GAP, reader, labels):
                _line(axes, index, reader, SEEDS, found)
        axes.set_xlabel("seeds, 500 questions each")
        axes.set_ylabel("a true gap of 6 points\nis called (%)")
        axes.set_xticks(SEEDS)
        axes.set_ylim(0, 104)
        _legend(sheet.figure, axes)
    return sheet.figure


def _found(rows: Sequence[Row], claim: str, reader: str, designs: Sequence[str]) -> list[Row]:
    by_design = {row.design: row for row in rows if (row.claim, row.reader) == (claim, reader)}
    return [by_design[design] for design in designs if design in by_design]


def _line(axes: Axes, index: int, reader: str, x: Sequence[float], rows: Sequence[Row]) -> None:
    look = ink.look(index)
    rates, label = [100 * row.rate for row in rows], f"{reader} (Deadheat)" if reader == RULE else reader
    band = [200 * row.se for row in rows]
    axes.plot(x, rates, color=look.colour, ls=look.dash, marker=look.marker, lw=1.6, ms=3.5, label=ink.name(label))
    low, high = ([rate + sign * half for rate, half in zip(rates, band, strict=True)] for sign in (-1, 1))
    axes.fill_between(x, low, high, color=look.colour, alpha=0.18, lw=0)


def _legend(figure: Figure, axes: Axes) -> None:
    columns = 2 if ink.is_narrow(figure.get_figwidth()) else 3
    handles = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    figure.legend(handles=handles, loc="outside upper left", ncols=columns, columnspacing=1.4, handletextpad=0.5)

"""The verdict page of a terminal: one screen, 80 columns, from plain records.

Names and sentences are set as text, never as Rich markup, and hidden characters in them are made visible.
"""

from dataclasses import dataclass

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from deadheat.reports.formats import format_p, format_signed, printable
from deadheat.reports.tone import Tone
from deadheat.stats.intervals import Interval

_STYLES = {
    Tone.CALLED: "green",
    Tone.NOT_CALLED: "yellow",
    Tone.NOTHING_LEARNED: "magenta",
    Tone.INCOMPLETE: "red",
    Tone.PLAIN: "blue",
}


@dataclass(frozen=True, kw_only=True)
class SeedLine:
    """One seed's row: both arms on the same held-out items, and how the items fell."""

    label: str  # "seed 0", or "pooled" for the row at the foot
    first: Interval  # first arm's share right
    second: Interval  # second arm's share right
    diff_pp: float  # first minus second, percentage points
    wins: int  # items that only the first arm got right
    losses: int  # items that only the second arm got right
    ties: int  # items on which they agree
    p_value: float  # exact two-sided binomial on wins and losses
    log10_p: float | None = None  # base-ten logarithm, for values below 1e-300; None: not needed


@dataclass(frozen=True, kw_only=True)
class VerdictScreen:
    """Everything one screen says about a race."""

    question: str  # what was asked
    sentence: str  # the verdict in a sentence
    tone: Tone
    arms: tuple[str, str]  # first and second arm
    seeds: tuple[SeedLine, ...]  # at least one
    pooled: SeedLine | None  # all seeds together; None: one seed only
    difference: str  # pooled difference with interval and n
    floor: str  # the smallest gap this table could have called
    cost: str  # tokens, seconds, FLOPs
    notes: tuple[str, ...] = ()  # what was left out, what differs between the arms
    report: str | None = None  # where report.html lies; None: not written

    def __post_init__(self) -> None:
        if not self.seeds:
            raise ValueError("verdict screen has no seed; wanted at least one")


def verdict_screen(screen: VerdictScreen) -> RenderableType:
    """The screen as something that Rich prints."""
    style = _STYLES[screen.tone]
    sentence = Text(printable(screen.sentence), style=f"bold {style}")
    panel = Panel(
        sentence, title=Text(_one_line(screen.question)), title_align="left", border_style=style, box=box.HEAVY
    )
    return Group(panel, seed_table(screen), Text(""), _lines(screen))


def seed_table(screen: VerdictScreen) -> Table:
    """A row per seed, the pooled row under a rule."""
    first, second = (_one_line(arm)[:18] for arm in screen.arms)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 0, 0, 1), header_style="bold")
    table.add_column("", no_wrap=True)
    for arm in (first, second):
        table.add_column(Text(f"{arm}\n% right [95%]"), justify="right", no_wrap=True)
    table.add_column("diff\npp", justify="right", no_wrap=True)
    table.add_column("won–lost–tied\nitems", justify="right", no_wrap=True)
    table.add_column("p\n", justify="right", no_wrap=True)
    for place, line in enumerate(screen.seeds):
        table.add_row(*_cells(line), end_section=screen.pooled is not None and place == len(screen.seeds) - 1)
    if screen.pooled is not None:
        table.add_row(*_cells(screen.pooled), style="bold")
    return table


def _cells(line: SeedLine) -> list[Text]:
    tally = f"{line.wins}–{line.losses}–{line.ties}"
    cells = (
        _one_line(line.label),
        _share(line.first),
        _share(line.second),
        format_signed(line.diff_pp),
        tally,
        format_p(line.p_value, line.log10_p),
    )
    return [Text(cell) for cell in cells]


def _share(interval: Interval) -> str:
    return f"{100 * interval.estimate:.1f} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def _lines(screen: VerdictScreen) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    rows = [
        ("difference", screen.difference),
        ("floor", screen.floor),
        ("items", _items(screen)),
        ("cost", screen.cost),
    ]
    rows += [("note", note) for note in screen.notes]
    for label, text in rows:
        grid.add_row(label, Text(printable(text)))
    if screen.report is not None:
        grid.add_row("report", Text(printable(screen.report), overflow="fold", style="underline"))
    return grid


def _items(screen: VerdictScreen) -> str:
    sizes = sorted({line.first.n for line in screen.seeds})
    left_out = sum(line.first.left_out + line.second.left_out for line in screen.seeds)
    n = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    missing = f"; {left_out:,} answers unscored and left out" if left_out else ""
    return f"n = {n} in each of {len(screen.seeds)} seeds{missing}" if len(screen.seeds) > 1 else f"n = {n}{missing}"


def _one_line(text: str) -> str:
    return " ".join(printable(text).split())

"""Parts of a terminal page: a banner with the answer, a table, a list of facts. Eighty columns, one screen.

Text is set as text, never as Rich markup, and hidden characters in it are made visible.
"""

from collections.abc import Sequence

from rich import box
from rich.console import RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from deadheat.reports.formats import printable
from deadheat.reports.tone import Tone

STYLES = {
    Tone.CALLED: "green",
    Tone.NOT_CALLED: "yellow",
    Tone.NOTHING_LEARNED: "magenta",
    Tone.INCOMPLETE: "red",
    Tone.PLAIN: "blue",
}


def banner(title: str, sentence: str, tone: Tone = Tone.PLAIN) -> RenderableType:
    """The answer in a box."""
    style = STYLES[tone]
    return Panel(
        Text(printable(sentence), style=f"bold {style}"),
        title=Text(one_line(title)),
        title_align="left",
        border_style=style,
        box=box.HEAVY,
    )


def grid(headings: Sequence[str], rows: Sequence[Sequence[str]], *, totals: Sequence[str] = ()) -> Table:
    """A table: first column flush left, the others flush right; `totals` stands bold under a rule."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for place, heading in enumerate(headings):
        table.add_column(Text(heading), justify="right" if place else "left", overflow="ellipsis", no_wrap=True)
    for place, row in enumerate(rows):
        table.add_row(*map(_cell, row), end_section=bool(totals) and place == len(rows) - 1)
    if totals:
        table.add_row(*map(_cell, totals), style="bold")
    return table


def facts(pairs: Sequence[tuple[str, str]]) -> Table:
    """Names and what is said of each; long text wraps beside its name."""
    lines = Table.grid(padding=(0, 2))
    lines.add_column(style="dim", no_wrap=True)
    lines.add_column(overflow="fold")
    for name, text in pairs:
        lines.add_row(Text(one_line(name)), Text(printable(text)))
    return lines


def one_line(text: str) -> str:
    """Text without line breaks and hidden characters."""
    return " ".join(printable(text).split())


def _cell(text: str) -> Text:
    return Text(one_line(text))

"""Any record as tables: shares with their intervals, plain values, and a sortable table for every list of records.

It knows dataclasses, intervals and T, not audits, so that a new audit is drawn without a line here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from math import isinf

from deadheat.reports.formats import MINUS, format_count
from deadheat.reports.page import Align, Block, Cell, Column, KeyValues, Page, Section, Table, Tone, render_page
from deadheat.stats.groups import Multiplier
from deadheat.stats.intervals import Interval

_MOST_ROWS = 400  # of one table on a page; the rest is in the JSON


def draw_html(title: str, sentence: str, record: object) -> str:
    """One record as a page of its own, for a notebook."""
    page = Page(
        title=title,
        question="",
        verdict_sentence=sentence,
        verdict_tone=Tone.PLAIN,
        sections=(Section(heading="What was counted", blocks=record_blocks(record)),),
        kicker="Deadheat audit",
    )
    return render_page(page)


def record_blocks(record: object) -> tuple[Block, ...]:
    """The blocks of one record: shares, values, then its lists."""
    shares: list[tuple[str, Interval]] = []
    values: list[tuple[str, str]] = []
    tables: list[Block] = []
    for name, value in _fields(record):
        heading = name.replace("_", " ")
        if isinstance(value, Interval):
            shares.append((heading, value))
        elif _is_rows(value):
            tables.append(_table(heading, value))
        elif is_dataclass(value) and any(_is_rows(item) for _, item in _fields(value)):
            tables += record_blocks(value)
        elif isinstance(value, Multiplier):
            values.append(("T = 1/(1 − shut)", f"{multiplier_text(value)}, n = {value.n:,}"))
        elif is_dataclass(value):
            tables.append(_table(heading, [value]))
        elif not isinstance(value, (Sequence, Mapping)) or isinstance(value, str) or value:
            values.append((heading, show(value)))
    blocks: list[Block] = []
    if shares:
        blocks.append(_share_table(shares))
    if values:
        blocks.append(KeyValues(pairs=tuple(values), code=False))
    return (*blocks, *tables)


def show(value: object) -> str:
    """A value as a reader wants it.

    Example:
        >>> show(None), show(1234), show(0.12345), show({"arm": "a", "step": "3"})
        ('–', '1,234', '0.1235', 'arm a, step 3')
    """
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, int):
        return format_count(value)
    if isinstance(value, float):
        return f"{value:.4g}".replace("-", MINUS)
    if isinstance(value, Interval):
        return interval_text(value)
    if isinstance(value, Multiplier):
        return multiplier_text(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {show(item)}" for key, item in value.items()) or "all"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(show, value)) or "–"
    if is_dataclass(value):
        return ", ".join(f"{name.replace('_', ' ')} {show(item)}" for name, item in _fields(value))
    return str(value)


def interval_text(interval: Interval) -> str:
    """A share, or any estimate, with its interval and n.

    Example:
        >>> from deadheat.stats.intervals import wilson
        >>> interval_text(wilson(117, 200))
        '58.5% [51.6, 65.1], n = 200'
    """
    if is_share(interval):
        scale, unit, digits = 100.0, "%", 1
    else:
        scale, unit, digits = 1.0, "", 2
    low, middle, high = (f"{scale * x:.{digits}f}" for x in (interval.low, interval.estimate, interval.high))
    if isinf(interval.low) and isinf(interval.high):
        return f"{middle}{unit} ({interval.note or 'no interval'}), n = {interval.n:,}".replace("-", MINUS)
    return f"{middle}{unit} [{low}, {high}], n = {interval.n:,}".replace("-", MINUS)


def is_share(interval: Interval) -> bool:
    """Whether an interval is one of a share."""
    return interval.method.startswith(("Wilson", "Clopper", "share"))


def multiplier_text(t: Multiplier) -> str:
    """T ± SE; where the SE is 0 because no group agrees, the interval instead.

    Example:
        >>> from deadheat.stats.groups import multiplier
        >>> from deadheat.stats.intervals import wilson
        >>> multiplier_text(multiplier(wilson(50, 100))), multiplier_text(multiplier(wilson(0, 5)))
        ('2.00 ± 0.20', '1.00 [1.00, 1.77]')
        >>> multiplier_text(multiplier(wilson(3, 3)))
        'without end'
    """
    if t.value is None:
        return "without end"
    high = "∞" if t.high is None else f"{t.high:.2f}"
    return f"{t.value:.2f} ± {t.se:.2f}" if t.se else f"{t.value:.2f} [{t.low:.2f}, {high}]"


def _fields(record: object) -> list[tuple[str, object]]:
    return [(f.name, getattr(record, f.name)) for f in fields(record)]  # type: ignore[arg-type]


def _is_rows(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and all(is_dataclass(item) for item in value)


def _share_table(shares: Sequence[tuple[str, Interval]]) -> Table:
    columns = (
        Column(heading="what"),
        Column(heading="value", align=Align.NUMBER),
        Column(heading="low", align=Align.NUMBER),
        Column(heading="high", align=Align.NUMBER),
        Column(heading="n", align=Align.NUMBER),
        Column(heading="left out", align=Align.NUMBER),
    )
    rows: tuple[tuple[str | Cell, ...], ...] = tuple(
        (name, *_interval_cells(interval), show(interval.left_out)) for name, interval in shares
    )
    return Table(columns=columns, rows=rows, caption=f"{shares[0][1].level:.0%} intervals")


def _interval_cells(interval: Interval) -> tuple[Cell, ...]:
    share = is_share(interval)
    return (
        *(
            Cell(text=(f"{100 * x:.1f}%" if share else f"{x:.4g}").replace("-", MINUS), order=x)
            for x in (interval.estimate, interval.low, interval.high)
        ),
        Cell(text=format_count(interval.n), order=interval.n),
    )


def _table(heading: str, rows: object) -> Table:
    assert isinstance(rows, Sequence)
    names = [f.name for f in fields(rows[0])]
    kept = [name for name in names if any(getattr(row, name) not in (None, (), {}, "") for row in rows)]
    numeric = {n for n in kept if all(isinstance(getattr(row, n), (int, float, Interval, type(None))) for row in rows)}
    columns = tuple(
        Column(heading=name.replace("_", " "), align=Align.NUMBER if name in numeric else Align.TEXT) for name in kept
    )
    cells: tuple[tuple[str | Cell, ...], ...] = tuple(
        tuple(_cell(getattr(row, name)) for name in kept) for row in rows[:_MOST_ROWS]
    )
    cut = f", the first {_MOST_ROWS} of {len(rows):,}; all with --json" if len(rows) > _MOST_ROWS else ""
    return Table(columns=columns, rows=cells, caption=heading + cut, sortable=len(cells) > 1, folded=len(cells) > 12)


def _cell(value: object) -> str | Cell:
    if isinstance(value, Interval):
        return Cell(text=interval_text(value), order=value.estimate)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Cell(text=show(value), order=float(value))
    return show(value)

"""The house style of figures: one palette, one page width, and how a figure becomes inline SVG or a file.

Figures are built with Matplotlib's object interface (no pyplot, no current figure). Text stays text, so that it can be
searched, read aloud and set in the reader's own font; the layout is computed with DejaVu Sans, which Matplotlib ships
and which is wider than the usual system fonts, so nothing that fitted can collide. Inline SVG has no colours of its
own: ink is `currentColor`, all other colours CSS variables with a fallback; one file serves light, dark and print.

The palette is that of Okabe and Ito (2008, "Color universal design"), told apart under the common colour-vision
deficiencies; arms also differ by marker and by dash.
"""

import hashlib
import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from deadheat.errors import RunFolderError
from deadheat.reports.formats import printable
from deadheat.reports.page import FigureBlock

WIDE_IN = 6.6  # the text column of a desktop page and of A4
NARROW_IN = 3.5  # a phone: same type size, panels one under the other
MAX_NAME = 36  # characters of a name in a figure

INK = "#1d2126"
MUTED = "#6c7480"
RULE = "#d3d8de"
PAPER = "#fffefd"
LIVE, ALL_RIGHT, ALL_WRONG, TIED_OTHER = "#0a9e73", "#57b4e9", "#e69f01", "#a0a5ab"
ARM_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
ARM_MARKERS = ("o", "s", "^", "D", "v", "P")
ARM_DASHES = ("-", (0, (5, 1.4)), (0, (1.2, 1.2)), (0, (6, 1.4, 1.2, 1.4)), (0, (3, 1)), (0, (8, 2)))

_VARIABLES = {
    INK: "currentColor",
    MUTED: "var(--muted, #6c7480)",
    RULE: "var(--rule, #d3d8de)",
    PAPER: "var(--paper, #fff)",
    LIVE: "var(--live, #0a9e73)",
    ALL_RIGHT: "var(--all-right, #57b4e9)",
    ALL_WRONG: "var(--all-wrong, #e69f01)",
    TIED_OTHER: "var(--tied-other, #a0a5ab)",
} | {colour: f"var(--arm-{number}, {colour})" for number, colour in enumerate(ARM_COLOURS, start=1)}

_FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif"
_STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.labelcolor": INK,
    "axes.labelsize": 8.5,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 8.5,
    "axes.titleweight": "bold",
    "figure.facecolor": "none",
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.5,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "legend.borderpad": 0.0,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "lines.solid_capstyle": "round",
    "savefig.facecolor": "auto",
    "savefig.pad_inches": 0.04,
    "svg.fonttype": "none",
    "svg.hashsalt": "deadheat",
    "text.color": INK,
    "text.usetex": False,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "xtick.labelsize": 8,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "ytick.labelsize": 8,
}


@dataclass(frozen=True, kw_only=True)
class Look:
    """How one arm is drawn."""

    colour: str
    marker: str
    dash: Any  # a Matplotlib line style


def look(index: int) -> Look:
    """The look of the arm at `index`; no two of the first 36 share both colour and dash."""
    size = len(ARM_COLOURS)
    turn = (index + index // size) % size
    return Look(colour=ARM_COLOURS[index % size], marker=ARM_MARKERS[turn], dash=ARM_DASHES[turn])


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A figure and its panels, reading order."""

    figure: Figure
    panels: tuple[Axes, ...]
    title_limit: int  # characters of bold type that fit over one panel


@contextmanager
def house_style() -> Iterator[None]:
    """Matplotlib's settings while a figure is made or drawn; the caller's own come back afterwards."""
    settings: Any = {key: value for key, value in matplotlib.rcParamsDefault.items() if "backend" not in key} | _STYLE
    with matplotlib.rc_context(settings):
        yield


def is_narrow(width_in: float) -> bool:
    """Whether panels go one under the other at this width."""
    return width_in < (WIDE_IN + NARROW_IN) / 2


def sheet(num_panels: int, *, width_in: float, height_in: float, share_y: bool = False) -> Sheet:
    """Panels of `height_in` each, two or three abreast; one under the other where the page is narrow."""
    columns = 1 if is_narrow(width_in) else min(num_panels, 3 if num_panels % 3 == 0 else 2)
    rows = -(-num_panels // columns)
    figure = Figure(figsize=(width_in, height_in * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharey=share_y).flatten().tolist()
    for spare in axes[num_panels:]:
        spare.set_visible(False)
    return Sheet(figure=figure, panels=tuple(axes[:num_panels]), title_limit=int(9.5 * width_in / columns) - 4)


def name(text: str, limit: int = MAX_NAME) -> str:
    """Foreign text as a label: on one line, nothing hidden, no mathematics, at most `limit` characters.

    Example:
        >>> name("lr $2$")
        'lr \\\\$2\\\\$'
    """
    text = " ".join(printable(text).split())
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return text.replace("$", r"\$")


def to_svg(figure: Figure, *, label: str) -> str:
    """The figure as an inline `<svg>`: same figure, same bytes; ids are unique to its content.

    `label` is what a screen reader says in place of the picture.
    """
    label = printable(label)
    buffer = io.StringIO()
    with house_style(), _no_glyph_warnings():
        _lay_out(figure)
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    body = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    body = re.sub(r"font: ([^;\"]*?px) 'DejaVu Sans'[^;\"]*", rf"font: \1 {_FONTS}", body)
    for colour, variable in _VARIABLES.items():
        body = body.replace(colour, variable)
    prefix = "f" + hashlib.sha256((label + body).encode()).hexdigest()[:10]
    body = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", body)
    return _labelled(body, label=label, prefix=prefix).strip()


def _labelled(svg: str, *, label: str, prefix: str) -> str:
    box = re.search(r'viewBox="[^"]*"', svg)
    assert box is not None, "Matplotlib wrote an SVG without a viewBox"
    rest = svg[svg.index(">") + 1 :]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" {box.group()}'
    return (
        f'{head} role="img" aria-labelledby="{prefix}-title">\n<title id="{prefix}-title">{escape(label)}</title>{rest}'
    )


def _lay_out(figure: Figure) -> None:
    """Places everything once and for all: laying one figure out again would move it in the last digits."""
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
        figure.set_layout_engine("none")


@contextmanager
def _no_glyph_warnings() -> Iterator[None]:
    """The reader's browser draws the text, so a glyph that DejaVu Sans lacks is not missing."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield


def save_figure(figure: Figure, path: Path) -> None:
    """Writes a figure to a file on white paper: SVG, PDF or PNG (200 dots per inch) by the suffix.

    Raises ValueError for another suffix, RunFolderError where the file cannot be written.
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("svg", "png", "pdf"):
        raise ValueError(f"figure file is {path.name!r}; wanted a name ending in .svg, .png or .pdf")
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    buffer = io.BytesIO()
    with house_style(), _no_glyph_warnings():
        _lay_out(figure)
        figure.savefig(buffer, format=kind, dpi=200, facecolor="white", metadata=dates[kind])
    try:
        path.write_bytes(buffer.getvalue())
    except OSError as error:
        raise RunFolderError(
            f"could not write the figure to {path}: {error.strerror}; name a file in a folder that exists"
        ) from error


def figure_block(draw: Callable[[float], Figure], *, label: str, caption: str) -> FigureBlock:
    """A block of a page from a figure drawn at both widths: the page shows the one that fits.

    `draw` takes the width in inches; `label` is read aloud in place of the picture.
    """
    wide, narrow = (to_svg(draw(width_in), label=label) for width_in in (WIDE_IN, NARROW_IN))
    return FigureBlock(svg=wide, narrow_svg=narrow, caption=caption)

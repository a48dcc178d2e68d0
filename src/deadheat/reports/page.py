"""One self-contained HTML page from records: a question, its verdict in a sentence, sections of blocks.

The file asks nothing of the network (a content-security policy forbids it), needs no script to be read, follows the
reader's light or dark setting, fits a phone and prints on A4. Text is escaped, and what a model wrote may contain
anything: control characters and marks that reorder a line are made visible, lines of any length wrap, and a completion
over `MAX_TEXT` characters is cut, with the number of characters left out.
"""

import base64
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from deadheat.errors import RunFolderError
from deadheat.reports.formats import MINUS, format_signed, printable, shortened
from deadheat.reports.tone import Tone as Tone

MAX_TEXT = 6_000  # characters of one prompt or completion


class Align(StrEnum):
    """How a column of a table is set."""

    TEXT = "text"  # flush left
    NUMBER = "number"  # flush right, digits of one width


class Grade(StrEnum):
    """What the checker said of one attempt."""

    RIGHT = "right"  # correct
    WRONG = "wrong"  # an answer that is not correct
    UNPARSED = "unparsed"  # no answer could be extracted
    UNSCORED = "unscored"  # the scorer gave no value; never counted as zero


_MARKS = {Grade.RIGHT: "✓", Grade.WRONG: "✗", Grade.UNPARSED: "?", Grade.UNSCORED: "–"}


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table."""

    heading: str
    unit: str | None = None  # set small under the heading; None: no unit
    align: Align = Align.TEXT


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A cell whose text and order are not the same."""

    text: str
    order: float | None = None  # what sorting compares; None: the text
    strong: bool = False  # set bold


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows under headings; wide ones scroll inside their own box."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str | Cell, ...], ...]  # as many cells in each as there are columns
    totals: tuple[tuple[str | Cell, ...], ...] = ()  # pooled rows, set apart at the foot and never sorted
    caption: str | None = None  # what the rows are, with n; None: none
    sortable: bool = False  # a click on a heading sorts, where scripts run
    folded: bool = False  # shown as its caption until it is opened; needs no script

    def __post_init__(self) -> None:
        for row in self.rows + self.totals:
            if len(row) != len(self.columns):
                raise ValueError(f"table row has {len(row)} cells; wanted {len(self.columns)}, one for each column")


@dataclass(frozen=True, kw_only=True)
class FigureBlock:
    """An inline vector figure with its caption, made by `ink.figure_block`."""

    svg: str  # trusted markup from `ink.to_svg`
    caption: str  # what is drawn, with n and what an interval is
    narrow_svg: str | None = None  # the same figure for a phone; None: the wide one is scaled


@dataclass(frozen=True, kw_only=True)
class Prose:
    """Paragraphs; a blank line starts a new one."""

    text: str


@dataclass(frozen=True, kw_only=True)
class KeyValues:
    """Names and values: an environment, digests, settings."""

    pairs: tuple[tuple[str, str], ...]
    caption: str | None = None  # None: none
    code: bool = True  # values in a fixed-width face


@dataclass(frozen=True, kw_only=True)
class Callout:
    """A sentence the reader must not miss: a caveat, a failed arm."""

    text: str
    warning: bool = False  # True: something went wrong; False: something to know


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One completion of a group."""

    text: str  # what the model wrote, unchanged
    grade: Grade
    reward: float | None  # what was learned from; None: unscored
    advantage: float | None  # None: left out of the update
    stop: str  # why it ended
    answer: str | None = None  # the extracted answer; None: nothing parsed

    @property
    def mark(self) -> str:
        """The grade as one character, for readers who do not see colour."""
        return _MARKS[self.grade]


@dataclass(frozen=True, kw_only=True)
class Transcript:
    """A group in text: the prompt, then every attempt with what it earned."""

    title: str  # where it was drawn: arm, seed, step
    prompt: str
    attempts: tuple[Attempt, ...]
    reference: str | None = None  # the gold answer; None: there is none
    note: str | None = None  # what this group shows; None: nothing to add
    folded: bool = False  # shown as its title and tally until it is opened; needs no script

    @property
    def num_right(self) -> int:
        """How many of the attempts are right."""
        return sum(attempt.grade is Grade.RIGHT for attempt in self.attempts)


Block = Table | FigureBlock | Prose | KeyValues | Callout | Transcript


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading, a sentence that says what follows, and the blocks."""

    heading: str
    lead: str | None = None  # None: the heading says enough
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Page:
    """A report."""

    title: str  # the race or the audit
    question: str  # what was asked
    verdict_sentence: str  # the answer, with n, interval and unit
    verdict_tone: Tone
    sections: tuple[Section, ...]
    footer: str = ""  # how to recompute it, digests, version; paragraphs as in Prose
    kicker: str = ""  # a few words over the title: "Deadheat race report"
    verdict_detail: str = ""  # a second sentence: what could have been called, why not


def render_page(page: Page) -> str:
    """The page as HTML: same records, same bytes."""
    environment = _environment()
    script, style = _source("sort.js"), _source("page.css")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    template = environment.get_template("page.html.j2")
    return template.render(page=page, script=Markup(script), style=Markup(style), script_digest=digest) + "\n"


def write_page(page: Page, path: Path) -> None:
    """Writes the page, whole or not at all: a reader never sees half a file."""
    draft = path.with_name(f".{path.name}.draft")
    try:
        draft.write_bytes(render_page(page).encode())
        os.replace(draft, path)  # noqa: PTH105
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise RunFolderError(
            f"could not write the report to {path}: {error.strerror}; free some space or name another folder"
        ) from error


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("deadheat.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "long_text": _long_text,
        "paragraphs": _paragraphs,
        "signed": _signed,
        "number": _number,
        "trusted": Markup,
    }
    environment.tests |= {kind.__name__: _is(kind) for kind in _BLOCKS}
    return environment


_BLOCKS: tuple[type, ...] = (Table, FigureBlock, Prose, KeyValues, Callout, Transcript, Cell)


def _is(kind: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, kind)


def _source(name: str) -> str:
    return Path(__file__).with_name("templates").joinpath(name).read_text(encoding="utf-8")


def _shown(value: object) -> object:
    """Every value that a template prints passes here: text loses what is invisible, markup stays."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _long_text(text: str) -> str:
    return shortened(text, MAX_TEXT)


def _paragraphs(text: str) -> list[str]:
    return [part.strip() for part in text.split("\n\n") if part.strip()]


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g}".replace("-", MINUS)


def _signed(value: float | None) -> str:
    return "none" if value is None else format_signed(value, 2)

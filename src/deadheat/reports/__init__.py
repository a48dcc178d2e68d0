"""Tables, figures, page frames: they know records, not jobs.

Names load with the module that holds them: a command that prints three lines pays neither for the page's templates nor for
Matplotlib.
"""

import typing as _typing

from deadheat.lazy import lookups as _lookups

if _typing.TYPE_CHECKING:
    from deadheat.reports.page import Page, Section, render_page, write_page
    from deadheat.reports.progress import track
    from deadheat.reports.tone import Tone

_HOMES = {
    "page": ("Page", "Section", "render_page", "write_page"),
    "progress": ("track",),
    "tone": ("Tone",),
}

__all__ = [
    "Page",
    "Section",
    "Tone",
    "render_page",
    "track",
    "write_page",
]

__getattr__, __dir__ = _lookups(__name__, _HOMES)

"""Tables, figures, page frames: they know records, not jobs.

Names load with the module that holds them: a command that prints three lines pays neither for the page's templates nor for
Matplotlib.
"""

import importlib as _importlib
import typing as _typing

if _typing.TYPE_CHECKING:
    from deadheat.reports.page import Page, Section, render_page, write_page
    from deadheat.reports.progress import track
    from deadheat.reports.terminal import SeedLine, VerdictScreen, verdict_screen
    from deadheat.reports.tone import Tone

_HOMES = {
    "page": ("Page", "Section", "render_page", "write_page"),
    "progress": ("track",),
    "terminal": ("SeedLine", "VerdictScreen", "verdict_screen"),
    "tone": ("Tone",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Page",
    "Section",
    "SeedLine",
    "Tone",
    "VerdictScreen",
    "render_page",
    "track",
    "verdict_screen",
    "write_page",
]


def __getattr__(name: str) -> _typing.Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__

"""Tables, figures, page frames: they know records, not jobs.

Figures live in `deadheat.reports.figures` and `.floors`, and are imported by name, so that a command which only prints
does not load Matplotlib.
"""

from deadheat.reports.page import Page, Section, Tone, render_page, write_page
from deadheat.reports.progress import track
from deadheat.reports.terminal import SeedLine, VerdictScreen, verdict_screen

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

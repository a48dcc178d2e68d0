import io

import pytest
from rich.console import Console, RenderableType

from deadheat.reports import Tone, track
from deadheat.reports.progress import Tracker
from deadheat.reports.sheets import banner, facts, grid


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def printed(part: RenderableType, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    console.print(part)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_grid_sets_its_totals_under_a_rule_and_a_heading_may_have_two_lines() -> None:
    lines = printed(grid(("seed", "gap\npp"), [["1", "+2.0"], ["2", "−10.0"]], totals=("all", "−4.0"))).splitlines()
    assert [line.split() for line in lines] == [
        ["gap"],
        ["seed", "pp"],
        ["─" * len(lines[2].rstrip())],
        ["1", "+2.0"],
        ["2", "−10.0"],
        [],
        ["all", "−4.0"],
    ]


def test_facts_wrap_beside_their_names() -> None:
    lines = printed(facts([("difference", "word " * 30), ("cost", "none")]), width=40).splitlines()
    assert max(map(len, lines)) <= 40
    assert lines[1].startswith(" " * 12 + "word") and lines[-1].split() == ["cost", "none"]


def test_text_is_text_and_never_markup_or_control_codes() -> None:
    text = printed(banner("[red]x[/red]\x1b[2J", "[bold]no[/nope] \x07", Tone.CALLED))
    text += printed(grid(("", "a"), [["\u202eevil", "[b]1[/b]"]])) + printed(facts([("n\x1b", "[red]f[/red]")]))
    assert (
        "[red]x[/red]" in text and "[bold]no[/nope] ‹U+0007›" in text and "[b]1[/b]" in text and "[red]f[/red]" in text
    )
    assert "\x1b" not in text and "\u202e" not in text


def log_of(clock: Clock, steps: list[tuple[float, int, str]], **options: object) -> list[str]:
    console = Console(width=200, file=io.StringIO(), force_terminal=False)
    with track("Racing", console=console, clock=clock, **options) as tracker:  # type: ignore[arg-type]
        for seconds, amount, note in steps:
            clock.now_s += seconds
            tracker.advance(amount, note=note)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_without_a_terminal_a_line_is_written_at_the_start_the_end_and_every_so_often() -> None:
    lines = log_of(Clock(), [(6, 1, "a"), (6, 1, "b"), (4, 1, "c"), (1, 1, "[d]\x1b[0m")], total=4, every_s=10)
    # the step at 6 s is within 10 s of the first line; at 12 s two of four are done: ETA 12·2/2 = 12 s
    assert lines == [
        "Racing: 0 of 4 (0%) · 0 s elapsed, ETA unknown",
        "Racing: 2 of 4 (50%) · 12 s elapsed, ETA 12 s · b",
        "Racing: 4 of 4 (100%) · 17 s elapsed · [d]‹U+001B›[0m",
    ]


def test_what_a_resumed_run_found_done_does_not_make_it_look_faster() -> None:
    lines = log_of(Clock(), [(30, 10, "")], total=100, done=50, every_s=1)
    # ten done in 30 s, forty left: 30·40/10 = 120 s, not 30·40/60 = 20 s
    assert lines[1] == "Racing: 60 of 100 (60%) · 30 s elapsed, ETA 2 min 00 s"


def test_a_terminal_gets_a_bar_with_the_same_figures() -> None:
    clock = Clock()
    console = Console(width=120, file=io.StringIO(), force_terminal=True, color_system=None, legacy_windows=False)
    with track("Racing", total=4, console=console, clock=clock) as tracker:
        clock.now_s += 12
        tracker.advance(2, note="checker, seed 1")
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "2/4" in text and "12 s elapsed, ETA 12 s" in text and "checker, seed 1" in text


def test_progress_never_passes_its_total_and_refuses_a_start_beyond_it() -> None:
    tracker = Tracker(total=3, done=2, clock=Clock(), show=lambda _: None)
    tracker.advance(5)
    assert (tracker.done, tracker.eta_s) == (3, 0.0)
    with pytest.raises(ValueError, match="4 of 3 done"):
        Tracker(total=3, done=4, clock=Clock(), show=lambda _: None)

import io

import pytest
from rich.console import Console

from deadheat.reports import SeedLine, Tone, VerdictScreen, track, verdict_screen
from deadheat.reports.progress import Tracker
from deadheat.stats.intervals import wilson
from deadheat.stats.significance import binomial_two_sided


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def seed_line(label: str, first: int, second: int, num: int, wins: int, losses: int, left_out: int = 0) -> SeedLine:
    test = binomial_two_sided(wins, losses)
    return SeedLine(
        label=label,
        first=wilson(first, num, left_out=left_out),
        second=wilson(second, num),
        diff_pp=100 * (first - second) / num,
        wins=wins,
        losses=losses,
        ties=num - wins - losses,
        p_value=test.p_value,
        log10_p=test.log10_p,
    )


def screen(**changes: object) -> VerdictScreen:
    fields: dict[str, object] = {
        "question": "addition: checker or plant?",
        "sentence": "Called: checker is ahead of plant by 46.0 points, n = 600.",
        "tone": Tone.CALLED,
        "arms": ("checker", "plant"),
        "seeds": (seed_line("seed 0", 117, 30, 200, 92, 5), seed_line("seed 1", 125, 29, 200, 101, 5, left_out=2)),
        "pooled": seed_line("pooled", 242, 59, 400, 193, 10),
        "difference": "+45.8 pp [+40.2, +51.9], n = 400",
        "floor": "3.9 pp could have been called",
        "cost": "30.3 k tokens, 7 min 00 s",
    }
    return VerdictScreen(**(fields | changes))  # type: ignore[arg-type]


def printed(view: VerdictScreen, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    console.print(verdict_screen(view))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_verdict_fits_one_screen_of_eighty_columns_with_every_figure_whole() -> None:
    text = printed(screen(report="runs/addition/report.html"))
    lines = text.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80
    seed = next(line for line in lines if line.startswith("seed 0"))
    # 117/200 and 30/200; (117 − 30)/200 = +43.5; 200 − 92 − 5 = 103 ties; 2·P(X ≤ 5 | 97, ½) = 8.59e-22
    assert seed.split() == [
        "seed",
        "0",
        "58.5",
        "[51.6,",
        "65.1]",
        "15.0",
        "[10.7,",
        "20.6]",
        "+43.5",
        "92–5–103",
        "8.59e-22",
    ]
    assert any(line.startswith("pooled") for line in lines)
    assert "n = 200 in each of 2 seeds; 2 answers unscored and left out" in text
    assert "runs/addition/report.html" in text


def test_names_are_text_and_never_markup_or_control_codes() -> None:
    text = printed(screen(arms=("[red]x[/red]", "\x1b[2J\u202eevil"), sentence="[bold]no[/nope] \x07"))
    assert "[red]x[/red]" in text and "[bold]no[/nope] ‹U+0007›" in text
    assert "\x1b" not in text and "\u202e" not in text


def test_a_screen_without_a_seed_is_refused() -> None:
    with pytest.raises(ValueError, match="wanted at least one"):
        screen(seeds=())


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

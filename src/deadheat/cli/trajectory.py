"""`deadheat trajectory`: a comparison read along training, and how often an early reading misleads."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deadheat.cli.sides import (
    AlphaOption,
    ItemOption,
    JsonOption,
    PlotOption,
    SeedOption,
    ValueOption,
    WhereOption,
    print_json,
    save_plot,
)

if TYPE_CHECKING:
    from deadheat.sides import Asked
    from deadheat.stats.curves import ArmTable, TrajectoryReport
    from deadheat.stats.effect import Effect


def trajectory(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUNS", help="Run folders, or one long results file with --arm and --step.")
    ],
    arm: Annotated[str, typer.Option(help="Results file: column that names the arm.")] = "arm",
    step: Annotated[str, typer.Option(help="Results file: column that holds the training step.")] = "step",
    item: ItemOption = None,
    value: ValueOption = None,
    seed: SeedOption = None,
    where: WhereOption = None,
    selection: Annotated[
        float, typer.Option(help="Share of the items, first ones first, that checkpoints are selected on.")
    ] = 0.5,
    shared_step: Annotated[int | None, typer.Option(help="Mid-training step; the middle one by default.")] = None,
    window: Annotated[int, typer.Option(min=2, help="Readings in a recent slope and a mean of the last.")] = 3,
    alpha: AlphaOption = 0.05,
    html: Annotated[Path | None, typer.Option("--html", help="Write a self-contained page with the figure.")] = None,
    json: JsonOption = False,
    plot: PlotOption = None,
) -> None:
    """Read every pair of arms at every checkpoint: sign flips, what separates, which summary foretells the end.

    Examples:

        deadheat trajectory runs/addition --plot trajectory.svg

        deadheat trajectory evaluations.csv --arm method --step step --html trajectory.html
    """
    from deadheat.sides import Asked
    from deadheat.stats.curves import trajectory_of

    asked = Asked(item=item, value=value, seed=seed, where=where or (), keep=(arm, step))
    tables = [table for run in runs for table in _tables(run, asked, len(runs) > 1)]
    report = trajectory_of(tables, selection_frac=selection, shared_step=shared_step, window=window, alpha=alpha)
    if plot is not None:
        from deadheat.reports.instruments import trajectory_figure

        save_plot(trajectory_figure(report.reading.pairs), plot)
    if html is not None:
        from deadheat.reports.page import write_page
        from deadheat.reports.trajectory_page import trajectory_page

        write_page(trajectory_page(report), html)
        typer.echo(f"page in {html}", err=True)
    if json:
        print_json(report)
    else:
        _print(report)


def _tables(run: str, asked: "Asked", several: bool) -> "list[ArmTable]":
    """The arms of a run folder, or of a long file; with several runs their names say which."""
    from deadheat.archive.arms import arms_of, is_run_folder, read_arm
    from deadheat.sides import load_results
    from deadheat.stats.curves import ArmTable, arm_tables

    path = Path(run)
    prefix = f"{path.name}:" if several else ""
    if path.is_dir() or is_run_folder(path):
        arms = [read_arm(path, arm) for arm in arms_of(path)]
        return [ArmTable(arm=prefix + a.arm, frame=a.frame, converged_step=a.converged_step) for a in arms]
    arm, step = asked.keep
    return arm_tables(load_results(run, asked).frame, arm=arm, step=step, prefix=prefix)


def _print(report: "TrajectoryReport") -> None:
    from rich.console import Console

    from deadheat.reports.sheets import banner, facts, grid

    reading, first = report.reading, report.reading.pairs[0]
    console = Console()
    console.print(
        banner(
            "trajectory",
            f"{first.arm_a} − {first.arm_b}: {first.flips} of {len(first.readings)} checkpoints point away from the "
            f"converged reading, {_gap(first.converged)}; {first.separated} clear of zero.",
        )
    )
    rows = [
        [
            f"{pair.arm_a} − {pair.arm_b}",
            _gap(pair.converged),
            f"{pair.flips}/{len(pair.readings)}",
            str(pair.on_converged_side),
            str(pair.separated),
            str(pair.opposed_pairs),
        ]
        for pair in reading.pairs[:6]
    ]
    console.print(grid(("pair", f"converged, pp, {first.level:.0%}", "flips", "agree", "clear", "opposed"), rows))
    if reading.scores:
        console.print()
        console.print(
            grid(
                ("summary", "right side", f"share, {first.level:.0%}"),
                [
                    [
                        score.summary.value,
                        f"{score.right}/{score.cells}",
                        f"{100 * score.share.estimate:.0f}% [{100 * score.share.low:.0f}, {100 * score.share.high:.0f}]",
                    ]
                    for score in reading.scores
                ],
            )
        )
    if report.four is not None:
        console.print()
        console.print(grid(("reading", f"A−B, pp, {first.level:.0%}", "won–lost", "p", "pool"), _four(report)))
    shown = report.notes[:4]
    more = len(report.notes) - len(shown)
    console.print(facts([("note", note) for note in shown] + ([("", f"… {more} more notes: --json")] if more else [])))


def _four(report: "TrajectoryReport") -> list[list[str]]:
    from deadheat.reports.formats import format_p

    four = report.four
    assert four is not None, "called only where the four readings are there"
    named = (four.converged_whole_pool, four.shared_step_selection_pool, four.selected_then_fresh, four.final_fresh)
    return [
        [
            reading.name,
            _gap(reading.effect),
            f"{reading.pooled.wins}–{reading.pooled.losses}",
            format_p(reading.test.p_value, reading.test.log10_p),
            reading.pool.value + ("*" if reading.selected_on else ""),
        ]
        for reading in named
    ]


def _gap(interval: "Effect") -> str:
    from deadheat.reports.formats import format_signed

    low, high = format_signed(100 * interval.low), format_signed(100 * interval.high)
    return f"{format_signed(100 * interval.estimate)} [{low}, {high}]"

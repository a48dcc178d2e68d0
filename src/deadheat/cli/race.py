"""`deadheat race`: run a race and print its verdict."""

from pathlib import Path
from typing import Annotated

import typer

from deadheat.cluster import Executor


def race(
    reference: Annotated[
        str, typer.Argument(metavar="RACE", help="A race file (.toml), or a bundled race: addition, tiny, cipher, …")
    ],
    out: Annotated[Path | None, typer.Option(help="Run folder; runs/NAME by default.")] = None,
    workers: Annotated[
        int,
        typer.Option(
            min=1, help="Local processes; 1 runs everything in this one. With ray: runs at once on a machine."
        ),
    ] = 1,
    executor: Annotated[
        Executor,
        typer.Option("--executor", help="ray: runs as tasks of a Ray cluster that sees --out (needs deadheat[ray])."),
    ] = Executor.LOCAL,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a race that was stopped, to the same bytes.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the verdict as JSON instead of a page.")] = False,
) -> None:
    """Race two or more recipes under shared randomness and say which is better, or what gap could have been called.

    Examples:

        deadheat race tiny

        deadheat race my-race.toml --workers 2 --out runs/first

        deadheat race my-race.toml --executor ray --out /shared/runs/first
    """
    import json as json_module

    from rich.console import Console

    from deadheat.race import as_record, load_race, read_race_text, run_race
    from deadheat.race.progress import race_progress
    from deadheat.race.run import refuse_used_folder
    from deadheat.race.screen import race_screen
    from deadheat.race.verdict import run_seconds

    config = load_race(reference)
    folder = out or Path("runs") / config.name
    refuse_used_folder(config, folder, workers=workers, resume=resume)
    with race_progress(config, folder) as observe:
        result = run_race(
            config,
            read_race_text(reference),
            folder,
            workers=workers,
            executor=executor,
            resume=resume,
            observe=observe,
        )
    console = Console()
    if json:
        typer.echo(json_module.dumps(as_record(result.verdict), indent=2))
    else:
        seconds = run_seconds(folder, config)
        report = folder / "report.html"
        console.print(race_screen(config, result.verdict, seconds=seconds, report=report, notes=result.notes))
    errors = Console(stderr=True)
    for failure in result.failures:
        errors.print(f"failed: {failure.identity.folder}: {failure.message}", style="red", markup=False, soft_wrap=True)
    if result.failures:
        errors.print(f"{len(result.failures)} runs failed; the others stand. Run again with --resume.", style="red")
        raise typer.Exit(1)

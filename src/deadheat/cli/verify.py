"""`deadheat verify`: recompute what a run folder says."""

from pathlib import Path
from typing import Annotated

import typer


def verify(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, such as runs/addition.")],
    json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Hash every file, grade every stored answer again, recompute advantages and verdict; name what does not match.

    Examples:

        deadheat verify runs/addition

        deadheat verify runs/addition --json
    """
    import json as json_module

    from rich.console import Console

    from deadheat.archive import plain
    from deadheat.race import verify_race

    errors = Console(stderr=True)
    result = verify_race(folder, observe=lambda part: errors.print(part, style="dim", markup=False))
    if json:
        typer.echo(json_module.dumps({"holds": result.holds, **plain(result)}, indent=2))
    else:
        for finding in result.findings:
            change = f": stored {finding.stored}, recomputed {finding.recomputed}" if finding.recomputed else ""
            typer.echo(f"MISMATCH {finding.file}: {finding.what}{change}")
        checked = (
            f"{result.num_files} files, {result.num_rows:,} answers, {result.num_advantages:,} advantages, 1 verdict"
        )
        typer.echo(f"{'holds' if result.holds else f'{len(result.findings)} mismatches'}: {checked} checked")
    if not result.holds:
        raise typer.Exit(1)

"""The verbs, and what happens to an error."""

import os
import sys

import typer
from rich.console import Console
from rich.text import Text

from deadheat import __version__
from deadheat.cli import (
    audit,
    census,
    cold,
    convert,
    floor,
    forecast,
    ledger,
    numerics,
    power,
    race,
    rescore,
    sample,
    spend,
    trajectory,
    verdict,
    verify,
)
from deadheat.errors import DeadheatError

app = typer.Typer(
    name="deadheat",
    help="Race reinforcement-learning recipes for language models, and never call a tie a win.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.command("audit")(audit.audit)
app.command("census")(census.census)
app.command("cold")(cold.cold)
app.command("convert")(convert.convert)
app.command("floor")(floor.floor)
app.command("numerics")(numerics.numerics)
app.command("power")(power.power)
app.command("race")(race.race)
app.command("rescore")(rescore.rescore)
app.command("sample")(sample.sample)
app.command("spend")(spend.spend)
app.command("trajectory")(trajectory.trajectory)
app.command("verdict")(verdict.verdict)
app.command("verify")(verify.verify)
app.add_typer(forecast.app)
app.add_typer(ledger.app)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"deadheat {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    pass


def main() -> None:
    """Run a verb; what the package raises on purpose is one message and exit status 2, anything else a traceback."""
    try:
        app()
    except DeadheatError as error:
        if os.environ.get("DEADHEAT_TRACEBACK"):
            raise
        Console(stderr=True).print(Text.assemble(("error: ", "bold red"), str(error)), soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        Console(stderr=True).print("stopped; what is on disk stands, and --resume goes on from it")
        sys.exit(130)

"""`deadheat forecast`: lock what is expected of a comparison before training, score it after."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deadheat.cli.sides import JsonOption, PlotOption, print_json, save_plot

if TYPE_CHECKING:
    from deadheat.stats.forecast import ForecastScore, PoolReading

app = typer.Typer(
    name="forecast", help="Lock what is expected of a comparison before training, score it after.", no_args_is_help=True
)
FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="TOML with a [forecast] table: a race file, or one of its own.")
]
PlanOption = Annotated[Path | None, typer.Option("--plan", help="The plan it is about, where FILE holds none.")]


@app.command("lock")
def lock(
    file: FileArgument,
    ledger: Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger it goes into, made if absent.")],
    plan: PlanOption = None,
    run: Annotated[
        Path | None,
        typer.Option("--run", help="Run folder; runs/NAME of a race file by default. Refused after step 1."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Write a forecast into a ledger; refused once a training step has run.

    Examples:

        deadheat forecast lock my-race.toml forecasts.jsonl

        deadheat forecast lock forecast.toml forecasts.jsonl --plan grid.yaml --run runs/grid
    """
    import tomllib

    from deadheat.archive.arms import steps_run
    from deadheat.stats.forecast import lock_forecast
    from deadheat.stats.forecast_file import read_forecast

    forecast = read_forecast(file, plan=_existing(plan))
    name = tomllib.loads(file.read_text(encoding="utf-8")).get("name", file.stem)
    entry = lock_forecast(ledger, forecast, steps_run=steps_run(run or Path("runs") / str(name)))
    if json:
        print_json(entry)
        return
    typer.echo(f"locked {forecast.forecast_id}: {forecast.gap_pp:+g} pp [{forecast.low_pp:+g}, {forecast.high_pp:+g}]")
    typer.echo(f"plan {forecast.plan_digest}")
    typer.echo(f"publish this hash somewhere dated: {entry.hash}")


@app.command("score")
def score(
    file: FileArgument,
    ledger: Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger it was locked in.")],
    plan: PlanOption = None,
    run: Annotated[Path | None, typer.Option("--run", help="Run folder whose verdict.json holds the readings.")] = None,
    reading: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME:GAP:LOW:HIGH:N[:SCORING]", help="A reading in points; repeatable."),
    ] = None,
    after_the_fact: Annotated[
        bool, typer.Option("--after-the-fact", help="The scoring of each --reading was decided once it was seen.")
    ] = False,
    json: JsonOption = False,
    plot: PlotOption = None,
) -> None:
    """Hold readings against a locked forecast: zero, the prediction, the side, at which pool size.

    Examples:

        deadheat forecast score my-race.toml runs/mine/forecast.jsonl --run runs/mine

        deadheat forecast score my-race.toml forecasts.jsonl --reading fresh:0.65:-1.6:2.9:2000
    """
    from deadheat.archive import read_json
    from deadheat.errors import ConfigError
    from deadheat.stats.forecast import score_forecast
    from deadheat.stats.forecast_file import check_locked, read_forecast, readings_of_verdict

    forecast = read_forecast(file, plan=_existing(plan))
    check_locked(ledger, forecast)
    readings = [_reading(text, after_the_fact) for text in reading or ()]
    if run is not None:
        if not (run / "verdict.json").is_file():
            raise ConfigError(f"{run} has no verdict.json; wanted the folder of a race that was judged")
        readings += readings_of_verdict(read_json(run / "verdict.json"))
    if not readings:
        raise ConfigError("no reading was given; wanted --run RUN, or --reading NAME:GAP:LOW:HIGH:N")
    found = score_forecast(forecast, readings)
    if plot is not None:
        from deadheat.reports.instruments import forecast_figure

        save_plot(forecast_figure(found), plot)
    if json:
        print_json(found)
    else:
        _print(found)


def _existing(plan: Path | None) -> Path | None:
    from deadheat.errors import ConfigError

    if plan is not None and not plan.is_file():
        raise ConfigError(f"--plan {plan} is not a file")
    return plan


def _reading(text: str, after_the_fact: bool) -> "PoolReading":
    from deadheat.errors import ConfigError
    from deadheat.stats.forecast import PoolReading

    name, *rest = text.split(":")
    try:
        gap, low, high, n = rest[:4]
        (scoring,) = rest[4:] or ["primary"]
        return PoolReading(
            name=name,
            gap_pp=float(gap),
            low_pp=float(low),
            high_pp=float(high),
            num_items=int(n),
            scoring=scoring,
            after_the_fact=after_the_fact,
        )
    except ValueError:
        raise ConfigError(
            f"--reading is {text!r}; wanted NAME:GAP:LOW:HIGH:N[:SCORING], such as fresh:0.65:-1.6:2.9:2000"
        ) from None


def _print(found: "ForecastScore") -> None:
    from rich.console import Console

    from deadheat.reports.formats import format_pp, format_signed
    from deadheat.reports.sheets import banner, facts, grid

    forecast = found.forecast
    low, high = format_signed(forecast.low_pp), format_signed(forecast.high_pp)
    console = Console()
    console.print(
        banner(
            f"forecast {forecast.forecast_id}, {forecast.date}",
            f"{forecast.words}: {format_pp(forecast.gap_pp)} [{low}, {high}]",
        )
    )
    rows = [
        [
            scored.reading.name[:20],
            f"{scored.reading.num_items:,}",
            f"{format_signed(scored.reading.gap_pp, 2)} [{format_signed(scored.reading.low_pp)}, "
            f"{format_signed(scored.reading.high_pp)}]",
            "yes" if scored.contains_zero else "no",
            "yes" if scored.contains_prediction else "no",
            scored.side.value,
            "" if scored.planned else "†",
        ]
        for scored in found.readings[:15]
    ]
    console.print(grid(("reading", "n", "pp", "0 in", "pred. in", "side", ""), rows))
    lines = [("refuted by", forecast.refuted_by)]
    lines += [("rescore", f"if {rescore.trigger}: {rescore.scoring}") for rescore in forecast.rescores]
    if not all(scored.planned for scored in found.readings):
        lines.append(("†", "a scoring that was neither primary nor locked, or decided after the reading was seen"))
    console.print(facts(lines))

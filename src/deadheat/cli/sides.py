"""Options that several verbs share, and what they print alike."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ItemOption = Annotated[str | None, typer.Option("--item", help="Column that names the item.")]
ValueOption = Annotated[str | None, typer.Option("--value", help="Column, metric or scorer that holds the score.")]
SeedOption = Annotated[str | None, typer.Option("--seed", help="Column that holds the seed.")]
WhereOption = Annotated[
    list[str] | None, typer.Option("--where", help="Keep rows with COLUMN=VALUE; repeatable.", metavar="COLUMN=VALUE")
]
SideOption = Annotated[
    str | None,
    typer.Option("--side", metavar="COLUMN[=A,B]", help="One long file: the column that tells the two sides apart."),
]
AlphaOption = Annotated[float, typer.Option(help="Two-sided level; intervals are at 1 − alpha.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the record as JSON instead of a page.")]
PlotOption = Annotated[Path | None, typer.Option("--plot", help="Write a figure: .svg, .png or .pdf.")]
KeyOption = Annotated[int, typer.Option("--key", min=0, help="Address of the randomness: same key, same bytes.")]


class RuleName(StrEnum):
    """How a winner is called; the same names as `stats.votes.Rule`, here so that --help loads no statistics."""

    SEEDS_AND_ITEMS = "seeds_and_items"
    TWO_PART = "two_part"
    STRICT_MAJORITY = "strict_majority"
    PER_SEED = "per_seed"
    POOLED = "pooled"


RuleOption = Annotated[
    RuleName, typer.Option("--rule", help="How a winner is called; the last four hold the seeds fixed.")
]


def save_plot(figure: "Figure", path: Path) -> None:
    """Write a figure, and say where."""
    from deadheat.errors import ConfigError
    from deadheat.reports.ink import save_figure

    try:
        save_figure(figure, path)
    except ValueError as error:
        raise ConfigError(f"--plot: {error}") from None
    typer.echo(f"figure in {path}", err=True)


def print_json(value: object) -> None:
    """Print a record as JSON."""
    import json

    from deadheat.archive import plain

    typer.echo(json.dumps(plain(value), indent=2, ensure_ascii=False))

"""`deadheat convert`: any log as Parquet in our schema."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from deadheat.archive import Converted, ReadOptions

MapOption = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="OURS=THEIRS", help="Name a column, such as --map group=uid; repeatable."),
]
FormatOption = Annotated[
    str | None,
    typer.Option("--format", help="Read as this tool's log: trl, verl, inspect …; found by content without."),
]
FilterOption = Annotated[
    str | None, typer.Option("--filter", help="Which filter of an lm-evaluation-harness log, such as strict-match.")
]
GroupSizeOption = Annotated[int | None, typer.Option("--group-size", min=1, help="G, where the log does not say it.")]


def convert(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A log of any known tool, or a folder of them.")],
    to: Annotated[Path, typer.Option("--to", help="A new folder for the archive.")],
    map_: MapOption = None,
    format_: FormatOption = None,
    filter_: FilterOption = None,
    group_size: GroupSizeOption = None,
    shard_rows: Annotated[int, typer.Option(min=1, help="Rows of one Parquet file.")] = 250_000,
    json: Annotated[bool, typer.Option("--json", help="Print what was read and written as JSON.")] = False,
) -> None:
    """Write a log of any known tool as an archive of ours: one Parquet row per rollout.

    Examples:

        deadheat convert runs/my-trl-run --to archives/my-trl-run

        deadheat convert attempts.csv --to archives/attempts --map group=uid --map reward=points
    """
    from deadheat.archive import convert as write_archive
    from deadheat.archive import read
    from deadheat.cli.sides import print_json
    from deadheat.reports import track

    archive = read(path, options=read_options(map_, format_, filter_, group_size))
    with track(f"convert {path.name}", total=archive.report.num_rows) as tracker:
        written = write_archive(archive, to, shard_rows=shard_rows, observe=tracker.advance)
    if json:
        print_json(written)
    else:
        say(written)


def read_options(
    map_: list[str] | None, format_: str | None, filter_: str | None, group_size: int | None
) -> "ReadOptions":
    """The reader's options, `--map` split into its two halves."""
    from deadheat.archive import ReadOptions
    from deadheat.errors import ConfigError

    pairs = [word for option in map_ or [] for word in option.split()]
    wrong = [pair for pair in pairs if not all(pair.partition("="))]
    if wrong:
        raise ConfigError(f"--map is {wrong[0]!r}; wanted OURS=THEIRS, such as --map reward=score")
    named = {ours: theirs for ours, _, theirs in (pair.partition("=") for pair in pairs)}
    return ReadOptions(map=named, format=format_, filter=filter_, group_size=group_size)


def say(written: "Converted") -> None:
    """Print what was read and written."""
    from deadheat.reports.formats import printable

    for line in written.report.lines():
        typer.echo(printable(line))
    typer.echo(
        f"{written.num_rows:,} rows in {written.num_shards:,} files, {written.num_bytes / 1e6:,.1f} MB: {written.out}"
    )

"""Options that several verbs share, and from the command line's words to two sides of results."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from deadheat.archive.results import ReadOptions, Results
    from deadheat.stats.comparison import Side

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
JsonOption = Annotated[bool, typer.Option("--json", help="Print the record as JSON instead of a page.")]
PlotOption = Annotated[Path | None, typer.Option("--plot", help="Write a figure: .svg, .png or .pdf.")]
KeyOption = Annotated[int, typer.Option("--key", min=0, help="Address of the randomness: same key, same bytes.")]


class RuleName(StrEnum):
    """How a winner is called; the same names as `stats.votes.Rule`, here so that --help loads no statistics."""

    TWO_PART = "two-part"
    STRICT_MAJORITY = "strict-majority"
    PER_SEED = "per-seed"
    POOLED = "pooled"


RuleOption = Annotated[RuleName, typer.Option("--rule", help="How a winner is called.")]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """How the columns of results files were named on the command line."""

    item: str | None = None
    value: str | None = None
    seed: str | None = None
    where: Sequence[str] = ()
    side: str | None = None
    keep: tuple[str, ...] = ()  # further columns to carry


def load_sides(references: Sequence[str], asked: Asked) -> "tuple[Side, Side, list[str]]":
    """The two sides and what their readers noted: two references, or one long file and `--side`."""
    from deadheat.errors import ConfigError

    if asked.side is not None:
        if len(references) != 1:
            raise ConfigError(f"--side splits one long file, and {len(references)} were named; name one")
        return _split(references[0], asked)
    if len(references) != 2:
        raise ConfigError(
            f"{len(references)} results named; wanted two, A and B, or one long file with --side COLUMN=A,B"
        )
    (a, notes_a), (b, notes_b) = (load_side(reference, asked) for reference in references)
    return a, b, [*notes_a, *notes_b]


def load_side(reference: str, asked: Asked) -> "tuple[Side, list[str]]":
    """A results file, or a checkpoint `RUN:arm@which` of a run folder with its own step 0 as baseline."""
    from deadheat.stats.comparison import Side

    if "@" in reference and not Path(reference).exists():
        return _checkpoint(reference)
    results = load_results(reference, asked)
    return Side(name=results.name, frame=results.frame), notes_of(results)


def load_results(reference: str, asked: Asked) -> "Results":
    """One results file."""
    from deadheat.archive.results import read_results

    return read_results(Path(reference), read_options(asked))


def read_options(asked: Asked) -> "ReadOptions":
    """The reader's options, `--where` split into its two halves."""
    from deadheat.archive.results import ReadOptions
    from deadheat.errors import ConfigError

    pairs = []
    for condition in asked.where:
        column, equals, wanted = condition.partition("=")
        if not equals:
            raise ConfigError(f"--where is {condition!r}; wanted COLUMN=VALUE, such as --where filter=strict-match")
        pairs.append((column, wanted))
    return ReadOptions(item=asked.item, value=asked.value, seed=asked.seed, where=tuple(pairs), keep=asked.keep)


def notes_of(results: "Results") -> list[str]:
    """What a reader must know of how a file was read."""
    notes = list(results.notes)
    if results.num_missing:
        notes.append(f"{results.name}: {results.num_missing:,} records without a score are left out, never zero")
    return notes


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


def _checkpoint(text: str) -> "tuple[Side, list[str]]":
    from deadheat.archive.arms import START, read_arm
    from deadheat.stats.checkpoints import Which, parse_reference
    from deadheat.stats.comparison import Side

    reference = parse_reference(text)
    arm = read_arm(Path(reference.run), reference.arm)
    side = Side(
        name=f"{reference.arm}@{text.rpartition('@')[2]}",
        frame=arm.at(reference.which.value, reference.step),
        baseline=arm.at(START),
        selected_on="the pool it is read on" if reference.which in (Which.PEAK, Which.CONVERGED) else None,
    )
    notes = [f"{text}: seeds without an outcome, left out: {', '.join(arm.unfinished)}"] if arm.unfinished else []
    return side, notes


def _split(reference: str, asked: Asked) -> "tuple[Side, Side, list[str]]":
    from dataclasses import replace

    from deadheat.errors import ConfigError
    from deadheat.stats.comparison import Side

    column, _, values = (asked.side or "").partition("=")
    results = load_results(reference, replace(asked, side=None, keep=(*asked.keep, column)))
    found = results.frame[column].drop_nulls().unique(maintain_order=True).to_list()
    wanted = values.split(",") if values else found
    if len(wanted) != 2 or not set(wanted) <= set(found):
        few = ", ".join(found[:8]) + (" …" if len(found) > 8 else "")
        raise ConfigError(
            f"--side {asked.side}: column {column!r} holds {few}; wanted two of them, --side {column}=A,B"
        )
    a, b = (Side(name=name, frame=_rows(results.frame, column, name)) for name in wanted)
    return a, b, notes_of(results)


def _rows(frame: "pl.DataFrame", column: str, name: str) -> "pl.DataFrame":
    return frame.filter(frame[column] == name).drop(column)

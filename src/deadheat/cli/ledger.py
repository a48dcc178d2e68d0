"""`deadheat ledger`: dated predictions in an append-only, hash-chained file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deadheat.cli.sides import JsonOption, PlotOption, print_json, save_plot

if TYPE_CHECKING:
    from deadheat.stats.ledger import Entry, Number, Settled

app = typer.Typer(name="ledger", help="Dated predictions in an append-only, hash-chained file.", no_args_is_help=True)
FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The ledger, JSON lines; add makes it.")]
MaybeFile = Annotated[Path | None, typer.Argument(metavar="[FILE]", help="The ledger; the bundled one by default.")]


@app.command("add")
def add(
    file: FileArgument,
    entry_id: Annotated[str, typer.Option("--id", help="Name of the entry, unique in the file.")],
    date: Annotated[str, typer.Option(help="YYYY-MM or YYYY-MM-DD.")],
    claim: Annotated[str, typer.Option(help="What is predicted, or what was found.")],
    refuted_by: Annotated[str, typer.Option(help="A prediction: the reading that would refute it.")] = "",
    about: Annotated[str | None, typer.Option(help="An outcome: id of the prediction it settles.")] = None,
    result: Annotated[str | None, typer.Option(help="An outcome: hit, refuted or undecided.")] = None,
    number: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE[:UNIT]", help="A named number; repeatable.")
    ] = None,
    source: Annotated[str, typer.Option(help="Where it is written.")] = "",
    evidence: Annotated[Path | None, typer.Option(help="A file it rests on; its SHA-256 is kept.")] = None,
    after_the_fact: Annotated[
        bool, typer.Option("--after-the-fact", help="The rule was decided once the reading was seen.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Append a prediction, or with --about the outcome of one.

    Examples:

        deadheat ledger add mine.jsonl --id aime --date 2026-07 --claim "will not repeat" --refuted-by "6 points again"

        deadheat ledger add mine.jsonl --id read --date 2026-08 --claim "1.2 points" --about aime --result hit
    """
    from deadheat.archive import sha256_file
    from deadheat.errors import ConfigError
    from deadheat.stats.ledger import Draft, EntryKind, Result, append_entry

    if result is not None and result not in list(Result):
        raise ConfigError(f"--result is {result!r}; wanted {', '.join(Result)}")
    if evidence is not None and not evidence.is_file():
        raise ConfigError(f"--evidence {evidence} is not a file")
    entry = append_entry(
        file,
        Draft(
            kind=EntryKind.PREDICTION if about is None else EntryKind.OUTCOME,
            entry_id=entry_id,
            date=date,
            claim=claim,
            numbers=tuple(_number(text) for text in number or ()),
            refuted_by=refuted_by,
            about=about,
            result=None if result is None else Result(result),
            source=source,
            digest="" if evidence is None else sha256_file(evidence),
            after_the_fact=after_the_fact,
        ),
    )
    if json:
        print_json(entry)
    else:
        typer.echo(f"{entry.draft.kind.value} {entry.draft.entry_id} appended; publish this hash somewhere dated:")
        typer.echo(entry.hash)


@app.command("list")
def list_entries(file: MaybeFile = None, json: JsonOption = False, plot: PlotOption = None) -> None:
    """Every entry, oldest first; margins against floors with --plot.

    Examples:

        deadheat ledger list

        deadheat ledger list mine.jsonl --plot margins.svg
    """
    entries = _read(file)
    if plot is not None:
        from deadheat.reports.floors import FloorPoint
        from deadheat.reports.instruments import margins_figure

        rows = [(e.draft.entry_id, {n.name: n.value for n in e.draft.numbers}) for e in entries]
        points = [
            FloorPoint(label=name, margin_pp=numbers["margin"], floor_pp=numbers["floor"])
            for name, numbers in rows
            if {"margin", "floor"} <= numbers.keys()
        ]
        save_plot(margins_figure(points), plot)
    if json:
        print_json(entries)
        return
    from rich.console import Console

    from deadheat.reports.sheets import facts

    shown = entries[-8:]
    console = Console()
    if len(shown) < len(entries):
        console.print(f"the last {len(shown)} of {len(entries)} entries; all with --json", style="dim")
    console.print(facts([pair for entry in shown for pair in _entry_lines(entry)]))


@app.command("score")
def score(file: MaybeFile = None, json: JsonOption = False) -> None:
    """Hits and refutations side by side, then what is undecided or open.

    Examples:

        deadheat ledger score mine.jsonl

        deadheat ledger score mine.jsonl --json
    """
    from deadheat.stats.ledger import score_ledger

    found = score_ledger(_read(file))
    if json:
        print_json(found)
        return
    from rich.console import Console

    from deadheat.reports.sheets import banner, facts, grid

    console = Console()
    settled = f"{len(found.hits)} hit, {len(found.refuted)} refuted, {len(found.undecided)} undecided"
    console.print(banner("ledger", f"{found.n} predictions: {settled}, {len(found.open)} open."))
    groups = (("hit", found.hits), ("refuted", found.refuted), ("undecided", found.undecided), ("open", found.open))
    rows = [_settled(name, item) for name, items in groups for item in items]
    console.print(grid(("prediction", "result", "outcomes", "claim"), rows[:15]))
    lines = [("shown", f"15 of {len(rows)}; all with --json")] if len(rows) > 15 else []
    if found.after_the_fact:
        lines.append(("note", f"{found.after_the_fact} outcomes rest on a rule decided after the reading was seen (†)"))
    console.print(facts(lines))


@app.command("verify")
def verify(file: FileArgument, json: JsonOption = False) -> None:
    """Check the chain; the first broken line is named with what is wrong with it.

    Examples:

        deadheat ledger verify mine.jsonl

        deadheat ledger verify mine.jsonl --json
    """
    from deadheat.stats.ledger import check_ledger, read_ledger

    damage = check_ledger(_existing(file))
    entries = () if damage else read_ledger(file)
    last = entries[-1].hash if entries else None
    if json:
        print_json({"holds": damage is None, "entries": len(entries), "last_hash": last, "damage": damage})
    elif damage is None:
        typer.echo(f"holds: {len(entries)} entries, last hash {last}")
    else:
        typer.echo(f"BROKEN at line {damage.line}: {damage.damage.value}. {damage.detail}")
    if damage is not None:
        raise typer.Exit(1)


def _read(file: Path | None) -> "tuple[Entry, ...]":
    from deadheat.stats.ledger import bundled_ledger, read_ledger

    return bundled_ledger() if file is None else read_ledger(_existing(file))


def _existing(file: Path) -> Path:
    from deadheat.errors import ConfigError

    if not file.is_file():
        raise ConfigError(f"{file} is not a file; wanted a ledger, which `deadheat ledger add` makes")
    return file


def _number(text: str) -> "Number":
    from deadheat.errors import ConfigError
    from deadheat.stats.ledger import Number

    name, equals, rest = text.partition("=")
    value, _, unit = rest.partition(":")
    try:
        if not equals:
            raise ValueError("no =")
        return Number(name=name, value=float(value), unit=unit)
    except ValueError:
        raise ConfigError(
            f"--number is {text!r}; wanted NAME=VALUE or NAME=VALUE:UNIT, such as margin=6.7:points"
        ) from None


def _entry_lines(entry: "Entry") -> list[tuple[str, str]]:
    draft = entry.draft
    about = f" about {draft.about}: {draft.result.value}" if draft.result else ""
    mark = " †" if draft.after_the_fact else ""
    lines = [(draft.date, f"{draft.kind.value} {draft.entry_id}{about}{mark}"), ("", draft.claim)]
    if draft.numbers:
        lines.append(("", ", ".join(f"{n.name} {n.value:g} {n.unit}".strip() for n in draft.numbers)))
    if draft.refuted_by:
        lines.append(("", f"refuted by: {draft.refuted_by}"))
    return lines


def _settled(name: str, item: "Settled") -> list[str]:
    draft = item.prediction.draft
    mark = " †" if any(outcome.draft.after_the_fact for outcome in item.outcomes) else ""
    return [draft.entry_id[:20], name + mark, str(len(item.outcomes)), draft.claim[:36]]

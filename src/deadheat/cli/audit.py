"""`deadheat audit`: what did the groups teach, what did they cost, and what is a bug."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deadheat.cli.sides import JsonOption
from deadheat.cluster import Executor

if TYPE_CHECKING:
    from deadheat.archive import Archive
    from deadheat.audit import AuditOptions, AuditRecord, AuditReport, Gate
    from deadheat.audit.course import GateShift
    from deadheat.audit.questions import Observer
    from deadheat.stats.intervals import Interval

_LIST = "separated by commas"


class LossDivisorOption(StrEnum):
    """The divisors of `deadheat.audit.LossDivisor`, as typed."""

    ALL_GROUPS = "all-groups"
    ALL_TOKENS = "all-tokens"
    LIVE = "live-groups"


def audit(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A log file, or a folder of them; any of the formats.")],
    html: Annotated[Path | None, typer.Option("--html", help="Write a self-contained page with figures.")] = None,
    json: JsonOption = False,
    only: Annotated[str | None, typer.Option("--only", help=f"Audits to ask, {_LIST}.", metavar="gate,frozen")] = None,
    by: Annotated[
        str | None, typer.Option("--by", help=f"Ask again of each value of these columns, {_LIST}.", metavar="task,arm")
    ] = None,
    skill: Annotated[
        str | None, typer.Option("--skill", help="Sub-skill of the audit `frozen`: a column, NAME=VALUE or a regex.")
    ] = None,
    cap: Annotated[int | None, typer.Option("--cap", min=1, help="The token cap, or an earlier one to try.")] = None,
    map_: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="OURS=THEIRS", help="A column of the log under our name; repeatable."),
    ] = None,
    format_: Annotated[str | None, typer.Option("--format", help="Read as this format; found by default.")] = None,
    filter_: Annotated[str | None, typer.Option("--filter", help="Filter of an lm-evaluation-harness log.")] = None,
    group_size: Annotated[int | None, typer.Option("--group-size", min=1, help="G, where the log is silent.")] = None,
    expect: Annotated[str, typer.Option("--expect", help=f"Sizes at which a gate is expected, {_LIST}.")] = "4,8,16",
    first_draws: Annotated[
        int | None, typer.Option("--first-draws", min=1, help="Audit `stuck`: draws that selected a problem.")
    ] = None,
    noise_floor: Annotated[
        float | None, typer.Option("--noise-floor", min=0, help="The scorer's own movement on unchanged text.")
    ] = None,
    scorer: Annotated[
        str | None, typer.Option("--scorer", help="Score column of the audits `rescored` and `drift`.")
    ] = None,
    control_arm: Annotated[
        str | None, typer.Option("--control-arm", help="Audit `drift`: the arm trained without the scorer.")
    ] = None,
    loss_divisor: Annotated[
        LossDivisorOption | None,
        typer.Option("--loss-divisor", help="Audit `dilution`: what the trainer divides a batch's loss by."),
    ] = None,
    reference_source: Annotated[
        str | None, typer.Option("--reference-source", help="Audit `contested`: who wrote the reference.")
    ] = None,
    warm_up: Annotated[int, typer.Option("--warm-up", min=0, help="Audit `caps`: steps counted apart.")] = 0,
    num_parameters: Annotated[
        int | None, typer.Option("--num-parameters", min=1, help="Of the model, for FLOP proxies.")
    ] = None,
    usd_per_rollout: Annotated[
        float | None, typer.Option("--usd-per-rollout", min=0, help="Price of one score by the other scorer.")
    ] = None,
    recheck: Annotated[
        bool, typer.Option("--recheck", help="Audit `contested`: ask math-verify again (needs deadheat[train]).")
    ] = False,
    executor: Annotated[
        Executor, typer.Option("--executor", help="ray: count shards on a Ray cluster (needs deadheat[ray]).")
    ] = Executor.LOCAL,
) -> None:
    """Ask a log of any trainer what its groups taught. Nothing is trained, and nothing is changed.

    Ends with status 1 where the step ledger of a run folder does not add up.

    Examples:

        deadheat audit runs/addition

        deadheat audit completions/ --html page.html

        deadheat audit archive/ --only gate,dilution,clones,lengths --executor ray

        deadheat audit log.csv --map group=prompt_id --map reward=score --only gate,dilution --json
    """
    from deadheat.archive import ReadOptions, read
    from deadheat.audit import AUDITS, AuditOptions, LossDivisor
    from deadheat.reports import track

    options = AuditOptions(
        by=_listed(by), skill=skill, cap=cap, warm_up=warm_up, noise_floor=noise_floor, group_sizes=_sizes(expect),
        loss_divisor=None if loss_divisor is None else LossDivisor[loss_divisor.name],
        first_draws=first_draws, reference_source=reference_source, scorer=scorer, usd_per_rollout=usd_per_rollout,
        control_arm=control_arm, num_parameters=num_parameters, recheck=_math_verify() if recheck else None,
    )  # fmt: skip
    reading = ReadOptions(map=_mapped(map_ or []), format=format_, filter=filter_, group_size=group_size)
    archive = read(path, options=reading)
    wanted = _listed(only)
    with track("audit", total=len(wanted or AUDITS)) as tracker:
        report = _asked(archive, options, wanted, lambda done, note: tracker.advance(done, note=note), executor)
    if html is not None:
        from deadheat.audit.examples import example_groups
        from deadheat.audit.page import audit_page
        from deadheat.reports import write_page

        write_page(audit_page(report, example_groups(archive.rows, options)), html)
    if json:
        _print_json(report)
    else:
        _print(report, html)
    if any(record.is_broken for record in report.answered.values()):
        raise typer.Exit(1)


def _asked(
    archive: "Archive", options: "AuditOptions", only: tuple[str, ...], observe: "Observer", executor: Executor
) -> "AuditReport":
    from deadheat.audit import audit, audit_on
    from deadheat.cluster import open_cluster

    if executor is Executor.LOCAL:
        return audit(archive, options=options, only=only, observe=observe)
    with open_cluster() as cluster:
        return audit_on(cluster, archive, options=options, only=only, observe=observe)


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def _sizes(text: str) -> tuple[int, ...]:
    from deadheat.errors import ConfigError

    parts = _listed(text)
    if not parts or not all(part.isdigit() and int(part) > 1 for part in parts):
        raise ConfigError(f"--expect is {text!r}; wanted group sizes of at least 2, such as 4,8,16")
    return tuple(int(part) for part in parts)


def _mapped(pairs: Sequence[str]) -> dict[str, str]:
    from deadheat.errors import ConfigError

    found: dict[str, str] = {}
    for pair in ",".join(pairs).replace(" ", ",").split(","):
        ours, equals, theirs = pair.partition("=")
        if pair and not (ours and equals and theirs):
            raise ConfigError(f"--map is {pair!r}; wanted OURS=THEIRS, such as --map group=prompt_id")
        found |= {ours: theirs} if pair else {}
    return found


def _math_verify() -> "Callable[[str, str], bool | None]":
    """math-verify in a child process under a time limit; None where it could not say."""
    import atexit

    from deadheat.tasks.competition import BoxedCheck
    from deadheat.tasks.timed import TimedChecker
    from deadheat.types import Problem

    checker = TimedChecker(BoxedCheck(), limit_s=10.0)
    atexit.register(checker.close)

    def ask(reference: str, answer: str) -> bool | None:
        problem = Problem(task="audit", problem_id="", prompt="", reference=reference)
        return checker(problem, f"\\boxed{{{answer}}}").correct

    return ask


def _print_json(report: "AuditReport") -> None:
    import json

    from deadheat.archive import plain
    from deadheat.audit import as_json

    found = {"read": plain(report.read)} | {name: as_json(record) for name, record in report.found.items()}
    if report.parts:
        found["parts"] = [
            {"where": dict(part.where)} | {name: as_json(record) for name, record in part.found.items()}
            for part in report.parts
        ]
    typer.echo(json.dumps(found, indent=2, ensure_ascii=False))


def _print(report: "AuditReport", html: Path | None) -> None:
    from rich.console import Console

    from deadheat.audit import Gate
    from deadheat.reports.sheets import banner, facts

    console = Console()
    gate = report.found.get("gate")
    head = gate if isinstance(gate, Gate) else next(iter(report.answered.values()), None)
    sentence = "nothing could be asked of this log" if head is None else head.sentence
    console.print(banner(f"audit of {report.read.path}", sentence[:1].upper() + sentence[1:]))
    console.print(facts([("read" if place == 0 else "", line) for place, line in enumerate(report.read.lines())]))
    if isinstance(gate, Gate):
        _print_gate(console, gate)
    console.print(facts([(name, record.sentence) for name, record in report.answered.items() if record is not head]))
    if notes := _notes(report.answered):
        console.print(facts([("intervals", note) for note in notes]))
    for part in report.parts:
        heading = ", ".join(f"{name} {value}" for name, value in part.where.items())
        console.print(f"\n{heading}", style="bold", markup=False)
        console.print(facts([(name, record.sentence) for name, record in part.found.items()]))
    if report.missing:
        console.print("\nnot asked: a column or an option is missing", style="bold")
        console.print(facts([(name, record.sentence) for name, record in report.missing.items()]))
    if html is not None:
        console.print(f"page in {html}", style="dim", markup=False, soft_wrap=True)


def _notes(answered: "Mapping[str, AuditRecord]") -> list[str]:
    """What the intervals say about themselves, with the audits that say it."""
    from deadheat.audit.records import notes_of

    said: dict[str, list[str]] = {}
    for name, record in answered.items():
        for note in notes_of(record):
            said.setdefault(note, []).append(name)
    return [f"{', '.join(names)}: {note}" for note, names in said.items()]


def _print_gate(console: object, gate: "Gate") -> None:
    from rich.console import Console

    from deadheat.audit.draw import multiplier_text
    from deadheat.reports.sheets import facts, grid

    assert isinstance(console, Console)
    headings = ("gate", "groups", "tied % [95%]", "right–wrong–other", "T ± SE")
    rows: list[list[str]] = []
    marks: dict[str, str] = {}
    for reading in (*gate.readings, *gate.cells):
        if reading.shut_rate is None or reading.multiplier is None:
            continue
        mark = "" if reading.label is gate.label else _MARKS.get(reading.label.value, "")
        place = (", ".join(reading.where.values()) or reading.column)[:19] + mark
        marks |= {mark: reading.label.value} if mark else {}
        tied, t = reading.shut_rate, reading.multiplier
        kinds = (reading.all_right, reading.all_wrong, reading.tied_other)
        rows.append(
            [
                place,
                f"{tied.n:,}",
                f"{100 * tied.estimate:.1f} [{100 * tied.low:.1f}, {100 * tied.high:.1f}]",
                "–".join("" if kind is None else f"{100 * kind.estimate:.1f}" for kind in kinds),
                multiplier_text(t).replace("without end", "∞"),
            ]
        )
    if rows:
        console.print(grid(headings, rows[:_MOST_ROWS]))
    lines = [(f"  {mark}", f"{label}: {_MEANT[label]}") for mark, label in marks.items()]
    lines += [
        (
            f"at G = {e.group_size}",
            f"{100 * e.rate:.1f}%{_bounds(e.interval)} tied expected "
            f"({e.method}; plug-in {100 * e.plug_in:.1f}%, n = {e.n:,})",
        )
        for e in gate.expected
    ]
    if gate.expected and gate.chosen_arms:
        lines.append(("left out", f"of what is expected: {', '.join(gate.chosen_arms)}, drawn until groups differ"))
    lines += [("shift", _shift_text(shift)) for shift in gate.shifts]
    if (tied_loss := gate.tied_loss) is not None:
        kl = "" if tied_loss.kl_alone is None else f", {100 * tied_loss.kl_alone.estimate:.1f}% the KL term alone"
        lines.append(
            ("tied steps", f"{tied_loss.zero.n:,}: {100 * tied_loss.zero.estimate:.1f}% have a loss of exactly 0{kl}")
        )
    console.print(facts(lines))


def _bounds(interval: "Interval | None") -> str:
    return "" if interval is None else f" [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def _shift_text(s: "GateShift") -> str:
    from deadheat.audit.problems import change_text

    parts = {"all right": s.all_right_part, "all wrong": s.all_wrong_part, "other": s.tied_other_part}
    each = [
        f"{name} {part:+.2f}" + (f" [{at.low:+.2f}, {at.high:+.2f}]" if at is not None else "")
        for (name, part), at in zip(parts.items(), map(s.part_intervals.get, _KINDS), strict=True)
    ]
    high = "∞" if s.change.high == float("inf") else f"{s.change.high:+.2f}"
    found = (
        f"{s.where + ': ' if s.where else ''}T {s.multiplier_first:.2f} → {s.multiplier_last:.2f}, "
        f"{s.change.estimate:+.2f} [{s.change.low:+.2f}, {high}], from {s.first} to {s.last}: {', '.join(each)}; "
        f"tied {change_text(s.tied_change)} (n = {s.num_groups[0]:,} and {s.num_groups[1]:,}"
    )
    if s.num_problems is not None:
        found += f"; {s.num_problems[0]:,} and {s.num_problems[1]:,} problems, {s.num_problems[2]:,} in both"
    same = (
        ""
        if s.tied_change_same is None
        else f"; over the problems in both alone, tied {change_text(s.tied_change_same)}"
    )
    return f"{found}){same}"


_KINDS = ("all_right", "all_wrong", "tied_other")
_MARKS = {"recomputed": "*", "untrained": "°", "top-up": "^", "not kept": "†", "held out": "'"}
_MEANT = {
    "recomputed": "another score of training rollouts; nothing was learned from it",
    "untrained": "sampled without training",
    "top-up": "fresh draws on problems that earlier ones selected",
    "not kept": "drawn in training and not learned from: what dynamic or adaptive drawing left",
    "held out": "drawn for an evaluation",
}
_MOST_ROWS = 24  # of the gate's table on one screen

"""`deadheat verdict`: is the gap between two sides of per-item results real?"""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deadheat.cli.sides import (
    AlphaOption,
    ItemOption,
    JsonOption,
    KeyOption,
    PlotOption,
    RuleName,
    RuleOption,
    SeedOption,
    SideOption,
    ValueOption,
    WhereOption,
    print_json,
    save_plot,
)

if TYPE_CHECKING:
    from deadheat.reports.verdict_words import Names
    from deadheat.stats.comparison import Comparison
    from deadheat.stats.verdict import Words

SCHEMA = "deadheat.verdict"
VERSION = 2


class Format(StrEnum):
    """How a verdict is printed."""

    TERMINAL = "terminal"
    MARKDOWN = "markdown"
    LATEX = "latex"
    HTML = "html"


class ResampledName(StrEnum):
    """Bootstrap intervals that are printed when asked for; the same names as `stats.resampling.Level`."""

    CROSSED = "crossed"
    QUESTION = "question"
    FLAT = "flat"
    NESTED = "nested"


class FixedName(StrEnum):
    """A side that is one model; the same names as `stats.verdict.Fixed`."""

    A = "A"
    B = "B"


def verdict(
    a: Annotated[
        str,
        typer.Argument(metavar="A", help="Results file, or RUN:arm@peak|final|converged|step-75; a run folder alone."),
    ],
    b: Annotated[
        str | None, typer.Argument(metavar="[B]", help="The other side; left out with --side and of a run folder.")
    ] = None,
    side: SideOption = None,
    item: ItemOption = None,
    value: ValueOption = None,
    seed: SeedOption = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", help="Column of passages, templates or the like: items drawn together.")
    ] = None,
    where: WhereOption = None,
    within: Annotated[
        float | None,
        typer.Option(help="Say a dead heat within ±this, in the unit of the scores (0.02 is two points of accuracy)."),
    ] = None,
    coupled: Annotated[
        bool | None,
        typer.Option(
            "--coupled/--uncoupled", help="A's seeds are B's. By default only of two checkpoints of one race."
        ),
    ] = None,
    fixed: Annotated[
        FixedName | None, typer.Option(help="A side that is one model without seeds: released weights, step 0.")
    ] = None,
    baseline_a: Annotated[str | None, typer.Option(help="Results of A before training.")] = None,
    baseline_b: Annotated[str | None, typer.Option(help="Results of B before training.")] = None,
    rule: RuleOption = RuleName.SEEDS_AND_ITEMS,
    tie_band: Annotated[float, typer.Option(min=0, help="Differences of at most this size are tied votes.")] = 0.0,
    alpha: AlphaOption = 0.05,
    power: Annotated[float, typer.Option(help="Power of the smallest gaps that are stated.")] = 0.80,
    interval: Annotated[
        list[ResampledName] | None, typer.Option(help="Add a bootstrap interval by name; it decides nothing.")
    ] = None,
    resamples: Annotated[int, typer.Option(min=100, help="Resamples of each --interval.")] = 4000,
    key: KeyOption = 1,
    json: JsonOption = False,
    plot: PlotOption = None,
    format: Annotated[Format, typer.Option(help="How the verdict is printed.")] = Format.TERMINAL,
    exit_code: Annotated[
        bool,
        typer.Option(
            "--exit-code",
            help="End with 0 called for A, 3 called for B, 4 these runs only for A, 5 for B, 6 dead heat, 7 not called, "
            "8 nothing learned. 1 and 2 stay errors.",
        ),
    ] = False,
) -> None:
    """Compare two sides item by item: called, these runs only, a dead heat within ±δ, or not called.

    Reads CSV, TSV, JSON lines, JSON, Parquet, lm-evaluation-harness samples and Inspect logs (.eval, .json).

    Examples:

        deadheat verdict base.jsonl.gz tuned.jsonl.gz --item idx --value score

        deadheat verdict runs/addition:checker@final runs/addition:plant@final --plot gap.svg

        deadheat verdict tuned.csv base.csv --fixed B --within 0.02 --exit-code

        deadheat verdict runs/addition
    """
    if b is None and _is_run(a):
        _look_again(a, json=json)
        return
    from dataclasses import replace

    from deadheat.sides import Asked, load_side, load_sides
    from deadheat.stats.comparison import compare
    from deadheat.stats.resampling import Level
    from deadheat.stats.verdict import Fixed, Terms
    from deadheat.stats.votes import Rule

    asked = Asked(item=item, value=value, seed=seed, where=where or (), side=side, cluster=cluster)
    sides = load_sides([a] if b is None else [a, b], asked)
    side_a, side_b, plain_asked = sides.a, sides.b, replace(asked, side=None, cluster=None)
    if baseline_a is not None:
        side_a = replace(side_a, baseline=load_side(baseline_a, plain_asked)[0].frame)
    if baseline_b is not None:
        side_b = replace(side_b, baseline=load_side(baseline_b, plain_asked)[0].frame)
    terms = Terms(
        alpha=alpha,
        power=power,
        rule=Rule(rule.value),
        within=within,
        tie_band=tie_band,
        coupled=sides.coupled if coupled is None else coupled,
        fixed=None if fixed is None else Fixed(fixed.value),
    )
    levels = [Level(name.value) for name in interval or ()]
    found = compare(side_a, side_b, terms, key=key, levels=levels, resamples=resamples)
    found = replace(found, notes=(*found.notes, *sides.notes))
    if plot is not None:
        from deadheat.reports.instruments import comparison_figure

        save_plot(comparison_figure(found), plot)
    if json:
        print_json({**summary(found), "comparison": found})
    elif format is not Format.TERMINAL:
        from deadheat.reports.tables import written

        typer.echo(written(format.value, _sentence(found), *_table(found)))
    else:
        _print(found)
    if exit_code:
        raise typer.Exit(_exit_codes()[found.verdict.words])


def _is_run(reference: str) -> bool:
    """A folder that `deadheat race` wrote; named alone it is judged as it stands, which is a look."""
    return (Path(reference) / "resolved.json").is_file()


def _look_again(reference: str, *, json: bool) -> None:
    """Judge a race's folder with what is there; the race file says how."""
    from rich.console import Console

    from deadheat.archive import read_json
    from deadheat.race import RaceConfig, as_record, look_again
    from deadheat.race.screen import race_screen
    from deadheat.race.verdict import run_seconds

    folder = Path(reference)
    found = look_again(folder)
    if json:
        print_json(as_record(found))
        return
    race, report = RaceConfig.from_resolved(read_json(folder / "resolved.json")), folder / "report.html"
    shown = report if report.is_file() else None
    Console().print(race_screen(race, found, seconds=run_seconds(folder, race), report=shown, notes=()))


def summary(found: "Comparison") -> dict[str, Any]:
    """The flat head of --json: schema, words, estimate, interval, p, n."""
    from deadheat.stats.verdict import CALLED, THESE_RUNS

    verdict, effect = found.verdict, found.verdict.effect
    scopes = {**dict.fromkeys(CALLED, "recipes"), **dict.fromkeys(THESE_RUNS, "these runs")}
    scope = scopes.get(verdict.words)
    smallest, at_tau = verdict.instrument.smallest, verdict.instrument.smallest_at_spread
    own, two = verdict.instrument.false_call, verdict.instrument.false_call_two_part
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "words": found.words,
        "winner": None if scope is None else "A" if effect.estimate > 0 else "B",
        "scope": scope,
        "within": verdict.within,
        "estimate": effect.estimate,
        "low": effect.low,
        "high": effect.high,
        "level": effect.level,
        "p_value": effect.p_value,
        "p_items": effect.p_items,
        "n": effect.n,
        "seeds": effect.num_seeds,
        "clusters": effect.num_clusters,
        "coupled": effect.coupled,
        "tau": None if effect.spread is None else effect.spread.tau,
        "two_part": None if verdict.votes.rule.value != "two_part" else verdict.votes.words,
        "won": verdict.votes.pooled.wins,
        "lost": verdict.votes.pooled.losses,
        "tied": verdict.votes.pooled.ties,
        "false_call_rate": None if own is None else own.false_call_frac,
        "false_call_rate_two_part": None if two is None else two.false_call_frac,
        "power": verdict.terms.power,
        "smallest_gap": None if smallest is None else smallest.gap,
        "smallest_gap_at_tau": None if at_tau is None else at_tau.gap,
        "is_share": verdict.is_share,
        "name_a": found.name_a,
        "name_b": found.name_b,
    }


def _exit_codes() -> "dict[Words, int]":
    from deadheat.stats.verdict import Words

    return {
        Words.CALLED_A: 0,
        Words.CALLED_B: 3,
        Words.THESE_RUNS_A: 4,
        Words.THESE_RUNS_B: 5,
        Words.DEAD_HEAT: 6,
        Words.NOT_CALLED: 7,
        Words.NOTHING_TO_RANK: 8,
    }


def _print(found: "Comparison") -> None:
    from rich.console import Console

    from deadheat.reports.sheets import banner, facts, grid
    from deadheat.reports.verdict_words import rule_name, tone

    console, verdict = Console(), found.verdict
    title = (
        f"A {found.name_a[:22]}, B {found.name_b[:22]}: {rule_name(verdict.terms.rule)}, α = {verdict.terms.alpha:g}"
    )
    console.print(banner(title, _sentence(found), tone(verdict)))
    headings, rows, totals = _table(found)
    shown = rows if len(rows) <= 6 else [*rows[:5], [f"… {len(rows) - 5} more", *[""] * (len(headings) - 1)]]
    console.print(grid(headings, shown, totals=totals))
    console.print(facts([*_facts(found), *(("note", note) for note in found.notes)]))


def _sentence(found: "Comparison") -> str:
    from deadheat.reports.verdict_words import Names, difference_words, headline

    return f"{headline(found.verdict, _names(found))}. {difference_words(found.verdict, Names(a='A', b='B'))}."


def _names(found: "Comparison") -> "Names":
    from deadheat.reports.verdict_words import Names

    return Names(a=found.name_a, b=found.name_b)


def _level(found: "Comparison", mean: float) -> str:
    return f"{100 * mean:.1f}" if found.verdict.is_share else f"{mean:.4g}"


def _table(found: "Comparison") -> tuple[list[str], list[list[str]], list[str]]:
    """Headings, a row per seed, the totals."""
    from deadheat.reports.formats import format_p
    from deadheat.reports.verdict_words import estimate_words, interval_words, signed_words

    verdict, unit = found.verdict, "%" if found.verdict.is_share else "mean"
    own = [_level(found, found.mean_a.estimate), _level(found, found.mean_b.estimate)]
    if found.side_rows:
        rows = [
            [f"{row.side} {row.seed[:16]}", *(_level(found, row.mean.estimate) if row.side == s else "" for s in "AB")]
            for row in found.side_rows
        ]
        headings, all_row = (
            ["seed", f"A {unit}", f"B {unit}", "A−B"],
            ["all", *own, f"{estimate_words(verdict, verdict.effect)}, {interval_words(verdict, verdict.effect)}"],
        )
        return headings, [[*row, ""] for row in rows], all_row
    headings = ["seed", f"A {unit}", f"B {unit}", "A−B", "over items", "won–lost–tied", "p"]
    rows = [
        [
            row.seed[:16],
            _level(found, row.mean_a.estimate),
            _level(found, row.mean_b.estimate),
            signed_words(verdict, row.difference.estimate),
            interval_words(verdict, row.difference),
            f"{row.tally.wins}–{row.tally.losses}–{row.tally.ties}",
            format_p(row.test.p_value, row.test.log10_p),
        ]
        for row in found.seed_rows
    ]
    votes = verdict.votes
    pooled = [
        "pooled",
        *own,
        signed_words(verdict, verdict.effect.estimate),
        interval_words(verdict, verdict.effect),
        f"{votes.pooled.wins}–{votes.pooled.losses}–{votes.pooled.ties}",
        format_p(votes.test.p_value, votes.test.log10_p),
    ]
    return headings, rows, pooled if len(rows) > 1 else []


def _facts(found: "Comparison") -> list[tuple[str, str]]:
    from deadheat.reports.verdict_words import (
        decided_by,
        false_call_words,
        half_width_words,
        rule_name,
        smallest_words,
        spread_words,
        vote_words,
    )

    verdict, names = found.verdict, _names(found)
    lines = _gains(found)
    lines += [("decided by", decided_by(verdict)), ("half-widths", half_width_words(verdict))]
    if verdict.effect.coupled:
        lines += [(f"{rule_name(verdict.votes.rule)} rule", vote_words(verdict, names))]
    else:
        lines += [("votes", f"on the items' means over seeds: {vote_words(verdict, names)}")]
    lines += [("false calls", false_call_words(verdict, names)), ("smallest gap", smallest_words(verdict))]
    if verdict.effect.spread is not None:
        lines.append(("seeds", spread_words(verdict)))
    scale = 100 if verdict.is_share else 1
    lines += [
        (
            f"{resampled.resampling.value}",
            f"{scale * resampled.estimate:+.3g}, {100 * resampled.level:.4g}% [{scale * resampled.low:+.3g}, "
            f"{scale * resampled.high:+.3g}] by percentile bootstrap; decides nothing",
        )
        for resampled in found.resampled
    ]
    return lines


def _gains(found: "Comparison") -> list[tuple[str, str]]:
    from deadheat.reports.verdict_words import estimate_words, interval_words

    lines = []
    for name, gain in zip(("gain A", "gain B"), found.verdict.gains, strict=False):
        said = "learned" if gain.learned else "lost" if gain.lost else "does not clear zero"
        value = estimate_words(found.verdict, gain.effect)
        lines.append(
            (
                name,
                f"{_level(found, gain.before)} → {_level(found, gain.after)}: {value}, "
                f"{interval_words(found.verdict, gain.effect)}, {said}",
            )
        )
    return lines

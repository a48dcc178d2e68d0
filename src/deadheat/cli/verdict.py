"""`deadheat verdict`: is the gap between two sides of per-item results real?"""

from typing import TYPE_CHECKING, Annotated

import typer

from deadheat.cli.sides import (
    Asked,
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
    load_side,
    load_sides,
    print_json,
    save_plot,
)

if TYPE_CHECKING:
    from deadheat.reports.page import Tone
    from deadheat.stats.comparison import Comparison


def verdict(
    a: Annotated[str, typer.Argument(metavar="A", help="Results file, or RUN:arm@peak|final|converged|step-75.")],
    b: Annotated[str | None, typer.Argument(metavar="[B]", help="The other side; left out with --side.")] = None,
    side: SideOption = None,
    item: ItemOption = None,
    value: ValueOption = None,
    seed: SeedOption = None,
    where: WhereOption = None,
    baseline_a: Annotated[str | None, typer.Option(help="Results of A before training.")] = None,
    baseline_b: Annotated[str | None, typer.Option(help="Results of B before training.")] = None,
    rule: RuleOption = RuleName.TWO_PART,
    tie_band: Annotated[float, typer.Option(min=0, help="Differences of at most this size are ties.")] = 0.0,
    alpha: Annotated[float, typer.Option(help="Two-sided level; intervals cover 1 − alpha.")] = 0.05,
    resamples: Annotated[int, typer.Option(min=100, help="Bootstrap resamples.")] = 4000,
    key: KeyOption = 1,
    json: JsonOption = False,
    plot: PlotOption = None,
) -> None:
    """Compare two sides item by item and call a winner, or say what gap this table could have called.

    Reads CSV, TSV, JSON lines, JSON, Parquet, lm-evaluation-harness samples and Inspect logs (.eval, .json).

    Examples:

        deadheat verdict base.jsonl.gz tuned.jsonl.gz --item idx --value score

        deadheat verdict runs/addition:checker@final runs/addition:plant@final --plot gap.svg
    """
    from dataclasses import replace

    from deadheat.stats.comparison import Settings, compare
    from deadheat.stats.votes import Rule

    asked = Asked(item=item, value=value, seed=seed, where=where or (), side=side)
    side_a, side_b, notes = load_sides([a] if b is None else [a, b], asked)
    if baseline_a is not None:
        side_a = replace(side_a, baseline=load_side(baseline_a, replace(asked, side=None))[0].frame)
    if baseline_b is not None:
        side_b = replace(side_b, baseline=load_side(baseline_b, replace(asked, side=None))[0].frame)
    settings = Settings(rule=Rule(rule.value), tie_band=tie_band, alpha=alpha, resamples=resamples)
    found = compare(side_a, side_b, settings, key=key)
    found = replace(found, notes=(*found.notes, *notes))
    if plot is not None:
        from deadheat.reports.instruments import comparison_figure

        save_plot(comparison_figure(found), plot)
    if json:
        print_json({"words": found.words, "comparison": found})
    else:
        _print(found)


def _print(found: "Comparison") -> None:
    from rich.console import Console

    from deadheat.reports.sheets import banner, facts, grid

    console = Console()
    rule = f"{found.verdict.rule.value} rule, α = {found.verdict.alpha:g}"
    title = f"A {found.name_a[:22]}, B {found.name_b[:22]}: {rule}"
    console.print(banner(title, _sentence(found), _tone(found)))
    rows = [_row(found, row.seed) for row in found.seed_rows]
    pooled = _pooled(found) if len(rows) > 1 else ()
    shown = rows if len(rows) <= 6 else [*rows[:5], [f"… {len(rows) - 5} more", "", "", "", "", ""]]
    console.print(grid(("seed", f"A {_unit(found)}", "B", "A−B", "won–lost–tied", "p"), shown, totals=pooled))
    console.print(
        facts([*_gains(found), *_intervals(found), *_votes(found), *(("note", note) for note in found.notes)])
    )


def _sentence(found: "Comparison") -> str:
    difference = found.differences[0]
    seeds = f"{len(found.seed_rows)} seed{'s' if len(found.seed_rows) > 1 else ''}"
    gap = (
        f"A−B = {_size(found, difference.estimate)} [{_size(found, difference.low, unit=False)}, "
        f"{_size(found, difference.high, unit=False)}], n = {found.n:,} items × {seeds}"
    )
    why = "; ".join(reason.value for reason in found.verdict.reasons)
    return f"{found.words[0].upper()}{found.words[1:]}. {gap}." + (f" Why: {why}." if why else "")


def _tone(found: "Comparison") -> "Tone":
    from deadheat.reports.page import Tone
    from deadheat.stats.rules import Words

    if found.verdict.words is Words.NOTHING_TO_RANK:
        return Tone.NOTHING_LEARNED
    return Tone.CALLED if found.verdict.called else Tone.NOT_CALLED


def _unit(found: "Comparison") -> str:
    return "%" if found.is_share else "mean"


def _size(found: "Comparison", gap: float, *, unit: bool = True) -> str:
    from deadheat.reports.formats import format_signed

    if not found.is_share:
        return format_signed(gap, 3)
    return format_signed(100 * gap, 2) + (" pp" if unit else "")


def _level(found: "Comparison", mean: float | None) -> str:
    return "–" if mean is None else f"{100 * mean:.1f}" if found.is_share else f"{mean:.4g}"


def _row(found: "Comparison", seed: str) -> list[str]:
    from deadheat.reports.formats import format_p

    row = next(row for row in found.seed_rows if row.seed == seed)
    t = row.tally
    return [
        row.seed[:16],
        _level(found, None if row.mean_a is None else row.mean_a.estimate),
        _level(found, None if row.mean_b is None else row.mean_b.estimate),
        "–" if row.difference is None else _size(found, row.difference, unit=False),
        f"{t.wins}–{t.losses}–{t.ties}",
        format_p(row.test.p_value, row.test.log10_p),
    ]


def _pooled(found: "Comparison") -> list[str]:
    from deadheat.reports.formats import format_p

    v = found.verdict
    return [
        "pooled",
        _level(found, found.mean_a.estimate),
        _level(found, found.mean_b.estimate),
        _size(found, found.differences[0].estimate, unit=False),
        f"{v.pooled.wins}–{v.pooled.losses}–{v.pooled.ties}",
        format_p(v.test.p_value, v.test.log10_p),
    ]


def _gains(found: "Comparison") -> list[tuple[str, str]]:
    sides = ("A", "B") if len(found.verdict.gains) == 2 else ("one side",)
    return [
        (
            f"gain {side}",
            f"{_level(found, gain.before)} → {_level(found, gain.after)}: {_size(found, gain.gain)} "
            f"[{_size(found, gain.interval.low, unit=False)}, {_size(found, gain.interval.high, unit=False)}] over its "
            f"baseline{'' if gain.learned else ', not clear'}",
        )
        for side, gain in zip(sides, found.verdict.gains, strict=False)
    ]


def _intervals(found: "Comparison") -> list[tuple[str, str]]:
    return [
        (
            interval.resampling.value,
            f"[{_size(found, interval.low, unit=False)}, {_size(found, interval.high, unit=False)}] {interval.sentence}"
            + (f" ({interval.note})" if interval.note else ""),
        )
        for interval in found.differences
    ]


def _votes(found: "Comparison") -> list[tuple[str, str]]:
    from deadheat.reports.formats import format_p

    v = found.verdict
    lines = []
    if len(found.seed_rows) > 1:
        h = v.homogeneity
        lines.append(
            (
                "seeds",
                f"χ² = {h.chi2:.1f} on {h.dof}, p = {format_p(h.p_value)}; seeds' own spread τ̂ = {100 * h.tau_frac:.1f} pp",
            )
        )
        lines.append(
            (
                "decided",
                f"{v.pooled.decided} pooled items, {v.expected_decided:.0f} expected if votes fell evenly over items",
            )
        )
    lines.append(("catchable", _catchable(found)))
    return lines


def _catchable(found: "Comparison") -> str:
    v = found.verdict
    if v.catchable is None:
        return "no item was decided: this table says nothing of the gap it could call"
    if v.catchable.gap_frac is None or v.catchable.win_share_gap_frac is None:
        return "not even a one-sided table of this size is called 4 times in 5"
    of_decided = f"{100 * v.catchable.win_share_gap_frac:.1f} of decided"
    text = f"{100 * v.catchable.gap_frac:.2f} pp of items ({of_decided}) called 4 in 5"
    if v.homogeneity.tau_frac and v.catchable_tau is not None:
        gap = v.catchable_tau.gap_frac
        text += f"; {'none' if gap is None else f'{100 * gap:.2f} pp'} at τ̂"
    return text

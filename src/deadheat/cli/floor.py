"""`deadheat floor`: the smallest gap a test of this size shows reliably."""

from typing import TYPE_CHECKING, Annotated

import typer

from deadheat.cli.sides import JsonOption, PlotOption, print_json, save_plot

if TYPE_CHECKING:
    from deadheat.stats.floor_question import FloorReport


def floor(
    n: Annotated[int | None, typer.Option("--n", min=1, help="Items (records, with --distinct).")] = None,
    p: Annotated[float | None, typer.Option("--p", help="Baseline accuracy in [0, 1].")] = None,
    margin: Annotated[float | None, typer.Option(help="Observed margin in percentage points.")] = None,
    n_b: Annotated[int | None, typer.Option("--n-b", min=1, help="Items of the other side, where they differ.")] = None,
    p_b: Annotated[float | None, typer.Option("--p-b", help="Accuracy of the other side, where known.")] = None,
    discordance: Annotated[
        float | None, typer.Option(help="Same items on both sides: share of them on which the sides differ.")
    ] = None,
    wins: Annotated[int | None, typer.Option(min=0, help="Votes won.")] = None,
    losses: Annotated[int | None, typer.Option(min=0, help="Votes lost.")] = None,
    ties: Annotated[int, typer.Option(min=0, help="Votes tied; dropped and counted.")] = 0,
    avg_k: Annotated[int | None, typer.Option("--avg-k", min=1, help="Attempts averaged per item.")] = None,
    item_variance: Annotated[
        float | None, typer.Option(help="Variance of the items' own success rates; averaging never shrinks it.")
    ] = None,
    distinct: Annotated[int | None, typer.Option(min=1, help="Distinct questions among the n records.")] = None,
    icc: Annotated[float | None, typer.Option(help="Correlation of records that repeat a question.")] = None,
    alpha: Annotated[float, typer.Option(help="Two-sided false-alarm rate.")] = 0.05,
    power: Annotated[float, typer.Option(help="Share of reruns that must show the gap.")] = 0.80,
    json: JsonOption = False,
    plot: PlotOption = None,
) -> None:
    """The smallest true gap a test of this size shows reliably, and how a margin reads against it.

    Examples:

        deadheat floor --n 30 --p 0.40 --margin 6.7

        deadheat floor --wins 80 --losses 86
    """
    from deadheat.stats.floor_question import FloorQuestion, floor_report

    report = floor_report(
        FloorQuestion(
            n=n, p=p, n_b=n_b, p_b=p_b, discordance=discordance, wins=wins, losses=losses, ties=ties, k=avg_k,
            item_variance=item_variance, distinct=distinct, icc=icc,
            margin_frac=None if margin is None else margin / 100, alpha=alpha, power=power,
        )
    )  # fmt: skip
    if plot is not None:
        from deadheat.reports.instruments import floor_figure

        save_plot(floor_figure(report), plot)
    if json:
        print_json(report)
    else:
        _print(report)


def _print(report: "FloorReport") -> None:
    from rich.console import Console

    from deadheat.reports.formats import format_p, format_pp
    from deadheat.reports.sheets import banner, facts
    from deadheat.reports.tone import Tone
    from deadheat.stats.floors import Zone

    floor = report.floor
    sentence = f"The floor is {report.floor_pp:.2f} points at n = {report.n:,.6g}."
    if report.unreachable:
        sentence = (
            f"No true gap is significant in {floor.power:.0%} of reruns at n = {report.n:,.6g}. The floor of "
            f"{report.floor_pp:.2f} points cannot be reached: {report.unreachable}."
        )
    tone = Tone.PLAIN
    if report.margin_pp is not None and report.ratio is not None and report.zone is not None:
        tone = {Zone.CLEAR: Tone.CALLED, Zone.BELOW: Tone.NOT_CALLED}.get(report.zone, Tone.NOTHING_LEARNED)
        sentence += f" A margin of {format_pp(report.margin_pp, 2)} is {report.ratio:.3f} of it: {report.zone.value}."
    unit = "decided votes" if report.win_share else "items"
    lines = [("compared", report.kind.value), ("floor", _floor(report)), ("significant", _significant(report))]
    if report.reachable_from is not None:
        lines.append(("reachable", f"from {report.reachable_from:,} {unit} on"))
    if report.items_needed is not None:
        lines.append(("to see it", f"{report.items_needed:,} {unit} make this margin as large as the floor"))
    if (share := report.win_share) is not None:
        p = format_p(share.test.p_value, share.test.log10_p)
        lines.append(("test", f"p = {p}, exact two-sided binomial; ties dropped: {floor.left_out}"))
    if (repeated := report.repeated) is not None:
        lines.append(
            ("as claimed", f"{repeated.as_claimed.floor_pp:.2f} pp if all {repeated.as_claimed.n:,.6g} were items")
        )
        lines.append(("distinct", f"{repeated.distinct_only.floor_pp:.2f} pp on {repeated.distinct_only.n:,.6g} alone"))
        lines.append(("effective", f"n = {repeated.n_effective:.1f}, design effect {repeated.design_effect:.3f}"))
    if report.two_standard_errors_pp is not None:
        lines.append(("2 SE", f"{report.two_standard_errors_pp:.2f} pp: a rule of thumb, no floor"))
    lines.append(("formula", f"z·SE, z = {floor.z:.5f}, SE = {100 * floor.se_frac:.2f} pp ({floor.method})"))
    if floor.note:
        lines.append(("note", floor.note))
    console = Console()
    console.print(banner("floor", sentence, tone))
    console.print(facts(lines))


def _floor(report: "FloorReport") -> str:
    if report.unreachable:
        return f"cannot be reached: {report.floor_pp:.2f} pp, and {report.unreachable}"
    return f"{report.floor_pp:.2f} pp: a true gap this large is significant in {report.floor.power:.0%} of reruns"


def _significant(report: "FloorReport") -> str:
    floor, bar_pp = report.floor, report.significance_bar_pp
    if not report.floor_pp:
        return "nothing to test"
    if floor.significance_bar_frac > floor.largest_frac:
        return f"never at α = {floor.alpha:g} two-sided: it would take {bar_pp:.2f} pp"
    return f"from {bar_pp:.2f} pp, {bar_pp / report.floor_pp:.0%} of the floor, at α = {floor.alpha:g} two-sided"

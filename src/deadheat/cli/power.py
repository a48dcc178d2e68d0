"""`deadheat power`: how often a rule would call a true gap, and the smallest gap it would."""

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
    load_sides,
    print_json,
    save_plot,
)

if TYPE_CHECKING:
    from deadheat.stats.power_report import PowerReport


def power(
    gap: Annotated[float | None, typer.Option(help="True gap in points of all items: wins − losses.")] = None,
    discordance: Annotated[float | None, typer.Option(help="Share of votes that are decided, in [0, 1].")] = None,
    n: Annotated[int | None, typer.Option("--n", min=1, help="Items; the table's own with --from.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds; the table's own with --from.")] = None,
    target: Annotated[float, typer.Option(help="Catch rate of the smallest gap.")] = 0.80,
    tau: Annotated[float | None, typer.Option(help="Spread of the seeds' own gaps, points.")] = None,
    share: Annotated[float | None, typer.Option(help="Share of items that ever vote: noise concentrated.")] = None,
    from_: Annotated[
        list[str] | None, typer.Option("--from", help="Measure the votes first: A and B, or one file with --side.")
    ] = None,
    side: SideOption = None,
    item: ItemOption = None,
    value: ValueOption = None,
    seed: SeedOption = None,
    where: WhereOption = None,
    tie_band: Annotated[float, typer.Option(min=0, help="With --from: differences up to this are ties.")] = 0.0,
    rule: RuleOption = RuleName.TWO_PART,
    alpha: Annotated[float, typer.Option(help="Two-sided level of the rule.")] = 0.05,
    reruns: Annotated[int, typer.Option(min=1000, help="Simulated reruns.")] = 200_000,
    key: KeyOption = 1,
    json: JsonOption = False,
    plot: PlotOption = None,
) -> None:
    """How often a rule would call a true gap at n items and S seeds, and the smallest gap it calls often enough.

    Examples:

        deadheat power --gap 3 --discordance 0.226 --n 500 --seeds 3

        deadheat power --gap 2 --from a.csv --from b.csv --seeds 5
    """
    from deadheat.errors import ConfigError
    from deadheat.stats.comparison import votes_of
    from deadheat.stats.power_report import power_from_votes, power_report
    from deadheat.stats.vote_models import Design, IidVotes, MixtureVotes, SeedEffects, VoteModel
    from deadheat.stats.votes import Rule

    gap_frac, rule_ = None if gap is None else gap / 100, Rule(rule.value)
    if from_:
        if discordance is not None or tau is not None or share is not None:
            raise ConfigError("--from measures the votes; leave out --discordance, --tau and --share")
        asked = Asked(item=item, value=value, seed=seed, where=where or (), side=side)
        side_a, side_b, _ = load_sides(from_, asked)
        votes_SN = votes_of(side_a, side_b, tie_band=tie_band)
        design = Design(num_items=n or votes_SN.shape[1], num_seeds=seeds or votes_SN.shape[0], rule=rule_, alpha=alpha)
        report = power_from_votes(votes_SN, gap_frac, design, key=key, target_frac=target, reruns=reruns)
    else:
        if discordance is None or n is None:
            raise ConfigError("wanted --discordance and --n (or --from A --from B, which measures them)")
        if tau is not None and share is not None:
            raise ConfigError("--tau and --share are two vote models; give one of them")
        model: VoteModel = IidVotes(discordance_frac=discordance)
        if tau is not None:
            model = SeedEffects(discordance_frac=discordance, tau_frac=tau / 100)
        elif share is not None:
            model = MixtureVotes(discordance_frac=discordance, share_frac=share)
        design = Design(num_items=n, num_seeds=seeds or 1, rule=rule_, alpha=alpha)
        report = power_report(gap_frac, model, design, key=key, target_frac=target, reruns=reruns)
    if plot is not None:
        from deadheat.reports.instruments import power_figure

        save_plot(power_figure(report), plot)
    if json:
        print_json(report)
    else:
        _print(report)


def _print(report: "PowerReport") -> None:
    from rich.console import Console

    from deadheat.reports.sheets import banner, facts, grid

    smallest = report.smallest
    design = smallest.design
    size = f"n = {design.num_items:,} items × {design.num_seeds} seed{'s' if design.num_seeds > 1 else ''}"
    if report.rate is not None:
        sentence = (
            f"A true gap of {100 * report.rate.gap_frac:.4g} points is called in {100 * report.rate.rate_frac:.1f}% of "
            f"reruns at {size}."
        )
    else:
        sentence = f"At {size}, the {design.rule.value} rule calls gaps from {_gap(smallest.gap_frac)}."
    console = Console()
    console.print(banner("power", sentence))
    seeds = sorted({cell.num_seeds for cell in report.grid})
    rows = []
    for num_items in sorted({cell.num_items for cell in report.grid}):
        cells = [cell for cell in report.grid if cell.num_items == num_items]
        marks = [
            f"{100 * cell.rate_frac:.0f}%" if cell.rate_frac is not None else f"{cell.pooled_floor_pp:.2f} pp"
            for cell in cells
        ]
        rows.append([f"{num_items:,} items", *marks])
    what = "catch rate" if report.rate is not None else "votes pooled"
    console.print(grid((what, *(f"{s} seed{'s' if s > 1 else ''}" for s in seeds)), rows))
    console.print()
    console.print(facts(_facts(report)))


def _facts(report: "PowerReport") -> list[tuple[str, str]]:
    smallest = report.smallest
    share = smallest.win_share_gap_frac
    lines = [
        (
            "smallest gap",
            f"{_gap(smallest.gap_frac)} of all items"
            + ("" if share is None else f" = {100 * share:.1f} points of decided votes")
            + f", called in {smallest.target_frac:.0%} of reruns",
        ),
        ("votes pooled", f"{report.pooled_floor.floor_pp:.2f} pp by z·sqrt(d/(N·S)): lower than what the rule catches"),
    ]
    if report.rate is not None:
        rate = report.rate
        lines.append(("wrong side", f"called in {100 * rate.wrong_frac:.2f}% of reruns"))
        lines.append(("decided", f"{rate.pooled_decided:.0f} pooled items in a rerun"))
    if (m := report.measured) is not None:
        held = "one seed cannot say" if m.share_frac is None else f"votes sit on {100 * m.share_frac:.0f}% of the items"
        lines.append(
            (
                "measured",
                f"d = {m.discordance_frac:.4f} on {m.n:,} items × {m.num_seeds} seeds; {m.decided} decided, "
                f"{m.expected_decided:.0f} expected; {held}; τ̂ = {100 * m.tau_frac:.1f} pp; "
                f"observed gap {100 * m.gap_frac:+.2f} pp",
            )
        )
    for rate in report.models:
        lines.append(("model", f"{rate.model}: {100 * rate.rate_frac:.1f}%"))
    lines.append(
        (
            "method",
            f"{smallest.design.rule.value} rule at α = {smallest.design.alpha:g}, {smallest.model}, "
            f"R = {(report.rate or smallest).reruns:,}, key {report.key}",
        )
    )
    return lines


def _gap(gap_frac: float | None) -> str:
    return "no gap" if gap_frac is None else f"{100 * gap_frac:.2f} points"

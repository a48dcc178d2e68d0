"""`deadheat power`: how often a rule would call a true gap, and the smallest gap it would."""

from typing import TYPE_CHECKING, Annotated

import typer

from deadheat.cli.sides import (
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
    from deadheat.stats.planning import GridCell, PowerPlan


def power(
    gap: Annotated[float | None, typer.Option(help="True gap in points of all items: wins − losses.")] = None,
    discordance: Annotated[float | None, typer.Option(help="Share of votes that are decided, in [0, 1].")] = None,
    n: Annotated[int | None, typer.Option("--n", min=1, help="Items; the table's own with --from.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds; the table's own with --from.")] = None,
    target: Annotated[float, typer.Option(help="Power of the smallest gap.")] = 0.80,
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
    rule: RuleOption = RuleName.SEEDS_AND_ITEMS,
    alpha: Annotated[float, typer.Option(help="Two-sided level of the rule.")] = 0.05,
    reruns: Annotated[int, typer.Option(min=1000, help="Simulated reruns.")] = 200_000,
    key: KeyOption = 1,
    json: JsonOption = False,
    plot: PlotOption = None,
) -> None:
    """How often a rule would call a true gap at n items and S seeds, and the smallest gap it calls often enough.

    A gap of 0 gives the false-call rate, both sides together.

    Examples:

        deadheat power --gap 3 --discordance 0.226 --n 500 --seeds 3

        deadheat power --gap 0 --tau 10 --discordance 0.3 --n 200 --seeds 3 --rule two_part

        deadheat power --gap 2 --from a.csv --from b.csv --seeds 5
    """
    from deadheat.errors import ConfigError
    from deadheat.stats.planning import plan_power, plan_power_from_votes
    from deadheat.stats.vote_models import Design, IidVotes, MixtureVotes, SeedEffects, VoteModel
    from deadheat.stats.votes import Rule

    gap_frac, rule_ = None if gap is None else gap / 100, Rule(rule.value)
    if from_:
        if discordance is not None or tau is not None or share is not None:
            raise ConfigError("--from measures the votes; leave out --discordance, --tau and --share")
        from deadheat.sides import Asked, load_sides
        from deadheat.stats.comparison import votes_of

        asked = Asked(item=item, value=value, seed=seed, where=where or (), side=side)
        sides = load_sides(from_, asked)
        votes_SN = votes_of(sides.a, sides.b, tie_band=tie_band)
        design = Design(num_items=n or votes_SN.shape[1], num_seeds=seeds or votes_SN.shape[0], rule=rule_, alpha=alpha)
        report = plan_power_from_votes(votes_SN, gap_frac, design, key=key, target_frac=target, reruns=reruns)
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
        report = plan_power(gap_frac, model, design, key=key, target_frac=target, reruns=reruns)
    if plot is not None:
        from deadheat.reports.instruments import power_figure

        save_plot(power_figure(report), plot)
    if json:
        print_json(report)
    else:
        _print(report)


def _print(report: "PowerPlan") -> None:
    from rich.console import Console

    from deadheat.reports.sheets import banner, facts, grid
    from deadheat.reports.verdict_words import plural

    console = Console()
    console.print(banner("power", _sentence(report)))
    seeds = sorted({cell.num_seeds for cell in report.grid})
    rows = []
    for num_items in sorted({cell.num_items for cell in report.grid}):
        cells = [cell for cell in report.grid if cell.num_items == num_items]
        rows.append([f"{num_items:,} items", *map(_mark, cells)])
    what = "false calls" if report.rate and not report.rate.gap else "called" if report.rate else "smallest gap"
    console.print(grid((what, *(plural(s, "seed") for s in seeds)), rows))
    console.print()
    console.print(facts(_facts(report)))


def _sentence(report: "PowerPlan") -> str:
    from deadheat.reports.verdict_words import plural, rule_name

    design, rate = report.smallest.design, report.rate
    size = f"n = {design.num_items:,} items × {plural(design.num_seeds, 'seed')}"
    said = "shown for these runs only" if report.false_call.these_runs_only else "called"
    if rate is None:
        power = f"{said} at {report.smallest.target_frac:.0%} power"
        return f"At {size}, by the {rule_name(design.rule)} rule: {_gap(report)} {power}."
    if not rate.gap:
        return f"With no true gap, a winner is {said} in {100 * rate.false_call_frac:.1f}% of reruns at {size}."
    return f"A true gap of {100 * rate.gap:.4g} points is {said} in {100 * rate.rate_frac:.1f}% of reruns at {size}."


def _mark(cell: "GridCell") -> str:
    if cell.rate_frac is not None:
        return f"{100 * cell.rate_frac:.1f}%" if cell.rate_frac < 0.1 else f"{100 * cell.rate_frac:.0f}%"
    return "none" if cell.smallest_pp is None else f"{cell.smallest_pp:.2f} pp"


def _facts(report: "PowerPlan") -> list[tuple[str, str]]:
    from deadheat.reports.verdict_words import plural, rule_name

    smallest, design = report.smallest, report.smallest.design
    share = smallest.win_share_gap_frac
    decided = " called" if share is None else f" of all items = {100 * share:.1f} points of decided votes,"
    lines = [
        ("smallest gap", f"{_gap(report)}{decided} at {smallest.target_frac:.0%} power"),
        ("false calls", f"{100 * report.false_call_rate:.2f}% of reruns without a gap, both sides together"),
    ]
    if design.rule.value == "seeds_and_items" and 1 in {cell.num_seeds for cell in report.grid}:
        lines.append(("1 seed", "says these runs only, never called: its column is of that"))
    if report.rate is not None:
        if report.rate.gap:
            lines.append(("wrong side", f"called in {100 * report.rate.wrong_frac:.2f}% of reruns"))
        if report.rate.pooled_decided is not None:
            lines.append(("decided", f"{report.rate.pooled_decided:.0f} pooled items in a rerun"))
    if (m := report.measured) is not None:
        held = "one seed cannot say" if m.share_frac is None else f"votes sit on {100 * m.share_frac:.0f}% of the items"
        lines.append(
            (
                "measured",
                f"d = {m.discordance_frac:.4f} on {m.n:,} items × {plural(m.num_seeds, 'seed')}; {m.decided} decided, "
                f"{m.expected_decided:.0f} expected; {held}; τ̂ = {100 * m.tau_frac:.1f} pp; "
                f"observed gap {100 * m.gap_frac:+.2f} pp",
            )
        )
    for rate in report.models:
        lines.append(("model", f"{rate.model}: {100 * rate.rate_frac:.1f}%"))
    method = f"{rule_name(design.rule)} rule at α = {design.alpha:g}, {(report.rate or smallest).model}, "
    lines.append(("method", f"{method}R = {(report.rate or smallest).reruns:,}, key {report.key}"))
    return lines


def _gap(report: "PowerPlan") -> str:
    gap, most = report.smallest.gap, report.smallest.most_gap
    if gap is None:
        return f"no gap up to {100 * most:.4g} points, the most there can be, is"
    return f"{100 * gap:.2f} points"

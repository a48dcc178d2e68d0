"""`deadheat spend`: what the next budget should buy."""

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
    read_options,
    save_plot,
)

if TYPE_CHECKING:
    from deadheat.stats.spend import Prices, SpendPlan, Step
    from deadheat.stats.spend_report import SpendReport


def spend(
    budget: Annotated[float, typer.Option(min=0, help="What may be spent.")],
    prices: Annotated[
        str, typer.Option(help="Prices in the budget's currency.", metavar="seed=3.5,pair=0.005,judge=0.3")
    ],
    from_: Annotated[
        list[str] | None,
        typer.Option("--from", help="Results: A and B, one file with --side, or one file of differences."),
    ] = None,
    side: SideOption = None,
    item: ItemOption = None,
    value: ValueOption = None,
    seed: SeedOption = None,
    judge: Annotated[str | None, typer.Option(help="Column that names the judge.")] = None,
    where: WhereOption = None,
    se: Annotated[float | None, typer.Option(help="Without --from: a stated standard error.")] = None,
    ratio: Annotated[float | None, typer.Option(help="Without --from: seed term over pair term.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Without --from: seeds behind --se.")] = None,
    n: Annotated[int | None, typer.Option("--n", min=1, help="Without --from: items behind --se.")] = None,
    gap: Annotated[float | None, typer.Option(help="Rank by how often the rule calls this gap, points.")] = None,
    rule: RuleOption = RuleName.TWO_PART,
    key: KeyOption = 1,
    json: JsonOption = False,
    plot: PlotOption = None,
) -> None:
    """Split the variance of a comparison and rank what the next budget could buy: seeds, questions or judges.

    Examples:

        deadheat spend --budget 5 --prices seed=3.5,pair=0.005,judge=0.3 --from a.csv --from b.csv

        deadheat spend --budget 5 --prices seed=3.5,pair=0.005,judge=0.3 --se 7.25 --ratio 12.4 --seeds 3 --n 325
    """
    from deadheat.errors import ConfigError
    from deadheat.stats.spend_report import CatchAsked, report_from_results, report_from_se
    from deadheat.stats.variance import Allocation
    from deadheat.stats.votes import Rule

    priced = _prices(prices)
    if from_:
        catch = None if gap is None else CatchAsked(gap_frac=gap / 100, rule=Rule(rule.value))
        asked = Asked(item=item, value=value, seed=seed, where=where or (), side=side, keep=(judge,) if judge else ())
        if side is None and len(from_) == 1:
            from pathlib import Path

            from deadheat.archive.results import read_results

            frame_a, frame_b = read_results(Path(from_[0]), read_options(asked)).frame, None
        else:
            side_a, side_b, _ = load_sides(from_, asked)
            frame_a, frame_b = side_a.frame, side_b.frame
        report = report_from_results(budget, priced, frame_a, frame_b, judge=judge, catch=catch, key=key)
    else:
        if se is None or ratio is None or seeds is None or n is None:
            raise ConfigError("wanted --from A --from B, or all of --se, --ratio, --seeds and --n")
        if gap is not None:
            raise ConfigError("--gap wants votes to measure: use it with --from")
        allocation = Allocation(num_seeds=seeds, num_pairs=seeds * n)
        report = report_from_se(budget, priced, se, ratio, allocation)
    if plot is not None:
        from deadheat.reports.instruments import spend_figure

        save_plot(spend_figure(report.plan), plot)
    if json:
        print_json(report)
    else:
        _print(report)


def _prices(text: str) -> "Prices":
    from deadheat.errors import ConfigError
    from deadheat.stats.spend import Prices

    try:
        given = {name: float(price) for name, _, price in (part.partition("=") for part in text.split(","))}
    except ValueError:
        given = {}
    if set(given) != {"seed", "pair", "judge"}:
        raise ConfigError(f"--prices is {text!r}; wanted seed=PRICE,pair=PRICE,judge=PRICE")
    return Prices(seed=given["seed"], pair=given["pair"], judge=given["judge"])


def _print(report: "SpendReport") -> None:
    from rich.console import Console

    from deadheat.reports.sheets import banner, facts, grid

    plan, scale = report.plan, 100.0 if report.is_share else 1.0
    best = plan.steps[0]
    console = Console()
    console.print(banner("spend", f"Best for {plan.budget:g}, by {plan.ranked_by}: {_bought(best)}."))
    by_rate = plan.ranked_by == "catch rate"
    headings = ("next step", "cost", "SE", "floor", "catch rate") if by_rate else ("next step", "cost", "SE", "floor")
    shown = list(dict.fromkeys([*plan.steps[:7], plan.now]))
    console.print(grid(headings, [_cells(step, scale, by_rate) for step in shown]))
    console.print()
    split = plan.split
    unit = " pp²" if report.is_share else ""
    parts = [
        ("seed", split.seed_var),
        ("item pairs", split.pair_var),
        ("judges", split.judge_var),
        ("scoring jitter", split.jitter_var),
    ]
    lines = [(name, f"{scale * scale * value:.4g}{unit} per single one") for name, value in parts]
    lines.append(("now", _now(plan, scale)))
    if split.judge_correlation is not None:
        r = split.judge_correlation
        lines.append(("judges", f"{split.allocation.num_judges} at r = {r:.2f} count as {split.effective_judges:.2f}"))
    if report.measured is not None:
        m = report.measured
        lines.append(("votes", f"d = {m.discordance_frac:.4f}, τ̂ = {100 * m.tau_frac:.1f} pp, n = {m.n:,}"))
    if split.left_out:
        lines.append(("left out", f"{split.left_out:,} items with a missing cell"))
    if split.note:
        lines.append(("note", split.note))
    console.print(facts(lines))


def _bought(step: "Step") -> str:
    kinds = ((step.add_seeds, "seed"), (step.add_questions, "question"), (step.add_judges, "judge"))
    parts = [f"{count} more {kind}{'s' if count > 1 else ''}" for count, kind in kinds if count]
    return ", ".join(parts) or "nothing"


def _cells(step: "Step", scale: float, by_rate: bool) -> list[str]:
    cells = [_bought(step), f"{step.cost:.2f}", f"{scale * step.se:.4g}", f"{scale * step.floor:.4g}"]
    return [*cells, f"{100 * step.catch.rate_frac:.1f}%" if step.catch else "–"] if by_rate else cells


def _now(plan: "SpendPlan", scale: float) -> str:
    have = plan.now.allocation
    return (
        f"SE {scale * plan.now.se:.4g} from {have.num_seeds} seeds, {have.num_pairs:,.6g} pairs, {have.num_judges} "
        f"judge{'s' if have.num_judges > 1 else ''}; floor {scale * plan.now.floor:.4g}"
    )

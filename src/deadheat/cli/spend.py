"""`deadheat spend`: what the next budget should buy."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

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
    from deadheat.stats.spend import Prices, SpendPlan, SpendReport, Step


class ItemsName(StrEnum):
    """Whose the questions are; the same names as `stats.variance.Items`."""

    SHARED = "shared"
    OWN = "own"


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
    items: Annotated[
        ItemsName, typer.Option(help="The same questions under every seed, or each seed its own.")
    ] = ItemsName.SHARED,
    gap: Annotated[
        float | None,
        typer.Option(help="Rank by how often the rule calls this gap: points of shares, else the scores' unit."),
    ] = None,
    rule: RuleOption = RuleName.SEEDS_AND_ITEMS,
    alpha: AlphaOption = 0.05,
    power: Annotated[float, typer.Option(help="Power of the smallest gap that steps are ranked by.")] = 0.80,
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
    from deadheat.stats.spend import Wanted, plan_from_results, plan_from_se
    from deadheat.stats.variance import Allocation, Items
    from deadheat.stats.votes import Rule

    priced = _prices(prices)
    wanted = Wanted(gap=gap, rule=Rule(rule.value), items=Items(items.value), alpha=alpha, power=power)
    if from_:
        from deadheat.sides import Asked, load_results, load_sides

        asked = Asked(item=item, value=value, seed=seed, where=where or (), side=side, keep=(judge,) if judge else ())
        if side is None and len(from_) == 1:
            frame_a, frame_b = load_results(from_[0], asked).frame, None
        else:
            sides = load_sides(from_, asked)
            frame_a, frame_b = sides.a.frame, sides.b.frame
        report = plan_from_results(budget, priced, frame_a, frame_b, wanted, judge=judge, key=key)
    else:
        if se is None or ratio is None or seeds is None or n is None:
            raise ConfigError("wanted --from A --from B, or all of --se, --ratio, --seeds and --n")
        if rule is not RuleName.SEEDS_AND_ITEMS:
            raise ConfigError(f"--rule {rule.value} wants votes to measure: use it with --from")
        allocation = Allocation(num_seeds=seeds, num_pairs=seeds * n)
        report = plan_from_se(budget, priced, se, ratio, allocation, wanted, key=key)
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
    last = "smallest gap" if plan.ranked_by == "smallest gap" else "called"
    shown = list(dict.fromkeys([*plan.steps[:7], plan.now]))
    console.print(grid(("next step", "cost", "SE", last), [_cells(step, scale) for step in shown]))
    console.print()
    split = plan.split
    unit = " pp²" if report.is_share else ""
    parts = [
        ("seed", split.seed_var),
        ("item", split.item_var),
        ("residual", split.residual_var),
        ("judges", split.judge_var),
        ("scoring jitter", split.jitter_var),
    ]
    lines = [(name, f"{scale * scale * value:.4g}{unit} per single one") for name, value in parts]
    lines.append(("now", _now(plan, scale)))
    lines.append(("questions", f"{split.items.value}: " + _ITEMS[split.items.value]))
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
    if plan.ranked_by == "smallest gap":
        lines.append(("ranked by", f"the smallest gap called at {plan.power:.0%} power over seeds and items"))
    console.print(facts(lines))


_ITEMS = {
    "shared": "more seeds never shrink the item part",
    "own": "every seed brings its own, so the item part falls with all pairs",
}


def _bought(step: "Step") -> str:
    kinds = ((step.add_seeds, "seed"), (step.add_questions, "question"), (step.add_judges, "judge"))
    parts = [f"{count} more {kind}{'s' if count > 1 else ''}" for count, kind in kinds if count]
    return ", ".join(parts) or "nothing"


def _cells(step: "Step", scale: float) -> list[str]:
    cells = [_bought(step), f"{step.cost:.2f}", f"{scale * step.se:.4g}"]
    if step.catch is not None:
        return [*cells, f"{100 * step.catch.rate_frac:.1f}%"]
    gap = None if step.smallest is None else step.smallest.gap
    return [*cells, "none" if gap is None else f"{scale * gap:.4g}"]


def _now(plan: "SpendPlan", scale: float) -> str:
    from deadheat.reports.verdict_words import plural

    have = plan.now.allocation
    return (
        f"SE {scale * plan.now.se:.4g} from {plural(have.num_seeds, 'seed')}, {have.num_pairs:,.6g} pairs, "
        f"{plural(have.num_judges, 'judge')}"
    )

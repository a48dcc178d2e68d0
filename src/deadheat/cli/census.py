"""`deadheat census`: published claims against their own benchmarks' floors."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deadheat.cli.sides import JsonOption, PlotOption, print_json, save_plot

if TYPE_CHECKING:
    from deadheat.stats.census import Census, CensusRow


def census(
    claims: Annotated[
        Path | None, typer.Argument(metavar="[CLAIMS.csv]", help="A claim per row; the bundled census by default.")
    ] = None,
    seeds: Annotated[
        bool, typer.Option("--seeds", help="The bundled count of papers stating seeds and spread.")
    ] = False,
    releases: Annotated[bool, typer.Option("--releases", help="What six reward-model releases report.")] = False,
    json: JsonOption = False,
    plot: PlotOption = None,
) -> None:
    """Hold published margins against the smallest gap their own benchmark can show.

    A claim file has the columns status, paper, version, benchmark, num_items, baseline, baseline_kind, baseline_pct
    and ours_pct; status is scored, tie, aside, candidate or excluded.

    Examples:

        deadheat census

        deadheat census my-claims.csv --plot margins.svg
    """
    from deadheat.errors import ConfigError
    from deadheat.stats.census import bundled_census, read_claims, releases_census, seeds_census
    from deadheat.stats.census import census as take_census

    if seeds or releases:
        if claims is not None or plot is not None or (seeds and releases):
            raise ConfigError(
                "--seeds and --releases are bundled tables of their own; give one, without file or --plot"
            )
        if json:
            print_json(seeds_census() if seeds else releases_census())
        elif seeds:
            _print_seeds()
        else:
            _print_releases()
        return
    if claims is not None and not claims.is_file():
        raise ConfigError(f"{claims} is not a file; wanted a CSV of claims, or nothing for the bundled census")
    found = bundled_census() if claims is None else take_census(read_claims(claims))
    if plot is not None:
        from deadheat.reports.instruments import census_figure

        save_plot(census_figure(found), plot)
    if json:
        print_json(found)
    else:
        _print(found)


def _print(found: "Census") -> None:
    from rich.console import Console

    from deadheat.reports.sheets import banner, facts, grid

    t = found.totals
    console = Console()
    console.print(
        banner("census", f"Clear of their floor: {t.clear} of {t.n} margins; median ratio {t.median_ratio:.2f}.")
    )
    rows = [_cells(row) for row in found.rows[:15]]
    console.print(grid(("claim", "n", "margin", "floor", "ratio", "zone"), rows))
    lines = [("zones", f"{t.clear} clear, {t.significant_only} significant but not repeatable, {t.below} below")]
    if len(found.rows) > 15:
        lines.append(("shown", f"the 15 largest ratios of {len(found.rows)}; all with --json"))
    if any(row.upper_bound for row in found.rows):
        lines.append(("*", "averaged over several attempts: the true floor is lower, the ratio higher"))
    if not all(row.reading.floor.reachable for row in found.rows):
        lines.append((">100", "the floor cannot be reached: no two accuracies differ by more than 100 points"))
    if t.left_out:
        lines.append(("apart", f"{t.left_out} claims not scored (ties, asides, candidates, exclusions); in --json"))
    lines.append(("counts", "of the rows given: claims that somebody chose are no sample, so no interval"))
    lines.append(("method", t.method))
    console.print(facts(lines))


def _cells(row: "CensusRow") -> list[str]:
    claim, reading = row.claim, row.reading
    mark = "*" if row.upper_bound else ""
    zone = {"significant but not repeatable": "significant"}.get(reading.zone.value, reading.zone.value)
    return [
        f"{claim.paper.split(' (')[0][:20]}, {claim.benchmark[:12]}",
        f"{claim.num_items:,}",
        f"{100 * reading.margin_frac:+.1f}",
        f"{reading.floor.floor_pp:.1f}" if reading.floor.reachable else ">100",
        f"{reading.ratio:.2f}{mark}",
        zone,
    ]


def _print_seeds() -> None:
    from rich.console import Console

    from deadheat.reports.sheets import banner, grid
    from deadheat.stats.census import seeds_census

    found = seeds_census()
    sentence = f"{found.neither} of {found.n} papers state neither seeds nor spread at their headline."
    console = Console()
    console.print(banner("census: seeds and spread", sentence))
    rows = [
        ["neither", str(found.neither)],
        ["seeds only", str(found.seeds_only)],
        ["spread only", str(found.spread_only)],
        ["both", str(found.both)],
    ]
    console.print(grid(("states", "papers"), rows, totals=("all", str(found.n))))
    console.print(f"{found.source}, {found.date}; a count of these papers, no sample of others", style="dim")


def _print_releases() -> None:
    from rich.console import Console

    from deadheat.reports.sheets import banner, grid
    from deadheat.stats.census import releases_census

    found = releases_census()
    with_interval = sum(release.interval_at_headline for release in found)
    console = Console()
    console.print(
        banner(
            "census: reward-model releases",
            f"{with_interval} of {len(found)} releases give an interval at the headline.",
        )
    )
    rows = [
        [
            release.release[:24],
            "–" if release.num_seeds is None else str(release.num_seeds),
            "yes" if release.interval_at_headline else "no",
            "–" if release.downstream_n is None else str(release.downstream_n),
            release.downstream_validation[:26] or "–",
        ]
        for release in found
    ]
    console.print(grid(("release", "seeds", "interval", "n down", "downstream"), rows))
    console.print("–: not stated or not recorded; --json has every field", style="dim")

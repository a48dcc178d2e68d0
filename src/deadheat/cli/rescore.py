"""`deadheat rescore`: grade stored rollouts again. Nothing is generated."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from deadheat.cli.convert import FilterOption, FormatOption, GroupSizeOption, MapOption


class ScorerName(StrEnum):
    """What grades."""

    CHECKER = "checker"


def rescore(
    path: Annotated[Path, typer.Argument(metavar="ARCHIVE", help="A run folder, an archive, or any known tool's log.")],
    task: Annotated[str, typer.Option("--task", help="The task whose checker grades: gsm8k, reasoning-gym:NAME …")],
    to: Annotated[Path, typer.Option("--to", help="A new folder for the graded archive.")],
    scorer: Annotated[ScorerName, typer.Option("--scorer", help="What grades.")] = ScorerName.CHECKER,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A task option, such as --set data=FOLDER; repeatable.")
    ] = None,
    map_: MapOption = None,
    format_: FormatOption = None,
    filter_: FilterOption = None,
    group_size: GroupSizeOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print what was graded as JSON.")] = False,
) -> None:
    """Grade stored rollouts again with a task's checker, into a new archive; the old reward stays as a component.

    Examples:

        deadheat rescore runs/addition --task addition --to archives/addition-again

        deadheat rescore verl_rollouts --task gsm8k --set data=gsm8k --set extraction=boxed --to archives/boxed
    """
    from deadheat.archive import convert as write_archive
    from deadheat.archive import plain, read
    from deadheat.cli.convert import read_options, say
    from deadheat.cli.sides import print_json
    from deadheat.errors import ArchiveError
    from deadheat.reports import track
    from deadheat.scorers import CheckerScorer, Rescorer
    from deadheat.tasks import load_task

    archive = read(path, options=read_options(map_, format_, filter_, group_size))
    if archive.summaries is not None:
        raise ArchiveError(f"{path} holds group summaries and no answers; wanted rollouts with their text")
    loaded = load_task(_config(task, set_))
    with CheckerScorer(loaded) as grader:
        rescorer = Rescorer(loaded, grader)
        with track(f"grade {path.name} as {task}", total=archive.report.num_rows) as tracker:
            written = write_archive(archive, to, shard_rows=20_000, transform=rescorer, observe=tracker.advance)
    if json:
        print_json({**plain(written), "num_scored": rescorer.num_scored, "num_unscored": rescorer.num_unscored})
        return
    say(written)
    if rescorer.other_tasks:
        typer.echo(f"the log calls its task {', '.join(sorted(rescorer.other_tasks))}; it was graded as {task}")
    typer.echo(f"{scorer.value} of {task}: {rescorer.num_scored:,} scored, {rescorer.num_unscored:,} unscored")


def _config(task: str, set_: list[str] | None) -> Any:
    import tomllib

    from deadheat.cli.sample import toml_line
    from deadheat.errors import ConfigError
    from deadheat.tasks import parse_task

    try:
        options = tomllib.loads("\n".join(map(toml_line, set_ or [])))
    except ValueError as error:
        raise ConfigError(f"--set cannot be read ({error}); wanted --set KEY=VALUE") from None
    return parse_task({"name": task, **options})

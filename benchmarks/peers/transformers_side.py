"""Plain transformers and peft: python -m peers.transformers_side FOLDER update|generate|continuous

    update      every completion with its prompt as one row of a batch: forward, backward, optimiser step
    generate    `model.generate` on all rows as one batch, run until the longest row is done
    continuous  continuous batching: rows enter and leave, prompt blocks are shared, the cache is sized for the work

The first turn writes what it computed from the job's inputs to theirs.npz; every further one is timed.
"""

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from peft import get_peft_model
from torch import Tensor
from transformers import AutoModelForCausalLM, GenerationConfig
from transformers.generation import ContinuousBatchingConfig

from peers.job import CLIP_NORM, LEARNING_RATE, Job
from peers.link import Link
from peers.lora import adapter_parameters, full_advantages, full_rows, gradients, load_adapter, lora_config

PAGE = 32  # tokens of a cache page
NO_STOP = -1  # an id no token has

Rollouts = Callable[[], list[list[int]]]


def load(job: Job) -> Any:
    """The stock model with the job's adapter."""
    model = get_peft_model(AutoModelForCausalLM.from_pretrained(job.model, dtype=torch.float32), lora_config())
    load_adapter(model, job)
    return model.eval()


def row_logprobs(model: Any, rows_BT: Tensor, num: int) -> Tensor:
    """[B, num] log-probability of each row's last tokens."""
    logits = model(input_ids=rows_BT[:, :-1], use_cache=False, logits_to_keep=num).logits
    chosen = logits.gather(-1, rows_BT[:, -num:, None]).squeeze(-1)
    return chosen - logits.logsumexp(-1)


def accumulate(model: Any, job: Job) -> Tensor:
    """Adds the gradient of −Σ_i A_i·mean_t ℓ_it / B, as many rows at once as the job says; the [B, T] log-probabilities."""
    seen, size = [], job.shape.micro_rows
    for rows, advantages in zip(full_rows(job).split(size), full_advantages(job).split(size), strict=True):
        logprobs = row_logprobs(model, rows, job.shape.answer_tokens)
        (-(advantages * logprobs.mean(-1)).sum() / job.shape.num_rows).backward()
        seen.append(logprobs.detach())
    return torch.cat(seen)


def updates(model: Any, job: Job, target: Path) -> Callable[[], object]:
    """Writes the first gradient, and gives the turn that learns."""
    parameters = list(adapter_parameters(model).values())
    np.savez(target, logprobs=accumulate(model, job).flatten().numpy(), **gradients(model))
    optimizer = torch.optim.AdamW(parameters, lr=LEARNING_RATE, weight_decay=0.0)
    optimizer.zero_grad()

    def turn() -> None:
        accumulate(model, job)
        torch.nn.utils.clip_grad_norm_(parameters, CLIP_NORM)
        optimizer.step()
        optimizer.zero_grad()

    return turn


def generate(model: Any, job: Job) -> list[list[int]]:
    """One batch, each row from its own first token on, cut to the lengths afterwards."""
    starts = [[*job.prompt_of(row), job.first_of(row)] for row in range(job.shape.num_rows)]
    ids, more = torch.tensor(starts), job.shape.answer_tokens - 1
    with torch.no_grad():
        out = model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            max_new_tokens=more,
            eos_token_id=NO_STOP,  # with a real one and a least length, it would be forbidden, and other tokens drawn
            pad_token_id=0,
        )
    return [row[:n] for row, n in zip(out[:, ids.shape[1] - 1 :].tolist(), job.shape.lengths_B, strict=True)]


def continuous(manager: Any, job: Job) -> list[list[int]]:
    """All rows handed in, collected as they finish."""
    names = [
        manager.add_request([*job.prompt_of(row), job.first_of(row)], max_new_tokens=length - 1, eos_token_id=NO_STOP)
        for row, length in enumerate(job.shape.lengths_B)
    ]
    done: dict[str, list[int]] = {}
    while len(done) < len(names):
        result = manager.get_result(timeout=1)
        if result is None and not manager.is_running():
            raise SystemExit("continuous batching stopped before its rows were done")
        if result is not None and result.is_finished():
            done[result.request_id] = list(result.generated_tokens)
    return [[job.first_of(row), *done[name]] for row, name in enumerate(names)]


def start_manager(model: Any, job: Job, stack: ExitStack) -> Any:
    """A manager that stays for all turns, with a cache as large as the rows: by default it takes most of the memory."""
    longest = job.shape.prompt_tokens + job.shape.answer_tokens
    sizes = ContinuousBatchingConfig(
        page_size=PAGE, num_blocks=job.shape.num_rows * (longest // PAGE + 2), max_batch_tokens=1024
    )
    settings = GenerationConfig(
        do_sample=False, max_new_tokens=job.shape.answer_tokens, eos_token_id=NO_STOP, pad_token_id=0
    )
    return stack.enter_context(
        model.get_base_model().continuous_batching_context_manager(
            generation_config=settings, continuous_batching_config=sizes, block=True, timeout=5
        )
    )


def write_rollouts(model: Any, job: Job, tokens_B: list[list[int]], target: Path) -> None:
    """Greedy tokens and their log-probabilities, each row scored alone, rows end to end."""
    with torch.no_grad():
        scored = [
            row_logprobs(model, torch.tensor([[*job.prompt_of(row), *tokens]]), len(tokens))[0]
            for row, tokens in enumerate(tokens_B)
        ]
    np.savez(target, tokens=np.concatenate(tokens_B), logprobs=torch.cat(scored).numpy())


def serve(work: str, folder: Path) -> None:
    """Check, then take turns until the driver leaves."""
    link, job = Link(), Job.read(folder)
    model, target = load(job), folder / "theirs.npz"
    with ExitStack() as stack:
        link.wait()
        turn: Callable[[], object]
        if work == "update":
            turn = updates(model, job, target)
        else:
            manager = start_manager(model, job, stack) if work == "continuous" else None
            turn = (lambda: generate(model, job)) if manager is None else (lambda: continuous(manager, job))
            write_rollouts(model, job, turn(), target)
        link.answer(
            versions=f"transformers {transformers.__version__}, torch {torch.__version__}",
            threads=torch.get_num_threads(),
        )
        while True:
            link.wait()
            start = time.perf_counter()
            turn()
            link.answer(seconds=time.perf_counter() - start)


if __name__ == "__main__":
    serve(sys.argv[2], Path(sys.argv[1]))

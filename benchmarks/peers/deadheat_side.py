"""Our side: python -m peers.deadheat_side FOLDER step|update|rollouts|rollouts-invariant|rollouts-ordinary

The first turn writes what it computed from the job's inputs to ours.npz; every further one is timed.
"""

import itertools
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

import deadheat
from deadheat.credit import GroupKind
from deadheat.policy import AdapterConfig, LanguageModel, PolicyConfig, load_adapter, load_policy
from deadheat.sampling.keys import stream_key
from deadheat.train import Entry, TrainBatch
from deadheat.train.config import CreditConfig, Loss, UpdateConfig
from deadheat.train.loop import Updater
from deadheat.types import (
    Completion,
    Draw,
    GenerateRequest,
    Group,
    Problem,
    Rollout,
    SamplingParams,
    StopReason,
)
from peers.job import ALPHA, CLIP_NORM, LEARNING_RATE, RANK, Job
from peers.link import Link


def load(job: Job, *, invariant: bool | None) -> LanguageModel:
    """The policy with the job's adapter; None: the mode a user gets."""
    mode = {} if invariant is None else {"invariant": invariant}
    fields = {"model": job.model, "adapter": AdapterConfig(rank=RANK, alpha=ALPHA)} | mode
    policy = load_policy(PolicyConfig.model_validate(fields), key=1)
    load_adapter(policy, Path(job.adapter).parent)
    return policy


def updater(policy: LanguageModel, job: Job, *, rate: float, clip_norm: float | None) -> Updater:
    """The optimiser step a run makes, with the peers' loss and settings."""
    return Updater(
        policy,
        UpdateConfig(loss=Loss.SEQUENCE_MEAN, learning_rate=rate, clip_norm=clip_norm),
        CreditConfig(ddof=1),
        SamplingParams(max_new_tokens=job.shape.answer_tokens),
    )


def batch_of(job: Job, answers_B: list[tuple[int, ...]], *, step: int) -> TrainBatch:
    """Completions, prompt by prompt, with the job's advantages."""
    size = job.shape.num_samples
    groups = [
        Group(
            problem=Problem(task="benchmark", problem_id=str(p), prompt=str(p), reference=""),
            prompt_tokens=tuple(prompt),
            rollouts=tuple(_rollout(p, i, answers_B[p * size + i]) for i in range(size)),
        )
        for p, prompt in enumerate(job.prompt_ids_P)
    ]
    entries = tuple(
        Entry(
            group=group,
            rewards_G=np.array(job.rewards_G, dtype=np.float64),
            advantages_G=tuple(
                np.full(len(t), a) for t, a in zip(group.completion_tokens, job.advantages_G, strict=True)
            ),
            kind=GroupKind.LIVE,
        )
        for group in groups
    )
    return TrainBatch(step=step, entries=entries)


def _rollout(prompt: int, sample: int, tokens: tuple[int, ...]) -> Rollout:
    """An answer without recorded log-probabilities: the loss has no ratio."""
    completion = Completion(
        tokens=tokens, logprobs=(), plain_logprobs=(), margins=None, text="", stop=StopReason.CAP, key=sample
    )
    problem = Problem(task="benchmark", problem_id=str(prompt), prompt=str(prompt), reference="")
    return Rollout(problem=problem, sample=sample, completion=completion)


def write_update(policy: LanguageModel, job: Job, target: Path) -> None:
    """Log-probabilities and gradients on the job's answers, through the updater; the weights are put back afterwards."""
    batch = batch_of(job, [tuple(a) for a in job.answers_B], step=1)
    with torch.no_grad():
        logprobs = [row for group in policy.logprobs([entry.group for entry in batch.entries]) for row in group]
    trial = updater(policy, job, rate=1e-12, clip_norm=None)
    trial.step(batch)
    gradients = {name: p.grad.numpy().copy() for name, p in trial.parameters.items() if p.grad is not None}
    np.savez(target, logprobs=torch.cat(logprobs).numpy(), **gradients)
    trial.optimizer.zero_grad()
    load_adapter(policy, Path(job.adapter).parent)


def draw(policy: LanguageModel, job: Job, *, turn: int, mode: Draw) -> tuple[Completion, ...]:
    """Every completion to its full length: nothing stops one early."""
    generation = policy.generate(
        [
            GenerateRequest(
                prompt_tokens=tuple(job.prompt_of(row)),
                key=stream_key(0, "benchmark", f"turn {turn} row {row}"),
                sampling=SamplingParams(draw=mode, max_new_tokens=length),
                stop_ids=frozenset(),
                forced=(job.first_of(row),) if mode is Draw.GREEDY else (),
            )
            for row, length in enumerate(job.shape.lengths_B)
        ]
    )
    return generation.completions


def write_rollouts(completions: Sequence[Completion], target: Path) -> None:
    """Greedy tokens, their log-probabilities and the gap to the runner-up, rows end to end."""
    np.savez(
        target,
        tokens=np.concatenate([c.tokens for c in completions]),
        logprobs=np.concatenate([c.plain_logprobs for c in completions]),
        margins=np.concatenate([c.margins for c in completions if c.margins is not None]),
    )


def serve(work: str, folder: Path) -> None:
    """Check, then take turns until the driver leaves."""
    link, job = Link(), Job.read(folder)
    policy = load(job, invariant={"rollouts-invariant": True, "rollouts-ordinary": False}.get(work))
    target = folder / ("theirs.npz" if work == "rollouts-ordinary" else "ours.npz")
    link.wait()
    if work in ("step", "update"):
        write_update(policy, job, target)
        learner = updater(policy, job, rate=LEARNING_RATE, clip_norm=CLIP_NORM)
    else:
        write_rollouts(draw(policy, job, turn=0, mode=Draw.GREEDY), target)
    link.answer(versions=f"deadheat {deadheat.__version__}, torch {torch.__version__}", threads=torch.get_num_threads())

    def step(turn: int) -> dict[str, float]:
        start = time.perf_counter()
        drawn = draw(policy, job, turn=turn, mode=Draw.GUMBEL_MAX)
        rollout_s = time.perf_counter() - start
        learner.step(batch_of(job, [c.tokens for c in drawn], step=turn))
        return {"rollout_s": rollout_s}

    def update(turn: int) -> dict[str, float]:
        learner.step(batch_of(job, [tuple(a) for a in job.answers_B], step=turn))
        return {}

    def rollouts(turn: int) -> dict[str, float]:
        draw(policy, job, turn=turn, mode=Draw.GREEDY)
        return {}

    do = {"step": step, "update": update}.get(work, rollouts)
    for turn in itertools.count(1):
        link.wait()
        start = time.perf_counter()
        parts = do(turn)
        link.answer(seconds=time.perf_counter() - start, **parts)


if __name__ == "__main__":
    serve(sys.argv[2], Path(sys.argv[1]))

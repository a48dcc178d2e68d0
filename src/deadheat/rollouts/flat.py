"""Flat groups: G independent samples of each problem, each at its own address."""

from collections.abc import Sequence
from dataclasses import dataclass

from deadheat.sampling.keys import Purpose, rollout_key
from deadheat.types import Drawn, GenerateRequest, Policy, Problem, SamplingParams


@dataclass(frozen=True, kw_only=True)
class DrawSpec:
    """How completions of a task are asked for, apart from their addresses."""

    task: str  # the task's name, part of every key
    chat: bool  # prompts go through the model's chat template
    stop_text: str | None  # text that ends a completion; None: only end of sequence does
    sampling: SamplingParams


@dataclass(frozen=True, kw_only=True)
class Address:
    """The part of a rollout key that a batch shares. No arm, worker or host: arms draw the same noise."""

    seed: int  # master seed
    purpose: Purpose
    step: int  # 0 for evaluation


def draw_groups(
    policy: Policy,
    problems: Sequence[Problem],
    spec: DrawSpec,
    *,
    address: Address,
    group_size: int,
    first_sample: int = 0,
) -> list[Drawn]:
    """`group_size` completions of each problem, sample indices from `first_sample` on."""
    prompts_P = [policy.encode(problem.prompt, chat=spec.chat) for problem in problems]
    stop_ids = policy.stop_ids(spec.stop_text)
    requests = [
        GenerateRequest(
            prompt_tokens=tokens,
            key=rollout_key(
                seed=address.seed,
                purpose=address.purpose,
                task=spec.task,
                problem_digest=problem.digest,
                step=address.step,
                sample=first_sample + index,
            ),
            sampling=spec.sampling,
            stop_ids=stop_ids,
        )
        for problem, tokens in zip(problems, prompts_P, strict=True)
        for index in range(group_size)
    ]
    completions = policy.generate(requests)
    return [
        Drawn(
            problem=problem,
            prompt_length=len(prompts_P[p]),
            first_sample=first_sample,
            completions=tuple(completions[p * group_size : (p + 1) * group_size]),
        )
        for p, problem in enumerate(problems)
    ]

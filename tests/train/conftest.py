"""A tiny policy on small sums, and lessons written by hand."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch

from deadheat.credit import GroupKind
from deadheat.policy import AdapterConfig, Branches, LanguageModel, PolicyConfig, load_policy
from deadheat.tasks import Task, load_task, parse_task
from deadheat.train import Entry, RunConfig
from deadheat.types import Completion, Group, Rollout, StopReason

RUN = {
    "policy": {"model": "tiny:addition", "adapter": {"kind": "lora", "rank": 4, "alpha": 8}},
    "task": {"name": "addition", "limit": 20, "held_out": 100},
    "rollouts": {"questions_per_step": 3, "group_size": 4},
    "update": {"learning_rate": 1e-3},
    "eval": {"pool": 8, "every": 2},
    "stop": {"steps": 2},
    "threads": 1,
}


@pytest.fixture(autouse=True)
def one_thread():
    """Float sums depend on the number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def addition() -> Task:
    return load_task(parse_task(RUN["task"]))


@pytest.fixture(scope="session")
def new_policy(addition: Task) -> Callable[..., LanguageModel]:
    """A fresh policy, `kind` of adapter; equal arguments give equal weights."""
    texts = [problem.prompt + addition.gold_text(problem) for problem in addition.training]

    def make(kind: str = "lora", *, key: int = 1) -> LanguageModel:
        adapter = AdapterConfig(kind=kind, rank=4, alpha=8)
        return load_policy(PolicyConfig(model="tiny:addition", adapter=adapter), key=key, warm_texts=texts)

    return make


@pytest.fixture(scope="session")
def lesson(addition: Task, new_policy: Callable[..., LanguageModel]) -> Callable[..., Entry]:
    """The entry of one problem: what was answered, and how each answer is weighted; drawn by a fresh policy."""
    policy = new_policy()

    def make(index: int, answers: Sequence[str], advantages: Sequence[float], *, part: str = "") -> Entry:
        prompt = policy.encode(addition.training[index].prompt, chat=False)
        completions = tuple(policy.encode(answer, chat=False) for answer in answers)
        branches = Branches(prompt_tokens=prompt, completion_tokens=completions)
        with torch.no_grad():
            (drawn_G,) = policy.logprobs([branches])
        problem = addition.training[index]
        rollouts = [
            Rollout(
                problem=problem,
                sample=sample,
                completion=Completion(
                    tokens=tokens,
                    logprobs=tuple(drawn_T.tolist()),
                    plain_logprobs=tuple(drawn_T.tolist()),
                    margins=None,
                    text=answer,
                    stop=StopReason.STOP,
                    key=sample,
                ),
            )
            for sample, (tokens, answer, drawn_T) in enumerate(zip(completions, answers, drawn_G, strict=True))
        ]
        return Entry(
            group=Group(problem=problem, prompt_tokens=prompt, rollouts=tuple(rollouts)),
            rewards_G=np.zeros(len(rollouts)),
            advantages_G=tuple(np.full(len(t), float(a)) for t, a in zip(completions, advantages, strict=True)),
            kind=GroupKind.LIVE if any(advantages) else GroupKind.ALL_WRONG,
            part=part,
        )

    return make


@pytest.fixture(scope="session")
def run_config() -> Callable[..., RunConfig]:
    """The small run with some sections changed: `run_config(stop={"steps": 4})`."""

    def make(**sections: dict[str, object]) -> RunConfig:
        merged = {**RUN, **{name: {**RUN.get(name, {}), **table} for name, table in sections.items()}}
        return RunConfig.model_validate(merged)

    return make

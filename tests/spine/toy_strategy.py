"""A strategy from outside: two continuations of one prefix, cut from a first draw at its middle.

    first     one draw of each problem, samples 0
    branches  for branch b = 0, 1 of pair p: the prefix is forced, the rest drawn at the address of sample G + 2p + b

The prefix is forced with the tokens of the first draw, so both branches of a pair share its log-probabilities. Only the
branches are learned from.
"""

from dataclasses import replace
from typing import Literal

from deadheat.rollouts import STRATEGIES, DrawingOptions, DrawnBatch, DrawPlan, Pool, Strategy, draw_groups
from deadheat.sampling.keys import rollout_key
from deadheat.types import Fork, GenerateRequest, Group, Origin, Policy, Rollout

NAME = "toy_fork"


class ForkOptions(DrawingOptions):
    """Where to cut."""

    name: Literal["toy_fork"] = NAME
    at: float = 0.5  # share of the first draw that becomes the prefix


def draw_forks(policy: Policy, plan: DrawPlan) -> DrawnBatch:
    """One stem and `group_size` branches in pairs for each problem."""
    options = plan.options
    assert isinstance(options, ForkOptions)
    stems = draw_groups(policy, plan.problems, plan.spec, address=plan.address, group_size=1)
    prefixes = [_prefix(stem, options.at) for stem in stems.groups]
    requests = [
        GenerateRequest(
            prompt_tokens=stem.prompt_tokens,
            key=_key(plan, stem, plan.group_size + branch),
            sampling=plan.spec.sampling,
            stop_ids=policy.stop_ids(plan.spec.stop_text),
            forced=prefix,
        )
        for stem, prefix in zip(stems.groups, prefixes, strict=True)
        for branch in range(plan.group_size)
    ]
    drawn = policy.generate(requests)
    forks = []
    for place, (stem, prefix) in enumerate(zip(stems.groups, prefixes, strict=True)):
        completions = drawn.completions[place * plan.group_size : (place + 1) * plan.group_size]
        rollouts = [
            Rollout(
                problem=stem.problem,
                sample=plan.group_size + index,
                completion=completion,
                origin=_origin(index, len(prefix), completions[index - index % 2], completion),
            )
            for index, completion in enumerate(completions)
        ]
        forks.append(replace(stem, rollouts=tuple(rollouts)))
    return DrawnBatch(
        kept=tuple(plan.score(forks)),
        not_kept=tuple(plan.score(stems.groups)),
        plan=plan,
        num_rounds=2,
        cost=stems.cost + drawn.cost,
    )


def choose_branches(pool: Pool, options: DrawingOptions) -> tuple[int, ...]:
    """Every draw that has a partner."""
    return tuple(n for n, origin in enumerate(pool.origins_N) if origin is not None)


def _prefix(stem: Group, at: float) -> tuple[int, ...]:
    tokens = stem.rollouts[0].completion.tokens
    return tokens[: int(len(tokens) * at)]


def _key(plan: DrawPlan, stem: Group, sample: int) -> int:
    return rollout_key(
        seed=plan.address.seed,
        purpose=plan.address.purpose,
        task=plan.spec.task,
        problem_digest=stem.problem.digest,
        step=plan.address.step,
        sample=sample,
    )


def _origin(index: int, prefix_length: int, first, own) -> Origin:
    fork = None
    if index % 2 and first.tokens[prefix_length:][:1] != own.tokens[prefix_length:][:1]:
        ends = (first.tokens[prefix_length], own.tokens[prefix_length])
        margin = 0.0 if first.margins is None else first.margins[prefix_length]
        fork = Fork(position=prefix_length, drawn=ends[0], alternative=ends[1], margin=margin)
    return Origin(pair=index // 2, branch=index % 2, prefix_length=prefix_length, fork=fork, category="fork", donor=0)


def register() -> None:
    """Into the table, once."""
    STRATEGIES[NAME] = Strategy(options=ForkOptions, draw=draw_forks, choose=choose_branches)

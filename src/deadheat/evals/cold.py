"""Cold odds of a task under an untrained model: the log-probability of each exact reference, teacher-forced.

    log P(reference | prompt) = Σ_t log p(token_t | prompt, tokens before it)      under the model's own distribution

The reference is the task's own gold completion, stop text included, in the tokens that the model would have to draw.
"""

from collections.abc import Callable, Sequence

import polars as pl
import torch

from deadheat.policy import Branches, LanguageModel
from deadheat.tasks import Task
from deadheat.types import Problem

_BATCH = 16  # problems per pass


def cold_rows(
    policy: LanguageModel,
    task: Task,
    problems: Sequence[Problem],
    *,
    observe: Callable[[int], None] = lambda done: None,
) -> pl.DataFrame:
    """One row per problem, with `reference_logprob` and the number of its tokens; `audit.cold` reads it."""
    rows: list[dict[str, object]] = []
    for start in range(0, len(problems), _BATCH):
        batch = problems[start : start + _BATCH]
        branches = [_branches(policy, task, problem) for problem in batch]
        with torch.no_grad():
            logprobs = policy.logprobs(branches)
        rows += [
            {
                "task": problem.task,
                "problem_id": problem.problem_id,
                "problem_digest": problem.digest,
                "group_id": f"cold/{problem.task}/{problem.digest[:16]}",
                "prompt": problem.prompt,
                "reference": problem.reference,
                "reward": None,  # nothing was drawn and nothing scored
                "reference_tokens": len(branch.completion_tokens[0]),
                "reference_logprob": float(found[0].double().sum()),
            }
            for problem, branch, found in zip(batch, branches, logprobs, strict=True)
        ]
        observe(len(batch))
    return pl.DataFrame(rows, schema_overrides={"reward": pl.Float64})


def _branches(policy: LanguageModel, task: Task, problem: Problem) -> Branches:
    gold = policy.encode(task.gold_text(problem), chat=False)
    return Branches(prompt_tokens=policy.encode(problem.prompt, chat=task.chat), completion_tokens=(gold,))

"""Pools of problems: keyed order, nested and disjoint held-out pools, stratified pools.

Two texts are the same *content* when they agree after Unicode NFKC, case folding and collapsing runs of white space:
a held-out question that occurs in training with another line break is still the same question.
"""

import hashlib
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from deadheat.errors import TaskError
from deadheat.sampling.keys import derive, permutation
from deadheat.types import Problem

DOMAIN_POOL = "deadheat/pool/v1"


@dataclass(frozen=True, kw_only=True)
class Pools:
    """One set of problems, split."""

    training: tuple[Problem, ...]  # what may be trained on
    held_out: tuple[Problem, ...]  # keyed order: a pool of n is the first n
    num_dropped: int  # problems left out because their content was there already


def canonical_text(text: str) -> str:
    """The text with case, Unicode form and white space taken out.

    Example:
        >>> canonical_text("  What is\\n2 + 2? ")
        'what is 2 + 2?'
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def content_digest(text: str) -> str:
    """SHA-256 of the canonical text, hex: equal for texts that differ only in case, spacing or Unicode form."""
    return hashlib.sha256(canonical_text(text).encode()).hexdigest()


def pool_key(task: str, seed: int) -> int:
    """The key of a task's held-out order."""
    return derive(DOMAIN_POOL, task, seed)


def distinct(problems: Sequence[Problem], *, besides: Sequence[Problem] = ()) -> tuple[Problem, ...]:
    """The problems whose content occurs neither earlier nor in `besides`, in order."""
    seen = {content_digest(p.prompt) for p in besides}
    kept = []
    for problem in problems:
        digest = content_digest(problem.prompt)
        if digest not in seen:
            seen.add(digest)
            kept.append(problem)
    return tuple(kept)


def keyed_order(problems: Sequence[Problem], *, key: int) -> tuple[Problem, ...]:
    """The problems in a keyed permutation."""
    return tuple(problems[i] for i in permutation(key, len(problems)))


def stratified_order(problems: Sequence[Problem], columns: Sequence[str], *, key: int) -> tuple[Problem, ...]:
    """A keyed order in which every prefix holds each stratum (subject × level, …) in proportion, to within one problem.

    Within a stratum of size m the keyed i-th problem is placed at (i + ½)/m; strata are merged by that place, and equal
    places go by a keyed order of the strata.
    """
    strata: defaultdict[tuple[str | int | float, ...], list[Problem]] = defaultdict(list)
    for problem in problems:
        strata[tuple(column_of(problem, name) for name in columns)].append(problem)
    labels = sorted(strata, key=repr)
    placed: list[tuple[float, int, Problem]] = []
    for rank, which in enumerate(permutation(key, len(labels))):
        members = strata[labels[which]]
        order = permutation(derive(DOMAIN_POOL, key, repr(labels[which])), len(members))
        placed += [((i + 0.5) / len(members), rank, members[j]) for i, j in enumerate(order)]
    return tuple(problem for _, _, problem in sorted(placed, key=lambda entry: entry[:2]))


def column_of(problem: Problem, name: str) -> str | int | float:
    """A problem's sub-skill column, or a TaskError that lists the columns there are."""
    if name not in problem.columns:
        have = ", ".join(sorted(problem.columns)) or "none"
        raise TaskError(f"problem {problem.problem_id!r} has no column {name!r}; its columns: {have}")
    return problem.columns[name]


def split_pools(problems: Sequence[Problem], *, num_held_out: int, key: int, strata: Sequence[str] = ()) -> Pools:
    """The first `num_held_out` of the keyed order are held out, the others train, in the order given."""
    unique = distinct(problems)
    if num_held_out >= len(unique):
        raise TaskError(
            f"{num_held_out} held-out problems wanted of {len(unique)} distinct ones; "
            "wanted at least one left for training: lower held_out"
        )
    ordered = stratified_order(unique, strata, key=key) if strata else keyed_order(unique, key=key)
    held_out = ordered[:num_held_out]
    held_ids = {p.problem_id for p in held_out}
    training = tuple(p for p in unique if p.problem_id not in held_ids)
    return Pools(training=training, held_out=held_out, num_dropped=len(problems) - len(unique))


def given_pools(
    training: Sequence[Problem],
    held_out: Sequence[Problem],
    *,
    num_held_out: int | None,
    key: int,
    strata: Sequence[str] = (),
) -> Pools:
    """Pools of a data set that comes split: held-out content that also occurs in training is dropped from training."""
    unique = distinct(held_out)
    if num_held_out is not None and num_held_out > len(unique):
        raise TaskError(f"{num_held_out} held-out problems wanted, {len(unique)} distinct ones there: lower held_out")
    ordered = stratified_order(unique, strata, key=key) if strata else keyed_order(unique, key=key)
    kept = distinct(training, besides=unique)
    dropped = len(training) + len(held_out) - len(kept) - len(unique)
    return Pools(training=kept, held_out=ordered[:num_held_out], num_dropped=dropped)


def require_disjoint(task: str, training: Sequence[Problem], held_out: Sequence[Problem]) -> None:
    """A TaskError where a held-out problem shares its id or its content with a training problem."""
    ids = {p.problem_id for p in training}
    contents = {content_digest(p.prompt): p.problem_id for p in training}
    for problem in held_out:
        twin = problem.problem_id if problem.problem_id in ids else contents.get(content_digest(problem.prompt))
        if twin is not None:
            raise TaskError(
                f"task {task!r}: held-out problem {problem.problem_id!r} is training problem {twin!r} "
                "(same id or same content); wanted disjoint pools: drop it from one of them"
            )

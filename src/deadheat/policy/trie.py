"""Many completions as one pass, with every shared prefix computed once.

The completions of a group form a trie below their prompt, and the prompts of a pass form one too. A node is a token in
its context; the log-probability of a token is read from the logits of its parent. So only the prompts and the *inner*
nodes are computed: nobody conditions on a leaf. A pass is one row of columns without padding:

    columns   [ prompt tokens, a common head once | inner nodes of the first group | of the second | … ]
    position  its depth from the prompt's start        a column sees its prompt and its own branch (see `attention`)

What is read in a pass, and how groups share one: `reading`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deadheat.policy.layout import Columns, Path
from deadheat.types import TokenGroup

ROOT = -1  # parent of a first token: the last token of the prompt


@dataclass(frozen=True, kw_only=True)
class Branches:
    """A prompt and completions of it that nobody drew: a `TokenGroup` of bare tokens."""

    prompt_tokens: tuple[int, ...]  # non-empty
    completion_tokens: tuple[tuple[int, ...], ...]  # one may be empty, and two may be equal


@dataclass(frozen=True, kw_only=True)
class Trie:
    """The distinct prefixes of a set of completions, parents before children."""

    tokens: tuple[int, ...]  # per node
    parents: tuple[int, ...]  # per node; ROOT for first tokens
    depths: tuple[int, ...]  # per node; 0 for first tokens
    paths: tuple[tuple[int, ...], ...]  # per completion, its nodes in order

    @property
    def inner(self) -> tuple[int, ...]:
        """Nodes that have a child, in order of creation."""
        return tuple(sorted({parent for parent in self.parents if parent != ROOT}))


def build_trie(completions: Sequence[Sequence[int]]) -> Trie:
    """Merge completions into a trie.

    Example:
        >>> build_trie([[5, 6], [5, 7]]).paths
        ((0, 1), (0, 2))
        >>> build_trie([[5, 6], [5, 7]]).inner
        (0,)
    """
    known: dict[tuple[int, int], int] = {}
    tokens: list[int] = []
    parents: list[int] = []
    depths: list[int] = []
    paths: list[tuple[int, ...]] = []
    for completion in completions:
        node = ROOT
        path: list[int] = []
        for depth, token in enumerate(completion):
            child = known.setdefault((node, token), len(tokens))
            if child == len(tokens):
                tokens.append(token)
                parents.append(node)
                depths.append(depth)
            node = child
            path.append(node)
        paths.append(tuple(path))
    return Trie(tokens=tuple(tokens), parents=tuple(parents), depths=tuple(depths), paths=tuple(paths))


@dataclass(frozen=True, kw_only=True)
class Pass:
    """Some groups laid out for one forward pass."""

    tokens_N: NDArray[np.int64]  # [N] per column
    positions_N: NDArray[np.int64]  # [N]
    paths: tuple[Path, ...]  # who sees whom: prompts first, then completions
    trunks: tuple[Columns, ...]  # the columns of each prompt
    edge_columns: tuple[int, ...]  # per node of every trie, the column of its parent
    tries: tuple[Trie, ...]  # one per group

    @property
    def edge_tokens(self) -> tuple[int, ...]:
        """Per node of every trie, its token."""
        return tuple(token for trie in self.tries for token in trie.tokens)


def lay_out(groups: Sequence[TokenGroup]) -> Pass:
    """Give every prompt token and inner node a column; a head that prompts have in common gets one.

    Example:
        Prompt 1 2, completions 5 6 and 5 7: token 5 is inner; 6 and 7 are leaves and are not run.
        >>> laid = lay_out([Branches(prompt_tokens=(1, 2), completion_tokens=((5, 6), (5, 7)))])
        >>> laid.tokens_N.tolist(), laid.positions_N.tolist(), laid.edge_columns
        ([1, 2, 5], [0, 1, 2], (1, 2, 2))
    """
    numbers = {prompt: i for i, prompt in enumerate(dict.fromkeys(b.prompt_tokens for b in groups))}
    prompts = build_trie(list(numbers))
    trunks = tuple(np.array(path, dtype=np.int64) for path in prompts.paths)
    tokens, positions = list(prompts.tokens), list(prompts.depths)
    paths = [*_asking(trunks, None)]
    edges: list[int] = []
    tries = tuple(build_trie(branches.completion_tokens) for branches in groups)
    for branches, trie in zip(groups, tries, strict=True):
        number = numbers[branches.prompt_tokens]
        column = {ROOT: int(trunks[number][-1])} | {node: len(tokens) + i for i, node in enumerate(trie.inner)}
        tokens += [trie.tokens[node] for node in trie.inner]
        positions += [len(branches.prompt_tokens) + trie.depths[node] for node in trie.inner]
        inner_paths = [np.array([column[n] for n in path if n in column], dtype=np.int64) for path in trie.paths]
        paths += _asking(inner_paths, number)
        edges += [column[parent] for parent in trie.parents]
    return Pass(
        tokens_N=np.array(tokens, dtype=np.int64),
        positions_N=np.array(positions, dtype=np.int64),
        paths=tuple(paths),
        trunks=trunks,
        edge_columns=tuple(edges),
        tries=tries,
    )


def _asking(paths: Sequence[Columns], trunk: int | None) -> Iterator[Path]:
    """Paths with the columns each is the first to hold: columns are numbered as the paths are walked."""
    newest = -1
    for columns in paths:
        first = int(np.searchsorted(columns, newest, side="right"))
        if first < len(columns):
            yield Path(columns=columns, first=first, trunk=trunk)
            newest = int(columns[-1])

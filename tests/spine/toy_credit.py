"""A credit method from outside: one advantage for the shared prefix, another for what a branch adds, and a pair term.

prefix        mean of the pair's rewards − mean of the group's
continuation  own reward − mean of the pair's
pair term     where the two rewards differ, the better branch should be likelier after the fork
"""

from collections.abc import Sequence

import numpy as np

from deadheat.credit import CREDITS, Credit, CreditOptions, PairTerm, ScoredGroup

NAME = "toy_pairs"


def pair_credit(groups: Sequence[ScoredGroup], options: CreditOptions) -> list[Credit]:
    """Groups whose members all have a partner."""
    return [_of(group) for group in groups]


def _of(group: ScoredGroup) -> Credit:
    rewards_G = np.nan_to_num(group.rewards_G, nan=0.0)
    pairs: dict[int, list[int]] = {}
    for index, origin in enumerate(group.origins_G):
        assert origin is not None and origin.pair is not None
        pairs.setdefault(origin.pair, []).append(index)
    advantages, terms = {}, []
    for members in pairs.values():
        mean = float(rewards_G[members].mean())
        for index in members:
            origin = group.origins_G[index]
            prefix = np.full(origin.prefix_length, mean - float(rewards_G.mean()))
            rest = np.full(group.lengths_G[index] - origin.prefix_length, rewards_G[index] - mean)
            advantages[index] = np.concatenate([prefix, rest])
        if rewards_G[members[0]] != rewards_G[members[-1]]:
            better, worse = sorted(members, key=lambda index: -rewards_G[index])
            terms.append(PairTerm(better=better, worse=worse, first=group.origins_G[better].prefix_length, margin=0.5))
    return Credit(
        rewards_G=group.rewards_G,
        advantages_G=tuple(advantages[index] for index in range(len(rewards_G))),
        categories_G=tuple(
            "better" if rewards_G[index] > rewards_G.mean() else "other" for index in range(len(rewards_G))
        ),
        pairs=tuple(terms),
    )


def register() -> None:
    """Into the table, once."""
    CREDITS[NAME] = pair_credit

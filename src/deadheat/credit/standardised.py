"""Credit in standard deviations of the group: the advantage of GRPO, Shao et al. 2024.

A_i = (r_i − mean(r)) / (sd(r) + eps)
"""

from collections.abc import Sequence

from deadheat.credit.advantages import Array, scored_only, standardised
from deadheat.credit.method import Credit, CreditOptions, ScoredGroup, flat_credit


def standardised_credit(groups: Sequence[ScoredGroup], options: CreditOptions) -> list[Credit]:
    """One advantage per completion; tied groups get exactly 0."""

    def estimate(rewards_G: Array) -> Array:
        return standardised(rewards_G, ddof=options.ddof, eps=options.eps)

    return [flat_credit(group, scored_only(estimate, group.rewards_G)) for group in groups]

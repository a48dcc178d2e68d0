"""Credit by the distance to the group's mean: the advantage of Dr. GRPO, Liu et al. 2025.

A_i = r_i − mean(r)
"""

from collections.abc import Sequence

from deadheat.credit.advantages import centred, scored_only
from deadheat.credit.method import Credit, CreditOptions, ScoredGroup, flat_credit


def centred_credit(groups: Sequence[ScoredGroup], options: CreditOptions) -> list[Credit]:
    """One advantage per completion; tied groups get exactly 0."""
    return [flat_credit(group, scored_only(centred, group.rewards_G)) for group in groups]

"""Credit by the distance to the mean of the others: RLOO, Ahmadian et al. 2024.

A_i = r_i − mean of the other scored rewards
"""

from collections.abc import Sequence

from deadheat.credit.advantages import leave_one_out, scored_only
from deadheat.credit.method import Credit, CreditOptions, ScoredGroup, flat_credit


def leave_one_out_credit(groups: Sequence[ScoredGroup], options: CreditOptions) -> list[Credit]:
    """One advantage per completion; tied groups get exactly 0."""
    return [flat_credit(group, scored_only(leave_one_out, group.rewards_G)) for group in groups]

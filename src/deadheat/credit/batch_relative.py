"""Credit in standard deviations of the batch, as REINFORCE++ has it, Hu 2025: tied groups then carry signal.

A_i = (r_i − mean over the batch) / (sd over the batch + eps)
"""

from collections.abc import Sequence

from deadheat.credit.advantages import over_batch
from deadheat.credit.method import Credit, CreditOptions, ScoredGroup, flat_credit


def batch_relative_credit(groups: Sequence[ScoredGroup], options: CreditOptions) -> list[Credit]:
    """One advantage per completion; a batch whose rewards all agree gets exactly 0."""
    advantages_PG = over_batch([group.rewards_G for group in groups], ddof=options.ddof, eps=options.eps)
    return [flat_credit(group, advantages_G) for group, advantages_G in zip(groups, advantages_PG, strict=True)]

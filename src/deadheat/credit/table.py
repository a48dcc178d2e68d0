"""The credit methods by name. A new one is one file and one entry here, or in the table from outside."""

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from deadheat.credit.advantages import Array
from deadheat.credit.batch_relative import batch_relative_credit
from deadheat.credit.centred import centred_credit
from deadheat.credit.leave_one_out import leave_one_out_credit
from deadheat.credit.method import CreditMethod, CreditOptions, ScoredGroup
from deadheat.credit.standardised import standardised_credit


class Estimator(StrEnum):
    """The methods that come with the package."""

    CENTRED = "centred"
    STANDARDISED = "standardised"
    LEAVE_ONE_OUT = "leave_one_out"
    BATCH_RELATIVE = "batch_relative"


CREDITS: dict[str, CreditMethod] = {
    "centred": centred_credit,
    "standardised": standardised_credit,
    "leave_one_out": leave_one_out_credit,
    "batch_relative": batch_relative_credit,
}


def advantages(groups: Sequence[Array], *, estimator: Estimator, ddof: int = 0, eps: float = 1e-4) -> list[Array]:
    """[G] advantages for each group of a batch; unscored members 0, tied groups exactly 0 (unless batch-relative)."""
    seen = [
        ScoredGroup(
            rewards_G=r_G, lengths_G=(1,) * len(r_G), correct_G=(None,) * len(r_G), origins_G=(None,) * len(r_G)
        )
        for r_G in groups
    ]
    credits_ = CREDITS[estimator](seen, CreditOptions(ddof=ddof, eps=eps))
    return [np.array([a_T[0] for a_T in credit.advantages_G], dtype=np.float64) for credit in credits_]

"""How far the policy has moved: from the state its batch was drawn under, and from the model without its adapter.

Over the completion tokens of the passes of one step, with ρ the ratio that the objective uses (token by token where it
uses none):

    mean ratio      (1/n)·Σ ρ                      1 where the weights are those that drew the batch
    KL, drawn       (1/n)·Σ (ρ_t − ln ρ_t − 1)     k3 of KL(policy that drew ‖ policy now), Schulman 2020
    KL, reference   (1/n)·Σ k3                     of KL(policy now ‖ reference)
    clipped         shares of tokens that have no gradient: ρ < 1 − low at A < 0, ρ > 1 + high at A > 0, ρ > c at A < 0

Sums are taken in float64 on the CPU, so they depend on no device's reduction.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deadheat.train.config import UpdateConfig
from deadheat.train.objective import GroupLogprobs
from deadheat.train.ratio import k3, ratios


@dataclass(frozen=True, kw_only=True)
class Drift:
    """Sums over tokens; they add up."""

    num_compared: int = 0  # tokens whose log-probability was recorded when they were drawn
    ratio_sum: float = 0.0
    kl_drawn_sum: float = 0.0
    num_clipped_low: int = 0
    num_clipped_high: int = 0
    num_clipped_dual: int = 0
    num_referred: int = 0  # tokens whose log-probability under the reference is known
    kl_reference_sum: float = 0.0

    def __add__(self, other: "Drift") -> "Drift":
        return Drift(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})

    def per_compared(self, total: float) -> float | None:
        """A sum per compared token; None: none was compared.

        Example:
            >>> Drift(num_compared=4).per_compared(1.0), Drift().per_compared(0.0)
            (0.25, None)
        """
        return total / self.num_compared if self.num_compared else None

    @property
    def kl_reference(self) -> float | None:
        """Mean k3 to the reference; None: none was known."""
        return self.kl_reference_sum / self.num_referred if self.num_referred else None


def drift_of(group: GroupLogprobs, config: UpdateConfig) -> Drift:
    """The sums of one group."""
    now_G, found = _float64(group.now_G), Drift()
    if group.drawn_G is not None:
        rows = zip(now_G, _float64(group.drawn_G), group.advantages_G, strict=True)
        found = sum((_from_drawn(now_T, drawn_T, a, config) for now_T, drawn_T, a in rows), found)
    if group.reference_G is not None:
        terms_T = k3(torch.cat(now_G), torch.cat(_float64(group.reference_G)))
        found += Drift(num_referred=len(terms_T), kl_reference_sum=float(terms_T.sum()))
    return found


def _from_drawn(now_T: Tensor, drawn_T: Tensor, advantages: float | NDArray[np.float64], config: UpdateConfig) -> Drift:
    ratios_T = ratios(now_T, drawn_T, config.importance)
    advantages_T = torch.as_tensor(np.broadcast_to(advantages, len(ratios_T)).copy())
    against_T, towards_T = advantages_T < 0, advantages_T > 0
    return Drift(
        num_compared=len(ratios_T),
        ratio_sum=float(ratios_T.sum()),
        kl_drawn_sum=float(k3(drawn_T, now_T).sum()),
        num_clipped_low=int(((ratios_T < 1 - config.clip_low) & against_T).sum()),
        num_clipped_high=int(((ratios_T > 1 + config.clip_high) & towards_T).sum()),
        num_clipped_dual=int(((ratios_T > config.dual_clip) & against_T).sum()) if config.dual_clip is not None else 0,
    )


def _float64(rows_G: Sequence[Tensor]) -> list[Tensor]:
    """To the CPU in one transfer, and there to float64, which not every device has."""
    joined = torch.cat(list(rows_G)).detach().cpu().double()
    return list(torch.split(joined, [len(row_T) for row_T in rows_G]))

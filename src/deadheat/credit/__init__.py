"""Rewards to advantages, and what a batch of groups carries. Pure arrays."""

from deadheat.credit.accounting import (
    Denominator,
    Denominators,
    composition,
    denominators,
    part_divisors,
    signed_token_mass,
)
from deadheat.credit.advantages import Estimator, GroupKind, advantages, group_kind, is_tied
from deadheat.credit.shaping import length_penalty, overlong_penalty, passes_marker_gate

__all__ = [
    "Denominator",
    "Denominators",
    "Estimator",
    "GroupKind",
    "advantages",
    "composition",
    "denominators",
    "group_kind",
    "is_tied",
    "length_penalty",
    "overlong_penalty",
    "part_divisors",
    "passes_marker_gate",
    "signed_token_mass",
]

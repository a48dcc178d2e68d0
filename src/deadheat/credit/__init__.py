"""Rewards to advantages, and what a batch of groups carries. Pure arrays."""

from deadheat.credit.accounting import (
    Denominator,
    Denominators,
    composition,
    denominators,
    part_divisors,
    signed_token_mass,
)
from deadheat.credit.advantages import GroupKind, group_kind, is_tied
from deadheat.credit.method import Credit, CreditMethod, CreditOptions, PairTerm, ScoredGroup, flat_credit
from deadheat.credit.shaping import length_penalty, overlong_penalty, passes_marker_gate
from deadheat.credit.table import CREDITS, Estimator, advantages

__all__ = [
    "CREDITS",
    "Credit",
    "CreditMethod",
    "CreditOptions",
    "Denominator",
    "Denominators",
    "Estimator",
    "GroupKind",
    "PairTerm",
    "ScoredGroup",
    "advantages",
    "composition",
    "denominators",
    "flat_credit",
    "group_kind",
    "is_tied",
    "length_penalty",
    "overlong_penalty",
    "part_divisors",
    "passes_marker_gate",
    "signed_token_mass",
]

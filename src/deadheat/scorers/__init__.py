"""How a rollout is scored."""

from deadheat.scorers.checker import CheckerScorer, PerText, per_text, scored
from deadheat.scorers.controls import plant
from deadheat.scorers.rescore import Rescorer
from deadheat.scorers.table import SCORERS, OpenScorer, ScorerKind

__all__ = [
    "SCORERS",
    "CheckerScorer",
    "OpenScorer",
    "PerText",
    "Rescorer",
    "ScorerKind",
    "per_text",
    "plant",
    "scored",
]

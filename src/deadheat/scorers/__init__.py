"""How a rollout is scored."""

from deadheat.scorers.checker import CheckerScorer, grade
from deadheat.scorers.controls import plant
from deadheat.scorers.rescore import Rescorer

__all__ = ["CheckerScorer", "Rescorer", "grade", "plant"]

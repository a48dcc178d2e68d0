"""How a rollout is scored."""

from deadheat.scorers.checker import CheckerScorer, grade
from deadheat.scorers.controls import plant

__all__ = ["CheckerScorer", "grade", "plant"]

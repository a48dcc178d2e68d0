"""Held-out evaluation."""

from deadheat.evals.heldout import EvalSpec, Evaluation, evaluate

__all__ = ["EvalSpec", "Evaluation", "evaluate"]

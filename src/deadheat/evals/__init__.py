"""Held-out evaluation, and sampling groups without training."""

from deadheat.evals.cold import cold_rows
from deadheat.evals.heldout import EvalSpec, Evaluation, evaluate
from deadheat.evals.sample import GateReading, SamplePlan, TopUp, TopUpReading, draw_sample, read_gate, read_top_up

__all__ = [
    "EvalSpec",
    "Evaluation",
    "GateReading",
    "SamplePlan",
    "TopUp",
    "TopUpReading",
    "cold_rows",
    "draw_sample",
    "evaluate",
    "read_gate",
    "read_top_up",
]

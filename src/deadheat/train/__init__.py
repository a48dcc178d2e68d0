"""One run from config to archive: loss, stepping, the loop, checkpoints, convergence."""

from deadheat.train.assign import assign_credit
from deadheat.train.config import RolloutConfig, RunConfig, Section
from deadheat.train.convergence import Ending
from deadheat.train.drawing import drawing_rewards, uncredited
from deadheat.train.ledger import StepRecord, read_steps
from deadheat.train.loop import Outcome, read_outcome, train_run
from deadheat.train.record import EVALS, NOT_KEPT, ROLLOUTS, RunIdentity, read_clock, read_peaks, step_file
from deadheat.train.run import Observer, Progress
from deadheat.train.shape import Shaping

__all__ = [
    "EVALS",
    "NOT_KEPT",
    "ROLLOUTS",
    "Ending",
    "Observer",
    "Outcome",
    "Progress",
    "RolloutConfig",
    "RunConfig",
    "RunIdentity",
    "Section",
    "Shaping",
    "StepRecord",
    "assign_credit",
    "drawing_rewards",
    "read_clock",
    "read_outcome",
    "read_peaks",
    "read_steps",
    "step_file",
    "train_run",
    "uncredited",
]

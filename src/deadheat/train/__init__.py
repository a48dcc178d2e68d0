"""One run from config to archive: loss, stepping, the loop, checkpoints, convergence."""

from deadheat.train.batch import Entry, TrainBatch, discarded, train_batch
from deadheat.train.config import RolloutConfig, RunConfig, Section
from deadheat.train.convergence import Ending
from deadheat.train.ledger import StepRecord, read_steps
from deadheat.train.record import EVALS, NOT_KEPT, ROLLOUTS, RunIdentity, read_clock, read_peaks, step_file
from deadheat.train.rewards import Rewards, Shaping
from deadheat.train.run import Observer, Outcome, Progress, read_outcome, train_run

__all__ = [
    "EVALS",
    "NOT_KEPT",
    "ROLLOUTS",
    "Ending",
    "Entry",
    "Observer",
    "Outcome",
    "Progress",
    "Rewards",
    "RolloutConfig",
    "RunConfig",
    "RunIdentity",
    "Section",
    "Shaping",
    "StepRecord",
    "TrainBatch",
    "discarded",
    "read_clock",
    "read_outcome",
    "read_peaks",
    "read_steps",
    "step_file",
    "train_batch",
    "train_run",
]

"""One run from config to archive: for each step draw, score, credit, update, record; evaluate and checkpoint when due."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from deadheat.archive import read_json, write_json
from deadheat.errors import DivergedError
from deadheat.scorers import CheckerScorer
from deadheat.tasks import load_task
from deadheat.train.config import RunConfig
from deadheat.train.convergence import Ending
from deadheat.train.ledger import write_steps
from deadheat.train.memory import peak_memory
from deadheat.train.record import OUTCOME, RunIdentity
from deadheat.train.run import Observer, Progress, Run


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended."""

    ending: Ending
    step: int  # last step whose records stand
    num_active: int  # batches that carried signal
    peak_step: int | None  # highest held-out accuracy, selected on the pool below; None: nothing was graded
    converged_step: int | None  # None: no stop rule by convergence, or it did not fire
    pool: int  # held-out problems the two were chosen on
    message: str | None  # what went wrong; None: nothing


def train_run(config: RunConfig, identity: RunIdentity, race_folder: Path, *, observe: Observer) -> Outcome:
    """Runs one arm under one seed to its end, from wherever its folder stands."""
    folder = race_folder / identity.folder
    finished = read_outcome(folder)
    if finished is not None:
        observe(_finished(identity, config, finished))
        return finished
    task = load_task(config.task)
    with _threads(config.threads), CheckerScorer(task, limit_s=config.scorer.check_limit_s) as scorer:
        run = Run.start(config, identity, folder, task, scorer, observe)
        try:
            outcome = _outcome(run, _loop(run))
        except DivergedError as error:
            write_steps(folder, run.records)
            outcome = _outcome(run, Ending.DIVERGED, str(error))
    write_json(folder / OUTCOME, asdict(outcome))
    observe(_finished(identity, config, outcome))
    return outcome


def _loop(run: Run) -> Ending:
    end = run.ending()
    while end is None:
        step = run.step + 1
        groups = run.draw(step)
        credited = run.credit(groups, step)
        report = run.update(credited, step)
        run.record(credited, report, step)
        end = run.ending()
        if end is not None or run.evaluation_due:
            run.evaluate()
            run.checkpoint()
            end = run.ending()
        run.clock.write(step, peak_memory(run.policy.device))
        run.tell()
    return end


@contextmanager
def _threads(wanted: int | None) -> Iterator[None]:
    """Float sums depend on the number of CPU threads: a run has its own, and gives the process's back."""
    before = torch.get_num_threads()
    torch.set_num_threads(wanted or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def read_outcome(run_folder: Path) -> Outcome | None:
    """How a run ended; None: it has not."""
    path = run_folder / OUTCOME
    if not path.exists():
        return None
    held = read_json(path)
    return Outcome(**{**held, "ending": Ending(held["ending"])})


def _outcome(run: Run, end: Ending, message: str | None = None) -> Outcome:
    marks = run.landmarks
    return Outcome(
        ending=end,
        step=run.step,
        num_active=run.num_active,
        peak_step=marks.peak_step,
        converged_step=marks.converged_step,
        pool=run.config.eval.pool,
        message=message,
    )


def _finished(identity: RunIdentity, config: RunConfig, outcome: Outcome) -> Progress:
    note = outcome.message or f"ended by {outcome.ending.value} at step {outcome.step}"
    return Progress(identity=identity, step=outcome.step, steps=config.stop.steps, note=note, finished=outcome.ending)

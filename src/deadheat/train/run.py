"""A run from config to archive: start or resume it, step until it ends, evaluate and checkpoint when due.

Nothing is carried between steps but the weights, the optimiser's state, the ledger and the readings, and all four are on
disk at every checkpoint. The problems of a step, the noise of its draws and a control's permutations are functions of
their addresses.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

import numpy as np
import torch

from deadheat.archive import read_json, write_json
from deadheat.errors import DivergedError, PromptTooLongError, TaskError
from deadheat.evals import EvalSpec, evaluate
from deadheat.policy import LanguageModel, load_policy
from deadheat.rollouts import DrawSpec
from deadheat.sampling.keys import stream_key
from deadheat.scorers import SCORERS, scored
from deadheat.tasks import Task, load_task
from deadheat.tasks.order import ProblemOrder, problem_order
from deadheat.train.batch import refuse_unknown_parts
from deadheat.train.checkpoint import latest_step, prune_checkpoints, restore_checkpoint, save_checkpoint
from deadheat.train.config import RunConfig
from deadheat.train.convergence import Ending, Landmarks, Reading, ending, landmarks
from deadheat.train.ledger import StepRecord, read_steps, step_record, write_steps
from deadheat.train.loop import Source, Updater, train_step
from deadheat.train.memory import peak_memory
from deadheat.train.record import (
    OUTCOME,
    Clock,
    RunIdentity,
    forget_after,
    read_readings,
    write_batch,
    write_evaluation,
)
from deadheat.train.rewards import Shaping
from deadheat.types import Address, Completion, Group, Problem, Purpose, SamplingParams, Scorer


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What a run tells whoever watches it."""

    identity: RunIdentity
    step: int  # last finished step
    steps: int  # step limit
    note: str  # a few words: accuracy, live groups
    finished: Ending | None  # None: still going


Observer = Callable[[Progress], None]


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
    with _threads(config.threads), SCORERS[config.scorer.kind].open(task, config.scorer.check_limit_s) as scorer:
        run = Run.start(config, identity, folder, task, scorer, observe)
        try:
            outcome = _outcome(run, _to_its_end(run))
        except DivergedError as error:
            write_steps(folder, run.records)
            outcome = _outcome(run, Ending.DIVERGED, str(error))
    write_json(folder / OUTCOME, asdict(outcome))
    observe(_finished(identity, config, outcome))
    return outcome


def _to_its_end(run: "Run") -> Ending:
    end = run.ending()
    while end is None:
        run.advance()
        end = run.ending()
        if end is not None or run.evaluation_due:
            run.evaluate()
            run.checkpoint()
            end = run.ending()
        run.clock.write(run.step, peak_memory(run.policy.device))
        run.tell()
    return end


@dataclass(kw_only=True)
class Run:
    """One arm under one seed."""

    config: RunConfig
    identity: RunIdentity
    folder: Path
    task: Task
    scorer: Scorer
    policy: LanguageModel
    updater: Updater
    sampling: SamplingParams
    order: ProblemOrder
    shaping: Shaping
    observe: Observer
    clock: Clock
    step: int = 0  # last finished step
    records: list[StepRecord] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)

    @classmethod
    def start(
        cls,
        config: RunConfig,
        identity: RunIdentity,
        folder: Path,
        task: Task,
        scorer: Scorer,
        observe: Observer,
    ) -> Self:
        """Loads the policy and restores the newest checkpoint; without one, evaluates step 0."""
        refuse_unknown_parts(task, config.credit)
        shaping = Shaping.of(config, task)
        folder.mkdir(parents=True, exist_ok=True)
        clock = Clock(folder)
        sampling = config.sampling.params(task)
        policy = load_policy(
            config.policy,
            key=stream_key(identity.seed, "adapter"),
            warm_texts=[problem.prompt + task.gold_text(problem) for problem in task.training],
        )
        run = cls(
            config=config,
            identity=identity,
            folder=folder,
            task=task,
            scorer=scorer,
            policy=policy,
            updater=Updater(policy, config.update, config.credit, sampling),
            sampling=sampling,
            order=problem_order(task.training, seed=identity.seed, curriculum=config.rollouts.curriculum),
            shaping=shaping,
            observe=observe,
            clock=clock,
        )
        run._refuse_long_prompts()
        clock.lap("load")
        run._restore()
        return run

    def advance(self) -> None:
        """One training step, on record."""
        source = Source(
            order=self.order,
            spec=self._spec(self.sampling),
            score=self._score,
            shaping=self.shaping,
            seed=self.identity.seed,
        )
        done = train_step(self.policy, self.updater, source, self.config, self.step + 1)
        self.clock.lap("update")
        sampling = self.sampling
        write_batch(self.folder, self.identity, done.batch, done.discarded, temperature=sampling.temperature)
        self.records.append(step_record(done, self.config.update, num_parameters=self.num_parameters))
        self.step = done.batch.step
        self.clock.lap("record")

    def _score(self, groups: Sequence[Group]) -> list[Group]:
        """Scores what was just drawn: a strategy draws and scores by turns."""
        address = Address(seed=self.identity.seed, purpose=Purpose.TRAIN, step=self.step + 1)
        _refuse_nan([rollout.completion for group in groups for rollout in group.rollouts], address.step)
        self.clock.lap("draw")
        found = scored(groups, self.scorer, address=address)
        self.clock.lap("score")
        return found

    def evaluate(self) -> None:
        """Answer the held-out pool and record it."""
        spec = EvalSpec(
            problems=self._pool(),
            draw=self._spec(self.config.eval.params(self.sampling)),
            samples=self.config.eval.samples,
            seed=self.identity.seed,
        )
        evaluation = evaluate(self.policy, self.scorer, spec)
        write_evaluation(
            self.folder, self.identity, evaluation, step=self.step, temperature=self.config.eval.temperature
        )
        self.readings.append(Reading(step=self.step, accuracy=evaluation.accuracy))
        self.clock.lap("evaluate")

    def checkpoint(self) -> None:
        """Commit everything up to this step."""
        write_steps(self.folder, self.records)
        save_checkpoint(self.folder, self.policy, self.updater, step=self.step)
        self._prune()
        self.clock.lap("checkpoint")

    def _prune(self) -> None:
        marks = self.landmarks
        named = {step for step in (marks.peak_step, marks.last_gain_step) if step is not None}
        evaluated = {reading.step for reading in self.readings}
        keep = evaluated if self.config.checkpoints.keep == "all" else named
        prune_checkpoints(self.folder, newest=self.step, keep_adapters=keep)

    @property
    def landmarks(self) -> Landmarks:
        """The named checkpoints so far."""
        return landmarks(self.readings, self.config.stop)

    @property
    def num_parameters(self) -> int:
        """Parameters of the model, adapter included."""
        return sum(parameter.numel() for parameter in self.policy.module.parameters())

    @property
    def num_active(self) -> int:
        """Batches that carried signal so far."""
        return sum(record.units_signal_groups > 0 for record in self.records)

    @property
    def evaluation_due(self) -> bool:
        """Whether this step is evaluated even if the run goes on."""
        return self.step % self.config.eval.every == 0

    def ending(self) -> Ending | None:
        """Whether the run ends here, and why."""
        return ending(self.step, self.num_active, self.readings, self.config.stop)

    def tell(self, *, finished: Ending | None = None) -> None:
        """A line of progress."""
        reading = next((r for r in reversed(self.readings) if r.accuracy is not None), None)
        held_out = "" if reading is None else f"held-out {reading.accuracy:.1%} at step {reading.step}"
        self.observe(
            Progress(
                identity=self.identity, step=self.step, steps=self.config.stop.steps, note=held_out, finished=finished
            )
        )

    def _restore(self) -> None:
        step = latest_step(self.folder)
        forget_after(self.folder, step)
        if step is None:
            self.evaluate()
            self.checkpoint()
            self.clock.write(0, peak_memory(self.policy.device))
        else:
            restore_checkpoint(self.folder, self.policy, self.updater, step=step)
            self.step = step
            self.records = read_steps(self.folder, up_to=step)
            self.readings = read_readings(self.folder)
            self._prune()
        self.tell()

    def _spec(self, sampling: SamplingParams) -> DrawSpec:
        return DrawSpec(task=self.task.name, chat=self.task.chat, stop_text=self.task.stop_text, sampling=sampling)

    def _pool(self) -> Sequence[Problem]:
        wanted, held = self.config.eval.pool, len(self.task.held_out)
        if wanted > held:
            raise TaskError(
                f"[eval] pool is {wanted} but task {self.task.name!r} holds out {held}; lower pool or raise held_out"
            )
        return self.task.held_out[:wanted]

    def _refuse_long_prompts(self) -> None:
        cap, limit = self.sampling.max_new_tokens, self.policy.context_length
        for problem in (*self.task.training, *self._pool()):
            length = len(self.policy.encode(problem.prompt, chat=self.task.chat))
            if length + cap > limit:
                raise PromptTooLongError(
                    f"problem {problem.problem_id} of {self.task.name} has {length} prompt tokens; with max_new_tokens "
                    f"{cap} that exceeds the model's context of {limit}. Lower max_new_tokens, leave long problems out, "
                    "or choose another model."
                )


def _refuse_nan(completions: Sequence[Completion], step: int) -> None:
    if any(np.isnan(completion.plain_logprobs).any() for completion in completions):
        raise DivergedError(
            f"step {step}: the policy's log-probabilities are not numbers, so the update of step {step - 1} broke the "
            "weights. Try a lower learning_rate or clip_norm."
        )


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

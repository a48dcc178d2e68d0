"""A run in flight: the state between two steps, and one method per phase of a step.

Nothing is carried between steps but the weights, the optimiser's state, the ledger and the readings, and all four are on
disk at every checkpoint. The problems of a step, the noise of its draws and a control's permutations are functions of
their addresses.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np

from deadheat.credit import GroupKind, composition, signed_token_mass
from deadheat.errors import DivergedError, PromptTooLongError, TaskError
from deadheat.evals import EvalSpec, evaluate
from deadheat.policy import Branches, GenerateAccount, LanguageModel, load_policy
from deadheat.rollouts import STRATEGIES, Address, DrawnBatch, DrawSpec, Graded
from deadheat.sampling.keys import Purpose, stream_key
from deadheat.scorers import CheckerScorer, grade
from deadheat.tasks import Task
from deadheat.tasks.order import ProblemOrder, problem_order
from deadheat.train.assign import CreditedGroup, assign_credit, part_of, refuse_unknown_parts
from deadheat.train.checkpoint import latest_step, prune_checkpoints, restore_checkpoint, save_checkpoint
from deadheat.train.config import Importance, RunConfig, UpdateConfig
from deadheat.train.convergence import Ending, Landmarks, Reading, ending, landmarks
from deadheat.train.drawing import StepDraw, draw_plan, drawing_rewards, total, uncredited
from deadheat.train.ledger import StepRecord, flop_proxy, read_steps, write_steps
from deadheat.train.memory import peak_memory
from deadheat.train.record import (
    Clock,
    RunIdentity,
    forget_after,
    read_readings,
    write_batch,
    write_evaluation,
)
from deadheat.train.shape import Shaping
from deadheat.train.update import Lesson, Updater, UpdateReport
from deadheat.types import Completion, Drawn, Group, Problem, SamplingParams


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What a run tells whoever watches it."""

    identity: RunIdentity
    step: int  # last finished step
    steps: int  # step limit
    note: str  # a few words: accuracy, live groups
    finished: Ending | None  # None: still going


Observer = Callable[[Progress], None]


@dataclass(kw_only=True)
class Run:
    """One arm under one seed."""

    config: RunConfig
    identity: RunIdentity
    folder: Path
    task: Task
    scorer: CheckerScorer
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
    _batch: DrawnBatch = field(init=False)  # what was drawn for this step
    _accounts: list[GenerateAccount] = field(init=False)  # what it took, call by call

    @classmethod
    def start(
        cls,
        config: RunConfig,
        identity: RunIdentity,
        folder: Path,
        task: Task,
        scorer: CheckerScorer,
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

    def draw(self, step: int) -> list[Group]:
        """This step's problems, attempted and graded."""
        address = Address(seed=self.identity.seed, purpose=Purpose.TRAIN, step=step)
        plan = draw_plan(self.config.rollouts, self.order, self._spec(self.sampling), address)
        self._accounts = []
        self._batch = STRATEGIES[self.config.rollouts.drawing].draw(self.policy, self._grade, plan)
        return [graded.group for graded in self._batch.kept]

    def _grade(self, drawn: Sequence[Drawn]) -> list[Graded]:
        """Grades what was just drawn, and keeps account of it: a strategy draws and grades by turns."""
        _refuse_nan([completion for d in drawn for completion in d.completions], self.step + 1)
        assert self.policy.last_generate is not None
        self._accounts.append(self.policy.last_generate)
        self.clock.lap("draw")
        graded = drawing_rewards(grade(drawn, self.scorer), self.shaping)
        self.clock.lap("score")
        return graded

    def credit(self, groups: Sequence[Group], step: int) -> list[CreditedGroup]:
        """Rewards and advantages of this step's groups."""
        return assign_credit(
            groups,
            scorer=self.config.scorer,
            credit=self.config.credit,
            shaping=self.shaping,
            seed=self.identity.seed,
            step=step,
        )

    def update(self, credited: Sequence[CreditedGroup], step: int) -> UpdateReport:
        """One optimiser step."""
        lessons = [
            Lesson(
                branches=Branches(
                    prompt_tokens=self.policy.encode(item.group.problem.prompt, chat=self.task.chat),
                    completions=tuple(rollout.completion.tokens for rollout in item.group.rollouts),
                ),
                advantages_G=item.advantages_G,
                drawn_G=tuple(self._drawn(rollout.completion) for rollout in item.group.rollouts),
                part=part_of(item.group.problem, self.config.credit),
            )
            for item in credited
        ]
        report = self.updater.step(lessons, step=step)
        self.clock.lap("update")
        return report

    def record(self, credited: Sequence[CreditedGroup], report: UpdateReport, step: int) -> None:
        """The batch to the archive, the step to the ledger."""
        not_kept = uncredited([graded.group for graded in self._batch.not_kept], self.config, self.shaping)
        write_batch(self.folder, self.identity, credited, not_kept, step=step, temperature=self.sampling.temperature)
        drawn = StepDraw(batch=self._batch, generated=total(self._accounts))
        self.records.append(_step_record(credited, report, drawn, self.config.update, self.num_parameters, step))
        self.step = step
        self.clock.lap("record")

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

    def _drawn(self, completion: Completion) -> tuple[float, ...]:
        """The recorded log-probabilities under the distribution that the loss uses."""
        return completion.logprobs if self.config.update.scored_under == "warped" else completion.plain_logprobs

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


def _step_record(
    credited: Sequence[CreditedGroup],
    report: UpdateReport,
    drawn: StepDraw,
    update: UpdateConfig,
    num_parameters: int,
    step: int,
) -> StepRecord:
    batch, generated = drawn.batch, drawn.generated
    drift, has_ratio = report.drift, update.importance is not Importance.NONE
    surprises = [-np.sum(r.completion.plain_logprobs) for item in credited for r in item.group.rollouts]
    kinds = composition([item.kind for item in credited])
    rollouts = [rollout for item in credited for rollout in item.group.rollouts]
    raw = [r.score.value for r in rollouts if r.score.value is not None]
    learned = [reward for item in credited for reward in item.rewards if reward is not None]
    lengths_PG = [[len(r.completion.tokens) for r in item.group.rollouts] for item in credited]
    masses = [signed_token_mass(i.advantages_G, lengths) for i, lengths in zip(credited, lengths_PG, strict=True)]
    return StepRecord(
        step=step,
        num_problems=batch.num_problems,
        num_never_mixed=batch.num_never_mixed,
        num_groups_drawn=batch.num_groups,
        num_rollouts_drawn=batch.num_rollouts,
        num_rounds=batch.num_rounds,
        tokens_not_kept=batch.tokens_not_kept,
        num_live=kinds[GroupKind.LIVE],
        num_all_right=kinds[GroupKind.ALL_RIGHT],
        num_all_wrong=kinds[GroupKind.ALL_WRONG],
        num_tied_other=kinds[GroupKind.TIED_OTHER],
        num_unscored_groups=kinds[GroupKind.UNSCORED],
        num_rollouts=len(rollouts),
        num_scored=len(raw),
        num_correct=sum(r.score.correct is True for r in rollouts),
        num_unparsed=sum(not r.score.parsed for r in rollouts),
        num_capped=sum(r.completion.stop == "cap" for r in rollouts),
        mean_raw_reward=float(np.mean(raw)) if raw else None,
        mean_reward=float(np.mean(learned)) if learned else None,
        mean_length=float(np.mean([length for lengths in lengths_PG for length in lengths])) if rollouts else None,
        signed_token_mass=float(np.mean(masses)) if masses else None,
        mean_surprise=float(np.sum(surprises)) / sum(map(sum, lengths_PG)) if rollouts else None,
        stepped=report.stepped,
        num_updates=report.num_updates,
        loss=report.loss,
        learning_rate=report.learning_rate,
        grad_norm=report.grad_norm,
        clipped=report.clipped,
        units_all_groups=report.divisors.all_groups,
        units_signal_groups=report.divisors.signal_groups,
        grad_norm_all_groups=report.grad_norm_all_groups,
        grad_norm_signal_groups=report.grad_norm_signal_groups,
        mean_ratio=drift.per_compared(drift.ratio_sum),
        kl_drawn=drift.per_compared(drift.kl_drawn_sum),
        kl_reference=drift.kl_reference,
        clip_low_frac=drift.per_compared(drift.num_clipped_low) if has_ratio else None,
        clip_high_frac=drift.per_compared(drift.num_clipped_high) if has_ratio else None,
        clip_dual_frac=drift.per_compared(drift.num_clipped_dual) if update.dual_clip is not None else None,
        tokens_prefilled=generated.num_prefilled,
        tokens_generated=generated.num_generated,
        tokens_idle=generated.num_prefill_idle + generated.num_idle,
        tokens_delivered=report.tokens_delivered,
        tokens_backward=report.tokens_backward,
        tokens_padded=report.tokens_padded,
        tokens_unshared=report.tokens_unshared,
        tokens_reference=report.tokens_reference,
        flop=flop_proxy(
            num_parameters=num_parameters,
            tokens_forward=generated.num_prefilled + generated.num_generated + report.tokens_reference,
            tokens_backward=report.tokens_backward,
        ),
    )

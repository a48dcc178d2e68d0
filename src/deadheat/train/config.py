"""What one run is: every section of a race file, frozen and validated."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from deadheat.credit import Denominator, Estimator
from deadheat.policy import PolicyConfig
from deadheat.tasks import Task, TaskField
from deadheat.tasks.order import Curriculum
from deadheat.types import Draw, SamplingParams


class Section(BaseModel):
    """A frozen table of a race file; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class ZeroSignal(StrEnum):
    """What is done about groups whose advantages are all zero."""

    BACKWARD = "backward"  # they go through forward and backward like any other, and add exact zeros
    ZERO_GRAD_STEP = "zero_grad_step"  # skipped; a batch of only tied groups steps on an all-zero gradient: equal bits
    SKIP_STEP = "skip_step"  # skipped; a batch of only tied groups makes no step: moments and decay differ


class Loss(StrEnum):
    """How token log-probabilities ℓ and advantages A become one number (before the sign and the divisor)."""

    SEQUENCE_SUM = "sequence_sum"  # Σ_i A_i·Σ_t ℓ_it, divided by sequences
    TOKEN_MEAN = "token_mean"  # Σ_i Σ_t A_i·ℓ_it, divided by tokens
    SEQUENCE_MEAN = "sequence_mean"  # Σ_i A_i·(mean_t ℓ_it), divided by sequences
    FIXED_LENGTH = "fixed_length"  # Σ_i A_i·Σ_t ℓ_it / max_new_tokens, divided by sequences


class SamplingConfig(Section):
    """How training rollouts are drawn. Changing it makes an arm partly coupled."""

    temperature: float = Field(default=1.0, gt=0)
    top_k: int | None = Field(default=None, ge=1)
    top_p: float = Field(default=1.0, gt=0, le=1)
    draw: Draw = Draw.GUMBEL_MAX
    max_new_tokens: int | None = Field(default=None, ge=1)  # None: the task's own cap

    def params(self, task: Task) -> SamplingParams:
        """The parameters for a task."""
        return SamplingParams(
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            draw=self.draw,
            max_new_tokens=self.max_new_tokens or task.max_new_tokens,
        )


class RolloutConfig(Section):
    """Which problems a step sees and how many attempts each gets. Changing it makes an arm partly coupled."""

    questions_per_step: int = Field(default=4, ge=1)
    group_size: int = Field(default=8, ge=2)
    curriculum: Curriculum = Curriculum()


class ScorerConfig(Section):
    """What the rewards are."""

    kind: Literal["checker", "plant"] = "checker"  # plant: the checker's rewards, permuted within each group
    check_limit_s: float | None = Field(default=None, gt=0)  # time limit of one check; None: the task's own
    marker: str | None = None  # for the gate below; None: the task's own marker
    gate_chars: int | None = Field(default=None, ge=0)  # training reward needs the marker at or after this character


class CreditConfig(Section):
    """How rewards become advantages and which groups the loss is divided by."""

    estimator: Estimator = Estimator.STANDARDISED
    ddof: Literal[0, 1] = 0
    eps: float = Field(default=1e-4, ge=0)
    denominator: Denominator = Denominator.ALL_GROUPS
    zero_signal: ZeroSignal = ZeroSignal.ZERO_GRAD_STEP


class UpdateConfig(Section):
    """Loss and optimiser (AdamW)."""

    loss: Loss = Loss.SEQUENCE_SUM
    weighting: Literal["after_sum", "before_sum"] = "after_sum"  # A·Σℓ or Σ(A·ℓ): one ULP apart, then a trajectory
    scored_under: Literal["plain", "warped"] = "plain"  # which distribution's log-probabilities the loss uses
    learning_rate: float = Field(default=2e-4, gt=0)
    warmup_steps: int = Field(default=0, ge=0)  # linear from learning_rate/(warmup_steps+1)
    beta1: float = Field(default=0.9, ge=0, lt=1)
    beta2: float = Field(default=0.999, ge=0, lt=1)
    adam_eps: float = Field(default=1e-8, gt=0)
    weight_decay: float = Field(default=0.0, ge=0)
    clip_norm: float | None = Field(default=1.0, gt=0)  # None: no clipping
    questions_per_pass: int = Field(default=1, ge=1)  # questions that share a forward and backward; the rest accumulate


class EvalConfig(Section):
    """Held-out evaluation: greedy by default, one answer each."""

    pool: int = Field(default=200, ge=1)  # the first n of the task's held-out order
    every: int = Field(default=10, ge=1)  # steps between evaluations; step 0 and the last step are always evaluated
    samples: int = Field(default=1, ge=1)
    temperature: float = Field(default=1.0, gt=0)
    draw: Draw = Draw.GREEDY
    max_new_tokens: int | None = Field(default=None, ge=1)  # None: the training cap

    def params(self, training: SamplingParams) -> SamplingParams:
        """The parameters of held-out answers, beside those of training rollouts."""
        return SamplingParams(
            temperature=self.temperature, draw=self.draw, max_new_tokens=self.max_new_tokens or training.max_new_tokens
        )

    @model_validator(mode="after")
    def _greedy_once(self) -> "EvalConfig":
        if self.draw is Draw.GREEDY and self.samples > 1:
            raise ValueError(f"samples is {self.samples} with draw = 'greedy'; wanted 1, or draw = 'gumbel_max'")
        return self


class StopConfig(Section):
    """When a run ends: at `steps`, or earlier by one of the other rules."""

    steps: int = Field(default=100, ge=1)
    active_updates: int | None = Field(default=None, ge=1)  # end once this many batches carried signal
    patience: int | None = Field(default=None, ge=1)  # end after this many evaluations without a gain; None: never
    tolerance_pp: float = Field(default=0.5, ge=0)  # a gain is more than this many points over the best so far


class CheckpointConfig(Section):
    """What is kept of the weights."""

    keep: Literal["all", "last"] = "all"  # the adapter of every evaluated step, or of the last, converged and peak only


class RunConfig(Section):
    """One arm of a race, or a run of its own."""

    policy: PolicyConfig
    task: TaskField
    sampling: SamplingConfig = SamplingConfig()
    rollouts: RolloutConfig = RolloutConfig()
    scorer: ScorerConfig = ScorerConfig()
    credit: CreditConfig = CreditConfig()
    update: UpdateConfig = UpdateConfig()
    eval: EvalConfig = EvalConfig()
    stop: StopConfig = StopConfig()
    checkpoints: CheckpointConfig = CheckpointConfig()
    threads: Annotated[int, Field(ge=1)] | None = None  # CPU threads of one run; None: cores // workers, then recorded

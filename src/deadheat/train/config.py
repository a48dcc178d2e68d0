"""What one run is: every section of a race file, frozen and validated."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from deadheat.credit import CREDITS, Denominator, Estimator
from deadheat.policy import PolicyConfig
from deadheat.rollouts import DrawingField, FlatOptions
from deadheat.scorers import SCORERS
from deadheat.tasks import Task, TaskField
from deadheat.tasks.order import Curriculum
from deadheat.train.recipes import with_recipe
from deadheat.train.renamed import refuse_renamed
from deadheat.types import Draw, SamplingParams


class Section(BaseModel):
    """A frozen table of a race file; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _none_is_a_word(cls, table: Any) -> Any:
        """TOML has no null: where None is a value, "none" says it."""
        if not isinstance(table, Mapping):
            return table
        nullable = {n for n, field in cls.model_fields.items() if type(None) in get_args(field.annotation)}
        return {key: None if key in nullable and value == "none" else value for key, value in table.items()}


def _entry_of(key: str, table: Mapping[str, object]) -> Callable[[str], str]:
    """A check that a name is in a table that others may add to."""

    def check(name: str) -> str:
        if name not in table:
            raise ValueError(f"{key} is {name!r}; wanted one of {', '.join(table)}")
        return name

    return check


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


class Importance(StrEnum):
    """How the objective corrects for the policy that the tokens were drawn from."""

    NONE = "none"  # not at all: exact while a batch gives one update
    TOKEN = "token"  # each token by its own ratio ρ_t = p_now / p_drawn, clipped (PPO, GRPO, DAPO)
    SEQUENCE = "sequence"  # every token by the geometric mean ratio of its completion, clipped (GSPO)


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
    drawing: DrawingField = FlatOptions()  # which strategy, with the options that it alone has
    curriculum: Curriculum = Curriculum()


class ScorerConfig(Section):
    """What the rewards are."""

    kind: Annotated[str, AfterValidator(_entry_of("scorer.kind", SCORERS))] = "checker"  # an entry of SCORERS
    check_limit_s: float | None = Field(default=None, gt=0)  # time limit of one check; None: the task's own
    marker: str | None = None  # for the gate below; None: the task's own marker
    gate_chars: int | None = Field(default=None, ge=0)  # training reward needs the marker at or after this character
    overlong_buffer: int | None = Field(
        default=None, ge=1
    )  # tokens before the cap where a penalty grows; None: no penalty
    overlong_factor: float = Field(default=1.0, gt=0)  # that penalty at the cap, in rewards
    length_cost: float = Field(default=0.0, ge=0)  # reward lost by a completion as long as the cap, in proportion below
    length_cost_of: Literal["right", "all"] = "right"  # whose length costs: completions graded right, or every one


class CreditConfig(Section):
    """How rewards become advantages and which groups the loss is divided by."""

    estimator: Annotated[str, AfterValidator(_entry_of("credit.estimator", CREDITS))] = Estimator.STANDARDISED.value
    ddof: Literal[0, 1] = 0
    eps: float = Field(default=1e-4, ge=0)
    denominator: Denominator = Denominator.ALL_GROUPS
    zero_signal: ZeroSignal = ZeroSignal.ZERO_GRAD_STEP
    normalise_by: str | None = None  # "task", or a problem column: each part has its own divisor; None: one for all


class UpdateConfig(Section):
    """Loss and optimiser (AdamW)."""

    loss: Loss = Loss.SEQUENCE_SUM
    weighting: Literal["after_sum", "before_sum"] = "after_sum"  # A·Σℓ or Σ(A·ℓ): one ULP apart, then a trajectory
    scored_under: Literal["plain", "warped"] = "plain"  # which distribution's log-probabilities the loss uses
    importance: Importance = Importance.NONE
    clip_low: float = Field(default=0.2, gt=0, lt=1)  # a ratio below 1 − this stops counting where A < 0
    clip_high: float = Field(default=0.28, gt=0)  # a ratio above 1 + this stops counting where A > 0
    dual_clip: float | None = Field(default=None, gt=1)  # largest ratio that counts where A < 0; None: no limit
    kl_coef: float = Field(default=0.0, ge=0)  # weight of KL(policy ‖ the model without its adapter); 0: not computed
    updates_per_batch: int = Field(default=1, ge=1)  # optimiser steps on one batch, each over all of it
    learning_rate: float = Field(default=2e-4, gt=0)
    warmup_steps: int = Field(default=0, ge=0)  # linear from learning_rate/(warmup_steps+1)
    beta1: float = Field(default=0.9, ge=0, lt=1)
    beta2: float = Field(default=0.999, ge=0, lt=1)
    adam_eps: float = Field(default=1e-8, gt=0)
    weight_decay: float = Field(default=0.0, ge=0)
    clip_norm: float | None = Field(default=1.0, gt=0)  # None: no clipping
    prompt_gradient: Literal["sum", "unit"] = "sum"  # unit: each prompt's gradient has norm 1 before they are averaged
    questions_per_pass: int | None = Field(default=None, ge=1)  # that share a pass at most; None: as its tokens allow

    @model_validator(mode="after")
    def _ratio_where_needed(self) -> Self:
        if self.importance is Importance.NONE:
            wanted = "wanted update.importance = 'token' or 'sequence'"
            if self.updates_per_batch > 1:
                raise ValueError(
                    f"update.updates_per_batch is {self.updates_per_batch} with update.importance = 'none'; after the first "
                    f"update the batch was drawn from another policy: {wanted}"
                )
            if self.dual_clip is not None:
                raise ValueError(
                    f"update.dual_clip is {self.dual_clip} but there is no ratio with update.importance = 'none'; {wanted}"
                )
        return self


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

    recipe: str | None = None  # a published objective: settings of recipes.toml below those given; None: no recipe
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

    @model_validator(mode="before")
    @classmethod
    def _resolve_recipe(cls, table: Any) -> Any:
        if not isinstance(table, Mapping):
            return table
        refuse_renamed(table)
        sections = {"credit": CreditConfig(), "update": UpdateConfig()}
        return with_recipe(table, {name: section.model_dump(mode="json") for name, section in sections.items()})

    @model_validator(mode="after")
    def _kl_has_a_reference(self) -> Self:
        kl = self.update.kl_coef
        if kl and self.policy.adapter.kind == "full":
            raise ValueError(
                f"update.kl_coef is {kl} with policy.adapter.kind = 'full': the weights that the KL term refers to are "
                "overwritten by training. Wanted policy.adapter.kind = 'lora', or update.kl_coef = 0"
            )
        if kl and self.credit.zero_signal is not ZeroSignal.BACKWARD:
            raise ValueError(
                f"credit.zero_signal is '{self.credit.zero_signal}' with update.kl_coef {kl}: a group whose rewards agree "
                "still has the gradient of its KL term, so it cannot be skipped. Wanted credit.zero_signal = 'backward', "
                "or update.kl_coef = 0"
            )
        return self

    @model_validator(mode="after")
    def _cuts_stay_put(self) -> Self:
        cut = self.update.scored_under == "warped" and (self.sampling.top_k is not None or self.sampling.top_p < 1)
        if cut and (self.update.kl_coef or self.update.updates_per_batch > 1):
            raise ValueError(
                "update.scored_under is 'warped' with sampling.top_k or sampling.top_p: what they cut off moves with the "
                "weights, and a drawn token that is cut has no log-probability under another state of the model. With "
                "update.kl_coef or update.updates_per_batch > 1, wanted update.scored_under = 'plain'"
            )
        return self

"""One optimiser step from a batch of credited groups: skip what carries no signal, share what is common, record both steps.

Questions are passed forward and backward a few at a time and accumulate; the divisor is the whole batch's, so the number
of questions per pass changes rounding only. With one question per pass (the default) a tied question adds exact zeros,
and `zero_grad_step` gives the same bits as `backward`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from deadheat.credit import Denominators, denominators
from deadheat.errors import DivergedError
from deadheat.policy import Branches, LanguageModel, LogprobsAccount, trainable_parameters
from deadheat.train.config import CreditConfig, UpdateConfig, ZeroSignal
from deadheat.train.objective import group_objective, units
from deadheat.types import SamplingParams


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """One group, ready to be learned from."""

    branches: Branches
    advantages_G: NDArray[np.float64]

    @property
    def has_signal(self) -> bool:
        """Whether any advantage is not zero."""
        return bool(np.any(self.advantages_G != 0))

    @property
    def num_unshared(self) -> int:
        """Tokens that a forward pass per completion would run."""
        prompt = len(self.branches.prompt_tokens)
        return sum(prompt + len(completion) - 1 for completion in self.branches.completions)


@dataclass(frozen=True, kw_only=True)
class UpdateReport:
    """What one batch did to the weights."""

    stepped: bool  # whether the optimiser stepped
    loss: float  # −Σ objective / divisor
    learning_rate: float
    grad_norm: float  # before clipping, under the divisor in use
    clipped: bool
    divisors: Denominators
    grad_norm_all_groups: float  # the norm under the all-groups divisor
    grad_norm_signal_groups: float  # the norm under the signal-groups divisor
    tokens_backward: int  # tokens that went through forward and backward, shared prefixes once
    tokens_padded: int  # columns that only made rows of a pass equally long
    tokens_unshared: int  # what a pass per completion would have run, tied groups included


@dataclass(frozen=True, kw_only=True)
class _Passed:
    """One forward and backward."""

    loss: float
    account: LogprobsAccount


class Updater:
    """AdamW over a policy's trainable parameters."""

    def __init__(
        self, policy: LanguageModel, update: UpdateConfig, credit: CreditConfig, sampling: SamplingParams
    ) -> None:
        self._policy = policy
        self._config = update
        self._credit = credit
        self._sampling = sampling
        self.parameters = trainable_parameters(policy)
        self.optimizer = torch.optim.AdamW(
            list(self.parameters.values()),
            lr=update.learning_rate,
            betas=(update.beta1, update.beta2),
            eps=update.adam_eps,
            weight_decay=update.weight_decay,
        )

    def step(self, lessons: Sequence[Lesson], *, step: int) -> UpdateReport:
        """Learns from one batch; raises `DivergedError` before the weights are touched when a number is not finite."""
        divisors = self._divisors(lessons)
        divisor = divisors.chosen(self._credit.denominator)
        kept = [lesson for lesson in lessons if self._credit.zero_signal is ZeroSignal.BACKWARD or lesson.has_signal]
        rate = self._set_learning_rate(step)
        self.optimizer.zero_grad(set_to_none=True)
        loss, tokens_backward, tokens_padded = 0.0, 0, 0
        for start in range(0, len(kept), self._config.questions_per_pass):
            passed = self._accumulate(kept[start : start + self._config.questions_per_pass], divisor)
            loss += passed.loss
            tokens_backward += passed.account.num_computed
            tokens_padded += passed.account.num_padded
        stepping = bool(kept) or self._credit.zero_signal is not ZeroSignal.SKIP_STEP
        norm = self._clip(step, loss) if stepping else 0.0
        if stepping:
            self.optimizer.step()
        return UpdateReport(
            stepped=stepping,
            loss=loss,
            learning_rate=rate,
            grad_norm=norm,
            clipped=self._config.clip_norm is not None and norm > self._config.clip_norm,
            divisors=divisors,
            grad_norm_all_groups=norm * divisor / max(1, divisors.all_groups),
            grad_norm_signal_groups=norm * divisor / max(1, divisors.signal_groups),
            tokens_backward=tokens_backward,
            tokens_padded=tokens_padded,
            tokens_unshared=sum(lesson.num_unshared for lesson in lessons),
        )

    def _divisors(self, lessons: Sequence[Lesson]) -> Denominators:
        units_P = [units([len(c) for c in lesson.branches.completions], self._config.loss) for lesson in lessons]
        return denominators(units_P, [lesson.has_signal for lesson in lessons])

    def _accumulate(self, lessons: Sequence[Lesson], divisor: int) -> "_Passed":
        warped = self._sampling if self._config.scored_under == "warped" else None
        logprobs_PG = self._policy.logprobs([lesson.branches for lesson in lessons], sampling=warped)
        objectives = [
            group_objective(
                logprobs_G,
                lesson.advantages_G,
                loss=self._config.loss,
                weighting=self._config.weighting,
                max_length=self._sampling.max_new_tokens,
            )
            for lesson, logprobs_G in zip(lessons, logprobs_PG, strict=True)
        ]
        loss = -torch.stack(objectives).sum() / divisor
        loss.backward()  # type: ignore[no-untyped-call]
        account = self._policy.last_logprobs
        assert account is not None
        return _Passed(loss=float(loss.detach()), account=account)

    def _clip(self, step: int, loss: float) -> float:
        for parameter in self.parameters.values():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        clip = self._config.clip_norm
        norm = float(torch.nn.utils.clip_grad_norm_(self.parameters.values(), math.inf if clip is None else clip))
        if not (math.isfinite(norm) and math.isfinite(loss)):
            raise DivergedError(
                f"step {step}: loss {loss} with gradient norm {norm}; wanted finite numbers. The weights are those of "
                f"step {step - 1}. Try a lower learning_rate (now {self._config.learning_rate:g}) or clip_norm."
            )
        return norm

    def _set_learning_rate(self, step: int) -> float:
        warmup = self._config.warmup_steps
        rate = self._config.learning_rate * min(1.0, step / (warmup + 1))
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        return rate

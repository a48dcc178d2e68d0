"""The optimiser steps of one batch of credited groups: skip what carries no signal, share what is common, record both sizes.

Questions are passed forward and backward together as far as the token budget of a pass allows, and accumulate: a pass is
let go before the next is computed, so the budget bounds the memory. The divisor is the whole batch's, so what shares a pass
changes rounding only. Tied questions have passes of their own, which add exact zeros: `zero_grad_step` gives the same bits
as `backward`.

A batch gives `updates_per_batch` steps, each over all of it. The ratio's denominator is what generation recorded: no
second forward pass is made for it. The reference of the KL term is one pass without the adapter and without gradients,
made once per batch, since its weights do not move.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deadheat.credit import Denominator, Denominators, denominators, part_divisors
from deadheat.errors import DivergedError
from deadheat.policy import Branches, LanguageModel, ScoredPiece, trainable_parameters
from deadheat.train.config import CreditConfig, UpdateConfig, ZeroSignal
from deadheat.train.drift import Drift, drift_of
from deadheat.train.objective import GroupLogprobs, group_objective, units
from deadheat.train.ratio import on_device
from deadheat.types import SamplingParams


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """One group, ready to be learned from."""

    branches: Branches
    advantages_G: NDArray[np.float64]
    drawn_G: tuple[tuple[float, ...], ...] | None = (
        None  # [T] each: log-probabilities at generation; None: not recorded
    )
    part: str = ""  # what it is normalised in; one name for all: one divisor

    @property
    def has_signal(self) -> bool:
        """Whether any advantage is not zero."""
        return bool(np.any(self.advantages_G != 0))

    @property
    def num_delivered(self) -> int:
        """Tokens of completions with an advantage that is not zero."""
        pairs = zip(self.branches.completions, self.advantages_G.tolist(), strict=True)
        return sum(len(completion) for completion, advantage in pairs if advantage != 0)


@dataclass(frozen=True, kw_only=True)
class UpdateReport:
    """What one batch did to the weights."""

    num_updates: int  # optimiser steps; 0: skipped
    loss: float  # −Σ objective / divisor + kl_coef·Σ KL / units; the mean over updates
    learning_rate: float
    grad_norm: float  # before clipping, under the divisor in use; the mean over updates
    clipped: bool  # whether clip_norm shortened the gradient of any update
    divisors: Denominators
    grad_norm_all_groups: float | None  # under the all-groups divisor; None: not a multiple of the gradient in use
    grad_norm_signal_groups: float | None  # under the signal-groups divisor; None: likewise
    drift: Drift  # over all updates
    tokens_delivered: int  # of completions with an advantage that is not zero
    tokens_backward: int  # tokens that went through forward and backward, shared prefixes once
    tokens_padded: int  # places in the passes' attention that held no token
    tokens_unshared: int  # what passes per completion would have run, tied groups included
    tokens_reference: int  # forward only, without the adapter

    @property
    def stepped(self) -> bool:
        """Whether the optimiser stepped."""
        return self.num_updates > 0


@dataclass(frozen=True, kw_only=True)
class _Divisors:
    """What the groups of a batch are divided by."""

    batch: Denominators
    used_P: tuple[int, ...]  # of the objective
    all_P: tuple[int, ...]  # if every group counts; of the KL term, which every group has
    signal_P: tuple[int, ...]  # if only live groups count
    signals_P: tuple[bool, ...]

    def scale_to(self, other_P: Sequence[int]) -> float | None:
        """Gradient under `other_P` / gradient in use; None: no one factor for all live groups."""
        pairs = zip(self.used_P, other_P, self.signals_P, strict=True)
        scales = {used / other for used, other, signal in pairs if signal}
        return scales.pop() if len(scales) == 1 else None if scales else 1.0


@dataclass(frozen=True, kw_only=True)
class _Item:
    """A lesson with what it is divided by and what the reference says of it."""

    lesson: Lesson
    divisor: int
    kl_divisor: int
    reference_G: Sequence[Tensor] | None


@dataclass(frozen=True, kw_only=True)
class _Passed:
    """Forward and backward passes; they add up."""

    loss: float = 0.0
    num_computed: int = 0
    num_padded: int = 0
    drift: Drift = field(default_factory=Drift)

    def __add__(self, other: "_Passed") -> "_Passed":
        return _Passed(
            loss=self.loss + other.loss,
            num_computed=self.num_computed + other.num_computed,
            num_padded=self.num_padded + other.num_padded,
            drift=self.drift + other.drift,
        )


class Updater:
    """AdamW over a policy's trainable parameters."""

    def __init__(
        self, policy: LanguageModel, update: UpdateConfig, credit: CreditConfig, sampling: SamplingParams
    ) -> None:
        self._policy = policy
        self._config = update
        self._credit = credit
        self._sampling = sampling
        self._warped = sampling if update.scored_under == "warped" else None
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
        tokens_reference, items = self._items(lessons, divisors)
        stepping = bool(items) or self._credit.zero_signal is not ZeroSignal.SKIP_STEP
        num_updates = self._config.updates_per_batch if stepping else 0
        rate = self._set_learning_rate(step)
        passed, norms = _Passed(), []
        for update in range(1, num_updates + 1):
            one = self._accumulate(items)
            norms.append(self._clip(step, update, one.loss))
            self.optimizer.step()
            passed += one
        norm = math.fsum(norms) / max(1, num_updates)
        to_all, to_signal = divisors.scale_to(divisors.all_P), divisors.scale_to(divisors.signal_P)
        return UpdateReport(
            num_updates=num_updates,
            loss=passed.loss / max(1, num_updates),
            learning_rate=rate,
            grad_norm=norm,
            clipped=self._config.clip_norm is not None and max(norms, default=0.0) > self._config.clip_norm,
            divisors=divisors.batch,
            grad_norm_all_groups=self._rescaled(norm, to_all),
            grad_norm_signal_groups=self._rescaled(norm, to_signal),
            drift=passed.drift,
            tokens_delivered=sum(lesson.num_delivered for lesson in lessons),
            tokens_backward=passed.num_computed,
            tokens_padded=passed.num_padded,
            tokens_unshared=self._config.updates_per_batch * sum(lesson.branches.num_unshared for lesson in lessons),
            tokens_reference=tokens_reference,
        )

    def _divisors(self, lessons: Sequence[Lesson]) -> _Divisors:
        units_P = [units([len(c) for c in lesson.branches.completions], self._config.loss) for lesson in lessons]
        signals_P = tuple(lesson.has_signal for lesson in lessons)
        parts_P = [lesson.part for lesson in lessons]
        by_kind = {which: part_divisors(units_P, signals_P, parts_P, which) for which in Denominator}
        return _Divisors(
            batch=denominators(units_P, signals_P),
            used_P=by_kind[self._credit.denominator],
            all_P=by_kind[Denominator.ALL_GROUPS],
            signal_P=by_kind[Denominator.SIGNAL_GROUPS],
            signals_P=signals_P,
        )

    def _items(self, lessons: Sequence[Lesson], divisors: _Divisors) -> tuple[int, list[_Item]]:
        """What goes through the passes, and the tokens that the reference took."""
        all_kept = self._credit.zero_signal is ZeroSignal.BACKWARD
        rows = zip(lessons, divisors.used_P, divisors.all_P, strict=True)
        kept = [row for row in rows if all_kept or row[0].has_signal]
        tokens = 0
        references: Sequence[Sequence[Tensor] | None] = [None] * len(kept)
        if self._config.kl_coef:
            groups = [lesson.branches for lesson, _, _ in kept]
            references = self._policy.reference_logprobs(groups, sampling=self._warped)
            assert self._policy.last_logprobs is not None
            tokens = self._policy.last_logprobs.num_computed
        return tokens, [
            _Item(lesson=lesson, divisor=divisor, kl_divisor=kl_divisor, reference_G=reference_G)
            for (lesson, divisor, kl_divisor), reference_G in zip(kept, references, strict=True)
        ]

    def _accumulate(self, items: Sequence[_Item]) -> _Passed:
        """Gradients of the whole batch, a few questions at a time."""
        self.optimizer.zero_grad(set_to_none=True)
        passed = _Passed()
        for signal in (True, False):
            alike = [item for item in items if item.lesson.has_signal is signal]
            size = self._config.questions_per_pass or max(1, len(alike))
            for start in range(0, len(alike), size):
                passed += self._passes(alike[start : start + size])
        return passed

    def _passes(self, items: Sequence[_Item]) -> _Passed:
        """Forward and backward, a pass at a time."""
        total = _Passed()
        for scored in self._policy.score_passes([item.lesson.branches for item in items], sampling=self._warped):
            owners = [items[piece.group] for piece in scored.pieces]
            groups = [_group(item, piece) for item, piece in zip(owners, scored.pieces, strict=True)]
            loss = self._loss(owners, groups)
            loss.backward()  # type: ignore[no-untyped-call]
            total += _Passed(
                loss=float(loss.detach()),
                num_computed=scored.num_computed,
                num_padded=scored.num_padded,
                drift=sum((drift_of(group, self._config) for group in groups), Drift()),
            )
        return total

    def _loss(self, items: Sequence[_Item], groups: Sequence[GroupLogprobs]) -> Tensor:
        """−Σ objective / divisor + kl_coef·Σ KL / KL divisor; groups of one divisor are summed before they are divided."""
        sums: dict[int, list[Tensor]] = {}
        penalties: list[Tensor] = []
        for item, group in zip(items, groups, strict=True):
            objective = group_objective(group, self._config, max_length=self._sampling.max_new_tokens)
            sums.setdefault(item.divisor, []).append(objective.policy)
            if objective.kl is not None:
                penalties.append(self._config.kl_coef * objective.kl / item.kl_divisor)
        parts = [-torch.stack(objectives).sum() / divisor for divisor, objectives in sums.items()]
        return torch.stack([*parts, *penalties]).sum() if len(parts) + len(penalties) > 1 else parts[0]

    def _rescaled(self, norm: float, scale: float | None) -> float | None:
        """The gradient norm under another divisor; the KL term has one divisor only, and stays."""
        if scale is None or (self._config.kl_coef and scale != 1.0):
            return None
        return norm * scale

    def _clip(self, step: int, update: int, loss: float) -> float:
        for parameter in self.parameters.values():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        clip = self._config.clip_norm
        norm = float(torch.nn.utils.clip_grad_norm_(self.parameters.values(), math.inf if clip is None else clip))
        if not (math.isfinite(norm) and math.isfinite(loss)):
            before = f"step {step - 1}" if update == 1 else f"update {update - 1} of step {step}"
            raise DivergedError(
                f"step {step}: loss {loss} with gradient norm {norm}; wanted finite numbers. The weights are those of "
                f"{before}. Try a lower learning_rate (now {self._config.learning_rate:g}) or clip_norm."
            )
        return norm

    def _set_learning_rate(self, step: int) -> float:
        warmup = self._config.warmup_steps
        rate = self._config.learning_rate * min(1.0, step / (warmup + 1))
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        return rate


def _group(item: _Item, piece: ScoredPiece) -> GroupLogprobs:
    """What is known of the completions that a pass scored."""
    here = slice(piece.first, piece.first + len(piece.logprobs))
    drawn_G = None if item.lesson.drawn_G is None else on_device(item.lesson.drawn_G[here], piece.logprobs)
    return GroupLogprobs(
        now_G=piece.logprobs,
        advantages_G=item.lesson.advantages_G[here],
        drawn_G=drawn_G,
        reference_G=None if item.reference_G is None else item.reference_G[here],
    )

"""What an update divides by, and what it reports: the bookkeeping around the passes of `loop`.

Members without a reward are left out of the divisors, as they are out of means. Every member has a KL term, so its
divisor counts all of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor

from deadheat.credit import Denominator, Denominators, PairTerm, denominators, part_divisors
from deadheat.errors import ConfigError
from deadheat.policy import PassPart, num_unshared
from deadheat.train.batch import Entry, TrainBatch
from deadheat.train.config import CreditConfig, UpdateConfig
from deadheat.train.drift import Drift
from deadheat.train.objective import GroupLogprobs, units
from deadheat.train.ratio import on_device


@dataclass(frozen=True, kw_only=True)
class Divisors:
    """What the groups of a batch are divided by."""

    batch: Denominators
    used_P: tuple[int, ...]  # of the objective
    all_P: tuple[int, ...]  # if every group counts
    signal_P: tuple[int, ...]  # if only live groups count
    kl_P: tuple[int, ...]  # of the KL term, which every member of every group has
    signals_P: tuple[bool, ...]

    @classmethod
    def of(cls, batch: TrainBatch, update: UpdateConfig, credit: CreditConfig) -> "Divisors":
        """The divisors of a batch."""
        units_P = [units(entry.lengths_of_scored, update.loss) for entry in batch.learned]
        members_P = [units([len(c) for c in entry.group.completion_tokens], update.loss) for entry in batch.learned]
        signals_P = tuple(entry.has_signal for entry in batch.learned)
        parts_P = [entry.part for entry in batch.learned]
        by_kind = {which: part_divisors(units_P, signals_P, parts_P, which) for which in Denominator}
        return cls(
            batch=denominators(units_P, signals_P),
            used_P=by_kind[credit.denominator],
            all_P=by_kind[Denominator.ALL_GROUPS],
            signal_P=by_kind[Denominator.SIGNAL_GROUPS],
            kl_P=part_divisors(members_P, signals_P, parts_P, Denominator.ALL_GROUPS),
            signals_P=signals_P,
        )

    def scale_to(self, other_P: Sequence[int]) -> float | None:
        """Gradient under `other_P` / gradient in use; None: no one factor for all live groups."""
        pairs = zip(self.used_P, other_P, self.signals_P, strict=True)
        scales = {used / other for used, other, signal in pairs if signal}
        return scales.pop() if len(scales) == 1 else None if scales else 1.0


@dataclass(frozen=True, kw_only=True)
class Item:
    """An entry on its way through the passes of an update."""

    entry: Entry
    divisor: int  # of its objective
    kl_divisor: int
    num_pairs: int  # pair terms of the whole batch: what each of them is divided by
    reference_G: Sequence[Tensor] | None  # [T] each, under the model without its adapter; None: no KL term

    def logprobs(self, part: PassPart, update: UpdateConfig) -> GroupLogprobs:
        """What is known of the completions that a pass read."""
        here = slice(part.first, part.first + len(part.values_G))
        old = [
            r.completion.logprobs if update.scored_under == "warped" else r.completion.plain_logprobs
            for r in self.entry.group.rollouts[here]
        ]
        return GroupLogprobs(
            now_G=part.values_G,
            advantages_G=self.entry.advantages_G[here],
            drawn_G=on_device(old, part.values_G) if any(old) else None,
            reference_G=None if self.reference_G is None else self.reference_G[here],
            pairs=[_shifted(pair, part) for pair in self.entry.pairs],
        )


@dataclass(frozen=True, kw_only=True)
class Passed:
    """Forward and backward passes; they add up."""

    loss: float = 0.0
    num_computed: int = 0
    num_padded: int = 0
    drift: Drift = field(default_factory=Drift)

    def __add__(self, other: "Passed") -> "Passed":
        return Passed(
            loss=self.loss + other.loss,
            num_computed=self.num_computed + other.num_computed,
            num_padded=self.num_padded + other.num_padded,
            drift=self.drift + other.drift,
        )


@dataclass(frozen=True, kw_only=True)
class UpdateReport:
    """What one batch did to the weights."""

    num_updates: int  # optimiser steps; 0: skipped
    loss: float  # −Σ objective / divisor + kl_coef·Σ KL / units + Σ hinge / pairs; the mean over updates
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


def report_of(
    batch: TrainBatch,
    divisors: Divisors,
    passed: Passed,
    *,
    norms: Sequence[float],
    learning_rate: float,
    tokens_reference: int,
    update: UpdateConfig,
) -> UpdateReport:
    """Sums and means of what the updates of one batch did; `norms` holds one gradient norm per optimiser step."""
    num_updates = len(norms)
    norm = math.fsum(norms) / max(1, num_updates)
    has_one_factor = update.prompt_gradient == "sum" and not any(entry.pairs for entry in batch.learned)

    def rescaled(scale: float | None) -> float | None:
        """The norm under another divisor; the KL and pair terms have one divisor only, and stay."""
        if scale is None or (scale != 1.0 and (update.kl_coef or not has_one_factor)):
            return None
        return norm * scale

    return UpdateReport(
        num_updates=num_updates,
        loss=passed.loss / max(1, num_updates),
        learning_rate=learning_rate,
        grad_norm=norm,
        clipped=update.clip_norm is not None and max(norms, default=0.0) > update.clip_norm,
        divisors=divisors.batch,
        grad_norm_all_groups=rescaled(divisors.scale_to(divisors.all_P)),
        grad_norm_signal_groups=rescaled(divisors.scale_to(divisors.signal_P)),
        drift=passed.drift,
        tokens_delivered=sum(entry.num_delivered for entry in batch.learned),
        tokens_backward=passed.num_computed,
        tokens_padded=passed.num_padded,
        tokens_unshared=update.updates_per_batch * num_unshared([entry.group for entry in batch.learned]),
        tokens_reference=tokens_reference,
    )


def _shifted(pair: PairTerm, part: PassPart) -> PairTerm:
    """The pair by index in a pass's completions, which must hold both of its branches."""
    better, worse = pair.better - part.first, pair.worse - part.first
    if not all(0 <= index < len(part.values_G) for index in (better, worse)):
        raise ConfigError(
            f"group {part.group} is split over passes between two branches of a pair; wanted both in one pass. Raise "
            "policy.max_update_tokens"
        )
    return PairTerm(better=better, worse=worse, first=pair.first, margin=pair.margin, weight=pair.weight)

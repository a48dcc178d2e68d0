"""One training step, from its problems to `optimizer.step()`: draw, score, credit, update, record.

Prompts are passed forward and backward together as far as the token budget of a pass allows, and accumulate: the graph of
each pass is freed before the next pass starts, so the budget bounds the memory. The divisor is the whole batch's, so what
shares a pass changes rounding only. Tied groups have passes of their own, which add exact zeros: `zero_grad_step` gives
the same bits as `backward`.

A batch gives `updates_per_batch` steps, each over all of it. The ratio's denominator is what generation recorded: no
second forward pass is made for it. The reference of the KL term is one pass without the adapter and without gradients.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from deadheat.errors import DivergedError
from deadheat.policy import LanguageModel, chosen_logprobs, trainable_parameters
from deadheat.rollouts import STRATEGIES, DrawnBatch, DrawPlan, DrawSpec
from deadheat.tasks.order import ProblemOrder
from deadheat.train.batch import Entry, TrainBatch, discarded, train_batch
from deadheat.train.config import CreditConfig, RunConfig, UpdateConfig, ZeroSignal
from deadheat.train.drift import Drift, drift_of
from deadheat.train.objective import GroupLogprobs, group_objective
from deadheat.train.rewards import Shaping
from deadheat.train.update import Divisors, Item, Passed, UpdateReport, report_of
from deadheat.types import Address, Group, Purpose, SamplingParams


@dataclass(frozen=True, kw_only=True)
class Step:
    """Everything that one step drew, learned from and did."""

    drawn: DrawnBatch
    batch: TrainBatch  # what was learned from
    discarded: tuple[Entry, ...]  # what was drawn and not learned from
    report: UpdateReport


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where the problems of a run come from and how their answers are drawn and scored."""

    order: ProblemOrder
    spec: DrawSpec
    score: Callable[[Sequence[Group]], list[Group]]  # the same groups, scored
    shaping: Shaping
    seed: int  # master seed of the run


def draw_plan(source: Source, config: RunConfig, step: int) -> DrawPlan:
    """What a step asks for: a pure function of the config and the step."""
    return DrawPlan(
        problems=source.order.batch(step, config.rollouts.questions_per_step),
        reserve=source.order.reserve(step, config.rollouts.questions_per_step),
        spec=source.spec,
        address=Address(seed=source.seed, purpose=Purpose.TRAIN, step=step),
        group_size=config.rollouts.group_size,
        options=config.rollouts.drawing,
        score=source.score,
        rewards=lambda group: source.shaping.rewards(group).gated_G,
    )


def train_step(policy: LanguageModel, updater: "Updater", source: Source, config: RunConfig, step: int) -> Step:
    """One step: draw and score groups, credit their tokens, update the weights."""
    plan, shaping = draw_plan(source, config, step), source.shaping
    drawn = STRATEGIES[plan.options.name].draw(policy, plan)
    batch = train_batch(
        drawn.kept,
        scorer=config.scorer,
        credit=config.credit,
        shaping=shaping,
        seed=plan.address.seed,
        step=plan.address.step,
    )
    report = updater.step(batch)
    return Step(drawn=drawn, batch=batch, discarded=tuple(discarded(drawn.not_kept, shaping)), report=report)


class Updater:
    """AdamW over a policy's trainable parameters."""

    def __init__(
        self, policy: LanguageModel, update: UpdateConfig, credit: CreditConfig, sampling: SamplingParams
    ) -> None:
        self._policy, self._config, self._credit = policy, update, credit
        self._max_length = sampling.max_new_tokens
        self._reader = chosen_logprobs(sampling if update.scored_under == "warped" else None)
        self.parameters = trainable_parameters(policy)
        self.optimizer = torch.optim.AdamW(
            list(self.parameters.values()),
            lr=update.learning_rate,
            betas=(update.beta1, update.beta2),
            eps=update.adam_eps,
            weight_decay=update.weight_decay,
        )

    def step(self, batch: TrainBatch) -> UpdateReport:
        """Learns from one batch; raises `DivergedError` before the weights are touched when a number is not finite."""
        divisors = Divisors.of(batch, self._config, self._credit)
        items, tokens_reference = self._items(batch, divisors)
        stepping = bool(items) or self._credit.zero_signal is not ZeroSignal.SKIP_STEP
        rate = self._set_learning_rate(batch.step)
        passed, norms = Passed(), []
        for update in range(1, 1 + (self._config.updates_per_batch if stepping else 0)):
            self.optimizer.zero_grad(set_to_none=True)
            done = self._backward(items) if self._config.prompt_gradient == "sum" else self._backward_by_prompt(items)
            norms.append(self._clip(batch.step, update, done.loss))
            self.optimizer.step()
            passed += done
        return report_of(
            batch,
            divisors,
            passed,
            norms=norms,
            learning_rate=rate,
            tokens_reference=tokens_reference,
            update=self._config,
        )

    def _items(self, batch: TrainBatch, divisors: Divisors) -> tuple[list[Item], int]:
        """What goes through the passes, and the tokens that the reference took."""
        rows = zip(batch.learned, divisors.used_P, divisors.kl_P, strict=True)
        kept = [row for row in rows if self._credit.zero_signal is ZeroSignal.BACKWARD or row[0].has_signal]
        references: Sequence[Sequence[Tensor] | None] = [None] * len(kept)
        tokens = 0
        if self._config.kl_coef:
            with self._policy.reference():
                read = self._policy.read([entry.group for entry, _, _ in kept], self._reader)
            references, tokens = read.values_PG, read.cost.num_computed
        num_pairs = max(1, sum(len(entry.pairs) for entry, _, _ in kept))
        return [
            Item(entry=entry, divisor=divisor, kl_divisor=kl, num_pairs=num_pairs, reference_G=reference_G)
            for (entry, divisor, kl), reference_G in zip(kept, references, strict=True)
        ], tokens

    def _backward(self, items: Sequence[Item]) -> Passed:
        """Gradients of the whole batch, a few prompts at a time."""
        total = Passed()
        for alike in self._together(items):
            for read in self._policy.read_passes([item.entry.group for item in alike], self._reader):
                owners = [alike[part.group] for part in read.parts]
                groups = [item.logprobs(part, self._config) for item, part in zip(owners, read.parts, strict=True)]
                loss = self._loss(owners, groups)
                loss.backward()  # type: ignore[no-untyped-call]
                total += Passed(
                    loss=float(loss.detach()),
                    num_computed=read.num_computed,
                    num_padded=read.num_padded,
                    drift=sum((drift_of(group, self._config) for group in groups), Drift()),
                )
        return total

    def _together(self, items: Sequence[Item]) -> Iterator[Sequence[Item]]:
        """Items that share passes: those with signal, then those without, `questions_per_pass` at a time."""
        for signal in (True, False):
            alike = [item for item in items if item.entry.has_signal is signal]
            size = self._config.questions_per_pass or max(1, len(alike))
            yield from (alike[start : start + size] for start in range(0, len(alike), size))

    def _backward_by_prompt(self, items: Sequence[Item]) -> Passed:
        """The mean over prompts with signal of gradients that have norm 1 each."""
        total, sums = Passed(), {name: torch.zeros_like(p) for name, p in self.parameters.items()}
        live = [item for item in items if item.entry.has_signal]
        for item in live:
            self.optimizer.zero_grad(set_to_none=True)
            total += self._backward([item])
            norm = self._norm(math.inf)
            for name, parameter in self.parameters.items():
                if parameter.grad is not None and norm > 0:
                    sums[name] += parameter.grad / (norm * len(live))
        for name, parameter in self.parameters.items():
            parameter.grad = sums[name]
        return total

    def _loss(self, items: Sequence[Item], groups: Sequence[GroupLogprobs]) -> Tensor:
        """−Σ objective / divisor + kl_coef·Σ KL / KL divisor + Σ hinge / pairs; groups of one divisor are summed first."""
        sums: dict[int, list[Tensor]] = {}
        penalties: list[Tensor] = []
        for item, group in zip(items, groups, strict=True):
            objective = group_objective(group, self._config, max_length=self._max_length)
            sums.setdefault(item.divisor, []).append(objective.policy)
            if objective.kl is not None:
                penalties.append(self._config.kl_coef * objective.kl / item.kl_divisor)
            if objective.hinge is not None:
                penalties.append(objective.hinge / item.num_pairs)
        parts = [-torch.stack(objectives).sum() / divisor for divisor, objectives in sums.items()]
        return torch.stack([*parts, *penalties]).sum() if len(parts) + len(penalties) > 1 else parts[0]

    def _norm(self, limit: float) -> float:
        """The gradient norm, zeros where a parameter has none; a longer gradient is shortened to `limit`."""
        for parameter in self.parameters.values():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        return float(torch.nn.utils.clip_grad_norm_(self.parameters.values(), limit))

    def _clip(self, step: int, update: int, loss: float) -> float:
        norm = self._norm(math.inf if self._config.clip_norm is None else self._config.clip_norm)
        if not (math.isfinite(norm) and math.isfinite(loss)):
            before = f"step {step - 1}" if update == 1 else f"update {update - 1} of step {step}"
            raise DivergedError(
                f"step {step}: loss {loss} with gradient norm {norm}; wanted finite numbers. The weights are those of "
                f"{before}. Try a lower learning_rate (now {self._config.learning_rate:g}) or clip_norm."
            )
        return norm

    def _set_learning_rate(self, step: int) -> float:
        """Linear from learning_rate/(warmup_steps + 1) to learning_rate."""
        rate = self._config.learning_rate * min(1.0, step / (self._config.warmup_steps + 1))
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        return rate

"""The step ledger: one row per optimiser step, nothing in it that a clock decides.

FLOP proxy: 2·P per token prefilled, generated or scored by the reference and 6·P per token in backward, P the model's
parameters (source: the 2-forward, 4-backward rule of Kaplan et al. 2020).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import polars as pl

from deadheat.archive import read_table, write_table
from deadheat.credit import GroupKind, composition, signed_token_mass
from deadheat.errors import ArchiveError
from deadheat.train.config import Importance, UpdateConfig
from deadheat.train.loop import Step

STEPS = "steps.parquet"


@dataclass(frozen=True, kw_only=True)
class StepRecord:
    """One step: what was drawn, what the groups learned from were, what the update did, what it cost.

    Groups and rollouts are those learned from, except where a field says drawn; tokens generated are all that were.
    """

    step: int
    num_problems: int  # problems tried
    num_never_mixed: int  # of them, those whose every draw agreed
    num_groups_drawn: int  # draws of group_size rollouts, learned from or not
    num_rollouts_drawn: int
    num_rounds: int  # calls of generation: one after the other, each waits for its grades
    tokens_not_kept: int  # generated tokens of rollouts that nothing was learned from
    num_live: int  # groups whose rewards differ
    num_all_right: int
    num_all_wrong: int
    num_tied_other: int
    num_unscored_groups: int
    num_rollouts: int
    num_scored: int
    num_correct: int
    num_unparsed: int
    num_capped: int  # completions that hit the token cap
    mean_raw_reward: float | None  # over scored rollouts; None: none was scored
    mean_reward: float | None  # after gate and controls
    mean_length: float | None  # tokens per completion; None: no group was kept
    signed_token_mass: float | None  # mean over groups of (1/G)·Σ A·L; None: no group was kept
    mean_surprise: float | None  # −ln p of a drawn token, plain: at temperature 1 without cuts, entropy on average
    stepped: bool  # whether the optimiser stepped
    num_updates: int  # optimiser steps on this batch
    loss: float  # the mean over updates
    learning_rate: float
    grad_norm: float  # before clipping; the mean over updates
    clipped: bool  # whether the gradient of any update was shortened
    units_all_groups: int  # divisor if every group counts
    units_signal_groups: int  # divisor if only live groups count
    grad_norm_all_groups: float | None  # step size under the first; None: not a multiple of grad_norm (KL, parts)
    grad_norm_signal_groups: float | None  # step size under the second; None: likewise
    mean_ratio: float | None  # p now / p when drawn, over tokens in backward; None: there was none
    kl_drawn: float | None  # k3 of KL(policy that drew ‖ policy now); None: nothing went backward
    kl_reference: float | None  # k3 of KL(policy ‖ model without its adapter); None: no KL term
    clip_low_frac: float | None  # tokens that the lower bound took out of the gradient; None: no ratio in the objective
    clip_high_frac: float | None  # the upper bound; None: likewise
    clip_dual_frac: float | None  # the dual clip; None: off
    tokens_prefilled: int
    tokens_generated: int
    tokens_idle: int  # places in generation's attention that held no token
    tokens_delivered: int  # of completions whose advantage is not zero
    tokens_backward: int
    tokens_padded: int  # places in the update's attention that held no token
    tokens_unshared: int  # what backward would have run one by one, tied groups included
    tokens_reference: int  # forward only, for the KL term
    flop: float  # proxy, see the module's docstring

    @property
    def num_groups(self) -> int:
        """Groups learned from this step, tied ones included."""
        return self.num_live + self.num_all_right + self.num_all_wrong + self.num_tied_other + self.num_unscored_groups


_TYPES = {"int": pl.Int64, "float": pl.Float64, "float | None": pl.Float64, "bool": pl.Boolean}
STEP_SCHEMA = pl.Schema({f.name: _TYPES[getattr(f.type, "__name__", str(f.type))] for f in fields(StepRecord)})


def flop_proxy(*, num_parameters: int, tokens_forward: int, tokens_backward: int) -> float:
    """(2·forward + 6·backward)·P.

    Example:
        >>> flop_proxy(num_parameters=10, tokens_forward=3, tokens_backward=2)
        180.0
    """
    return float((2 * tokens_forward + 6 * tokens_backward) * num_parameters)


def write_steps(run_folder: Path, records: Sequence[StepRecord]) -> None:
    """Write the ledger whole."""
    write_table(run_folder / STEPS, pl.DataFrame([asdict(r) for r in records], schema=STEP_SCHEMA, orient="row"))


def read_steps(run_folder: Path, *, up_to: int | None = None) -> list[StepRecord]:
    """The ledger, or its rows up to a step; empty when none was written yet."""
    path = run_folder / STEPS
    if not path.exists():
        return []
    table = read_table(path)
    if table.columns != list(STEP_SCHEMA):
        apart = sorted(set(table.columns) ^ set(STEP_SCHEMA)) or table.columns
        raise ArchiveError(
            f"{path} has other columns than this version writes: {', '.join(apart[:6])}. It was written by another version "
            "of deadheat; read it with that one, or run the race again."
        )
    records = [StepRecord(**row) for row in table.iter_rows(named=True)]
    return [record for record in records if up_to is None or record.step <= up_to]


def step_record(done: Step, update: UpdateConfig, *, num_parameters: int) -> StepRecord:
    """The ledger's row of a step."""
    batch, generated, report = done.drawn, done.drawn.cost, done.report
    credited = done.batch.entries
    drift, has_ratio = report.drift, update.importance is not Importance.NONE
    surprises = [-np.sum(r.completion.plain_logprobs) for item in credited for r in item.group.rollouts]
    kinds = composition([item.kind for item in credited])
    rollouts = [rollout for item in credited for rollout in item.group.rollouts]
    raw = [r.score.value for r in rollouts if r.score.value is not None]
    learned = [reward for item in credited for reward in item.rewards_G.tolist() if reward == reward]
    lengths_PG = [[len(tokens) for tokens in item.group.completion_tokens] for item in credited]
    masses = [signed_token_mass(i.mean_advantages_G, lengths) for i, lengths in zip(credited, lengths_PG, strict=True)]
    return StepRecord(
        step=done.batch.step,
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

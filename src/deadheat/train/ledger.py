"""The step ledger: one row per optimiser step, nothing in it that a clock decides.

FLOP proxy: 2·P per token prefilled or generated and 6·P per token in backward, P the model's parameters (source: the
2-forward, 4-backward rule of Kaplan et al. 2020).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import polars as pl

from deadheat.archive import read_table, write_table

STEPS = "steps.parquet"


@dataclass(frozen=True, kw_only=True)
class StepRecord:
    """One step: what the groups were, what the update did, what it cost."""

    step: int
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
    mean_length: float  # tokens per completion
    signed_token_mass: float  # mean over groups of (1/G)·Σ A·L
    stepped: bool  # whether the optimiser stepped
    loss: float
    learning_rate: float
    grad_norm: float  # before clipping
    clipped: bool
    units_all_groups: int  # divisor if every group counts
    units_signal_groups: int  # divisor if only live groups count
    grad_norm_all_groups: float  # step size under the first
    grad_norm_signal_groups: float  # step size under the second
    tokens_prefilled: int
    tokens_generated: int
    tokens_backward: int
    tokens_padded: int  # columns in backward that only made rows equally long
    tokens_unshared: int  # what backward would have run one by one, tied groups included
    flop: float  # proxy, see the module's docstring

    @property
    def num_groups(self) -> int:
        """Groups drawn this step."""
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
    records = [StepRecord(**row) for row in read_table(path).iter_rows(named=True)]
    return [record for record in records if up_to is None or record.step <= up_to]

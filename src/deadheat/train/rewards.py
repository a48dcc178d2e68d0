"""All rewards of a group at once: raw, gated, shaped.

    raw     what the scorer said
    gated   raw where the marker stands late enough, else 0: what the drawing goes by
    shaped  gated, less what its length costs: what is learned from, before a control

Only training sees the second and third. The raw reward stays on record, and evaluations are never shaped.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from deadheat.credit import length_penalty, overlong_penalty, passes_marker_gate
from deadheat.errors import ConfigError
from deadheat.tasks import Task
from deadheat.train.config import RunConfig, ScorerConfig
from deadheat.types import Group, Rollout

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Rewards:
    """The rewards of one group; NaN: unscored."""

    raw_G: Array
    gated_G: Array
    shaped_G: Array


@dataclass(frozen=True, kw_only=True)
class MarkerGate:
    """A raw reward counts only where the marker stands late enough."""

    marker: str
    min_chars: int

    def passes(self, rollout: Rollout) -> bool:
        """Whether the rollout keeps its raw reward."""
        return passes_marker_gate(rollout.completion.text, marker=self.marker, min_chars=self.min_chars)


@dataclass(frozen=True, kw_only=True)
class Shaping:
    """What is done to raw rewards; the defaults leave them alone."""

    cap: int  # tokens a completion may have
    gate: MarkerGate | None = None  # None: off
    overlong_buffer: int | None = None  # tokens before the cap; None: off
    overlong_factor: float = 1.0  # penalty at the cap
    length_cost: float = 0.0  # reward lost by a completion as long as the cap
    length_cost_of: Literal["right", "all"] = "right"

    @classmethod
    def of(cls, config: RunConfig, task: Task) -> "Shaping":
        """What a run's config asks for; a `ConfigError` where it does not fit the task."""
        scorer, cap = config.scorer, config.sampling.params(task).max_new_tokens
        if scorer.overlong_buffer is not None and scorer.overlong_buffer > cap:
            raise ConfigError(
                f"[scorer] overlong_buffer is {scorer.overlong_buffer} tokens and a completion may have {cap}; wanted at "
                "most that. Lower overlong_buffer or raise sampling.max_new_tokens"
            )
        return cls(
            cap=cap,
            gate=_gate(scorer, task),
            overlong_buffer=scorer.overlong_buffer,
            overlong_factor=scorer.overlong_factor,
            length_cost=scorer.length_cost,
            length_cost_of=scorer.length_cost_of,
        )

    def rewards(self, group: Group) -> Rewards:
        """All rewards of a group."""
        values = [rollout.score.value for rollout in group.rollouts]
        raw_G = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
        passes_G = np.array([self.gate is None or self.gate.passes(rollout) for rollout in group.rollouts], dtype=bool)
        gated_G = np.where(passes_G | np.isnan(raw_G), raw_G, 0.0)
        lost_G = np.array([self._lost(rollout) for rollout in group.rollouts], dtype=np.float64)
        return Rewards(raw_G=raw_G, gated_G=gated_G, shaped_G=gated_G - lost_G)

    def _lost(self, rollout: Rollout) -> float:
        length, lost = len(rollout.completion.tokens), 0.0
        if self.overlong_buffer is not None:
            lost += overlong_penalty(length, cap=self.cap, buffer=self.overlong_buffer, factor=self.overlong_factor)
        if self.length_cost and (self.length_cost_of == "all" or rollout.score.correct is True):
            lost += length_penalty(length, cap=self.cap, cost=self.length_cost)
        return lost


def _gate(scorer: ScorerConfig, task: Task) -> MarkerGate | None:
    if scorer.gate_chars is None:
        return None
    marker = scorer.marker or task.marker
    if marker is None:
        raise ConfigError(
            f"[scorer] gate_chars is {scorer.gate_chars} but task {task.name!r} has no marker; "
            "wanted scorer.marker, the text that opens the final answer"
        )
    return MarkerGate(marker=marker, min_chars=scorer.gate_chars)

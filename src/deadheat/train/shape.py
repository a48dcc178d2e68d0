"""The reward that training learns from: the raw reward, gated by a marker and less what its length costs.

Only training sees it. The raw reward stays on record beside it, and evaluations are never shaped.
"""

from dataclasses import dataclass
from typing import Literal

from deadheat.credit import length_penalty, overlong_penalty, passes_marker_gate
from deadheat.errors import ConfigError
from deadheat.tasks import Task
from deadheat.train.config import RunConfig, ScorerConfig
from deadheat.types import Rollout


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

    def gated(self, rollout: Rollout) -> float:
        """The raw reward after the marker gate, before length terms; NaN: unscored."""
        raw = rollout.score.value
        if raw is None:
            return float("nan")
        return raw if self.gate is None or self.gate.passes(rollout) else 0.0

    def reward(self, rollout: Rollout) -> float:
        """The training reward; NaN: unscored."""
        return self.gated(rollout) - self._lost(rollout)

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

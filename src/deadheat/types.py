"""The records every room speaks, and the two seams: `Policy` draws, `Scorer` grades.

Shapes in array names: `_P` problems, `_G` group, `_T` tokens, `_S` seeds, `_N` items, `_B` rows (P·G), `_V` vocabulary,
`_R` resamples. Log-probabilities are natural logarithms.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class StopReason(StrEnum):
    """Why a completion ended."""

    STOP = "stop"  # a stop id (end of sequence or the task's stop text) was drawn; it is part of the tokens
    CAP = "cap"  # max_new_tokens were drawn and no stop id among them


class Draw(StrEnum):
    """How a token is drawn from the warped distribution."""

    GUMBEL_MAX = "gumbel_max"  # argmax of log-prob plus keyed per-token noise; the margin of each choice is known
    INVERSE_CDF = "inverse_cdf"  # one keyed uniform per position, ascending token id, integer weights
    GREEDY = "greedy"  # the most probable token, lowest id first among equals; the key is not used


@dataclass(frozen=True, kw_only=True)
class SamplingParams:
    """Everything that shapes the distribution a token is drawn from, and how long a completion may get."""

    temperature: float = 1.0  # divides the logits before any cut; > 0
    top_k: int | None = None  # keep the k most probable tokens, ties at the k-th kept; None: all
    top_p: float = 1.0  # keep the smallest head reaching this mass, crossing token kept; in (0, 1]
    draw: Draw = Draw.GUMBEL_MAX
    max_new_tokens: int = 64  # cap on drawn tokens, the stop token included

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise ValueError(f"temperature is {self.temperature}; wanted > 0 (for the mode, use draw='greedy')")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k is {self.top_k}; wanted at least 1, or None for no cut")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p is {self.top_p}; wanted in (0, 1]")
        if self.max_new_tokens < 1:
            raise ValueError(f"max_new_tokens is {self.max_new_tokens}; wanted at least 1")


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One prompt with its reference answer."""

    task: str  # the task's name
    problem_id: str  # unique within the task
    prompt: str  # the text the policy sees (before a chat template, where the task uses one)
    reference: str  # the gold answer as the checker wants it
    columns: Mapping[str, str | int | float] = field(default_factory=dict)  # sub-skill columns: subject, level, slots

    @property
    def digest(self) -> str:
        """SHA-256 of the prompt, hex: what keys and pools use, so that equal text is one problem."""
        return hashlib.sha256(self.prompt.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Completion:
    """Tokens and log-probabilities of one draw."""

    tokens: tuple[int, ...]  # [T] drawn ids, the stop id included
    logprobs: tuple[float, ...]  # [T] under the warped distribution it was drawn from
    plain_logprobs: tuple[float, ...]  # [T] under the model's own distribution (temperature 1, no cut)
    margins: (
        tuple[float, ...] | None
    )  # [T] perturbed gap to the runner-up, or top-2 logit gap if greedy; None: not kept
    text: str  # decoded tokens without special tokens
    stop: StopReason
    key: int  # 64-bit address of its randomness


@dataclass(frozen=True, kw_only=True)
class Score:
    """What a scorer says of one rollout. Unscored is never zero."""

    value: float | None  # the raw reward; None: unscored
    correct: bool | None = None  # the checker's grade; None: the scorer does not grade
    answer: str | None = None  # the extracted final answer; None: nothing parsed
    parsed: bool = True  # False: no answer could be extracted (apart from a wrong one)
    parts: Mapping[str, float] = field(default_factory=dict)  # named components of the value
    unscored: str | None = None  # why there is no value; None: there is one

    def __post_init__(self) -> None:
        if (self.value is None) != (self.unscored is not None):
            raise ValueError(f"value={self.value!r} with unscored={self.unscored!r}; wanted exactly one of them")


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """The completions of one problem under one policy state, before grading, in sample order."""

    problem: Problem
    prompt_length: int  # tokens
    first_sample: int  # index of the first completion; extra draws continue it
    completions: tuple[Completion, ...]


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """One attempt at one problem, graded."""

    problem: Problem
    sample: int  # index of the attempt within its problem and step
    completion: Completion
    score: Score


@dataclass(frozen=True, kw_only=True)
class Group:
    """The G rollouts of one problem under one policy state, in sample order."""

    problem: Problem
    prompt_length: int  # tokens
    rollouts: tuple[Rollout, ...]


@dataclass(frozen=True, kw_only=True)
class GenerateRequest:
    """One completion asked of a policy."""

    prompt_tokens: tuple[int, ...]  # [T] non-empty
    key: int  # 64-bit address of its randomness
    sampling: SamplingParams
    stop_ids: frozenset[int]  # drawing one of these ends the completion
    forced: tuple[int, ...] = ()  # tokens the completion must begin with; recorded and counted like drawn ones


class Policy(Protocol):
    """A language model that can be asked for completions."""

    @property
    def digest(self) -> str:
        """SHA-256 over the names, shapes and bytes of all weights, hex."""

    def encode(self, prompt: str, *, chat: bool) -> tuple[int, ...]:
        """Prompt text to token ids, through the chat template where asked."""

    def stop_ids(self, stop_text: str | None) -> frozenset[int]:
        """End-of-sequence ids, plus every id whose text contains `stop_text`."""

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Completion]:
        """One completion per request, in request order."""


class Scorer(Protocol):
    """Grades rollouts; deterministic per (problem, text)."""

    def __call__(self, problems: Sequence[Problem], texts: Sequence[str]) -> list[Score]:
        """One score per (problem, text) pair, in order."""

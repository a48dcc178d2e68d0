"""The records every room speaks, and the two seams: `Policy` draws and reads, `Scorer` grades.

Shapes in array names: `_P` problems, `_G` group, `_T` tokens, `_S` seeds, `_N` items, `_B` rows (P·G), `_V` vocabulary,
`_R` resamples. Log-probabilities are natural logarithms.
"""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, Generic, Protocol, Self, SupportsFloat, TypeVar

from deadheat.errors import NotFiniteError


class StopReason(StrEnum):
    """Why a completion ended."""

    STOP = "stop"  # a stop id (end of sequence or the task's stop text) was drawn; it is part of the tokens
    CAP = "cap"  # max_new_tokens were drawn and no stop id among them


class Draw(StrEnum):
    """How a token is drawn from the warped distribution."""

    GUMBEL_MAX = "gumbel_max"  # argmax of log-prob plus keyed per-token noise; the margin of each choice is known
    INVERSE_CDF = "inverse_cdf"  # one keyed uniform per position, ascending token id, integer weights
    GREEDY = "greedy"  # the most probable token, lowest id first among equals; the key is not used


class Purpose(StrEnum):
    """What a rollout is drawn for; part of its key, so that no two uses share noise."""

    TRAIN = "train"
    EVAL = "eval"
    SAMPLE = "sample"
    TOP_UP = "top-up"


@dataclass(frozen=True, kw_only=True)
class Address:
    """The part of a rollout key that a batch shares. No arm, worker or host: arms draw the same noise."""

    seed: int  # master seed
    purpose: Purpose
    step: int  # 0 for evaluation


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
    num_forced: int = 0  # leading tokens that were given and not drawn


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
        flaw = None if self.value is None else _flaw(self.value)
        if flaw is not None:
            raise NotFiniteError(f"value={flaw}; wanted a finite number, or None with the reason in `unscored`")


def _flaw(value: object) -> str | None:
    """Why a value cannot be averaged; None for a finite number."""
    if not isinstance(value, SupportsFloat):
        return f"{value!r:.80}"
    try:
        return None if math.isfinite(float(value)) else repr(float(value))
    except OverflowError:
        return "a whole number above the largest float"


NOT_SCORED = Score(value=None, unscored="not scored yet")


@dataclass(frozen=True, kw_only=True)
class Fork:
    """The place where two branches part."""

    position: int  # index of the token in the completion
    drawn: int  # token id that the first branch has there
    alternative: int  # token id that the second branch has there
    margin: float  # how far the draw was from the alternative, in log-probability


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a completion comes from that was not drawn from its prompt alone."""

    pair: int | None = None  # number of its pair within the group; None: it has no partner
    branch: int | None = None  # which of the pair's branches it is, from 0
    prefix_length: int = 0  # leading tokens that it shares with its partner
    fork: Fork | None = None  # where the branches part; None: not at a chosen place
    category: str | None = None  # what kind of branch it is, in the words of the strategy
    donor: int | None = None  # sample index of the completion that the prefix was taken from


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """One attempt at one problem."""

    problem: Problem
    sample: int  # index of the attempt within its problem and step
    completion: Completion
    score: Score = NOT_SCORED
    origin: Origin | None = None  # None: drawn from the prompt alone


@dataclass(frozen=True, kw_only=True)
class Group:
    """The G rollouts of one problem under one policy state, in sample order."""

    problem: Problem
    prompt_tokens: tuple[int, ...]  # what the policy saw; empty: read from records that do not hold them
    rollouts: tuple[Rollout, ...]

    @property
    def prompt_length(self) -> int:
        """Tokens of the prompt."""
        return len(self.prompt_tokens)

    @property
    def completion_tokens(self) -> tuple[tuple[int, ...], ...]:
        """[G] the tokens of each completion."""
        return tuple(rollout.completion.tokens for rollout in self.rollouts)

    @property
    def num_tokens(self) -> int:
        """Tokens of all completions."""
        return sum(map(len, self.completion_tokens))

    def with_scores(self, scores_G: Sequence[Score]) -> Self:
        """The same rollouts, scored."""
        pairs = zip(self.rollouts, scores_G, strict=True)
        return replace(self, rollouts=tuple(replace(rollout, score=score) for rollout, score in pairs))

    def pick(self, indices: Sequence[int]) -> Self:
        """Some of the rollouts, in the given order."""
        return replace(self, rollouts=tuple(self.rollouts[index] for index in indices))

    def with_more(self, more: Self) -> Self:
        """The same problem with further rollouts."""
        return replace(self, rollouts=self.rollouts + more.rollouts)


class TokenGroup(Protocol):
    """A prompt and the completions that grow from it: what a policy reads of a group."""

    @property
    def prompt_tokens(self) -> tuple[int, ...]:
        """Not empty."""

    @property
    def completion_tokens(self) -> tuple[tuple[int, ...], ...]:
        """One may be empty, and two may be equal."""


@dataclass(frozen=True, kw_only=True)
class GenerateRequest:
    """One completion asked of a policy."""

    prompt_tokens: tuple[int, ...]  # [T] non-empty
    key: int  # 64-bit address of its randomness
    sampling: SamplingParams
    stop_ids: frozenset[int]  # drawing one of these ends the completion
    forced: tuple[int, ...] = ()  # tokens the completion must begin with; recorded like drawn ones, counted apart


@dataclass(frozen=True, kw_only=True)
class GenerationCost:
    """What generating computed. Costs add up."""

    num_prefilled: int = 0  # prompt and forced tokens run before decoding: shared heads run once for all
    num_prefill_idle: int = 0  # places in its attention that held no token
    num_prompt_tokens: int = 0  # prompt tokens of all requests: what prefilling every row would have run
    num_generated: int = 0  # tokens drawn, over all rows
    num_forced: int = 0  # tokens given, over all rows
    num_decoded: int = 0  # tokens run through decode steps: one for all rows that are the same so far
    num_steps: int = 0  # decode steps of the tile
    num_idle: int = 0  # places in their attention that held no token: prompts with fewer branches than others

    def __add__(self, other: Self) -> Self:
        return type(self)(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})


@dataclass(frozen=True, kw_only=True)
class Generation:
    """Completions in request order, and what they cost."""

    completions: tuple[Completion, ...]
    cost: GenerationCost


@dataclass(frozen=True, kw_only=True)
class ReadingCost:
    """What reading computed."""

    num_computed: int = 0  # tokens run: prompts and inner nodes, shared prefixes once
    num_padded: int = 0  # places in attention that held no token
    num_unshared: int = 0  # tokens a pass per completion would have run
    num_passes: int = 0  # forward passes


Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class Reading(Generic[Value]):
    """What a reader read, and what that cost."""

    values_PG: list[list[Value]]  # per group and completion, one entry per token along the first axis
    cost: ReadingCost


class Policy(Protocol):
    """A language model that can be asked for completions, and read at given ones."""

    @property
    def digest(self) -> str:
        """SHA-256 over the names, shapes and bytes of all weights, hex."""

    def encode(self, prompt: str, *, chat: bool) -> tuple[int, ...]:
        """Prompt text to token ids, through the chat template where asked."""

    def stop_ids(self, stop_text: str | None) -> frozenset[int]:
        """End-of-sequence ids, plus every id whose text contains `stop_text`."""

    def generate(self, requests: Sequence[GenerateRequest]) -> Generation:
        """One completion per request, in request order."""

    def read(self, groups: Sequence[TokenGroup], reader: Callable[[Any], Any]) -> Reading[Any]:
        """What `reader` reads at every token of every completion, in one pass over shared prefixes."""


class Scorer(Protocol):
    """Scores groups; deterministic per address and group."""

    def score(self, groups: Sequence[Group], *, address: Address) -> list[tuple[Score, ...]]:
        """Per group, one score per rollout; sees whole groups, since ranks and blends need them."""

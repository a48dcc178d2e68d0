"""Generation: tiles of a fixed number of rows, refilled as rows finish.

    prefill each distinct prompt once, a common head of several once for all (see `prefill`)
    while rows are active: append one token to every row, draw the next from each row's own key and position
    a finished row leaves; the next waiting request takes its place, starting from its prompt's keys and values

Batch company never changes a draw: prompts are prefilled and rows decoded in passes of one fixed shape (idle rows are
dummies), every row starts at column 0, and a row's draws are keyed by its own key and position. Forced tokens are
fed through the decode steps, so a completion continued from a forced prefix has the numbers of the one it was cut from;
at a forced position the margin is that of the token that would have been drawn.
A first token is drawn from the prefill; log-probabilities are recorded under the warped distribution it was drawn from
and under the model's own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from deadheat.errors import PromptTooLongError
from deadheat.policy.forward import CausalModel, LayerState, Prefilled
from deadheat.policy.prefill import Prefiller
from deadheat.policy.tile import Tile
from deadheat.sampling.draws import Picks, greedy, gumbel_max, inverse_cdf
from deadheat.sampling.warp import is_plain, plain_logprobs, warped_logprobs
from deadheat.types import Completion, Draw, GenerateRequest, SamplingParams, StopReason

Decode = Callable[[Sequence[int]], str]
Progress = Callable[[int, int], None]  # finished rows, all rows


@dataclass(frozen=True, kw_only=True)
class GenerateAccount:
    """What one call of `generate` computed."""

    num_prefilled: int  # prompt tokens run: each distinct prompt once, whole chunks that prompts share once for all
    num_prefill_idle: int  # columns of prefill passes spent on dummies and padding
    num_prompt_tokens: int  # prompt tokens of all requests: what prefilling every row would have run
    num_generated: int  # tokens drawn or forced, over all rows
    num_steps: int  # decode steps of the tile
    num_idle: int  # row-steps spent on dummies


@dataclass(frozen=True, kw_only=True)
class Generated:
    """Completions in request order, and what they took."""

    completions: list[Completion]
    account: GenerateAccount


@dataclass(kw_only=True)
class _Row:
    """One request under way."""

    index: int  # which request
    request: GenerateRequest
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    plain_logprobs: list[float] = field(default_factory=list)
    margins: list[float | None] = field(default_factory=list)

    @property
    def stop(self) -> StopReason | None:
        """Why the row is finished; None: it is not."""
        if self.tokens and self.tokens[-1] in self.request.stop_ids and len(self.tokens) >= len(self.request.forced):
            return StopReason.STOP
        return StopReason.CAP if len(self.tokens) >= self.request.sampling.max_new_tokens else None

    def completion(self, decode: Decode) -> Completion:
        """The finished record."""
        stop = self.stop
        assert stop is not None, "a row is recorded when it stops"
        margins = [m for m in self.margins if m is not None]
        return Completion(
            tokens=tuple(self.tokens),
            logprobs=tuple(self.logprobs),
            plain_logprobs=tuple(self.plain_logprobs),
            margins=tuple(margins) if len(margins) == len(self.tokens) else None,
            text=decode(self.tokens),
            stop=stop,
            key=self.request.key,
        )


def check_requests(requests: Sequence[GenerateRequest], context_length: int) -> None:
    """Refuse what cannot be generated as asked, before anything runs."""
    for number, request in enumerate(requests):
        prompt, cap = len(request.prompt_tokens), request.sampling.max_new_tokens
        if not prompt:
            raise ValueError(f"request {number} has an empty prompt; wanted at least one token")
        if len(request.forced) > cap:
            raise ValueError(f"request {number} forces {len(request.forced)} tokens with max_new_tokens={cap}")
        if prompt + cap > context_length:
            raise PromptTooLongError(
                f"request {number}: a prompt of {prompt} tokens plus max_new_tokens={cap} is {prompt + cap}; this "
                f"model's context holds {context_length}. Shorten the prompt or lower max_new_tokens to "
                f"{max(0, context_length - prompt)}"
            )


@torch.no_grad()
def generate(
    model: CausalModel,
    requests: Sequence[GenerateRequest],
    decode: Decode,
    *,
    num_rows: int,
    margins: bool,
    progress: Progress | None = None,
) -> Generated:
    """One completion per request, in request order."""
    check_requests(requests, model.context_length)
    run = _Run(model, requests, num_rows=num_rows, margins=margins)
    finished: dict[int, Completion] = {}
    while True:
        for row in run.advance():
            finished[row.index] = row.completion(decode)
            if progress is not None:
                progress(len(finished), len(requests))
        if len(finished) == len(requests):
            break
    return Generated(completions=[finished[i] for i in range(len(requests))], account=run.account())


class _Run:
    """The state of one call: the tile, the rows in it and the requests still waiting."""

    def __init__(
        self, model: CausalModel, requests: Sequence[GenerateRequest], *, num_rows: int, margins: bool
    ) -> None:
        self._model, self._margins, self._num_rows = model, margins, num_rows
        first_seen: dict[tuple[int, ...], int] = {}
        for i, request in enumerate(requests):
            first_seen.setdefault(request.prompt_tokens, i)
        order = sorted(range(len(requests)), key=lambda i: (first_seen[requests[i].prompt_tokens], i))
        self._waiting = [_Row(index=i, request=requests[i]) for i in reversed(order)]
        self._capacity = max((len(r.prompt_tokens) + r.sampling.max_new_tokens for r in requests), default=0)
        self._slots: list[_Row | None] = [None] * num_rows
        self._tile: Tile | None = None
        self._prefiller = Prefiller(model, first_seen)
        self._last: tuple[tuple[int, ...], Prefilled] | None = None
        self._counts = {"num_generated": 0, "num_steps": 0, "num_idle": 0}
        self._num_prompt_tokens = sum(len(r.prompt_tokens) for r in requests)

    def advance(self) -> list[_Row]:
        """Fill free rows, take one step, and return the rows that finished."""
        finished = []
        while self._waiting and None in self._slots:
            finished += self._admit()
        if any(self._slots):
            finished += self._step()
        self._counts["num_generated"] += sum(len(row.tokens) for row in finished)
        return finished

    def account(self) -> GenerateAccount:
        """What has been computed so far."""
        return GenerateAccount(
            num_prefilled=self._prefiller.num_computed,
            num_prefill_idle=self._prefiller.num_idle,
            num_prompt_tokens=self._num_prompt_tokens,
            **self._counts,
        )

    def _admit(self) -> list[_Row]:
        """Prefill the next waiting prompt and start as many of its rows as there is room for."""
        prompt = self._waiting[-1].request.prompt_tokens
        prefilled = self._prefill(prompt)
        batch: list[_Row] = []
        room = self._slots.count(None)
        while self._waiting and len(batch) < room and self._waiting[-1].request.prompt_tokens == prompt:
            batch.append(self._waiting.pop())
        self._draw(batch, prefilled.logits_V.expand(len(batch), -1))
        for row in batch:
            if row.stop is None:
                self._seat(row, prefilled.layers)
        return [row for row in batch if row.stop is not None]

    def _prefill(self, prompt: tuple[int, ...]) -> Prefilled:
        """What a prompt leaves behind: requests of one prompt wait next to each other, the next prompts run with it."""
        if self._last is None or self._last[0] != prompt:
            if not self._prefiller.has(prompt):
                self._prefiller.run(self._next_prompts())
            self._last = (prompt, self._prefiller.state(prompt))
            self._prefiller.release(prompt)
        return self._last[1]

    def _next_prompts(self) -> list[tuple[int, ...]]:
        """The distinct prompts of the requests that could fill the tile."""
        following = reversed(self._waiting[-self._num_rows :])
        return list(dict.fromkeys(row.request.prompt_tokens for row in following))

    def _seat(self, row: _Row, layers: tuple[LayerState, ...]) -> None:
        if self._tile is None:
            self._tile = Tile(self._model, layers, num_rows=self._num_rows, capacity=self._capacity)
        slot = self._slots.index(None)
        self._slots[slot] = row
        self._tile.put(slot, layers)

    def _step(self) -> list[_Row]:
        assert self._tile is not None, "rows are seated in a tile"
        seated = [(slot, row) for slot, row in enumerate(self._slots) if row is not None]
        tokens_B = torch.zeros(self._num_rows, dtype=torch.long)
        is_active_B = torch.zeros(self._num_rows, dtype=torch.bool)
        for slot, row in seated:
            tokens_B[slot], is_active_B[slot] = row.tokens[-1], True
        device = self._model.device
        logits_BV = self._tile.step(tokens_B.to(device), is_active_B.to(device))
        self._counts["num_steps"] += 1
        self._counts["num_idle"] += self._num_rows - len(seated)
        self._draw([row for _, row in seated], logits_BV[[slot for slot, _ in seated]])
        finished = []
        for slot, row in seated:
            if row.stop is not None:
                self._slots[slot] = None
                self._tile.clear(slot)
                finished.append(row)
        return finished

    def _draw(self, rows: Sequence[_Row], logits_BV: Tensor) -> None:
        """Give every row its next token, together those that are drawn alike."""
        plain_BV = plain_logprobs(logits_BV)
        alike: dict[SamplingParams, list[int]] = {}
        for b, row in enumerate(rows):
            alike.setdefault(row.request.sampling, []).append(b)
        for sampling, members in alike.items():
            everyone = len(members) == len(rows)
            own_BV = plain_BV if everyone else plain_BV[members]
            if is_plain(sampling):
                warped_BV = own_BV
            else:
                warped_BV = warped_logprobs(logits_BV if everyone else logits_BV[members], sampling)
            _record([rows[b] for b in members], warped_BV, own_BV, sampling.draw, self._margins)


def _record(rows: Sequence[_Row], warped_BV: Tensor, plain_BV: Tensor, draw: Draw, margins: bool) -> None:
    positions = [len(row.tokens) for row in rows]
    picks = _pick(warped_BV, [row.request.key for row in rows], positions, draw, margins)
    forced = [t < len(row.request.forced) for row, t in zip(rows, positions, strict=True)]
    tokens = [
        row.request.forced[t] if is_forced else int(drawn)
        for row, t, is_forced, drawn in zip(rows, positions, forced, picks.tokens_B, strict=True)
    ]
    index = torch.tensor(tokens, device=warped_BV.device)[:, None]
    logprobs = warped_BV.gather(1, index)[:, 0].tolist()
    plain = plain_BV.gather(1, index)[:, 0].tolist()
    for b, row in enumerate(rows):
        row.tokens.append(tokens[b])
        row.logprobs.append(logprobs[b])
        row.plain_logprobs.append(plain[b])
        row.margins.append(None if picks.margins_B is None else float(picks.margins_B[b]))


def _pick(warped_BV: Tensor, keys: list[int], positions: list[int], draw: Draw, margins: bool) -> Picks:
    match draw:
        case Draw.GUMBEL_MAX:
            return gumbel_max(warped_BV, key=keys, positions=positions, margins=margins)
        case Draw.INVERSE_CDF:
            return inverse_cdf(warped_BV, key=keys, positions=positions)
        case Draw.GREEDY:
            return greedy(warped_BV, margins=margins)

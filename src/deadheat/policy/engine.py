"""Generation: branches that split where their draws differ, in a tile that stays full.

    prefill each distinct prompt once, a common head of several once for all (see `prefill`)
    while branches are active: append one token to each, draw the next of every row from its own key and position
    rows that drew the same token stay one branch; a finished row leaves, and the next waiting request takes its place

The samples of a prompt are one branch until their draws differ, and then copy what is their own. Batch company never
changes a draw: no number of a branch depends on the others (see `linear`, `attention`), and a row's draws are keyed by
its own key and position. Forced tokens are run with their prompt (see `prefill`) and have the bits of decode steps, so a
completion continued from a forced prefix has the numbers of the one it was cut from; at a forced position the margin is
that of the token that would have been drawn.
A first token is drawn from the prefill; log-probabilities are recorded under the warped distribution it was drawn from
and under the model's own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from deadheat.errors import PromptTooLongError
from deadheat.policy.forward import CausalModel
from deadheat.policy.prefill import Forced, Prefilled, Tokens, head_of, prefill
from deadheat.policy.readers import COLUMNS
from deadheat.policy.tile import Tile
from deadheat.sampling.draws import Picks, greedy, gumbel_max, inverse_cdf
from deadheat.sampling.warp import is_plain, plain_logprobs, warped_logprobs
from deadheat.types import Completion, Draw, GenerateRequest, Generation, GenerationCost, SamplingParams, StopReason

Decode = Callable[[Sequence[int]], str]
Progress = Callable[[int, int], None]  # finished rows, all rows


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
            num_forced=len(self.request.forced),
        )


@dataclass(kw_only=True)
class _Branch:
    """Rows of one prompt that are the same so far: one row of the tile."""

    rows: list[_Row]
    trunk: int  # where their prompt lies in the tile


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
) -> Generation:
    """One completion per request, in request order."""
    check_requests(requests, model.context_length)
    run = _Run(model, requests, num_rows=num_rows, margins=margins)
    finished: dict[int, Completion] = {}
    while len(finished) < len(requests):
        for row in run.advance():
            finished[row.index] = row.completion(decode)
            if progress is not None:
                progress(len(finished), len(requests))
    return Generation(completions=tuple(finished[i] for i in range(len(requests))), cost=run.cost())


class _Run:
    """The state of one call: the tile, the branches in it and the requests still waiting."""

    def __init__(
        self, model: CausalModel, requests: Sequence[GenerateRequest], *, num_rows: int, margins: bool
    ) -> None:
        self._model, self._margins, self._num_rows = model, margins, num_rows
        self._requests = requests
        first_seen: dict[Tokens, int] = {}
        for i, request in enumerate(requests):
            first_seen.setdefault(request.prompt_tokens, i)
        order = sorted(range(len(requests)), key=lambda i: (first_seen[requests[i].prompt_tokens], i))
        self._waiting = [_Row(index=i, request=requests[i]) for i in reversed(order)]
        self._branches: list[_Branch] = []  # in the order of the tile's rows
        self._tile: Tile | None = None
        self._prefilled: dict[Tokens, Prefilled] = {}
        self._forced: dict[Tokens, dict[Tokens, None]] = {}  # distinct beginnings of each prompt's completions
        for request in requests:
            if request.forced:
                self._forced.setdefault(request.prompt_tokens, {})[request.forced] = None
        self._num_prefilled = self._num_prefill_idle = self._num_generated = self._num_decoded = self._num_steps = 0

    def advance(self) -> list[_Row]:
        """Fill free rows, take one step, and return the rows that finished."""
        finished: list[_Row] = []
        while self._waiting and self._num_free:
            finished += self._admit()
        if self._branches:
            finished += self._step()
        self._num_generated += sum(len(row.tokens) - len(row.request.forced) for row in finished)
        return finished

    def cost(self) -> GenerationCost:
        """What has been computed so far."""
        return GenerationCost(
            num_prefilled=self._num_prefilled,
            num_prefill_idle=self._num_prefill_idle,
            num_prompt_tokens=sum(len(request.prompt_tokens) for request in self._requests),
            num_generated=self._num_generated,
            num_forced=sum(len(request.forced) for request in self._requests),
            num_decoded=self._num_decoded,
            num_steps=self._num_steps,
            num_idle=0 if self._tile is None else self._tile.num_idle,
        )

    @property
    def _num_free(self) -> int:
        return self._num_rows - sum(len(branch.rows) for branch in self._branches)

    def _admit(self) -> list[_Row]:
        """Take in the next waiting prompt and as many of its rows as there is room for."""
        prompt = self._waiting[-1].request.prompt_tokens
        batch: list[_Row] = []
        room = self._num_free
        while self._waiting and len(batch) < room and self._waiting[-1].request.prompt_tokens == prompt:
            batch.append(self._waiting.pop())
        prefilled = self._prefill(
            prompt, keep=bool(self._waiting) and self._waiting[-1].request.prompt_tokens == prompt
        )
        free = [row for row in batch if not row.request.forced]
        if free:
            self._draw(free, prefilled.logits_V[None], [0] * len(free))
        parts: list[tuple[list[_Row], Forced | None]] = [(rows, None) for rows in _parted(free)]
        for tokens, forced in prefilled.forced.items():
            rows = [row for row in batch if row.request.forced == tokens]
            for before_C in torch.split(forced.before_F, COLUMNS) if rows else ():
                for logits_V in head_of(self._model, before_C):
                    self._draw(rows, logits_V[None], [0] * len(rows))
            going = [row for row in rows if row.stop is None]
            parts += [(going, forced)] if going else []
        self._plant(parts, prefilled)
        return [row for row in batch if row.stop is not None]

    def _plant(self, parts: Sequence[tuple[list[_Row], Forced | None]], prefilled: Prefilled) -> None:
        """A trunk for a prompt, and above it a branch for every first token that was drawn or beginning that was forced."""
        if not parts:
            return
        tile = self._tile_for(prefilled)
        trunk = min(set(range(self._num_rows)) - {branch.trunk for branch in self._branches})
        tile.put_trunk(trunk, prefilled)
        for rows, forced in parts:
            tile.start(len(self._branches), trunk)
            if forced is not None:
                tile.put_own(len(self._branches), forced.keys, forced.values)
            self._branches.append(_Branch(rows=rows, trunk=trunk))

    def _prefill(self, prompt: Tokens, *, keep: bool) -> Prefilled:
        """What a prompt leaves behind: requests of one prompt wait next to each other, the next prompts run with it."""
        if prompt not in self._prefilled:
            following = (row.request.prompt_tokens for row in reversed(self._waiting[-self._num_rows :]))
            forced = {head: tuple(above) for head, above in self._forced.items()}
            batch = prefill(self._model, list(dict.fromkeys((prompt, *following))), forced=forced)
            self._prefilled |= batch.prompts
            self._num_prefilled += batch.num_computed
            self._num_prefill_idle += batch.num_idle
        return self._prefilled[prompt] if keep else self._prefilled.pop(prompt)

    def _tile_for(self, like: Prefilled) -> Tile:
        if self._tile is None:
            self._tile = Tile(
                self._model,
                like,
                num_rows=self._num_rows,
                prompt=max(len(request.prompt_tokens) for request in self._requests),
                capacity=max(request.sampling.max_new_tokens for request in self._requests),
            )
        return self._tile

    def _step(self) -> list[_Row]:
        assert self._tile is not None, "branches are rows of a tile"
        tokens_R = torch.tensor([branch.rows[0].tokens[-1] for branch in self._branches])
        logits_RV = self._tile.step(tokens_R)
        self._num_steps += 1
        self._num_decoded += len(tokens_R)
        rows = [row for branch in self._branches for row in branch.rows]
        self._draw(rows, logits_RV, [r for r, branch in enumerate(self._branches) for _ in branch.rows])
        self._split_and_close()
        return [row for row in rows if row.stop is not None]

    def _split_and_close(self) -> None:
        """Rows that drew different tokens part ways; places left free are filled from the end."""
        tile, branches = self._tile, self._branches
        assert tile is not None, "branches are rows of a tile"
        parted = [_parted(branch.rows) for branch in branches]
        for r, parts in enumerate(parted):
            for rows in parts[1:]:
                tile.copy(r, len(branches))
                branches.append(_Branch(rows=rows, trunk=branches[r].trunk))
        for r in reversed(range(len(parted))):
            if parted[r]:
                branches[r].rows = parted[r][0]
                continue
            if r < len(branches) - 1:
                tile.copy(len(branches) - 1, r)
                branches[r] = branches[-1]
            branches.pop()

    def _draw(self, rows: Sequence[_Row], logits_RV: Tensor, branch_B: Sequence[int]) -> None:
        """Give every row its next token, together those that are drawn alike, whatever their caps."""
        plain_RV = plain_logprobs(logits_RV)
        alike: dict[SamplingParams, list[int]] = {}
        for b, row in enumerate(rows):
            alike.setdefault(replace(row.request.sampling, max_new_tokens=1), []).append(b)
        for sampling, members in alike.items():
            own = [branch_B[b] for b in members]
            warped_RV = plain_RV if is_plain(sampling) else warped_logprobs(logits_RV, sampling)
            plain_BV = _rows(plain_RV, own)
            warped_BV = plain_BV if warped_RV is plain_RV else _rows(warped_RV, own)
            _record([rows[b] for b in members], warped_BV, plain_BV, sampling.draw, self._margins)


def _rows(table_RV: Tensor, rows_B: Sequence[int]) -> Tensor:
    """[B, V] the given rows; the table itself where they are all of it, since it is large."""
    if list(rows_B) == list(range(len(table_RV))):
        return table_RV
    return table_RV[torch.tensor(rows_B, device=table_RV.device)]


def _parted(rows: Sequence[_Row]) -> list[list[_Row]]:
    """Unfinished rows by the token they drew last, in the order they first drew it."""
    by_token: dict[int, list[_Row]] = {}
    for row in rows:
        if row.stop is None:
            by_token.setdefault(row.tokens[-1], []).append(row)
    return list(by_token.values())


def _record(rows: Sequence[_Row], warped_BV: Tensor, plain_BV: Tensor, draw: Draw, margins: bool) -> None:
    positions = [len(row.tokens) for row in rows]
    forced = [row.request.forced[t] for row, t in zip(rows, positions, strict=True) if t < len(row.request.forced)]
    assert len(forced) in (0, len(rows)), "rows are drawn together, or forced together"
    if forced and not margins:
        tokens, margins_B = forced, None
    else:
        picks = _pick(warped_BV, [row.request.key for row in rows], positions, draw, margins)
        tokens, margins_B = forced or picks.tokens_B.tolist(), picks.margins_B
    index = torch.tensor(tokens, device=warped_BV.device)[:, None]
    logprobs = warped_BV.gather(1, index)[:, 0].tolist()
    plain = plain_BV.gather(1, index)[:, 0].tolist()
    for b, row in enumerate(rows):
        row.tokens.append(tokens[b])
        row.logprobs.append(logprobs[b])
        row.plain_logprobs.append(plain[b])
        row.margins.append(None if margins_B is None else float(margins_B[b]))


def _pick(warped_BV: Tensor, keys: list[int], positions: list[int], draw: Draw, margins: bool) -> Picks:
    match draw:
        case Draw.GUMBEL_MAX:
            return gumbel_max(warped_BV, key=keys, positions=positions, margins=margins)
        case Draw.INVERSE_CDF:
            return inverse_cdf(warped_BV, key=keys, positions=positions)
        case Draw.GREEDY:
            return greedy(warped_BV, margins=margins)

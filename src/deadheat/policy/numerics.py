"""What remains of numerical drift on this machine: every promise of `docs/numerics.md` measured on a loaded policy.

company   the same requests in batches of 1, 7 and 32, shuffled, and through a tile too small for them: equal bytes?
update    log-probabilities of the shared-prefix pass against those recorded when the tokens were drawn: equal bits?
one by one  the same against the model's own pass over each completion: the largest gap
threads   the first logits at one thread against all of them: the largest gap
kernels   the shapes of linear layers, and whether the packed product gives a row the same bits in any number of rows
cost      seconds of the same generation with and without invariance
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from deadheat.policy.linear import RowLinear, ignores_row_count, linear_layers, packs
from deadheat.policy.model import LanguageModel
from deadheat.policy.reading import logprobs_one_by_one
from deadheat.policy.trie import Branches
from deadheat.sampling.keys import permutation, stream_key
from deadheat.types import Completion, GenerateRequest, SamplingParams

BATCHES = (1, 7, 32)
ROUNDS = len(BATCHES) + 4  # times every completion is made
SMALL_TILE = 5  # rows of the tile that has to be refilled
_BY_ONE = 8  # prompts whose completions are also run one by one

Progress = Callable[[int, str], None]  # completions made since the last call, and what is going on


@dataclass(frozen=True, kw_only=True)
class Company:
    """One way of keeping other company."""

    name: str
    num_equal: int  # completions with the same tokens, log-probabilities and margins
    num_completions: int
    gap: float  # largest difference of a log-probability over common positions


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """One shape of linear layer."""

    num_out: int
    num_in: int
    num_layers: int  # layers of this shape
    ignores_row_count: bool | None  # None: not tried, because products run in tiles of fixed size here


@dataclass(frozen=True, kw_only=True)
class Numerics:
    """What was measured."""

    model: str
    device: str
    dtype: str
    num_threads: int
    num_prompts: int
    num_tokens: int  # drawn
    companies: tuple[Company, ...]
    update_equal: int  # tokens whose log-probability in the update has the bits recorded when they were drawn
    update_gap: float
    one_by_one_tokens: int
    one_by_one_gap: float
    thread_gap: float | None  # None: there is only one thread, or no CPU
    kernels: tuple[Kernel, ...]
    invariant_s: float  # seconds of one generation of all prompts
    ordinary_s: float  # the same with linear layers as the library runs them

    @property
    def holds(self) -> bool:
        """Whether company changed nothing and the update has the bits of the draw."""
        return self.update_equal == self.num_tokens and all(c.num_equal == c.num_completions for c in self.companies)

    @property
    def cost(self) -> float:
        """Invariant over ordinary seconds."""
        return self.invariant_s / self.ordinary_s


def measure(policy: LanguageModel, prompts: Sequence[tuple[int, ...]], *, num_tokens: int, tell: Progress) -> Numerics:
    """One keyed completion of up to `num_tokens` tokens per prompt, asked for in every company."""
    requests = [
        GenerateRequest(
            prompt_tokens=prompt,
            key=stream_key(0, "numerics", index),
            sampling=SamplingParams(max_new_tokens=num_tokens),
            stop_ids=policy.stop_ids(None),
        )
        for index, prompt in enumerate(prompts)
    ]
    tell(0, "all together")
    together, invariant_s = _timed(policy, requests)
    tell(len(requests), "all together")
    companies = [_company(policy, requests, together, size, tell) for size in BATCHES]
    order = permutation(stream_key(0, "numerics-order"), len(requests)).tolist()
    shuffled = policy.generate([requests[i] for i in order]).completions
    tell(len(requests), "shuffled")
    companies.append(_compared("shuffled", [shuffled[order.index(i)] for i in range(len(order))], together))
    refilled = _with(policy, tile_rows=SMALL_TILE).generate(requests).completions
    tell(len(requests), f"a tile of {SMALL_TILE}")
    companies.append(_compared(f"refilled tile of {SMALL_TILE}", refilled, together))
    groups = [Branches(prompt_tokens=p, completion_tokens=(c.tokens,)) for p, c in zip(prompts, together, strict=True)]
    with torch.no_grad():
        updated = torch.cat([t for group in policy.logprobs(groups) for t in group]).cpu()
        alone = logprobs_one_by_one(policy.model, groups[:_BY_ONE], sampling=None)
    drawn = torch.tensor([value for c in together for value in c.plain_logprobs])
    by_one = torch.cat([t for group in alone for t in group]).cpu()
    thread_gap = _thread_gap(policy, requests[0])
    ordinary = _with(policy, invariant=False)
    _, ordinary_s = _timed(ordinary, requests)
    tell(len(requests), "the ordinary mode")
    _with(policy)  # puts the invariant layers back into the shared module
    return Numerics(
        model=policy.config.model,
        device=str(policy.device),
        dtype=policy.config.dtype,
        num_threads=torch.get_num_threads(),
        num_prompts=len(prompts),
        num_tokens=len(drawn),
        companies=tuple(companies),
        update_equal=int((updated == drawn).sum()),
        update_gap=float((updated - drawn).abs().max()),
        one_by_one_tokens=len(by_one),
        one_by_one_gap=float((by_one - updated[: len(by_one)]).abs().max()),
        thread_gap=thread_gap,
        kernels=_kernels(policy),
        invariant_s=invariant_s,
        ordinary_s=ordinary_s,
    )


def _with(policy: LanguageModel, **settings: object) -> LanguageModel:
    return LanguageModel(policy.module, policy.tokenizer, policy.config.model_copy(update=settings))


def _timed(policy: LanguageModel, requests: Sequence[GenerateRequest]) -> tuple[list[Completion], float]:
    policy.generate(requests[:1])  # layouts are made and memory is touched outside the clock
    start = time.perf_counter()
    completions = list(policy.generate(requests).completions)
    return completions, time.perf_counter() - start


def _company(
    policy: LanguageModel, requests: Sequence[GenerateRequest], together: list[Completion], size: int, tell: Progress
) -> Company:
    found: list[Completion] = []
    for start in range(0, len(requests), size):
        found += policy.generate(requests[start : start + size]).completions
        tell(min(size, len(requests) - start), f"batches of {size}")
    return _compared(f"batches of {size}", found, together)


def _compared(name: str, found: Sequence[Completion], together: Sequence[Completion]) -> Company:
    gaps = [
        abs(a - b)
        for one, other in zip(found, together, strict=True)
        for a, b in zip(one.plain_logprobs, other.plain_logprobs, strict=False)
    ]
    return Company(
        name=name,
        num_equal=sum(one == other for one, other in zip(found, together, strict=True)),
        num_completions=len(together),
        gap=max(gaps),
    )


def _thread_gap(policy: LanguageModel, request: GenerateRequest) -> float | None:
    before = torch.get_num_threads()
    if policy.device.type != "cpu" or before == 1:
        return None
    sampling = replace(request.sampling, max_new_tokens=1)
    first = replace(request, sampling=sampling)
    many = policy.generate([first]).completions[0]
    torch.set_num_threads(1)
    try:
        forced = replace(first, forced=many.tokens)
        one = policy.generate([forced]).completions[0]
    finally:
        torch.set_num_threads(before)
    return abs(many.plain_logprobs[0] - one.plain_logprobs[0])


def _kernels(policy: LanguageModel) -> tuple[Kernel, ...]:
    shapes: dict[tuple[int, int], int] = {}
    for layer in linear_layers(policy.module):
        num_out, num_in = RowLinear(layer).weight.shape
        shapes[num_out, num_in] = shapes.get((num_out, num_in), 0) + 1
    tried = packs(policy.device, policy.model.dtype)
    return tuple(
        Kernel(
            num_out=num_out,
            num_in=num_in,
            num_layers=count,
            ignores_row_count=ignores_row_count(num_out, num_in, torch.get_num_threads()) if tried else None,
        )
        for (num_out, num_in), count in sorted(shapes.items())
    )

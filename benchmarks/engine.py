"""The engine against its plain alternatives, on the real SmolLM2-135M with a LoRA adapter: ratios taken in one run.

    update    4 groups × 8 completions, forward and backward: the shared-prefix trie against one batch of 32 sequences
    noise     keyed Gumbel draws for a tile of 32 rows, as a share of one decode step

Both sides of a comparison are checked to compute the same thing before they are timed: log-probabilities and gradients
for the update, tokens for the draws. Each figure is the best of a few repeats, the sides taking turns. Peak
memory, and other packages in an environment of their own: `make bench-peers`.

    python benchmarks/engine.py [--smoke] [--only update|noise]
"""

import argparse
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from deadheat.policy import (
    Branches,
    LanguageModel,
    PolicyConfig,
    chosen_logprobs,
    load_policy,
    trainable_parameters,
)
from deadheat.sampling.draws import gumbel_max, gumbel_max_naive
from deadheat.sampling.warp import plain_logprobs
from deadheat.types import GenerateRequest, SamplingParams
from peers.keyed import keyed_tokens

UPDATES = {"update-60/8": (60, 8), "update-256/64": (256, 64)}  # prompt and answer lengths in tokens
MICRO_ROWS = {"update-60/8": 32, "update-256/64": 8}  # rows the plain side holds at once: 32 long ones need over 20 GiB
GROUPS, SAMPLES = 4, 8
WIDE_VOCABULARY = 151_936  # Qwen2.5


def update_groups(policy: LanguageModel, prompt: int, answer: int) -> list[Branches]:
    """Groups of completions with nothing in common but their prompt: the hardest case for a trie."""
    size = policy.module.config.vocab_size
    return [
        Branches(
            prompt_tokens=keyed_tokens(f"prompt {g}", prompt, size),
            completion_tokens=tuple(keyed_tokens(f"answer {g} {i}", answer, size) for i in range(SAMPLES)),
        )
        for g in range(GROUPS)
    ]


def batch_logprobs(policy: LanguageModel, groups: list[Branches]) -> Tensor:
    """[B·T] what a plain trainer does: every completion with its prompt as one row of one batch (equal lengths here)."""
    rows = [(*b.prompt_tokens, *c) for b in groups for c in b.completion_tokens]
    ids, num = torch.tensor(rows), len(groups[0].completion_tokens[0])
    logits = policy.module(input_ids=ids[:, :-1], use_cache=False, logits_to_keep=num).logits
    return (logits.gather(-1, ids[:, -num:, None]).squeeze(-1) - logits.logsumexp(-1)).flatten()


def shared_logprobs(policy: LanguageModel, groups: list[Branches]) -> Tensor:
    """[B·T] the same numbers from the trie."""
    return torch.cat([t for group in policy.logprobs(groups) for t in group])


@dataclass(frozen=True, kw_only=True)
class Updated:
    """What one forward and backward pass gives."""

    logprobs: Tensor  # [B·T]
    gradients: dict[str, Tensor]


def backward(policy: LanguageModel, parts: Iterator[Tensor], num_tokens: int) -> Updated:
    """Back-propagate every part with fixed weights of both signs, adding up the gradients."""
    parameters, seen = trainable_parameters(policy), []
    total = {name: torch.zeros_like(p) for name, p in parameters.items()}
    weights = torch.linspace(-1.0, 1.0, num_tokens)
    for logprobs in parts:
        start = sum(map(len, seen))
        loss = (logprobs * weights[start : start + len(logprobs)]).sum()
        for name, gradient in zip(total, torch.autograd.grad(loss, list(parameters.values())), strict=True):
            total[name] += gradient
        seen.append(logprobs.detach())
    return Updated(logprobs=torch.cat(seen), gradients=total)


def shared_update(policy: LanguageModel, name: str) -> Updated:
    """Our side: one pass over the tries of all groups."""
    prompt, answer = UPDATES[name]
    groups = update_groups(policy, prompt, answer)
    return backward(policy, iter([shared_logprobs(policy, groups)]), GROUPS * SAMPLES * answer)


def plain_update(policy: LanguageModel, name: str) -> Updated:
    """The other side: whole sequences, as many rows at once as memory allows."""
    prompt, answer = UPDATES[name]
    groups = update_groups(policy, prompt, answer)
    singles = [
        Branches(prompt_tokens=b.prompt_tokens, completion_tokens=(c,)) for b in groups for c in b.completion_tokens
    ]
    rows = MICRO_ROWS[name]
    parts = (batch_logprobs(policy, singles[i : i + rows]) for i in range(0, len(singles), rows))
    return backward(policy, parts, GROUPS * SAMPLES * answer)


def best_of(repeats: int, *sides: Callable[[], object]) -> list[float]:
    """Seconds of each side, the best of its turns."""
    best = [float("inf")] * len(sides)
    for _ in range(repeats):
        for i, side in enumerate(sides):
            start = time.perf_counter()
            side()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def bench_update(policy: LanguageModel, name: str, repeats: int) -> None:
    """Shared prefix against the plain batch."""
    ours, plain = shared_update(policy, name), plain_update(policy, name)
    gap = (ours.logprobs - plain.logprobs).abs().max().item()
    scale = max(g.abs().max().item() for g in plain.gradients.values())
    gradient_gap = max((ours.gradients[n] - g).abs().max().item() for n, g in plain.gradients.items()) / scale
    if gap > 1e-4 or gradient_gap > 1e-3:
        raise SystemExit(f"{name}: the sides differ by {gap:.1e} in log-probability, {gradient_gap:.1e} in gradient")
    shared_s, plain_s = best_of(repeats, lambda: shared_update(policy, name), lambda: plain_update(policy, name))
    with torch.no_grad():
        account = policy.read(update_groups(policy, *UPDATES[name]), chosen_logprobs()).cost
    print(
        f"{name}: shared prefix {shared_s:.2f} s, one by one in a batch {plain_s:.2f} s, ratio {plain_s / shared_s:.2f}x "
        f"(target 3x at 60/8); tokens {account.num_computed} against {account.num_unshared}; "
        f"log-probs within {gap:.0e}, gradients within {gradient_gap:.0e} of the largest"
    )


def bench_noise(policy: LanguageModel, repeats: int) -> None:
    """What keyed draws add to a decode step of 32 rows."""
    requests = [
        GenerateRequest(
            prompt_tokens=keyed_tokens("noise", 60, policy.module.config.vocab_size),
            key=i,
            sampling=SamplingParams(max_new_tokens=12),
            stop_ids=frozenset(),
        )
        for i in range(32)
    ]
    with torch.no_grad():
        logits = policy.module(input_ids=torch.tensor([r.prompt_tokens for r in requests]), logits_to_keep=1).logits[
            :, -1
        ]
    (whole_s,) = best_of(repeats, lambda: policy.generate(requests))
    step_s = whole_s / (policy.generate(requests).cost.num_steps + 1)
    wide = torch.cat([logits - lower for lower in range(4)], dim=-1)[
        :, :WIDE_VOCABULARY
    ]  # as peaked, three times as wide
    for logprobs_BV in (plain_logprobs(logits), plain_logprobs(wide)):
        draw_s, naive_s = draw_seconds(logprobs_BV, 10 * repeats)
        print(
            f"noise: {1e3 * draw_s:.1f} ms for 32 rows x {logprobs_BV.shape[1]} tokens (naive {1e3 * naive_s:.1f} ms), "
            f"{100 * draw_s / step_s:.1f} % of a decode step here of {1e3 * step_s:.0f} ms (target under 3 % at 49,152)"
        )


def draw_seconds(logprobs_BV: Tensor, repeats: int) -> list[float]:
    """Seconds of a tile's draws, fast and by their definition."""
    keys, positions = list(range(len(logprobs_BV))), [3] * len(logprobs_BV)
    fast = gumbel_max(logprobs_BV, key=keys, positions=positions)
    slow = gumbel_max_naive(logprobs_BV, key=keys, positions=positions)
    if fast.tokens_B.tolist() != slow.tokens_B.tolist():
        raise SystemExit("noise: fast and slow draws differ")
    return best_of(
        repeats,
        lambda: gumbel_max(logprobs_BV, key=keys, positions=positions),
        lambda: gumbel_max_naive(logprobs_BV, key=keys, positions=positions),
    )


def machine() -> str:
    """What the figures were taken on."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    name = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.processor())
    return f"{name}, {torch.get_num_threads()} threads, torch {torch.__version__}, Python {platform.python_version()}"


def main() -> None:
    """Parse, load, run."""
    parser = argparse.ArgumentParser(description="Benchmarks of the engine; prints ratios with machine facts.")
    parser.add_argument("--only", choices=["update", "noise"])
    parser.add_argument("--smoke", action="store_true", help="smallest sizes, one repeat: does it run?")
    options = parser.parse_args()
    policy = load_policy(PolicyConfig(), key=1)
    print(machine())
    repeats = 1 if options.smoke else 3
    if options.only in (None, "update"):
        for name in list(UPDATES)[: 1 if options.smoke else None]:
            bench_update(policy, name, repeats)
    if options.only in (None, "noise"):
        bench_noise(policy, repeats)


if __name__ == "__main__":
    main()

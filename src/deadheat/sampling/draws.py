"""Draws: one token per row from keyed noise, each an exact sampler of the given log-probabilities.

With E_j = −ln(u_j + 2^−54) from the 53-bit uniform of (key, position, token j), and g_j = −ln E_j:

    gumbel_max           argmax_j  ln p_j + g_j            margin: best score minus the runner-up's
    exponential_race     argmax_j  p_j / E_j               the same choice, draw for draw; margin: log of the ratio
    inverse_cdf          w_j = round(2^32 p_j), C = running sum, r = (u53 · C_V) >> 53, smallest i with C_i > r
    greedy               argmax_j  ln p_j                  no key
    without_replacement  the k largest of φ_i + g_i over a given set of sequences

Ties go to the lowest id. Scores are float64. Sources: Gumbel 1954; Maddison, Tarlow and Minka 2014; Kool, van Hoof and
Welling 2019 (without replacement, with the Horvitz-Thompson weights of Duffield, Lund and Thorup 2007).

`gumbel_max` avoids nearly all the work of its definition (`gumbel_max_naive`, the slow twin) without changing a draw.
Since −ln u ≥ 1 − u, a token with 1 − u_j > 2^−9 and p_j ≤ 2^−10 / c scores below −ln c − ln 2. So: hash every token
once in integers, keep those with a large uniform or a large probability, take logarithms for these alone, and accept
when as many as are needed score at least −ln c; otherwise raise c. The ln 2 to spare covers every rounding on the way.
"""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deadheat.errors import DivergedError
from deadheat.sampling import keys as k
from deadheat.sampling.torch_keys import token_uniforms53_torch

_TAIL_BITS = 9  # a token is kept whatever its probability when 1 − u ≤ 2^−9: about 100 of 49,152
_FIRST_C = 8.0  # expected number of tokens above the first bar; about e^−8 of the rows need another round
_LAST_C = 1e12  # beyond this, every possible token is scored
_WEIGHT_BITS = 32  # inverse CDF: probabilities become integers of this many bits


@dataclass(frozen=True, kw_only=True)
class Picks:
    """One token per row."""

    tokens_B: NDArray[np.int64]  # [B] drawn ids
    margins_B: NDArray[np.float64] | None  # [B] score of the drawn token minus the runner-up's; +inf: no other possible


def gumbel_max(logprobs_BV: Tensor, *, key: Sequence[int], positions: Sequence[int], margins: bool = True) -> Picks:
    """Gumbel-max draws, one key and position per row; equal to `gumbel_max_naive` at a fraction of its cost.

    Example:
        >>> certain = torch.tensor([[-torch.inf, 0.0]])
        >>> drawn = gumbel_max(certain, key=[7], positions=[0])
        >>> drawn.tokens_B.tolist(), drawn.margins_B.tolist()
        ([1], [inf])
    """
    best_B = _check(logprobs_BV, key, positions)
    num_needed = 2 if margins else 1
    bars_B = np.full(len(best_B), _FIRST_C)
    if margins:
        bars_B /= np.maximum(1e-9, -np.expm1(np.minimum(0.0, best_B)))
    words_B = np.array([k.position_key(row_key, t) for row_key, t in zip(key, positions, strict=True)], dtype=np.uint64)
    on_host = logprobs_BV.device.type == "cpu"
    contenders = (_contenders_on_host if on_host else _contenders_on_device)(logprobs_BV.detach(), words_B, bars_B)
    scores = contenders.logprobs + k.gumbel(
        k.mix64_array(words_B[contenders.rows] ^ _salts(logprobs_BV.shape[-1])[contenders.tokens]) >> np.uint64(11)
    )
    above = scores >= -np.log(bars_B)[contenders.rows]
    enough_B = np.bincount(contenders.rows, weights=above, minlength=len(best_B)) >= num_needed
    ends = np.searchsorted(contenders.rows, np.arange(len(best_B) + 1))
    picks = [
        _top_two(scores[ends[b] : ends[b + 1]], contenders.tokens[ends[b] : ends[b + 1]])
        if enough_B[b]
        else _contest_again(logprobs_BV[b].detach().cpu().numpy(), words_B[b], float(bars_B[b]), num_needed)
        for b in range(len(best_B))
    ]
    return _gather(picks, margins=margins)


def gumbel_max_naive(logprobs_BV: Tensor, *, key: Sequence[int], positions: Sequence[int]) -> Picks:
    """The definition: perturb every token, take the two best. The slow twin of `gumbel_max`."""
    _check(logprobs_BV, key, positions)
    salts_V = _salts(logprobs_BV.shape[-1])
    logprobs = logprobs_BV.detach().cpu().double().numpy()
    picks = []
    for b, (row_key, position) in enumerate(zip(key, positions, strict=True)):
        scores_V = logprobs[b] + k.gumbel(k.token_uniforms53(row_key, position, salts_V))
        picks.append(_top_two(scores_V, np.arange(len(scores_V))))
    return _gather(picks, margins=True)


def exponential_race(logprobs_BV: Tensor, *, key: Sequence[int], positions: Sequence[int]) -> Picks:
    """argmax p/E: the token whose exponential clock of rate p rings first; the same draws as Gumbel-max.

    Example:
        >>> even = torch.tensor([[0.5, 0.5]]).log()
        >>> race = exponential_race(even, key=[3], positions=[0])
        >>> race.tokens_B.tolist() == gumbel_max(even, key=[3], positions=[0]).tokens_B.tolist()
        True
    """
    _check(logprobs_BV, key, positions)
    salts_V = _salts(logprobs_BV.shape[-1])
    probs = logprobs_BV.detach().cpu().double().exp().numpy()
    picks = []
    for b, (row_key, position) in enumerate(zip(key, positions, strict=True)):
        clocks_V = -np.log(k.token_uniforms53(row_key, position, salts_V).astype(np.float64) / k.U53 + 2.0**-54)
        with np.errstate(divide="ignore"):
            picks.append(_top_two(np.log(probs[b] / clocks_V), np.arange(len(clocks_V))))
    return _gather(picks, margins=True)


def inverse_cdf(logprobs_BV: Tensor, *, key: Sequence[int], positions: Sequence[int]) -> Picks:
    """Inverse-CDF draws: one uniform per row, tokens in ascending id, integer weights (softmax in float64)."""
    _check(logprobs_BV, key, positions)
    weights = cdf_weights(logprobs_BV).numpy().astype(np.uint64)
    tokens = [
        pick_by_weight(weights[b], k.uniform53(row_key, position))
        for b, (row_key, position) in enumerate(zip(key, positions, strict=True))
    ]
    return Picks(tokens_B=np.array(tokens, dtype=np.int64), margins_B=None)


def cdf_weights(logprobs_BV: Tensor) -> Tensor:
    """[B, V] int64 round(2^32·p) on the host: the weights of the inverse CDF, exact in float64."""
    probs_BV = torch.softmax(logprobs_BV.detach().cpu().double(), dim=-1)
    return (probs_BV * 2.0**_WEIGHT_BITS).round().to(torch.int64)


def pick_by_weight(weights_V: NDArray[np.uint64], u53: int) -> int:
    """Smallest i whose running sum of weights exceeds r = (u53 · total) >> 53, in exact integers.

    Example:
        Running sums 1, 3, 6, 16; u = 0.75 gives r = 12, first exceeded by the last.
        >>> pick_by_weight(np.array([1, 2, 3, 10], dtype=np.uint64), 3 * 2**51)
        3
    """
    running_V = np.cumsum(weights_V, dtype=np.uint64)
    threshold = (u53 * int(running_V[-1])) >> 53
    return int(np.searchsorted(running_V, np.uint64(threshold), side="right"))


def greedy(logprobs_BV: Tensor, *, margins: bool = True) -> Picks:
    """The most probable token of each row, lowest id among equals; margin: gap of the two largest log-probabilities.

    Example:
        >>> tie = greedy(torch.tensor([[0.25, 0.375, 0.375]]).log())
        >>> tie.tokens_B.tolist(), tie.margins_B.tolist()
        ([1], [0.0])
    """
    values_BV = logprobs_BV.detach()
    _best(values_BV)
    ids_V = torch.arange(values_BV.shape[-1], device=values_BV.device)
    is_best_BV = values_BV == values_BV.amax(dim=-1, keepdim=True)
    tokens_B = torch.where(is_best_BV, ids_V, values_BV.shape[-1]).amin(dim=-1).cpu().numpy()
    if not margins:
        return Picks(tokens_B=tokens_B, margins_B=None)
    if values_BV.shape[-1] == 1:
        return Picks(tokens_B=tokens_B, margins_B=np.full(len(tokens_B), np.inf))
    top_B2 = torch.topk(values_BV, 2, dim=-1).values.cpu().double()
    return Picks(tokens_B=tokens_B, margins_B=(top_B2[:, 0] - top_B2[:, 1]).numpy())


@dataclass(frozen=True, kw_only=True)
class WithoutReplacement:
    """k of N sequences drawn without replacement, best perturbed score first."""

    indices_k: NDArray[np.int64]  # [k] which of the N
    logprobs_k: NDArray[np.float64]  # [k] φ_i of the drawn
    kappa: float  # the (k+1)-th perturbed log-probability; −inf: everything was drawn

    @property
    def inclusion_k(self) -> NDArray[np.float64]:
        """[k] q_i = 1 − exp(−exp(φ_i − κ)): the chance of being drawn, given κ."""
        if self.kappa == -math.inf:
            return np.ones(len(self.logprobs_k))
        return -np.expm1(-np.exp(self.logprobs_k - self.kappa))


def without_replacement(logprobs_N: NDArray[np.float64], *, num_draws: int, key: int) -> WithoutReplacement:
    """The `num_draws` largest of φ_i + g_i (Gumbel top-k), over distinct sequences with log-probabilities φ.

    Example:
        >>> everything = without_replacement(np.log([0.5, 0.25]), num_draws=2, key=1)
        >>> sorted(everything.indices_k.tolist()), everything.inclusion_k.tolist()
        ([0, 1], [1.0, 1.0])
    """
    if not 1 <= num_draws <= len(logprobs_N):
        raise ValueError(f"num_draws is {num_draws} of {len(logprobs_N)} sequences; wanted 1 to {len(logprobs_N)}")
    scores_N = logprobs_N + k.gumbel(k.token_uniforms53(key, 0, k.token_salts(len(logprobs_N))))
    order_N = np.argsort(-scores_N, kind="stable")
    chosen = order_N[:num_draws]
    kappa = float(scores_N[order_N[num_draws]]) if num_draws < len(logprobs_N) else -math.inf
    return WithoutReplacement(indices_k=chosen, logprobs_k=logprobs_N[chosen], kappa=kappa)


def horvitz_thompson(drawn: WithoutReplacement, values_k: NDArray[np.float64]) -> float:
    """Σ (p_i / q_i) f_i over the drawn: unbiased for Σ p_i f_i over all N.

    Example:
        >>> everything = without_replacement(np.log([0.5, 0.5]), num_draws=2, key=1)
        >>> round(horvitz_thompson(everything, np.array([1.0, 3.0])), 12)
        2.0
    """
    return float(np.sum(np.exp(drawn.logprobs_k) / drawn.inclusion_k * values_k))


def self_normalised(drawn: WithoutReplacement, values_k: NDArray[np.float64]) -> float:
    """Σ (p_i/q_i) f_i ÷ Σ (p_i/q_i): biased, less variable, and exact for a constant f.

    Example:
        >>> two = without_replacement(np.log([0.5, 0.3, 0.2]), num_draws=2, key=1)
        >>> round(self_normalised(two, np.array([4.0, 4.0])), 12)
        4.0
    """
    return horvitz_thompson(drawn, values_k) / horvitz_thompson(drawn, np.ones_like(values_k))


@dataclass(frozen=True, kw_only=True)
class _Contenders:
    """The tokens that may win or come second, row by row in ascending id."""

    rows: NDArray[np.int64]  # [C]
    tokens: NDArray[np.int64]  # [C]
    logprobs: NDArray[np.float64]  # [C]


def _cutoffs(bars_B: NDArray[np.float64]) -> NDArray[np.float64]:
    """[B] log-probability above which a token is kept whatever its uniform: ln(2^−(tail bits + 1) / c)."""
    return math.log(2.0 ** -(_TAIL_BITS + 1)) - np.log(bars_B)


def _contenders_on_host(logprobs_BV: Tensor, words_B: NDArray[np.uint64], bars_B: NDArray[np.float64]) -> _Contenders:
    logprobs = logprobs_BV.contiguous().numpy()
    num_rows, num_tokens = logprobs.shape
    kept_BV = np.empty((num_rows, num_tokens), dtype=bool)
    cutoffs_B = _cutoffs(bars_B).astype(logprobs.dtype)  # rounding here is far inside the ln 2 to spare
    once_V = _salts_shifted(num_tokens)

    def fill(rows: range) -> None:
        x, spare = np.empty(num_tokens, np.uint64), np.empty(num_tokens, np.uint64)
        for b in rows:
            np.bitwise_xor(once_V, words_B[b] ^ (words_B[b] >> np.uint64(30)), out=x)  # x ^ x>>30 is linear over XOR
            np.multiply(x, np.uint64(k.MIX_A), out=x)
            np.right_shift(x, np.uint64(27), out=spare)
            np.bitwise_xor(x, spare, out=x)
            np.multiply(x, np.uint64(k.MIX_B), out=x)  # the mixer's last step leaves the top 31 bits alone
            np.greater_equal(x, np.uint64(2**64 - 2 ** (64 - _TAIL_BITS)), out=kept_BV[b])
            np.logical_or(kept_BV[b], logprobs[b] > cutoffs_B[b], out=kept_BV[b])

    num_threads = min(torch.get_num_threads(), num_rows)
    shares = [range(start, num_rows, num_threads) for start in range(num_threads)]
    list(_threads(num_threads).map(fill, shares))
    flat = np.flatnonzero(kept_BV)
    return _Contenders(
        rows=flat // num_tokens, tokens=flat % num_tokens, logprobs=logprobs.ravel()[flat].astype(np.float64)
    )


def _contenders_on_device(logprobs_BV: Tensor, words_B: NDArray[np.uint64], bars_B: NDArray[np.float64]) -> _Contenders:
    device = logprobs_BV.device
    uniforms_BV = token_uniforms53_torch(words_B, logprobs_BV.shape[-1], device)
    cutoffs_B1 = torch.tensor(_cutoffs(bars_B), dtype=logprobs_BV.dtype, device=device)[:, None]
    kept_BV = (uniforms_BV >= 2**53 - 2 ** (53 - _TAIL_BITS)) | (logprobs_BV > cutoffs_B1)
    rows, tokens = kept_BV.nonzero(as_tuple=True)
    logprobs = logprobs_BV[rows, tokens].cpu().double().numpy()
    return _Contenders(rows=rows.cpu().numpy(), tokens=tokens.cpu().numpy(), logprobs=logprobs)


def _contest_again(logprobs_V: NDArray[np.floating], word: np.uint64, bar: float, num_needed: int) -> tuple[int, float]:
    """A row whose first bar was too high: lower it until enough tokens clear it, in the end by scoring all of them."""
    u53_V = k.mix64_array(word ^ _salts(len(logprobs_V))) >> np.uint64(11)
    is_tail_V = u53_V >= np.uint64(2**53 - 2 ** (53 - _TAIL_BITS))
    while (bar := 64.0 * bar) < _LAST_C:
        ids = np.flatnonzero(is_tail_V | (logprobs_V > _cutoffs(np.array([bar]))[0]))
        scores = logprobs_V[ids].astype(np.float64) + k.gumbel(u53_V[ids])
        if np.count_nonzero(scores >= -math.log(bar)) >= num_needed:
            return _top_two(scores, ids)
    possible = np.flatnonzero(logprobs_V > -np.inf)
    return _top_two(logprobs_V[possible].astype(np.float64) + k.gumbel(u53_V[possible]), possible)


def _top_two(scores: NDArray[np.float64], ids: NDArray[np.int64]) -> tuple[int, float]:
    """Best id (the lowest among equals: ids ascend) and its lead over the runner-up."""
    best = int(np.argmax(scores))
    winner = float(scores[best])
    rest = max(scores[:best].max(initial=-math.inf), scores[best + 1 :].max(initial=-math.inf))
    return int(ids[best]), winner - float(rest)


def _gather(picks: list[tuple[int, float]], *, margins: bool) -> Picks:
    tokens_B = np.array([token for token, _ in picks], dtype=np.int64)
    return Picks(tokens_B=tokens_B, margins_B=np.array([m for _, m in picks]) if margins else None)


def _check(logprobs_BV: Tensor, key: Sequence[int], positions: Sequence[int]) -> list[float]:
    """Refuse rows nothing can be drawn from; the best log-probability of each row."""
    if logprobs_BV.dim() != 2 or not len(logprobs_BV) == len(key) == len(positions):
        shape = tuple(logprobs_BV.shape)
        raise ValueError(f"log-probabilities {shape}, {len(key)} keys, {len(positions)} positions; wanted [B, V], B, B")
    return _best(logprobs_BV)


def _best(logprobs_BV: Tensor) -> list[float]:
    """The best log-probability of each row; a row without a finite one, or with a NaN, is refused."""
    best_B: list[float] = logprobs_BV.detach().amax(dim=-1).tolist()
    if not all(map(math.isfinite, best_B)):
        bad = [b for b, best in enumerate(best_B) if not math.isfinite(best)]
        raise DivergedError(
            f"rows {bad} of {len(best_B)} have best log-probability {best_B[bad[0]]}; wanted at least one finite token and "
            "none NaN. The model's weights or logits are no longer finite: lower the learning rate or start from an "
            "earlier checkpoint"
        )
    return best_B


@cache
def _salts(num_tokens: int) -> NDArray[np.uint64]:
    return k.token_salts(num_tokens)


@cache
def _salts_shifted(num_tokens: int) -> NDArray[np.uint64]:
    salts_V = _salts(num_tokens)
    return salts_V ^ (salts_V >> np.uint64(30))


@cache
def _threads(num_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=num_threads, thread_name_prefix="draws")

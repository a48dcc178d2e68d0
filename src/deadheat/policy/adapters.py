"""What is trained: LoRA matrices (by peft) or every weight; keyed initialisation, sorted names, stable bytes on disk.

LoRA (Hu et al. 2021) adds (alpha / rank)·B·A to a linear layer. A starts uniform in ±1/√fan_in (peft's default: Kaiming
with a = √5), B at zero, so a fresh adapter changes nothing. A's entries are keyed uniforms addressed by (key, parameter
name, index): the same key gives the same bytes on any machine, and torch's global generator is left as it was found.
Dropout is zero: a draw nobody could address again would hide in it.
"""

import json
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import torch
from peft import LoraConfig, inject_adapter_in_model
from pydantic import BaseModel, ConfigDict, Field
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

from deadheat.errors import ConfigError
from deadheat.sampling.keys import stream_key, uniforms

FILE = "adapter.safetensors"


class AdapterConfig(BaseModel):
    """What an update may change."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["lora", "full"] = "lora"  # lora: low-rank matrices beside frozen weights; full: every weight
    rank: int = Field(default=16, ge=1)  # inner width of the LoRA matrices
    alpha: float = Field(default=32.0, gt=0)  # LoRA output is scaled by alpha / rank
    targets: Literal["all-linear"] | tuple[str, ...] = "all-linear"  # layer names LoRA is put on; the head is never one


class Adapted(Protocol):
    """Something with a module that carries an adapter."""

    @property
    def module(self) -> nn.Module:
        """The model, adapter included."""

    @property
    def adapter(self) -> AdapterConfig:
        """What of it is trained."""


def attach(module: nn.Module, config: AdapterConfig, *, key: int) -> None:
    """Put a fresh adapter on a model, in place; afterwards exactly the adapter's parameters require gradients."""
    if config.kind == "full":
        module.requires_grad_(True)
        return
    module.requires_grad_(False)
    targets = config.targets if isinstance(config.targets, str) else list(config.targets)
    lora = LoraConfig(r=config.rank, lora_alpha=config.alpha, lora_dropout=0.0, bias="none", target_modules=targets)
    with torch.random.fork_rng(devices=[]):  # peft draws an initialisation of its own, replaced below
        try:
            inject_adapter_in_model(lora, module)
        except ValueError as error:
            raise ConfigError(
                f"adapter targets {targets} do not fit this model: {error}. Use 'all-linear' or names of its layers"
            ) from error
    for parameter in _trainable(module).values():
        parameter.data = parameter.data.float()  # in bfloat16 an update below 1/256 of an entry would be rounded away
    initialise(module, key=key)


def initialise(module: nn.Module, *, key: int) -> None:
    """Set every LoRA A to keyed uniforms and every B to zero; weights trained in full are left as loaded."""
    for name, parameter in sorted(_trainable(module).items()):
        if "lora_A" in name:
            draws = uniforms(stream_key(key, "adapter", name), parameter.numel())
            bound = parameter.shape[-1] ** -0.5
            values = torch.from_numpy(np.asarray((2.0 * draws - 1.0) * bound, dtype=np.float32))
            with torch.no_grad():
                parameter.copy_(values.view(parameter.shape))
        elif "lora_B" in name:
            nn.init.zeros_(parameter)


def trainable_parameters(policy: Adapted) -> dict[str, nn.Parameter]:
    """The parameters an update changes, in the order of their names."""
    return dict(sorted(_trainable(policy.module).items()))


def save_adapter(policy: Adapted, folder: Path) -> Path:
    """Write the trained parameters to `folder/adapter.safetensors`; equal parameters give equal bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: p.detach().cpu().contiguous() for name, p in trainable_parameters(policy).items()}
    target = folder / FILE
    partial = target.with_suffix(".partial")
    # One metadata entry: the order of several is not stable in the file format's writer.
    save_file(tensors, partial, metadata={"deadheat": json.dumps(policy.adapter.model_dump(), sort_keys=True)})
    partial.replace(target)
    return target


def load_adapter(policy: Adapted, folder: Path) -> None:
    """Set the trained parameters from what `save_adapter` wrote."""
    path = folder / FILE
    if not path.is_file():
        raise ConfigError(f"no {FILE} in {folder}; wanted a folder written by save_adapter")
    parameters = trainable_parameters(policy)
    with safe_open(path, framework="pt") as stored, torch.no_grad():
        _refuse_other_adapter(path, stored.metadata() or {}, set(stored.keys()), policy.adapter, set(parameters))
        for name, parameter in parameters.items():
            parameter.copy_(stored.get_tensor(name))


def _refuse_other_adapter(
    path: Path, metadata: dict[str, str], seen: set[str], config: AdapterConfig, wanted: set[str]
) -> None:
    written = AdapterConfig.model_validate_json(metadata.get("deadheat", "{}"))
    if written != config or seen != wanted:
        raise ConfigError(
            f"{path} holds {len(seen)} parameters of {written}; this policy has {len(wanted)} of {config}. "
            "Load it with the adapter settings it was saved with"
        )


def _trainable(module: nn.Module) -> dict[str, nn.Parameter]:
    return {name: p for name, p in module.named_parameters() if p.requires_grad}

"""The job's adapter on a stock model, by peft; for the sides that run without deadheat."""

from typing import Any

import torch
from peft import LoraConfig
from safetensors.torch import load_file
from torch import Tensor, nn

from peers.job import ALPHA, RANK, Job

PREFIX = "base_model.model."  # what peft puts before the model's own names


def lora_config() -> LoraConfig:
    """Rank, scale and layers as on our side."""
    return LoraConfig(
        r=RANK, lora_alpha=ALPHA, lora_dropout=0.0, bias="none", target_modules="all-linear", task_type="CAUSAL_LM"
    )


def adapter_parameters(model: Any) -> dict[str, nn.Parameter]:
    """What is trained, under the names our side uses."""
    return {name.removeprefix(PREFIX): p for name, p in model.named_parameters() if p.requires_grad}


def load_adapter(model: Any, job: Job) -> None:
    """Set the adapter from the job's file; both must hold the same names."""
    stored, parameters = load_file(job.adapter), adapter_parameters(model)
    if set(stored) != set(parameters):
        raise SystemExit(f"the adapters differ: {sorted(set(stored) ^ set(parameters))[:4]} on one side only")
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(stored[name])


def gradients(model: Any) -> dict[str, Any]:
    """The gradients as arrays."""
    return {name: p.grad.numpy().copy() for name, p in adapter_parameters(model).items() if p.grad is not None}


def full_rows(job: Job) -> Tensor:
    """[B, T] each prompt with its answer (answers of one length)."""
    return torch.tensor([[*job.prompt_of(row), *answer] for row, answer in enumerate(job.answers_B)])


def full_advantages(job: Job) -> Tensor:
    """[B] the advantage of each answer."""
    return torch.tensor(job.advantages_G * job.shape.num_prompts, dtype=torch.float32)

"""On what a race ran: versions, machine, device. Two runs are byte-equal only where these agree."""

import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

import deadheat

_PACKAGES = ("numpy", "scipy", "polars", "torch", "transformers", "peft", "safetensors", "tokenizers")


def environment() -> dict[str, Any]:
    """Versions and machine facts, as plain data."""
    return {
        "deadheat": deadheat.__version__,
        "python": sys.version.split()[0],
        "packages": {name: metadata.version(name) for name in _PACKAGES},
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "cuda": torch.version.cuda,
        "gpus": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
    }


def _processor() -> str:
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()

"""The most memory that was held at once.

Resident memory is the high-water mark of the whole process since it began, as the kernel counts it (getrusage(2)): runs
that share a process share it, and the children that grade untrusted answers are not in it. CUDA memory is what torch's
allocator held in tensors since the mark was last asked for, so each step has its own.
"""

import resource
import sys

import torch


def peak_memory(device: torch.device) -> dict[str, int]:
    """Bytes by kind: `resident`, and `cuda` where the model is on such a device."""
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes there, in KiB on Linux
    peaks = {"resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}
    if device.type == "cuda":
        peaks["cuda"] = torch.cuda.max_memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
    return peaks

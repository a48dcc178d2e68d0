"""Checkpoints: an adapter that can be served, and in the newest one the optimiser state that resuming needs.

A checkpoint folder appears whole by a rename, after every record up to its step is on disk. It is the commit point of a
run: what lies after the newest checkpoint is drawn again, to the same bytes.
"""

import shutil
from collections.abc import Collection
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from deadheat.archive import read_json, system_errors, write_folder_atomic, write_json
from deadheat.errors import ArchiveError
from deadheat.policy import LanguageModel, load_adapter, save_adapter
from deadheat.train.loop import Updater

FOLDER = "checkpoints"
_OPTIMIZER = "optimizer.safetensors"
_STATE = "state.json"
_MOMENTS = ("exp_avg", "exp_avg_sq", "step")


def checkpoint_path(run_folder: Path, step: int) -> Path:
    """Where the checkpoint of a step lies."""
    return run_folder / FOLDER / f"step-{step:05d}"


def save_checkpoint(run_folder: Path, policy: LanguageModel, updater: Updater, *, step: int) -> Path:
    """Write the adapter and optimiser state after `step`; whole or not at all."""

    def fill(folder: Path) -> None:
        with system_errors(SafetensorError):
            save_adapter(policy, folder)
            save_file(_optimizer_tensors(updater), folder / _OPTIMIZER)
        write_json(folder / _STATE, {"step": step})

    path = checkpoint_path(run_folder, step)
    write_folder_atomic(path, fill)
    return path


def latest_step(run_folder: Path) -> int | None:
    """The newest checkpoint that can be resumed from; None: start from the beginning."""
    return max((step for step, path in _checkpoints(run_folder) if (path / _OPTIMIZER).exists()), default=None)


def restore_checkpoint(run_folder: Path, policy: LanguageModel, updater: Updater, *, step: int) -> None:
    """Put the weights and optimiser state of a checkpoint back, bit for bit."""
    folder = checkpoint_path(run_folder, step)
    if read_json(folder / _STATE)["step"] != step:
        raise ArchiveError(f"{folder} holds another step than its name says; delete it and run again with --resume")
    load_adapter(policy, folder)
    tensors = load_file(folder / _OPTIMIZER)
    for name, parameter in updater.parameters.items():
        held = {moment: tensors[f"{name}/{moment}"] for moment in _MOMENTS if f"{name}/{moment}" in tensors}
        if held:
            state = {moment: t if moment == "step" else t.to(parameter.device) for moment, t in held.items()}
            updater.optimizer.state[parameter] = state


def prune_checkpoints(run_folder: Path, *, newest: int, keep_adapters: Collection[int]) -> None:
    """Drop optimiser states older than the newest checkpoint, and adapters that nothing names."""
    for step, path in _checkpoints(run_folder):
        if step >= newest:
            continue
        if step in keep_adapters:
            (path / _OPTIMIZER).unlink(missing_ok=True)
        else:
            shutil.rmtree(path)


def _checkpoints(run_folder: Path) -> list[tuple[int, Path]]:
    """Steps and folders of whole checkpoints, in order; what a crash left half written has another name."""
    named = [(path.name.removeprefix("step-"), path) for path in (run_folder / FOLDER).glob("step-*")]
    return sorted((int(digits), path) for digits, path in named if digits.isdigit())


def _optimizer_tensors(updater: Updater) -> dict[str, torch.Tensor]:
    return {
        f"{name}/{moment}": updater.optimizer.state[parameter][moment].detach().cpu().contiguous()
        for name, parameter in updater.parameters.items()
        for moment in _MOMENTS
        if moment in updater.optimizer.state.get(parameter, {})
    }

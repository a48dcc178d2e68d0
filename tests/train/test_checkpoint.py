"""A checkpoint puts weights and optimiser back bit for bit, and only what has a use is kept."""

import shutil
from pathlib import Path

import pytest
import torch

from deadheat.archive import write_json
from deadheat.errors import ArchiveError, RunFolderError
from deadheat.train import TrainBatch
from deadheat.train.checkpoint import (
    checkpoint_path,
    latest_step,
    prune_checkpoints,
    restore_checkpoint,
    save_checkpoint,
)
from deadheat.train.config import CreditConfig, UpdateConfig
from deadheat.train.loop import Updater
from deadheat.types import SamplingParams

LIVE = (1.0, -1.0)


def updater(policy) -> Updater:
    return Updater(
        policy, UpdateConfig(learning_rate=1e-3, weight_decay=0.1), CreditConfig(), SamplingParams(max_new_tokens=8)
    )


def state_bytes(made: Updater) -> list[bytes]:
    tensors = [parameter.detach() for parameter in made.parameters.values()]
    for parameter in made.parameters.values():
        tensors += [made.optimizer.state[parameter][name] for name in ("exp_avg", "exp_avg_sq", "step")]
    return [tensor.numpy().tobytes() for tensor in tensors]


@pytest.mark.parametrize("kind", ["lora", "full"])
def test_a_restored_run_goes_on_to_the_same_bits(tmp_path: Path, new_policy, lesson, kind: str) -> None:
    batches = [[lesson(index, (" 21\n", " 5\n"), LIVE)] for index in range(4)]
    policy = new_policy(kind)
    whole = updater(policy)
    for step in (1, 2):
        whole.step(TrainBatch(entries=tuple(batches[step - 1]), step=step))
    path = save_checkpoint(tmp_path, policy, whole, step=2)
    assert sorted(file.name for file in path.iterdir()) == [
        "adapter.safetensors",
        "optimizer.safetensors",
        "state.json",
    ]
    at_two = state_bytes(whole)

    fresh = new_policy(kind)
    resumed = updater(fresh)
    restore_checkpoint(tmp_path, fresh, resumed, step=2)
    assert state_bytes(resumed) == at_two
    for step in (3, 4):
        whole.step(TrainBatch(entries=tuple(batches[step - 1]), step=step))
        resumed.step(TrainBatch(entries=tuple(batches[step - 1]), step=step))
    assert state_bytes(resumed) == state_bytes(whole) != at_two
    assert fresh.digest == policy.digest


def test_equal_states_are_equal_files(tmp_path: Path, new_policy, lesson) -> None:
    for name in ("a", "b"):
        policy = new_policy()
        made = updater(policy)
        made.step(TrainBatch(entries=(lesson(0, (" 21\n", " 5\n"), LIVE),), step=1))
        save_checkpoint(tmp_path / name, policy, made, step=1)
    for name in ("adapter.safetensors", "optimizer.safetensors", "state.json"):
        a, b = (checkpoint_path(tmp_path / run, 1) / name for run in ("a", "b"))
        assert a.read_bytes() == b.read_bytes(), name


def test_step_zero_has_no_moments_yet_and_restores_to_none(tmp_path: Path, new_policy) -> None:
    policy = new_policy()
    save_checkpoint(tmp_path, policy, updater(policy), step=0)
    made = updater(fresh := new_policy(key=2))
    assert fresh.digest != policy.digest
    restore_checkpoint(tmp_path, fresh, made, step=0)
    assert fresh.digest == policy.digest
    assert not made.optimizer.state


def test_the_newest_checkpoint_with_an_optimiser_is_the_one_to_resume_from(tmp_path: Path, new_policy) -> None:
    policy = new_policy()
    made = updater(policy)
    assert latest_step(tmp_path) is None
    for step in (0, 9, 10):
        save_checkpoint(tmp_path, policy, made, step=step)
    shutil.copytree(checkpoint_path(tmp_path, 10), tmp_path / "checkpoints" / "step-00012.partial")
    assert latest_step(tmp_path) == 10, "what a crash left half written is no checkpoint"
    prune_checkpoints(tmp_path, newest=10, keep_adapters={0, 10})
    left = {path.name: sorted(file.name for file in path.iterdir()) for path in (tmp_path / "checkpoints").iterdir()}
    assert left == {
        "step-00000": ["adapter.safetensors", "state.json"],
        "step-00010": ["adapter.safetensors", "optimizer.safetensors", "state.json"],
        "step-00012.partial": ["adapter.safetensors", "optimizer.safetensors", "state.json"],
    }
    assert latest_step(tmp_path) == 10


def test_a_folder_that_holds_another_step_than_its_name_is_refused(tmp_path: Path, new_policy) -> None:
    policy = new_policy()
    made = updater(policy)
    path = save_checkpoint(tmp_path, policy, made, step=3)
    write_json(path / "state.json", {"step": 4})
    with pytest.raises(ArchiveError, match=r"holds another step than its name says; delete it"):
        restore_checkpoint(tmp_path, policy, made, step=3)


def test_a_checkpoint_is_written_whole_or_not_at_all(tmp_path: Path, new_policy, monkeypatch) -> None:
    policy = new_policy()
    made = updater(policy)
    save_checkpoint(tmp_path, policy, made, step=1)
    before = {file.name: file.read_bytes() for file in checkpoint_path(tmp_path, 1).iterdir()}
    with torch.no_grad():
        next(iter(made.parameters.values())).add_(1.0)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("deadheat.train.checkpoint.save_file", full)
    with pytest.raises(RunFolderError, match=r"The disk is full"):
        save_checkpoint(tmp_path, policy, made, step=1)
    assert {file.name: file.read_bytes() for file in checkpoint_path(tmp_path, 1).iterdir()} == before
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-00001"]

"""Models the tests share: the real SmolLM2-135M, fetched once, and a tiny policy warm-started in seconds."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from deadheat.errors import ModelReferenceError

settings.register_profile("deadheat", deadline=None, suppress_health_check=[HealthCheck.too_slow])  # no test is timed
settings.load_profile("deadheat")

ROOT = Path(__file__).parents[1]
# Rooms that share a finished race, a Ray cluster or a loaded model: with `-n 2 --dist loadgroup` one process does each.
TOGETHER = {
    "race": "races",
    "train": "races",
    "cli": "races",
    "cluster": "races",
    "policy": "models",
    "sampling": "models",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        place = item.path.relative_to(ROOT).parts
        room = place[1] if place[0] == "tests" else "doctests"
        item.add_marker(pytest.mark.xdist_group(TOGETHER.get(room, "/".join(place[:3]))))


@pytest.fixture(scope="session")
def ray_cluster():
    """Ray on two cores of this machine, for as long as the tests run."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'deadheat[ray]'", exc_type=ImportError)
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - Ray's own spelling; its workers wait for all others otherwise
    ray.init(address="local", num_cpus=2, log_to_driver=False, logging_level="ERROR", include_dashboard=False)
    yield
    ray.shutdown()


@pytest.fixture(scope="session")
def smollm2():
    """The real model with a fresh LoRA adapter; skipped only where it is neither cached nor to be fetched."""
    from deadheat.policy import PolicyConfig, load_policy

    try:
        return load_policy(PolicyConfig(), key=1)
    except ModelReferenceError as error:
        pytest.skip(f"the model can be neither loaded nor fetched: {error}")


@pytest.fixture(scope="session")
def tiny_texts():
    """Ten sums under one worked example: enough for a format, not for arithmetic."""
    return tuple(f"1 + 1 = 2\n{a} + {a + 1} = {2 * a + 1}\n" for a in range(10))


@pytest.fixture(scope="session")
def tiny_policy(tiny_texts):
    """A tiny policy warm-started on `tiny_texts`, with a small LoRA adapter; not cached on disk."""
    from deadheat.policy import AdapterConfig, LanguageModel, PolicyConfig
    from deadheat.policy.adapters import attach
    from deadheat.policy.tiny import WarmStart, warm_start

    tiny = warm_start(tiny_texts, key=7, settings=WarmStart(num_steps=40, batch_size=10))
    adapter = AdapterConfig(rank=4, alpha=8)
    attach(tiny.module, adapter, key=11)
    return LanguageModel(tiny.module, tiny.tokenizer, PolicyConfig(model="tiny:sums", adapter=adapter))

"""Models the tests share: the real SmolLM2-135M, fetched once, and a tiny policy warm-started in seconds."""

import pytest

from deadheat.errors import ModelReferenceError


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

"""Adapters: keyed bytes, names in order, files that are what was trained."""

import pytest
import torch

from deadheat.errors import ConfigError
from deadheat.policy import AdapterConfig, LanguageModel, PolicyConfig, load_adapter, save_adapter, trainable_parameters
from deadheat.policy.adapters import attach
from deadheat.policy.tiny import character_tokenizer, tiny_model


def policy_of(*, key, **adapter):
    module, config = tiny_model(key=5), AdapterConfig(**adapter)
    attach(module, config, key=key)
    return LanguageModel(module, character_tokenizer(), PolicyConfig(model="tiny:none", adapter=config))


def test_lora_trains_two_matrices_of_every_linear_layer_but_the_head():
    parameters = trainable_parameters(policy_of(key=1, rank=4))
    # 4 layers x 7 linear layers x (A, B); sizes 4 x (in + out): 4 of 128+128, 2 of 128+384, 1 of 384+128 a layer
    assert len(parameters) == 4 * 7 * 2
    assert sum(p.numel() for p in parameters.values()) == 4 * 4 * (4 * 256 + 3 * 512)
    assert list(parameters) == sorted(parameters)
    assert not any("lm_head" in name or "embed" in name for name in parameters)


def test_a_fresh_adapter_is_bounded_keyed_and_changes_nothing():
    policy, bare = policy_of(key=1, rank=4), tiny_model(key=5)
    for name, p in trainable_parameters(policy).items():
        if "lora_A" in name:
            bound = p.shape[1] ** -0.5
            assert 0.9 * bound < p.abs().max() <= bound
        else:
            assert not p.any()
    ids = torch.tensor([[7, 8, 9]])
    with torch.no_grad():
        assert torch.allclose(policy.module(input_ids=ids).logits, bare(input_ids=ids).logits, atol=1e-6)


def test_same_key_same_bytes_and_other_key_other_bytes(tmp_path):
    files = [save_adapter(policy_of(key=key, rank=4), tmp_path / name) for key, name in ((1, "a"), (1, "b"), (2, "c"))]
    one, two, other = (file.read_bytes() for file in files)
    assert one == two
    assert one != other


def test_attaching_leaves_the_global_torch_generator_alone():
    before = torch.random.get_rng_state()
    policy_of(key=1)
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_saved_adapter_comes_back_and_moves_the_digest(tmp_path):
    trained, fresh = policy_of(key=1, rank=4), policy_of(key=2, rank=4)
    with torch.no_grad():
        for p in trainable_parameters(trained).values():
            p.add_(0.125)
    save_adapter(trained, tmp_path)
    before = fresh.digest
    load_adapter(fresh, tmp_path)
    assert fresh.digest == trained.digest != before
    for mine, theirs in zip(*(trainable_parameters(p).values() for p in (fresh, trained)), strict=True):
        assert torch.equal(mine, theirs)


def test_an_adapter_of_other_settings_is_refused(tmp_path):
    save_adapter(policy_of(key=1, rank=4), tmp_path)
    with pytest.raises(ConfigError, match=r"rank=4.*this policy has 56 of .*rank=8"):
        load_adapter(policy_of(key=1, rank=8), tmp_path)
    with pytest.raises(ConfigError, match=r"no adapter\.safetensors in"):
        load_adapter(policy_of(key=1, rank=4), tmp_path / "elsewhere")


def test_full_fine_tuning_trains_every_weight():
    policy = policy_of(key=1, kind="full")
    assert sum(p.numel() for p in trainable_parameters(policy).values()) == sum(
        p.numel() for p in policy.module.parameters()
    )


def test_targets_that_name_no_layer_are_refused():
    with pytest.raises(ConfigError, match="Use 'all-linear' or names of its layers"):
        policy_of(key=1, targets=("no_such_layer",))

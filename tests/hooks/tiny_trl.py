"""A tiny random model and the real trainers of TRL on it: sums of one-digit numbers, answered by noise.

torchrun --nproc_per_node 2 tiny_trl.py OUT        two processes, the archive in OUT/groups
"""

import sys
from pathlib import Path
from typing import Any


def odd(completions, **_):
    """1 where an odd digit is in the answer: tied in some groups, split in others."""
    return [float(any(digit in text for digit in "13579")) for text in completions]


def brevity(completions, **_):
    """Gives no score to some: TRL takes None as NaN."""
    return [None if "2" in text else -len(text) / 100 for text in completions]


def often_silent(completions, **_):
    """Half of the answers have no score at all."""
    return [None if len(text) % 2 else float("7" in text) for text in completions]


def quarter(completions, **_):
    """Four values, ties among few rollouts."""
    return [sum(text.count(digit) for digit in "02468") % 4 / 4 for text in completions]


def settings(out: Path, **changes: Any) -> dict[str, Any]:
    """Arguments of a config: 8 rollouts in groups of 4, a step a generation."""
    plain = {
        "output_dir": str(out), "per_device_train_batch_size": 8, "per_device_eval_batch_size": 4, "num_generations": 4,
        "max_completion_length": 4, "max_steps": 4, "logging_steps": 1, "report_to": [], "use_cpu": True,
        "save_strategy": "no", "seed": 1, "disable_tqdm": True, "temperature": 1.0,
    }  # fmt: skip
    return plain | changes


def tokenizer():
    """Characters."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {word: index for index, word in enumerate(["<pad>", "<eos>", *"0123456789+="])}
    letters = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    letters.pre_tokenizer, letters.decoder = pre_tokenizers.Split("", "isolated"), decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=letters, pad_token="<pad>", eos_token="<eos>")


def model_config(**changes: Any):
    """A Llama of one layer."""
    from transformers import LlamaConfig

    return LlamaConfig(
        vocab_size=14, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, pad_token_id=0, eos_token_id=1, bos_token_id=None, **changes,
    )  # fmt: skip


def trainer_of(config: Any, reward_funcs: list[Any], **more: Any):
    """A GRPO (or, for its config, RLOO) trainer on nine prompts."""
    from datasets import Dataset
    from transformers import LlamaForCausalLM, set_seed
    from trl import GRPOTrainer, RLOOConfig, RLOOTrainer

    set_seed(3)
    kind = RLOOTrainer if isinstance(config, RLOOConfig) else GRPOTrainer
    return kind(
        model=LlamaForCausalLM(model_config()),
        reward_funcs=reward_funcs,
        args=config,
        train_dataset=Dataset.from_list([{"prompt": f"{a}+{b}="} for a in range(3) for b in range(3)]),
        eval_dataset=Dataset.from_list([{"prompt": "8+1="}]),
        processing_class=tokenizer(),
        **more,
    )


def save(folder: Path) -> None:
    """The model and its tokenizer as a folder that transformers loads."""
    from transformers import LlamaForCausalLM, set_seed

    set_seed(3)
    LlamaForCausalLM(model_config()).save_pretrained(folder)
    tokenizer().save_pretrained(folder)


def main(out: Path) -> None:
    """Two processes: 6 rollouts each, groups of 4, so that the second group lies in both."""
    import json

    from trl import GRPOConfig

    from deadheat.hooks import MonitorConfig
    from deadheat.hooks.trl import watch

    config = GRPOConfig(**settings(out, per_device_train_batch_size=6, max_steps=3))
    trainer = trainer_of(config, [odd, brevity])
    watch(trainer, MonitorConfig(archive=out / "groups", every=0))
    trainer.train()
    if trainer.accelerator.is_main_process:
        (out / "log.json").write_text(json.dumps(trainer.state.log_history))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

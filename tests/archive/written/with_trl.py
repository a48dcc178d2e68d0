"""Four steps of GRPO by the real trainer on a tiny random model: `python with_trl.py OUT [num_iterations]`."""

import sys


def accuracy(completions, **_):
    return [float("1" in text) for text in completions]


def brevity(completions, **_):
    """Gives no score to some: TRL writes NaN."""
    return [None if "2" in text else -len(text) / 100 for text in completions]


def main(out: str, num_iterations: int) -> None:
    from datasets import Dataset
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    from trl import GRPOConfig, GRPOTrainer

    vocabulary = {word: index for index, word in enumerate(["<pad>", "<eos>", *"0123456789+="])}
    letters = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
    letters.pre_tokenizer, letters.decoder = pre_tokenizers.Split("", "isolated"), decoders.Fuse()
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(vocabulary), hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
            num_key_value_heads=2, pad_token_id=0, eos_token_id=1, bos_token_id=None,
        )
    )  # fmt: skip
    config = GRPOConfig(
        output_dir=out, per_device_train_batch_size=8, num_generations=4, max_completion_length=8, max_steps=4,
        log_completions=True, logging_steps=1, report_to=[], use_cpu=True, save_strategy="no", num_completions_to_print=0,
        num_iterations=num_iterations, seed=1,
    )  # fmt: skip
    GRPOTrainer(
        model=model,
        reward_funcs=[accuracy, brevity],
        args=config,
        train_dataset=Dataset.from_list([{"prompt": f"{a}+{b}="} for a in range(3) for b in range(3)]),
        processing_class=PreTrainedTokenizerFast(tokenizer_object=letters, pad_token="<pad>", eos_token="<eos>"),
    ).train()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

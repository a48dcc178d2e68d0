"""open-instruct: `{run}_rollouts_{shard}.jsonl`, one record per sample.

Fields: step, sample_idx, prompt_idx, prompt_tokens, response_tokens, reward, advantage, finish_reason, dataset,
ground_truth, logprobs. The group is (step, prompt_idx). There is no text, only tokens: audits that read text cannot run.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from deadheat.archive.readers.head import Head
from deadheat.archive.readers.record import Recovered
from deadheat.archive.readers.records import Place, Row
from deadheat.archive.readers.source import scored, text_digest


def is_open_instruct(head: Head) -> bool:
    """Whether records are open-instruct's."""
    return {"step", "prompt_idx", "response_tokens", "reward"} <= head.columns


def open_instruct_rows(record: Mapping[str, Any], place: Place) -> Iterable[Row]:
    """One rollout per record."""
    prompt_tokens, tokens = record.get("prompt_tokens") or [], record["response_tokens"]
    dataset = record.get("dataset")
    yield {
        "step": record["step"],
        "purpose": place.purpose or "train",
        "task": dataset[0] if isinstance(dataset, list) and len(dataset) == 1 else dataset,
        "group_id": f"{record['step']}/{record['prompt_idx']}",
        "recovered": Recovered.EXPLICIT.value,
        "problem_id": text_digest(str(prompt_tokens))[:16],
        "reference": record.get("ground_truth"),
        "prompt_length": len(prompt_tokens),
        "token_ids": tokens,
        "length": len(tokens),
        "logprobs": record.get("logprobs"),
        "stop": {"length": "cap", None: None}.get(record.get("finish_reason"), "stop"),
        "advantage": record.get("advantage"),
        **scored(record["reward"]),
    }

"""SkyRL: `dumped_evals/global_step_10_evals/<dataset>.jsonl`.

Fields: input_prompt, output_response, score, stop_reason, env_class, env_extras, data_source. `score` may be one number
per token, whose sum is the reward. The group is the prompt with its extras: two problems may share a prompt and differ
in what their environment knows. Training batches are dumped as pickles, which are never opened.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from deadheat.archive.readers.head import Head
from deadheat.archive.readers.record import Recovered
from deadheat.archive.readers.records import Place, Row
from deadheat.archive.readers.source import scored, text_digest
from deadheat.archive.readers.values import chat_text, text_of


def is_skyrl(head: Head) -> bool:
    """Whether records are SkyRL's."""
    return {"input_prompt", "output_response", "score"} <= head.columns


def skyrl_rows(record: Mapping[str, Any], place: Place) -> Iterable[Row]:
    """One rollout per record."""
    prompt = chat_text(record["input_prompt"]) or ""
    group = text_digest(prompt + "\0" + (text_of(record.get("env_extras")) or ""))
    yield {
        "step": place.step,
        "purpose": place.purpose,
        "task": record.get("data_source"),
        "prompt": prompt,
        "problem_id": group[:16],
        "problem_digest": text_digest(prompt),
        "group_id": f"{place.name}/{group[:16]}",
        "recovered": Recovered.PROMPT_TEXT.value,
        "completion": record["output_response"],
        "stop": "cap" if record.get("stop_reason") == "length" else record.get("stop_reason") and "stop",
        **scored(record["score"]),
    }

"""AReaL: `rollout/{version}/{task_id}.jsonl`, or `eval-rollout/…`.

Fields: task_id, sample_idx, seqlen, prompt_len, head_version, tail_version, reward, prompt, completion. The group is the
task id. A rollout may span several versions of the weights; `policy_version` is the one that its last token was drawn
from, the folder's version is the step.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from deadheat.archive.readers.head import Head
from deadheat.archive.readers.record import Recovered
from deadheat.archive.readers.records import Place, Row
from deadheat.archive.readers.source import scored, text_digest
from deadheat.archive.readers.values import integer_of


def is_areal(head: Head) -> bool:
    """Whether records are AReaL's."""
    return {"task_id", "sample_idx", "head_version", "reward", "completion"} <= head.columns


def areal_rows(record: Mapping[str, Any], place: Place) -> Iterable[Row]:
    """One rollout per record."""
    folders = place.name.split("/")[:-1]
    version = next((int(folder) for folder in reversed(folders) if folder.isdigit()), record.get("head_version"))
    split = next((folder for folder in folders if folder.endswith("rollout")), "rollout")
    digest = text_digest(str(record.get("prompt", "")))
    seqlen, prompt_len = integer_of(record.get("seqlen")), integer_of(record.get("prompt_len"))
    if record.get("head_version") != record.get("tail_version"):
        place.sink.warn(
            "some rollouts span several versions of the weights: their groups are under no one policy state"
        )
    yield {
        "step": version,
        "purpose": "eval" if split.startswith("eval") else "train",
        "policy_version": record.get("tail_version"),
        "group_id": f"{split}/{record['task_id']}",
        "recovered": Recovered.EXPLICIT.value,
        "sample": record["sample_idx"],
        "prompt": record.get("prompt"),
        "problem_id": digest[:16],
        "problem_digest": digest,
        "completion": record["completion"],
        "prompt_length": prompt_len,
        "length": seqlen - prompt_len if seqlen is not None and prompt_len is not None else None,
        **scored(record["reward"]),
    }

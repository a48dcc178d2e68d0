"""reasoning-gym's evaluation dumps: problems with several completions, each with a score.

Either one dataset per file (name, category, results) or categories of datasets (metadata, categories). The group is the
problem; how many completions it has is declared in the file.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from deadheat.archive.readers.head import Container, Head
from deadheat.archive.readers.record import Recovered
from deadheat.archive.readers.records import Place, Row
from deadheat.archive.readers.source import scored, text_digest
from deadheat.archive.readers.values import integer_of


def is_reasoning_gym(head: Head) -> bool:
    """Whether a document is such a dump."""
    document = head.container in (Container.JSON, Container.JSON_LINES) and not head.listed
    return document and ({"metadata", "categories"} <= head.columns or {"name", "config", "results"} <= head.columns)


def reasoning_gym_rows(document: Mapping[str, Any], place: Place) -> Iterable[Row]:
    """Every completion of every problem."""
    told = document.get("metadata") or {}
    place.sink.declare(integer_of(told.get("eval_repeats", document.get("completions_per_prompt"))))
    datasets = [entry for category in document.get("categories") or [] for entry in category.get("datasets") or []]
    for dataset in datasets or [document]:
        for index, result in enumerate(dataset["results"]):
            prompt = str(result["question"])
            for completion in result["completions"]:
                yield {
                    "task": f"reasoning-gym:{dataset['name']}",
                    "purpose": "eval",
                    "checkpoint": told.get("model"),
                    "temperature": told.get("temperature"),
                    "problem_id": f"{dataset['name']}-{index}",
                    "problem_digest": text_digest(prompt),
                    "group_id": f"{place.name}/{dataset['name']}/{index}",
                    "recovered": Recovered.EXPLICIT.value,
                    "prompt": prompt,
                    "reference": result.get("expected_answer"),
                    "completion": completion.get("full_model_response"),
                    "answer": completion.get("model_answer"),
                    **scored(completion.get("score")),
                }

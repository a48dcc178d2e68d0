"""Records that hold a whole group: one per problem, its attempts in lists of equal length.

Each layout is a named entry: which fields tell it, and how a record becomes rows.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deadheat.archive.readers.head import Container, Head
from deadheat.archive.readers.record import Recovered
from deadheat.archive.readers.records import Place, Row
from deadheat.archive.readers.source import parts_of, scored, text_digest
from deadheat.archive.readers.values import answer_text


@dataclass(frozen=True, kw_only=True)
class Layout:
    """One way to pack a group."""

    fields: frozenset[str]  # all of them are in a record
    holds: Callable[[Mapping[str, Any]], bool]  # and this is true of it
    attempts: Callable[[Mapping[str, Any]], Iterator[Row]]


def is_packed(head: Head) -> bool:
    """Whether a record holds a group."""
    records = head.container is Container.JSON_LINES or (head.container is Container.JSON and head.listed)
    return records and layout_of(head.first) is not None


def layout_of(record: Mapping[str, Any]) -> str | None:
    """The name of a record's layout."""
    return next(
        (name for name, layout in LAYOUTS.items() if layout.fields <= record.keys() and layout.holds(record)), None
    )


def packed_rows(record: Mapping[str, Any], place: Place) -> Iterable[Row]:
    """One rollout per attempt."""
    name = layout_of(record)
    if name is None:
        raise ValueError("no known layout of attempts")
    prompt = answer_text(record.get("question", record.get("prompt")))
    problem = str(record.get("idx", record.get("task_id", text_digest(prompt or "")[:16])))
    common: Row = {
        "problem_id": problem,
        "problem_digest": text_digest(prompt) if prompt else None,
        "group_id": f"{place.name}/{problem}",
        "recovered": Recovered.EXPLICIT.value,
        "prompt": prompt,
        "reference": record.get("gt", record.get("ground_truth")),
    }
    for attempt in LAYOUTS[name].attempts(record):
        yield common | attempt


def _math_eval(record: Mapping[str, Any]) -> Iterator[Row]:
    """Qwen's evaluation of mathematics: texts, answers, grades and, where there is one, a reward model's scores."""
    size = len(record["score"])
    models = record.get("pred_score") or [None] * size
    for text, answer, grade, model in zip(record["code"], record["pred"], record["score"], models, strict=True):
        model = model[0] if isinstance(model, list) and len(model) == 1 else model
        yield {
            "completion": text,
            "answer": answer,
            "correct": grade if isinstance(grade, bool) else None,
            **scored(grade),
            **parts_of({"reward_model": model}),
        }


def _thoughts(record: Mapping[str, Any]) -> Iterator[Row]:
    """tree-of-thought logs: texts, and a grade each; repeated judgements `rs` of one text are parts."""
    grades = record["infos"] if "infos" in record else record["accs"]
    for text, grade in zip(record["ys"], grades, strict=True):
        judged = grade.get("rs", []) if isinstance(grade, dict) else []
        value = grade.get("r") if isinstance(grade, dict) else grade
        yield {
            "completion": text,
            "correct": bool(value) if not judged and value in (0, 1) else None,
            **scored(value),
            **parts_of({f"judge_{index}": score for index, score in enumerate(judged)}),
        }


def _grades(record: Mapping[str, Any]) -> Iterator[Row]:
    """Grades alone, with how each attempt ended."""
    endings = record.get("status") or [None] * len(record["grades"])
    for grade, ending in zip(record["grades"], endings, strict=True):
        yield {"correct": bool(grade) if grade in (0, 1) else None, "category": ending, **scored(grade)}


def _solutions(record: Mapping[str, Any]) -> Iterator[Row]:
    """One graded solution of each of several models: a group across models, not draws of one policy."""
    for model, solution in record.items():
        if isinstance(solution, dict):
            yield {
                "checkpoint": model,
                "completion": solution["solution"],
                "correct": solution["is_correct"],
                **scored(solution["is_correct"]),
            }


def _has_lists(*names: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda record: all(isinstance(record[name], list) for name in names)


def _has_solutions(record: Mapping[str, Any]) -> bool:
    return sum(isinstance(value, dict) and {"is_correct", "solution"} <= value.keys() for value in record.values()) > 1


LAYOUTS: dict[str, Layout] = {
    "math-eval": Layout(
        fields=frozenset({"code", "pred", "score"}), holds=_has_lists("code", "pred", "score"), attempts=_math_eval
    ),
    "thoughts": Layout(fields=frozenset({"ys", "infos"}), holds=_has_lists("ys", "infos"), attempts=_thoughts),
    "thoughts-accs": Layout(fields=frozenset({"ys", "accs"}), holds=_has_lists("ys", "accs"), attempts=_thoughts),
    "grades": Layout(fields=frozenset({"task_id", "grades"}), holds=_has_lists("grades"), attempts=_grades),
    "solutions": Layout(fields=frozenset({"question"}), holds=_has_solutions, attempts=_solutions),
}

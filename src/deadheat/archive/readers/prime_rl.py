"""prime-rl: `rollouts/step_N/{train,eval}/{all,effective}/traces.jsonl`, one episode per line, and verifiers since 0.4.

An episode holds several traces, one for each agent that took part; those whose agent is trained are rollouts. A trace is
a tree of messages: each node holds the tokens that its message adds, and a token path is root to leaf. A rollout is the
path to its last leaf; what other leaves there are is said. The reward is Σ score × weight over the named rewards; a reward
that is null was not scored, and neither is the sum. `effective` holds what is left of `all` after filtering: where both are
there, `all` is read. Groups are `group.id` (in evaluations of verifiers, which have none, the task) within step and
environment, and agent where several are trained.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from deadheat.archive.readers.head import Head
from deadheat.archive.readers.record import Recovered
from deadheat.archive.readers.records import Place, Row, read_file
from deadheat.archive.readers.sink import Sink
from deadheat.archive.readers.source import Source, parts_of, text_digest
from deadheat.archive.readers.values import answer_text, chat_text, integer_of, number_of


@dataclass(frozen=True, kw_only=True)
class _Path:
    """A root-to-leaf path of a message tree."""

    messages: tuple[Mapping[str, Any], ...]  # of the prompt: before the first sampled message
    answers: tuple[Mapping[str, Any], ...]  # from the first sampled message on
    tokens: tuple[int, ...]
    drawn: tuple[bool, ...]  # per token: sampled by the model
    advantages: tuple[float, ...]  # those assigned to sampled tokens


def is_prime_rl(head: Head) -> bool:
    """Whether records are episodes."""
    return {"traces", "env"} <= head.columns or {"traces", "group"} <= head.columns


def read_prime_rl(source: Source, sink: Sink) -> None:
    """Every step's episodes; of `all` and `effective`, `all`."""
    names = {head.name for head in source.heads}
    for head in source.heads:
        twin = "/".join("all" if part == "effective" else part for part in PurePosixPath(head.name).parts)
        if twin != head.name and twin in names:
            sink.warn("of all/ and effective/, all/ is read: the other holds the same episodes after filtering")
            continue
        read_file(head, _rows, source, sink)


def _rows(episode: Mapping[str, Any], place: Place) -> Iterable[Row]:
    traces = [trace for trace in episode.get("traces") or [] if _trained(trace)]
    left = len(episode.get("traces") or []) - len(traces)
    if left:
        place.sink.warn("traces of agents that are not trained are left out: they are no rollouts of the policy")
    agents = {_agent(trace) for trace in traces}
    for trace in traces:
        yield _row(episode, trace, place, several=len(agents) > 1)


def _trained(trace: Mapping[str, Any]) -> bool:
    return bool((trace.get("agent") or {}).get("trainable", True))


def _agent(trace: Mapping[str, Any]) -> str:
    return str((trace.get("agent") or {}).get("name", "agent"))


def _row(episode: Mapping[str, Any], trace: Mapping[str, Any], place: Place, *, several: bool) -> Row:
    env, run = episode.get("env") or {}, episode.get("run") or {}
    work = run.get("work") or {}
    nodes = trace.get("nodes") or []
    leaves = _leaves(nodes)
    if len(leaves) > 1:
        place.sink.warn("some traces branch: their text and tokens are those of the last leaf's path")
    path = _path(nodes, leaves[-1]) if leaves else None
    task, config = trace.get("task") or {}, (trace.get("agent") or {}).get("config") or {}
    prompt = chat_text(list(path.messages)) if path else None
    digest = text_digest(prompt or str(task.get("data")))
    step = integer_of(work.get("step"))
    step = place.step if step is None else step
    env_name = env.get("name") or env.get("id")
    named = (episode.get("group") or {}).get("id") or task.get("key") or task.get("hash")
    group = named or digest[:16]
    purpose = place.purpose or work.get("type") or run.get("type")
    address = [purpose, step, env_name, group, _agent(trace) if several else None]
    return {
        "run": run.get("name") or run.get("id"),
        "step": step,
        "purpose": purpose,
        "task": env_name,
        "policy_version": (work.get("policy") or {}).get("start"),
        "problem_id": str(task.get("key") or task.get("hash") or digest[:16]),
        "problem_digest": digest,
        "group_id": "/".join(str(part) for part in address if part is not None),
        "recovered": Recovered.EXPLICIT.value if named else Recovered.PROMPT_TEXT.value,
        "prompt": prompt,
        "reference": (task.get("data") or {}).get("answer"),
        "temperature": (config.get("sampling") or {}).get("temperature"),
        "checkpoint": config.get("model"),
        "category": "error" if trace.get("errors") or not episode.get("ok", True) else None,
        "stop": _stop(trace, nodes),
        **(_of_path(path) if path else {}),
        **_reward(trace),
    }


def _leaves(nodes: Sequence[Mapping[str, Any]]) -> list[int]:
    parents = {node.get("parent") for node in nodes}
    return [index for index in range(len(nodes)) if index not in parents]


def _path(nodes: Sequence[Mapping[str, Any]], leaf: int) -> _Path:
    """The nodes from the root to a leaf; a parent always stands before its children, so a walk ends."""
    walk, at = [], leaf
    while True:
        walk.append(nodes[at])
        parent = nodes[at].get("parent")
        if parent is None:
            break
        if not 0 <= parent < at:
            raise ValueError(f"node {at} has parent {parent}; wanted an earlier node")
        at = parent
    walk.reverse()
    first = next((index for index, node in enumerate(walk) if node.get("sampled")), len(walk))
    advantages = [value for node in walk for value in node.get("advantages") or []]
    return _Path(
        messages=tuple(node["message"] for node in walk[:first]),
        answers=tuple(node["message"] for node in walk[first:]),
        tokens=tuple(token for node in walk for token in node.get("token_ids") or []),
        drawn=tuple(bool(drawn) for node in walk for drawn in node.get("mask") or []),
        advantages=tuple(value for value in advantages if value is not None),
    )


def _of_path(path: _Path) -> Row:
    start = next((at for at, drawn in enumerate(path.drawn) if drawn), len(path.tokens))
    told = set(path.advantages)
    return {
        "completion": answer_text(list(path.answers)),
        "prompt_length": start if path.tokens else None,
        "token_ids": list(path.tokens[start:]) or None,
        "length": sum(path.drawn) if path.tokens else None,
        "advantage": told.pop() if len(told) == 1 else None,
    }


def _stop(trace: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]]) -> str | None:
    reasons = [turn.get("finish_reason") for turn in [*nodes, *(trace.get("calls") or [])]]
    last = next((reason for reason in reversed(reasons) if reason), None)
    if trace.get("is_truncated") or last == "length":
        return "cap"
    return "stop" if last or trace.get("is_completed") else None


def _reward(trace: Mapping[str, Any]) -> Row:
    rewards = trace.get("rewards") or {}
    parts = parts_of(
        {name: value.get("score") if isinstance(value, dict) else value for name, value in rewards.items()}
    )
    parts |= parts_of(trace.get("metrics") or {})
    values = [_weighed(value) for value in rewards.values()]
    known = [value for value in values if value is not None]
    if not rewards or len(known) < len(values):
        missing = ", ".join(name for name, value in rewards.items() if _weighed(value) is None)
        return {"reward": None, "unscored": f"not scored: {missing}" if rewards else "there is no reward", **parts}
    return {"reward": sum(known), "unscored": None, **parts}


def _weighed(value: Any) -> float | None:
    if not isinstance(value, dict):
        return number_of(value)
    score, weight = number_of(value.get("score")), number_of(value.get("weight", 1.0))
    return score * weight if score is not None and weight is not None else None

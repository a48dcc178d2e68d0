"""Any data set of the reasoning-gym library by name: `name = "reasoning-gym:leg_counting"` (install `deadheat[train]`).

Keys of the `[task]` table that are not options here go to the data set's own config; one it does not know is refused.
Item i of a data set with seed s is generated from s + i, so the two pools draw from seeds that a key puts far apart;
an item whose content occurs already is skipped. The data set's own `score_answer` grades: its partial scores are the
value, and `correct` is value ≥ `correct_at` (default 1). Where it publishes no answer, an example answer of its metadata
serves as gold; where there is none either (boxnet, rush_hour) `reference` is empty and nothing can be validated.
"""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from typing import Any

from pydantic import ConfigDict, Field

from deadheat.errors import ConfigError, TaskError
from deadheat.tasks.config import TaskConfig, nearest
from deadheat.tasks.pools import content_digest, pool_key
from deadheat.tasks.task import Task
from deadheat.types import Problem, Score

try:
    import reasoning_gym
    from reasoning_gym.factory import DATASETS
    from reasoning_gym.utils import extract_answer
except ImportError as error:
    raise TaskError(
        f"reasoning-gym cannot be imported ({error}); its tasks need it: pip install 'deadheat[train]'"
    ) from error

_SEED_SPAN = 2**31
_TRIES_PER_PROBLEM = 10
_GOLD_KEYS = ("example_answer", "example_correct_answer", "possible_answer")
_TAGS = "\n\nThink first, then give only the final answer, in the asked format, inside <answer> and </answer>."
_WHOLE = "\n\nGive only the final answer.\nAnswer:"


class Style(StrEnum):
    """How an answer is asked for and found."""

    TAGS = "tags"  # chat; the text of the last <answer>…</answer>, no such pair being a parse failure
    WHOLE = "whole"  # plain text; the whole completion without surrounding white space, nothing being a parse failure


class GymConfig(TaskConfig):
    """Options of `reasoning-gym:NAME`; other keys are the data set's."""

    model_config = ConfigDict(frozen=True, extra="allow")

    training: int = Field(default=500, ge=1)  # training problems wanted; fewer where the data set repeats itself
    held_out: int = Field(default=100, ge=0)  # size of the held-out pool
    split_seed: int = Field(default=0, ge=0)  # which keyed pair of data set seeds
    style: Style = Style.TAGS
    correct_at: float = Field(default=1.0, gt=0, le=1)  # the value from which an answer counts as correct
    max_new_tokens: int = Field(default=256, ge=1)
    check_limit_s: float = Field(default=5.0, gt=0)  # time limit of one answer

    @property
    def dataset(self) -> str:
        """The data set's name."""
        return self.name.partition(":")[2]


@dataclasses.dataclass(frozen=True, kw_only=True)
class GymCheck:
    """`score_answer` of a data set; the entry is generated again from the problem's seed and index."""

    dataset: str  # the library's name
    options: str  # JSON of the data set's own options
    style: Style
    correct_at: float  # value from which an answer is correct

    def __call__(self, problem: Problem, text: str) -> Score:
        """The data set's score of the extracted answer."""
        answer = extract(text, self.style)
        if answer is None:
            return Score(value=0.0, correct=False, answer=None, parsed=False)
        source = _source(self.dataset, self.options, int(problem.columns["source_seed"]))
        value = float(source.score_answer(answer, source[int(problem.columns["source_index"])]))
        return Score(value=value, correct=value >= self.correct_at, answer=answer)


def build_gym(config: GymConfig) -> Task:
    """The task of this config."""
    options = _options(config)
    seeds = [pool_key(f"{config.name}/{pool}", config.split_seed) % _SEED_SPAN for pool in ("held-out", "training")]
    seen: set[str] = set()
    held_out = tuple(islice(_fresh(config, options, seeds[0], config.held_out, seen), config.held_out))
    if len(held_out) < config.held_out:
        raise TaskError(
            f"{config.name}: only {len(held_out)} distinct problems came of {config.held_out} held out wanted; "
            "lower held_out or widen the data set's options"
        )
    training = tuple(islice(_fresh(config, options, seeds[1], config.training, seen), config.training))
    check = GymCheck(dataset=config.dataset, options=options, style=config.style, correct_at=config.correct_at)
    return Task(
        name=config.name,
        training=training,
        held_out=held_out,
        check=check,
        gold_text=_gold_tags if config.style is Style.TAGS else _gold_whole,
        stop_text=None,
        chat=config.style is Style.TAGS,
        max_new_tokens=config.max_new_tokens,
        marker="<answer>" if config.style is Style.TAGS else None,
        extraction=f"reasoning-gym/{config.style.value}/v1",
        check_limit_s=config.check_limit_s,
        facts=f"{config.dataset} of reasoning-gym {reasoning_gym.__version__}, options {options}; correct at value >= "
        f"{config.correct_at:g}.",
    )


def extract(text: str, style: Style) -> str | None:
    """The answer in a completion, or None.

    Example:
        >>> extract("so <answer> 7 </answer>", Style.TAGS), extract("7", Style.TAGS), extract(" 7\\n", Style.WHOLE)
        ('7', None, '7')
    """
    answer: str | None = extract_answer(text) if style is Style.TAGS else text.strip()
    return answer or None


def _fresh(config: GymConfig, options: str, seed: int, wanted: int, seen: set[str]) -> Iterator[Problem]:
    """Problems of one seed whose content has not been seen, at most ten candidates for each one wanted."""
    source = _source(config.dataset, options, seed)
    for index in range(_TRIES_PER_PROBLEM * wanted):
        problem = _problem(config, source[index], seed=seed, index=index)
        digest = content_digest(problem.prompt)
        if digest not in seen:
            seen.add(digest)
            yield problem


def _problem(config: GymConfig, entry: Mapping[str, Any], *, seed: int, index: int) -> Problem:
    difficulty = entry["metadata"].get("difficulty") or {}
    levels = {f"difficulty_{k}": v for k, v in difficulty.items() if isinstance(v, str | int | float)}
    return Problem(
        task=config.name,
        problem_id=f"{seed}/{index}",
        prompt=entry["question"].strip() + (_TAGS if config.style is Style.TAGS else _WHOLE),
        reference=_reference(entry),
        columns={"source_seed": seed, "source_index": index} | levels,
    )


def _reference(entry: Mapping[str, Any]) -> str:
    if entry["answer"] is not None:
        return str(entry["answer"])
    for key in _GOLD_KEYS:
        example = entry["metadata"].get(key)
        if example is not None:
            return example if isinstance(example, str) else json.dumps(example)
    return ""


def _options(config: GymConfig) -> str:
    """The data set's own options as JSON; unknown data sets and options are refused with the nearest name."""
    if config.dataset not in DATASETS:
        hint = nearest(config.dataset, DATASETS)
        raise ConfigError(f"reasoning-gym has no data set {config.dataset!r}; {hint}")
    options = dict(config.model_extra or {})
    known = {f.name for f in dataclasses.fields(DATASETS[config.dataset][1])} - {"seed", "size"}
    for key in options:
        if key not in known:
            hint = nearest(key, known | set(type(config).model_fields))
            raise ConfigError(f"[task] {config.name!r}: unknown key {key!r}; {hint}")
    text = json.dumps(options, sort_keys=True)
    try:
        _source(config.dataset, text, 0)
    except (AssertionError, ValueError, TypeError) as error:
        raise ConfigError(f"[task] {config.name!r}: reasoning-gym refuses the options {text}: {error}") from error
    return text


@lru_cache(maxsize=8)
def _source(dataset: str, options: str, seed: int) -> Any:
    return reasoning_gym.create_dataset(dataset, seed=seed, size=_SEED_SPAN, **json.loads(options))


def _gold_tags(problem: Problem) -> str:
    return f"<answer>{_gold(problem)}</answer>"


def _gold_whole(problem: Problem) -> str:
    return f" {_gold(problem)}"


def _gold(problem: Problem) -> str:
    if not problem.reference:
        raise TaskError(f"{problem.task}: this data set publishes no answer for problem {problem.problem_id}")
    return problem.reference

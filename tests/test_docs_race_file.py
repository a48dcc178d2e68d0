"""The pages on race files and tasks list every key there is, no other, and the defaults of the code."""

import importlib
import json
import re
import tomllib
from pathlib import Path

import pytest
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from deadheat.race.config import RaceConfig, VerdictConfig, parse_race
from deadheat.rollouts import STRATEGIES
from deadheat.stats.forecast_file import _NUMBERS, _TEXT
from deadheat.tasks import TaskConfig
from deadheat.tasks.registry import PREFIXES, TASKS
from deadheat.train import RunConfig

DOCS = Path(__file__).parents[1] / "docs"
ROW = re.compile(r"^\| `([\w.]+)` \| (.+?) \| (.+) \|$", flags=re.MULTILINE)
FREE = {"name", "question", "seeds", "arm"}  # the head of a race file: read by hand, and checked by hand below


def documented(text):
    """Key -> default cell of every table row; a key listed twice fails."""
    rows = [(key, default) for key, default, _ in ROW.findall(text)]
    keys = [key for key, _ in rows]
    assert len(keys) == len(set(keys)), f"listed twice: {sorted({k for k in keys if keys.count(k) > 1})}"
    return dict(rows)


def fields_of(model, prefix=""):
    """Dotted key -> default of every leaf field; PydanticUndefined where one must be given."""
    found = {}
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel) and not issubclass(inner, TaskConfig):
            found |= fields_of(inner, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = field.get_default(call_default_factory=True)
    return found


def default_of(cell):
    """A cell of the default column as a value: TOML in backticks, none, or required."""
    if cell in ("none", "required"):
        return {"none": None, "required": PydanticUndefined}[cell]
    return tomllib.loads(f"x = {cell.strip('`')}")["x"]


def as_toml(value):
    """A default as what a TOML file would hold."""
    return value if value is PydanticUndefined else json.loads(json.dumps(value))


def run_fields():
    """Every key a race file may set below its head."""
    run = fields_of(RunConfig)
    del run["task"], run["rollouts.drawing.name"]
    run["rollouts.drawing"] = RunConfig.model_fields["rollouts"].default.drawing.name
    for strategy in STRATEGIES.values():
        options = {name: field.default for name, field in strategy.options.model_fields.items() if name != "name"}
        run |= {f"rollouts.drawing.{name}": default for name, default in options.items()}
    forecast = {f"forecast.{name}": PydanticUndefined for name in (*_TEXT, *_NUMBERS)} | {"forecast.rescore": []}
    return run | fields_of(VerdictConfig, "verdict.") | forecast | {"task.name": PydanticUndefined}


def test_the_race_page_lists_every_key_and_no_other():
    page = documented((DOCS / "race-file.md").read_text(encoding="utf-8"))
    assert set(page) == set(run_fields()) | FREE


def test_the_race_page_gives_the_defaults_of_the_code():
    page = documented((DOCS / "race-file.md").read_text(encoding="utf-8"))
    wrong = {key: page[key] for key, value in run_fields().items() if default_of(page[key]) != as_toml(value)}
    assert wrong == {}


def test_the_head_of_a_race_file_has_the_documented_defaults():
    race = parse_race('[policy]\n[task]\nname = "addition"\n[[arm]]\nname = "only"\n', source="folder/mine.toml")
    assert (race.name, race.question, race.seeds) == ("mine", "", (1, 2, 3))
    assert set(RaceConfig.model_fields) == {"name", "question", "seeds", "verdict", "arms"}


def test_the_example_of_the_race_page_is_a_race():
    text = (DOCS / "race-file.md").read_text(encoding="utf-8")
    race = parse_race(re.search(r"```toml\n(.*?)```", text, flags=re.DOTALL)[1], source="page.toml")
    assert (race.arms["checker"].scorer.kind, race.arms["plant"].scorer.kind) == ("checker", "plant")


def sections():
    """Task name -> its section of the page on tasks."""
    parts = re.split(r"^## `(.+)`$", (DOCS / "tasks.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


ENTRIES = {**TASKS, "reasoning-gym:NAME": PREFIXES["reasoning-gym"], "file:PATH.py": PREFIXES["file"]}


def test_every_task_has_a_section_and_every_section_a_task():
    assert set(sections()) == set(ENTRIES)
    assert len(ENTRIES) == len(TASKS) + len(PREFIXES)


@pytest.mark.parametrize("task", sorted(ENTRIES))
def test_a_tasks_section_lists_its_options_with_their_defaults(task):
    model = getattr(importlib.import_module(ENTRIES[task].module), ENTRIES[task].config)
    fields = {name: value for name, value in fields_of(model).items() if name != "name"}
    page = documented(sections()[task])
    assert set(page) == set(fields)
    assert {key: page[key] for key in fields if default_of(page[key]) != as_toml(fields[key])} == {}

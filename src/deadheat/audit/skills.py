"""Which draws exercise a named sub-skill, and which are its control.

`--skill` names it, tried in this order:

    a slot kind    `hidden`: every slot i of a problem whose column slot{i}_hidden is 1; the control is every other slot
    `part:NAME`    a reward component; right where it is 1; no control
    NAME=VALUE     problems whose column (or table column) NAME is VALUE; the control is the other problems
    a column       problems whose column NAME is neither 0, false, nor empty
    a regex        problems whose prompt matches; the control is the others

A draw is one slot of one rollout for a slot kind, one rollout otherwise.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from deadheat.audit.table import columns_of
from deadheat.errors import ConfigError

_LONGEST_NAME = 200  # characters of a rollout's JSON columns looked at for their names


@dataclass(frozen=True, kw_only=True)
class Skill:
    """How a skill is told."""

    name: str  # as asked for
    how: str  # slots, part, value, column, regex
    draws: (
        pl.LazyFrame
    )  # one row per draw: the rollout's own columns, `in_skill`, `right`, and for slots `mapping`, `symbol`


def find_skill(rows: pl.LazyFrame, name: str) -> Skill:
    """The draws of a skill and of its control."""
    names = columns_of(rows)
    problem_columns = _problem_columns(rows, names)
    if f"slot0_{name}" in problem_columns:
        return Skill(name=name, how="slots", draws=_slot_draws(rows, names, name, problem_columns))
    right = pl.col("correct").cast(pl.Boolean) if "correct" in names else pl.col("reward").cast(pl.Float64) == 1.0
    if name.startswith("part:") and name in names:
        part = pl.col(name).cast(pl.Float64).fill_nan(None)
        return Skill(name=name, how="part", draws=rows.with_columns(in_skill=pl.lit(True), right=part == 1.0))
    column, equals, wanted = name.partition("=")
    value = _value_of(column, names, problem_columns)
    if value is not None and equals:
        chosen, how = value == wanted, "value"
    elif value is not None:
        chosen, how = ~value.is_in(["0", "0.0", "false", "False", ""]), "column"
    else:
        if "prompt" not in names:
            raise ConfigError(
                f"--skill {name!r} is no column of this archive ({', '.join(sorted(problem_columns)) or 'none'}) and it "
                "keeps no prompts to match; name a column"
            )
        chosen, how = pl.col("prompt").str.contains(_checked(name)), "regex"
    return Skill(name=name, how=how, draws=rows.with_columns(in_skill=chosen.fill_null(False), right=right))


def _checked(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"--skill {pattern!r} is no regular expression ({error}) and no column") from None
    return pattern


def _problem_columns(rows: pl.LazyFrame, names: list[str]) -> frozenset[str]:
    """Names in the problems' JSON columns: of the distinct ones, which are few beside the rollouts."""
    if "columns" not in names:
        return frozenset()
    texts = rows.select("columns").drop_nulls().unique().collect(engine="streaming")["columns"]
    return frozenset(key for text in texts for key in _decoded(text))


def _decoded(text: str) -> Mapping[str, object]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _value_of(column: str, names: list[str], problem_columns: frozenset[str]) -> pl.Expr | None:
    if column in problem_columns:
        return _json("columns", column)
    return pl.col(column).cast(pl.String) if column in names else None


def _json(column: str, key: str) -> pl.Expr:
    return pl.col(column).str.json_path_match(f"$['{key}']")


def _slot_draws(rows: pl.LazyFrame, names: list[str], kind: str, problem_columns: frozenset[str]) -> pl.LazyFrame:
    slots = sorted(int(found[1]) for key in problem_columns if (found := re.fullmatch(rf"slot(\d+)_{kind}", key)))
    return pl.concat([_one_slot(rows, names, kind, slot) for slot in slots], how="vertical")


def _one_slot(rows: pl.LazyFrame, names: list[str], kind: str, slot: int) -> pl.LazyFrame:
    part = f"part:slot{slot}"
    value = (
        pl.col(part).cast(pl.Float64) if part in names else _json("parts", f"slot{slot}").cast(pl.Float64, strict=False)
    )
    mapping = pl.concat_str(
        _json("columns", f"slot{slot}_source"), pl.lit("→"), _json("columns", f"slot{slot}_target"), ignore_nulls=True
    )
    symbols = (
        pl.col("answer").str.extract_all(r"\S+").list.get(slot, null_on_oob=True) if "answer" in names else pl.lit(None)
    )
    scored = pl.col("reward").is_not_null() if "reward" in names else pl.lit(True)
    return rows.with_columns(
        in_skill=_json("columns", f"slot{slot}_{kind}") == "1",
        right=pl.when(scored).then(value == 1.0),
        mapping=mapping,
        symbol=symbols.cast(pl.String),
    ).drop_nulls("in_skill")

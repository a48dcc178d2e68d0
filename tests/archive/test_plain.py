"""Records as plain data, and where two pieces of plain data differ."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from deadheat.archive import differences, plain
from deadheat.types import StopReason

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@dataclass(frozen=True, kw_only=True)
class Inner:
    share: float
    steps: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Outer:
    inner: Inner
    where: Path
    stop: StopReason
    by_stop: dict[StopReason, np.float64]


def test_a_record_becomes_what_json_can_hold() -> None:
    record = Outer(
        inner=Inner(share=float("inf"), steps=(0, 5)),
        where=Path("runs/small"),
        stop=StopReason.CAP,
        by_stop={StopReason.STOP: np.float64(0.25)},
    )
    assert plain(record) == {
        "inner": {"share": None, "steps": [0, 5]},
        "where": "runs/small",
        "stop": "cap",
        "by_stop": {"stop": 0.25},
    }
    assert json.loads(json.dumps(plain(record), allow_nan=False)) == plain(record)
    assert plain({"p_N": np.array([[0.5, np.nan]]), "n": np.int64(3), "ok": np.True_}) == {
        "p_N": [[0.5, None]],
        "n": 3,
        "ok": True,
    }


def test_differences_are_named_by_path_on_both_sides() -> None:
    held = {"arms": {"a": {"lr": 0.1}, "b": {}}, "seeds": [1, 2], "name": "x"}
    now = {"arms": {"a": {"lr": 0.2}}, "seeds": [1, 2, 3], "name": "x", "new": 0}
    assert list(differences(held, now)) == [
        ("arms.a.lr", 0.1, 0.2),
        ("arms.b", {}, None),
        ("new", None, 0),
        ("seeds", [1, 2], [1, 2, 3]),
    ]


@given(value=values)
def test_nothing_differs_from_itself(value: object) -> None:
    assert list(differences(value, value)) == []


@given(left=values, right=values)
def test_there_is_a_difference_exactly_where_values_are_unequal(left: object, right: object) -> None:
    # A key that is absent reads as null, so a null put in is the one change that cannot be told.
    found = list(differences(left, right))
    if left == right:
        assert not found
    elif not found:
        assert json.dumps(left).count("null") != json.dumps(right).count("null")

"""Records as plain data: what `--json` prints and JSON files hold."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np


def plain(value: object) -> Any:
    """Dataclasses, enums, tuples and NumPy values as dicts, lists, strings and numbers; NaN becomes null.

    Example:
        >>> plain({"share": float("nan"), "where": Path("a"), "n": (1, 2)})
        {'share': None, 'where': 'a', 'n': [1, 2]}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def differences(left: Any, right: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every place where two pieces of plain data differ: its path, and what stands on each side.

    Example:
        >>> list(differences({"a": [1, 2]}, {"a": [1, 3], "b": 0}))
        [('a[1]', 2, 3), ('b', None, 0)]
    """
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted(left.keys() | right.keys()):
            yield from differences(left.get(key), right.get(key), f"{path}.{key}" if path else key)
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for index, (a, b) in enumerate(zip(left, right, strict=True)):
            yield from differences(a, b, f"{path}[{index}]")
    elif left != right:
        yield path, left, right

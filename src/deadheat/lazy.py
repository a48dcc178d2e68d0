"""Names of a package that load with the module that holds them (PEP 562), so that who needs one pays for one."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple


class Lookups(NamedTuple):
    """A package's `__getattr__` and `__dir__`."""

    getattr: Callable[[str], Any]
    dir: Callable[[], list[str]]


def lookups(package: str, homes: Mapping[str, Sequence[str]], *, also: Sequence[str] = ()) -> Lookups:
    """`homes` maps a module below the package to the names it holds; `also` are names that stand in the package.

    Example:
        >>> find, listed = lookups("collections", {"abc": ("Mapping",)})
        >>> find("Mapping").__name__, listed()
        ('Mapping', ['Mapping'])
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def find(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{home_of[name]}"), name)

    return Lookups(getattr=find, dir=lambda: [*sorted(home_of), *also])

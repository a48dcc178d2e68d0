"""Every room says what it offers: `__all__`, sorted, and nothing else in sight."""

import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import deadheat

ROOMS = sorted(module.name for module in pkgutil.iter_modules(deadheat.__path__) if module.ispkg)


def in_order(name: str) -> tuple[bool, bool, str]:
    """Constants, then classes, then functions; each by name."""
    return (not name.isupper(), name.islower(), name)


def test_the_rooms_are_found() -> None:
    assert {"archive", "cli", "credit", "evals", "policy", "race", "reports", "sampling", "stats", "train"} <= set(
        ROOMS
    )


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_exposes_its_sorted_all_and_nothing_else(room: str) -> None:
    module = importlib.import_module(f"deadheat.{room}")
    public = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not (inspect.ismodule(value) and value.__name__.startswith("deadheat"))
    }
    offered = list(getattr(module, "__all__", []))
    assert offered == sorted(set(offered), key=in_order)
    assert public <= set(offered)  # a lazy room holds a name once it was asked for
    assert all(hasattr(module, name) for name in offered)


@pytest.mark.parametrize("room", ROOMS)
def test_every_offered_name_has_a_word_of_documentation(room: str) -> None:
    module = importlib.import_module(f"deadheat.{room}")
    assert module.__doc__
    for name in getattr(module, "__all__", []):
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, f"deadheat.{room}.{name}"


def test_the_package_offers_sorted_names_that_all_resolve_without_loading_torch_for_the_light_ones() -> None:
    assert deadheat.__all__ == sorted(deadheat.__all__)
    for name in deadheat.__all__:
        assert getattr(deadheat, name).__doc__, name
    code = "import sys, deadheat; deadheat.wilson; deadheat.Task; deadheat.read_table; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

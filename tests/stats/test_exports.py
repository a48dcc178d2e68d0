"""What the room exports, and that it stays light."""

import subprocess
import sys

from deadheat import stats


def test_the_public_names_are_sorted_and_exist() -> None:
    assert list(stats.__all__) == sorted(stats.__all__, key=lambda name: (not name.isupper(), name.islower(), name))
    assert all(hasattr(stats, name) for name in stats.__all__)


def test_importing_the_room_loads_neither_torch_nor_transformers() -> None:
    script = "import sys, deadheat.stats; print([m for m in ('torch', 'transformers') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

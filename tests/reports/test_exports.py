import subprocess
import sys

import deadheat.reports


def test_the_public_names_are_sorted_and_there() -> None:
    assert deadheat.reports.__all__ == sorted(deadheat.reports.__all__)
    assert all(hasattr(deadheat.reports, name) for name in deadheat.reports.__all__)


def test_a_command_that_only_prints_loads_neither_matplotlib_nor_torch() -> None:
    check = "import sys, deadheat.reports; print(sorted({'matplotlib', 'torch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True).stdout == "[]\n"

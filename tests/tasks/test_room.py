"""What the room exports, and what importing it costs."""

import subprocess
import sys

import deadheat.tasks


def test_the_exported_names_are_sorted_and_there() -> None:
    names = deadheat.tasks.__all__
    assert names == sorted(names)
    assert all(hasattr(deadheat.tasks, name) for name in names)


def test_importing_the_room_and_parsing_addition_loads_nothing_heavy() -> None:
    code = (
        "import sys; from deadheat.tasks import load_task, parse_task; load_task(parse_task('addition'));"
        "print(sorted({'torch', 'transformers', 'reasoning_gym', 'math_verify', 'polars'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

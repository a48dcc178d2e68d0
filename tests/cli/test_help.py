"""What holds of every verb of the statistics: help with examples, no heavy import, errors without a traceback."""

import subprocess
import sys

import pytest

VERBS = (
    ("census",),
    ("floor",),
    ("forecast", "lock"),
    ("forecast", "score"),
    ("ledger", "add"),
    ("ledger", "list"),
    ("ledger", "score"),
    ("ledger", "verify"),
    ("power",),
    ("spend",),
    ("trajectory",),
    ("verdict",),
)


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_help_shows_two_examples(run, verb):
    text = run(*verb, "--help").stdout
    assert text.count(f"deadheat {' '.join(verb)}") >= 2
    assert "--json" in text


def test_help_loads_neither_torch_nor_the_statistics(process):
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom deadheat.cli.app import app\n"
        "assert CliRunner().invoke(app, ['verdict', '--help']).exit_code == 0\n"
        "print([m for m in ('torch', 'transformers', 'scipy', 'matplotlib', 'polars') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_a_verdict_on_two_files_needs_no_torch(table):
    a, b = table("a.csv", [[1, 0, 1]]), table("b.csv", [[0, 0, 1]])
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom deadheat.cli.app import app\n"
        f"assert CliRunner().invoke(app, ['verdict', {str(a)!r}, {str(b)!r}]).exit_code == 0\n"
        "print('torch' in sys.modules, 'matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False False", done.stderr


def test_an_error_is_one_message_and_status_two(process, table):
    done = process("verdict", table("a.csv", [[1]]), "nowhere.csv")
    assert done.returncode == 2
    assert done.stderr.startswith("error: nowhere.csv is not a file") and "Traceback" not in done.stderr

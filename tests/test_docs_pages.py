"""What pages say of the code is there: files named in the tree and in the text, commands, columns, arithmetic."""

import math
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "deadheat"
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").rglob("*.md"))}


def test_every_file_of_the_readmes_tree_is_in_its_room():
    tree = README[README.rindex("src/deadheat/\n") :]
    room, absent = SOURCE, []
    for line in tree.splitlines():
        if opened := re.match(r"^  (\w+)/ ", line):
            room = SOURCE / opened[1]
        names = re.findall(r"\b(\w+\.py|\w+\.toml|bundled)\b", line)
        where = SOURCE if re.match(r"^  \w+\.py ", line) else room
        absent += [f"{room.name}/{name}" for name in names if not any(where.rglob(name))]
    assert absent == []


@pytest.mark.parametrize("page", sorted(DOCS))
def test_every_source_file_a_page_names_is_there(page):
    named = re.findall(r"`((?:\w+/)+\w+\.py)`", DOCS[page])
    assert [name for name in named if not ((SOURCE / name).exists() or (ROOT / name).exists())] == []


def test_the_readme_lists_every_command_and_no_other():
    from typer.main import get_command

    from deadheat.cli.app import app

    table = README[README.index("| command | answers |") :]
    rows = re.findall(r"^\| (`.+?) \|", table[: table.index("\n\n")], flags=re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert listed == set(get_command(app).commands)


def test_the_page_on_the_run_folder_lists_every_column_of_a_rollout_row():
    from deadheat.archive import ROLLOUT_SCHEMA

    page = DOCS["run-folder.md"]
    table = page[page.index("## A rollout row") : page.index("## Crash")]
    first_cells = re.findall(r"^\| (`.+?) \|", table, flags=re.MULTILINE)
    assert {name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)} == set(ROLLOUT_SCHEMA)


def test_the_pencil_cases_of_the_concepts_page_are_right():
    from deadheat.stats.floors import detection_floor, paired_floor, pooled_votes_floor
    from deadheat.stats.groups import gate_probability

    page = DOCS["concepts.md"]
    cases = {
        "0.43 + 0.00 = 0.43": f"{0.9**8:.2f} + {0.1**8:.2f} = {gate_probability(0.9, 8):.2f}",
        "51/64 = 0.797": f"51/64 = {51 * 8 / (64 * 8):.3f}",
        "√(2·¼/200) = 5.0 points": f"√(2·¼/200) = {100 * math.sqrt(2 * 0.25 / 200):.1f} points",
        "√(0.10/200) = 2.2 points": f"√(0.10/200) = {100 * math.sqrt(0.10 / 200):.1f} points",
        "floor 35.4\npoints": f"floor {detection_floor(30, 0.40).floor_pp:.1f}\npoints",
        "5.96 points": f"{paired_floor(500, 0.226).floor_pp:.2f} points",
        "= 3.44 points": f"= {pooled_votes_floor(500, 3, 0.226).floor_pp:.2f} points",
    }
    for written, worked in cases.items():
        assert written == worked
        assert written in page


def test_the_statistics_need_no_torch_as_the_readme_says():
    import subprocess
    import sys

    code = (
        "import sys\n"
        "from deadheat.cli.app import app\n"
        "try:\n    app(['floor', '--n', '30', '--p', '0.4', '--margin', '6.7'])\n"
        "except SystemExit as end:\n    assert not end.code\n"
        "print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.splitlines()[-1] == "[]"

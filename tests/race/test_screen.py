"""The verdict on a terminal: eighty columns, names whole where they fit, the words' support beside them."""

import io
from collections.abc import Callable
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console

from deadheat.race import RaceConfig, judge, parse_race
from deadheat.race.screen import race_screen

from .conftest import HAND, NONE, but, right

Write = Callable[..., None]


def printed(folder: Path, race: RaceConfig, **changes: object) -> str:
    given: dict[str, object] = {"seconds": 7.0, "report": folder / "report.html", "notes": ()}
    console = Console(width=80, file=io.StringIO(), force_terminal=False)
    console.print(race_screen(race, judge(folder, race), **(given | changes)))  # type: ignore[arg-type]
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_contrast_has_its_words_a_row_per_seed_and_what_stands_beside_them(
    write: Write, hand: RaceConfig, tmp_path: Path
) -> None:
    for seed in hand.seeds:
        write("checker", seed, {0: NONE, 4: but(seed)})
        write("plant", seed, {0: NONE, 4: NONE})
    lines = printed(tmp_path, hand, notes=("a note",)).splitlines()
    assert max(map(cell_len, lines)) <= 80
    assert lines[0].strip() == "Does the checker's reward teach more than the same rewards shuffled?"
    assert any("Called: checker beats plant, for these recipes." in line for line in lines)
    # Nineteen of twenty right, none of twenty: +95 ± 22.8 over the items of one seed; 19–0: p = 2·2⁻¹⁹ = 3.81e-6.
    seed = next(line for line in lines if line.startswith("seed 1"))
    assert seed.split() == ["seed", "1", "95.0", "0.0", "+95.0", "[+72.2,", "+117.8]", "19–0–1", "3.81e-6"]
    # All seeds: ±21.1, and each of twenty items has a pooled vote: 2·2⁻²⁰ = 1.91e-6.
    together = next(line for line in lines if line.startswith("all"))
    assert together.split() == ["all", "95.0", "0.0", "+95.0", "[+73.9,", "+116.1]", "20–0–0", "1.91e-6"]
    names = [line[:13].strip() for line in lines if line[:13].strip() and line[13:15] == "  "]
    assert [name for name in dict.fromkeys(names) if name in FACTS] == FACTS
    assert "smallest gap" not in names, "called: the smallest gap is on the page and in the record"


FACTS = ["difference", "two-part rule", "false calls", "these runs", "seeds", "gains", "cost", "note", "report"]


def test_long_and_hostile_names_of_arms_neither_widen_the_table_nor_act(write: Write, tmp_path: Path) -> None:
    long = "an-arm-with-a-very-long-name-of-forty-characters"
    race = parse_race(HAND.replace('name = "checker"', f'name = "{long}"'), source="x.toml")
    for seed in race.seeds:
        write(long, seed, {0: NONE, 4: right(0, seed)})
        write("plant", seed, {0: NONE, 4: right(seed)})
    lines = printed(tmp_path, race).splitlines()
    assert max(map(cell_len, lines)) <= 80
    assert any(line.split()[:2] == ["an-arm-with-", "plant"] for line in lines)


def test_an_arm_alone_has_its_gain_in_a_line(write: Write, hand: RaceConfig, tmp_path: Path) -> None:
    assert printed(tmp_path, hand).strip() == "no run has finished yet"
    write("checker", 1, {0: NONE, 4: but()})
    text = printed(tmp_path, hand)
    assert "checker learned in this run: 0.0% → 100.0%, gain +100.0 pp, 95% interval [" in text
    assert "cannot be judged yet" in text

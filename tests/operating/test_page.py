"""The table of counted claims is whole and holds, and the page quotes its worst cells as they stand there."""

from dataclasses import replace
from pathlib import Path

from .cells import TABLES
from .claims import all_cells
from .designs import Votes
from .side_by_side import SEEDS, SIZES
from .table import Row, load, percent, side_lines, worst_lines, worst_of, write

CELLS, ROWS = all_cells(), load()
PAGE = Path(__file__).parents[2] / "docs" / "statistics" / "how-often-is-deadheat-wrong.md"
LINES = PAGE.read_text(encoding="utf-8").splitlines()


def test_the_table_on_disk_has_every_cell_at_full_size():
    assert [row.name for row in ROWS] == [(cell.claim, cell.reader, cell.design) for cell in CELLS]
    assert all(row.tables >= min(TABLES, cell.most or TABLES) for row, cell in zip(ROWS, CELLS, strict=True))


def test_every_claim_of_the_table_holds():
    assert [row.name for row in ROWS if row.holds is False] == []


def test_the_page_quotes_the_worst_cell_of_every_claim():
    assert [line for line in worst_lines(ROWS) if line not in LINES] == []


def test_the_page_quotes_every_rule_on_the_same_tables():
    no_gap = [Votes(seeds=3, items=items, tau=tau).label for items in SIZES for tau in (0.0, 0.05, 0.10)]
    gap = [Votes(seeds=seeds, items=500, tau=0.03, gap=0.06).label for seeds in SEEDS]
    wanted = side_lines(ROWS, "rules side by side, no gap", no_gap) + side_lines(
        ROWS, "rules side by side, gap of 6 pp", gap
    )
    assert len(wanted) == 5 + 4
    assert [line for line in wanted if line not in LINES] == []


def test_the_page_on_calls_quotes_the_same_rates():
    other = (PAGE.parent / "why-not-called.md").read_text(encoding="utf-8")
    worst = max(row.rate for row in ROWS if row.claim.startswith("false calls") and row.holds is not None)
    crossed = next(
        row.rate for row in ROWS if row.reader.startswith("crossed") and row.design.endswith("τ 10 pp, gap 6 pp")
    )
    assert f"at most {percent(worst)} of tables" in other
    assert f"its 95% holds the gap in {percent(crossed)} of tables" in other


def test_every_figure_of_the_page_is_there():
    assert [
        name for name in ("how-often-wrong.svg", "how-often-right.svg") if name not in PAGE.read_text("utf-8")
    ] == []
    assert all((PAGE.parents[1] / "figures" / name).exists() for name in ("how-often-wrong.svg", "how-often-right.svg"))


def test_the_worst_cell_is_the_one_nearest_to_its_bound(tmp_path):
    base = Row(
        claim="c",
        reader="r",
        design="a",
        counted="called",
        tables=2000,
        rate=0.03,
        se=0.004,
        bound="at most 0.0650",
        holds=True,
    )
    rows = [base, replace(base, design="b", rate=0.05), replace(base, claim="d", bound="at least 0.9350", rate=0.96)]
    rows.append(replace(rows[2], design="b", rate=0.94))
    assert [row.rate for row in worst_of(rows).values()] == [0.05, 0.94]
    write(rows, tmp_path / "table.csv")
    assert load(tmp_path / "table.csv") == rows
    assert [line.endswith(",worst") for line in (tmp_path / "table.csv").read_text().splitlines()[1:]] == [
        False,
        True,
        False,
        True,
    ]

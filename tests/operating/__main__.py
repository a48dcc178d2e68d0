"""How often is Deadheat wrong? Every cell, at 2,000 tables or more, into docs/statistics/operating.csv.

    python -m tests.operating [--tables 2000] [--only TEXT] [--figures]

Shows each cell as it is counted, with the time left. `--only` counts the cells whose name holds TEXT and keeps the rows
of the others. The figures of the page are drawn from the table at the end; `--figures` draws them and counts nothing.
"""

import argparse
import sys
import time
from collections.abc import Sequence

from .cells import TABLES, Cell, count
from .claims import all_cells
from .figures import draw
from .table import PATH, load, row_of, worst_lines, write


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make operating", description=__doc__.split("\n")[0])
    parser.add_argument("--tables", type=int, default=TABLES, help="tables drawn per cell")
    parser.add_argument("--only", default="", help="count only cells whose name holds this")
    parser.add_argument("--figures", action="store_true", help="draw the figures from the table there is")
    options = parser.parse_args(arguments)
    cells = all_cells()
    if not options.figures:
        counted(cells, options.tables, options.only)
    rows = load()
    if len(rows) == len(cells):
        draw(rows)
    return int(any(row.holds is False for row in rows))


def counted(cells: Sequence[Cell], tables: int, only: str) -> None:
    """Count what is asked for; the table is written after every cell, so that a run that ends early keeps its rows."""
    wanted = [cell for cell in cells if only in cell.name]
    known = {row.name: row for row in load()}
    start = time.monotonic()
    for done, cell in enumerate(wanted, start=1):
        row = row_of(count(cell, tables))
        known[row.name] = row
        write([known[name] for name in map(_name, cells) if name in known])
        left = (time.monotonic() - start) / done * (len(wanted) - done)
        flag = "" if row.holds in (True, None) else "   BROKEN"
        print(f"{done}/{len(wanted)}, {left / 60:.0f} min left   {row.rate:7.2%}   {cell.name}{flag}", flush=True)
    print("\n".join(["", *worst_lines(known.values()), ""]))
    print(f"written to {PATH}")


def _name(cell: Cell) -> tuple[str, str, str]:
    return cell.claim, cell.reader, cell.design


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

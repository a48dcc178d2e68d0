"""Cells without a claim: how other rules and tools fare on the same tables."""

from collections.abc import Iterator

from deadheat.stats.resampling import bootstrap

from .cells import KEY, NO_CLAIM, OTHERS, RESAMPLES, Cell, crossed_calls, read
from .designs import Table, Votes

TAUS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.075, 0.10)
SIZES = (200, 1319)
SEEDS = (2, 3, 5, 8, 12, 16)


def side_by_side() -> Iterator[Cell]:
    for reader, said in OTHERS.items():
        for items in SIZES:
            for tau in TAUS:
                design = Votes(seeds=3, items=items, tau=tau)
                yield read(
                    "rules side by side, no gap",
                    design,
                    lambda t, said=said: said(t, True),
                    "called",
                    NO_CLAIM,
                    reader=reader,
                    most=500 if items > 200 and said is crossed_calls else None,
                )
        for seeds in SEEDS:
            if reader != "crossed bootstrap":
                design = Votes(seeds=seeds, items=500, tau=0.03, gap=0.06)
                yield read(
                    "rules side by side, gap of 6 pp",
                    design,
                    lambda t, said=said: said(t, True),
                    "called",
                    NO_CLAIM,
                    reader=reader,
                )
    for items, tau in ((200, 0.0), (200, 0.05), (200, 0.10), (1319, 0.05)):
        design = Votes(seeds=3, items=items, tau=tau, gap=0.06)

        def crossed(table: Table) -> bool:
            found = bootstrap(table.differences_SN, "crossed", key=KEY, resamples=RESAMPLES)
            return found.low <= 0.06 <= found.high

        yield read(
            "interval by name, no level promised",
            design,
            crossed,
            "the interval holds the gap",
            NO_CLAIM,
            reader="crossed bootstrap, 95%",
            most=500 if items > 200 else None,
        )

"""Two sides of per-item results against each other: everything a verdict page says, from two long tables.

The sides are aligned on the seeds and items that both have; what only one has is listed and left out, never zero, and
records that repeat an item (epochs, judges' repeats) are averaged within it. The votes are the signs of the
differences. Where a side has a baseline, its own gain over it comes first: two sides that learned nothing are not
ranked.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deadheat.sampling.keys import derive
from deadheat.stats.bootstrap import FEWEST_SEED_CLUSTERS, BootstrapInterval, Level, bootstrap
from deadheat.stats.floors import Floor, paired_floor
from deadheat.stats.gains import PairedGain, paired_gain
from deadheat.stats.intervals import Interval, mean_score
from deadheat.stats.rules import Verdict, decide
from deadheat.stats.significance import SignTest
from deadheat.stats.tables import AlignedTables, Columns, align
from deadheat.stats.votes import Rule, Tally, votes_from_scores

DOMAIN_COMPARISON = "deadheat/comparison/v1"
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Side:
    """One side's results."""

    name: str
    frame: pl.DataFrame  # seed, item, value
    baseline: pl.DataFrame | None = None  # the same before training; one seed stands for all. None: not known
    selected_on: str | None = None  # pool a checkpoint was selected on; None: none was selected


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a comparison is read."""

    rule: Rule = Rule.TWO_PART
    tie_band: float = 0.0  # differences of at most this size are ties
    alpha: float = 0.05  # two-sided level; intervals cover 1 − alpha
    resamples: int = 4000  # of each bootstrap
    reruns: int = 40_000  # of each simulated catch rate


@dataclass(frozen=True, kw_only=True)
class SeedRow:
    """One seed: both sides' means on the items both have, and how the items fell."""

    seed: str
    mean_a: Interval | None  # None: no item with a score
    mean_b: Interval | None
    difference: float | None  # mean of A − B over items scored on both sides; None: there is none
    tally: Tally
    test: SignTest


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Everything said of two sides."""

    name_a: str
    name_b: str
    verdict: Verdict
    mean_a: Interval  # over items, each item's scores averaged over seeds first
    mean_b: Interval
    is_share: bool  # every score lies in [0, 1]: differences are shares, ×100 for points
    seed_rows: tuple[SeedRow, ...]  # [S]
    differences: tuple[BootstrapInterval, ...]  # A − B at each level of resampling, crossed first
    floor: Floor | None  # paired floor of one seed at this discordance; None: nothing decided
    n: int  # items both sides have
    only_a: tuple[str, ...]  # items left out because B lacks them
    only_b: tuple[str, ...]
    seeds_left_out: tuple[str, ...]  # seeds that one side lacks
    missing_cells: int  # seed–item cells in which one side has no score
    repeats_a: int  # records averaged into another of the same seed and item
    repeats_b: int
    selected_a: str | None  # pool A's checkpoint was selected on; None: not selected
    selected_b: str | None
    notes: tuple[str, ...]  # what was left out or could not be computed, in sentences
    key: int

    @property
    def words(self) -> str:
        """The verdict with the sides' names in it."""
        return self.verdict.words.value.replace("(A)", f"({self.name_a})").replace("(B)", f"({self.name_b})")


def compare(a: Side, b: Side, settings: Settings, *, key: int) -> Comparison:
    """Align, vote, judge, and say what was left out."""
    both = align(a.frame, b.frame, Columns())
    votes_SN = votes_from_scores(both.a_SN, both.b_SN, tie_band=settings.tie_band)
    gains = [gain for side in (a, b) if (gain := _gain(side, both, settings, key)) is not None]
    verdict = decide(settings.rule, votes_SN, key=key, gains=gains, alpha=settings.alpha, reruns=settings.reruns)
    differences, refused = _differences(both.a_SN - both.b_SN, settings, key)
    d = verdict.discordance_frac
    return Comparison(
        name_a=a.name,
        name_b=b.name,
        verdict=verdict,
        mean_a=_mean(both.a_SN, settings.alpha),
        mean_b=_mean(both.b_SN, settings.alpha),
        is_share=_is_share(both.a_SN) and _is_share(both.b_SN),
        seed_rows=tuple(_seed_row(s, both, verdict, settings.alpha) for s in range(len(both.seeds))),
        differences=differences,
        floor=paired_floor(len(both.items), d, alpha=settings.alpha) if d else None,
        n=len(both.items),
        only_a=both.only_a,
        only_b=both.only_b,
        seeds_left_out=both.seeds_left_out,
        missing_cells=int(np.isnan(votes_SN).sum()),
        repeats_a=both.repeats_a,
        repeats_b=both.repeats_b,
        selected_a=a.selected_on,
        selected_b=b.selected_on,
        notes=(*_contradiction(verdict, differences[0]), *_left_out(a, b, both, votes_SN), *refused),
        key=key,
    )


def votes_of(a: Side, b: Side, *, tie_band: float = 0.0) -> Floats:
    """[S, N] the votes alone, for whoever plans the next comparison from this one."""
    both = align(a.frame, b.frame, Columns())
    return votes_from_scores(both.a_SN, both.b_SN, tie_band=tie_band)


def _gain(side: Side, both: AlignedTables, settings: Settings, key: int) -> PairedGain | None:
    if side.baseline is None:
        return None
    seeds = sorted(set(side.frame["seed"]) & set(both.seeds))
    baseline = side.baseline
    if baseline["seed"].n_unique() == 1:
        baseline = pl.concat([baseline.with_columns(seed=pl.lit(seed)) for seed in seeds])
    after = side.frame.filter(pl.col("item").is_in(both.items) & pl.col("seed").is_in(seeds))
    own = align(after, baseline, Columns())
    return paired_gain(
        own.a_SN,
        own.b_SN,
        key=derive(DOMAIN_COMPARISON, key, "gain"),
        resamples=settings.resamples,
        coverage=1 - settings.alpha,
    )


def _differences(table_SN: Floats, settings: Settings, key: int) -> tuple[tuple[BootstrapInterval, ...], list[str]]:
    """The difference at each level the table can support, and why the others are left out."""
    levels = [level for level in Level if level is not Level.SEED or len(table_SN) >= FEWEST_SEED_CLUSTERS]
    has_value_S = ~np.isnan(table_SN).all(axis=1)
    intervals = tuple(
        bootstrap(
            table_SN[has_value_S],
            level,
            key=derive(DOMAIN_COMPARISON, key, level.value),
            resamples=settings.resamples,
            coverage=1 - settings.alpha,
        )
        for level in levels
    )
    if Level.SEED in levels:
        return intervals, []
    return intervals, [f"level seed is left out: it wants {FEWEST_SEED_CLUSTERS} seeds, here are {len(table_SN)}"]


def _seed_row(s: int, both: AlignedTables, verdict: Verdict, alpha: float) -> SeedRow:
    a_N, b_N = both.a_SN[s], both.b_SN[s]
    gap_N = a_N - b_N
    return SeedRow(
        seed=both.seeds[s],
        mean_a=None if np.isnan(a_N).all() else _mean(a_N[None], alpha),
        mean_b=None if np.isnan(b_N).all() else _mean(b_N[None], alpha),
        difference=None if np.isnan(gap_N).all() else float(np.nanmean(gap_N)),
        tally=verdict.seeds[s].tally,
        test=verdict.seeds[s].test,
    )


def _mean(table_SN: Floats, alpha: float) -> Interval:
    """Mean over items of the means over seeds, items as the unit."""
    present_SN = ~np.isnan(table_SN)
    count_N = present_SN.sum(axis=0)
    total_N = np.where(present_SN, table_SN, 0.0).sum(axis=0)
    item_N = np.where(count_N > 0, total_N / np.maximum(count_N, 1), np.nan)
    if item_N.size == 1 and item_N[0] not in (0.0, 1.0):
        return Interval(
            estimate=float(item_N[0]), low=-np.inf, high=np.inf, level=1 - alpha, n=1, left_out=0, method="one item"
        )
    return mean_score(item_N, level=1 - alpha).interval


def _is_share(table_SN: Floats) -> bool:
    kept = table_SN[~np.isnan(table_SN)]
    return bool(kept.size) and bool(((kept >= 0) & (kept <= 1)).all())


def _left_out(a: Side, b: Side, both: AlignedTables, votes_SN: Floats) -> list[str]:
    notes = []
    for name, only in ((a.name, both.only_a), (b.name, both.only_b)):
        if only:
            notes.append(f"{len(only):,} items only in {name}, left out: {_few(only)}")
    if both.seeds_left_out:
        notes.append(f"seeds on one side only, left out: {_few(both.seeds_left_out)}")
    missing = int(np.isnan(votes_SN).sum())
    if missing:
        notes.append(f"{missing:,} of {votes_SN.size:,} seed–item cells lack a score on one side and are left out")
    for side, repeats in ((a, both.repeats_a), (b, both.repeats_b)):
        if repeats:
            notes.append(f"{side.name}: {repeats:,} records repeat an item and are averaged within it: n is items")
        if side.selected_on:
            notes.append(f"{side.name}: the checkpoint was selected on {side.selected_on}, which flatters it")
    return notes


def _contradiction(verdict: Verdict, difference: BootstrapInterval) -> list[str]:
    """A winner by votes whose mean lead is not clear of 0: many small differences outvote a few large ones."""
    if not verdict.called or difference.low > 0 or difference.high < 0:
        return []
    return [
        "the votes call a winner while the mean's interval holds 0: small differences vote as large ones do; "
        "a tie band (twice the scorer's own movement) says which differences count"
    ]


def _few(keys: Sequence[str]) -> str:
    shown = ", ".join(key[:24] for key in keys[:4])
    return f"{shown} and {len(keys) - 4:,} more" if len(keys) > 4 else shown

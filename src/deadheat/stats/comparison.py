"""Two sides of per-item results against each other: everything a verdict page says, from two long tables.

The sides are aligned on the items that both have; what only one has is listed and left out, never zero, and records
that repeat an item (epochs, judges' repeats) are averaged within it. Two foreign logs are *uncoupled*: seed 1 of A is
not seed 1 of B, and every seed is kept. Two arms of one race are coupled. Where a side has a baseline, its own gain
over it comes first: two sides that learned nothing are not ranked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deadheat.errors import StatsError
from deadheat.stats.effect import Effect, paired_effect, side_mean
from deadheat.stats.gains import PairedGain, are_grades, paired_gain
from deadheat.stats.intervals import Interval
from deadheat.stats.resampling import BootstrapInterval, Level, bootstrap
from deadheat.stats.significance import SignTest, binomial_two_sided
from deadheat.stats.tables import AlignedTables, Columns, align
from deadheat.stats.verdict import Fixed, Terms, Verdict, judge
from deadheat.stats.votes import Tally, tally, votes_from_scores

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Side:
    """One side's results."""

    name: str
    frame: pl.DataFrame  # seed, item, value, and the cluster column where one is named
    baseline: pl.DataFrame | None = None  # the same before training; one seed stands for all. None: not known
    selected_on: str | None = None  # pool a checkpoint was selected on; None: none was selected


@dataclass(frozen=True, kw_only=True)
class SeedRow:
    """One seed of a coupled comparison: both sides' means on the items both have, and how the items fell."""

    seed: str
    mean_a: Interval  # items alone
    mean_b: Interval
    difference: Effect  # A − B under this seed, items alone
    tally: Tally
    test: SignTest


@dataclass(frozen=True, kw_only=True)
class SideRow:
    """One seed of one side, where seeds are not paired."""

    side: str  # "A" or "B"
    seed: str
    mean: Interval  # items alone


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Everything said of two sides."""

    name_a: str
    name_b: str
    verdict: Verdict
    mean_a: Interval  # over the items and cells that the difference rests on
    mean_b: Interval
    seed_rows: tuple[SeedRow, ...]  # [S] of a coupled comparison, or one with a fixed side; empty otherwise
    side_rows: tuple[SideRow, ...]  # every seed of each side, of an uncoupled comparison; empty otherwise
    resampled: tuple[BootstrapInterval, ...]  # bootstrap intervals that were asked for by name
    n: int  # items both sides have
    only_a: tuple[str, ...]  # items left out because B lacks them
    only_b: tuple[str, ...]
    seeds_left_out: tuple[str, ...]  # seeds that one side lacks, of a coupled comparison
    repeats_a: int  # records averaged into another of the same seed and item
    repeats_b: int
    selected_a: str | None  # pool A's checkpoint was selected on; None: not selected
    selected_b: str | None
    notes: tuple[str, ...]  # what was left out or could not be computed, in sentences

    @property
    def words(self) -> str:
        """The verdict with the sides' names in it."""
        return named(self.verdict.sentence, self.name_a, self.name_b)


def named(sentence: str, name_a: str, name_b: str) -> str:
    """A verdict's words with names for A and B.

    Example:
        >>> named("called(A) against this very B", "tuned", "base")
        'called(tuned) against this very base'
    """
    for letter, name in (("A", name_a), ("B", name_b)):
        sentence = sentence.replace(f"({letter})", f"({name})").replace(f"this very {letter}", f"this very {name}")
    return sentence


def compare(
    a: Side, b: Side, terms: Terms, *, key: int, levels: Sequence[Level] = (), resamples: int = 4000
) -> Comparison:
    """Align, judge, and say what was left out.

    Args:
        a: one side; frames may carry a `cluster` column, equal for an item wherever it stands.
        b: the other side.
        terms: how the verdict is reached.
        key: address of the randomness.
        levels: bootstrap intervals to add, by name; they do not decide.
        resamples: of each of them.
    """
    paired = terms.coupled and terms.fixed is None
    both = align(a.frame, b.frame, Columns(), coupled=paired)
    clusters = _clusters(a, b, both.items)
    gains = [gain for side in (a, b) if (gain := _gain(side, both, terms)) is not None]
    verdict = judge(
        both.a_SN,
        both.b_SN,
        terms,
        key=key,
        clusters=clusters,
        gains=gains,
        seeds=both.seeds_b if terms.fixed is Fixed.A else both.seeds_a,
    )
    a_SN, b_SN = _on_shared_cells(both, terms)
    return Comparison(
        name_a=a.name,
        name_b=b.name,
        verdict=verdict,
        mean_a=side_mean(a_SN, alpha=terms.alpha),
        mean_b=side_mean(b_SN, alpha=terms.alpha),
        seed_rows=tuple(_seed_rows(both, terms)) if terms.coupled or terms.fixed else (),
        side_rows=() if terms.coupled or terms.fixed else tuple(_side_rows(both, terms)),
        resampled=tuple(
            bootstrap(a_SN - b_SN, level, key=key, resamples=resamples, coverage=1 - terms.alpha) for level in levels
        ) if _pairable(levels, a_SN, b_SN) else (),
        n=len(both.items),
        only_a=both.only_a,
        only_b=both.only_b,
        seeds_left_out=both.seeds_left_out,
        repeats_a=both.repeats_a,
        repeats_b=both.repeats_b,
        selected_a=a.selected_on,
        selected_b=b.selected_on,
        notes=(*verdict.copies, *_contradiction(verdict), *_left_out(a, b, both, verdict)),
    )  # fmt: skip


def votes_of(a: Side, b: Side, *, tie_band: float = 0.0) -> Floats:
    """[S, N] the votes alone, seeds paired, for whoever plans the next comparison from this one."""
    both = align(a.frame, b.frame, Columns())
    return votes_from_scores(both.a_SN, both.b_SN, tie_band=tie_band)


def _pairable(levels: Sequence[Level], a_SN: Floats, b_SN: Floats) -> bool:
    if levels and a_SN.shape != b_SN.shape:
        raise StatsError("a bootstrap resamples paired seeds, and these are uncoupled; wanted coupled sides for it")
    return bool(levels)


def _on_shared_cells(both: AlignedTables, terms: Terms) -> tuple[Floats, Floats]:
    """Both sides with the cells the other lacks left out, so that marginal means differ by the paired difference."""
    if not terms.coupled and terms.fixed is None:
        shared_N = ~(np.isnan(both.a_SN).all(axis=0) | np.isnan(both.b_SN).all(axis=0))
        return both.a_SN[:, shared_N], both.b_SN[:, shared_N]
    a, b = np.broadcast_arrays(both.a_SN, both.b_SN)
    missing = np.isnan(a) | np.isnan(b)
    return np.where(missing, np.nan, a), np.where(missing, np.nan, b)


def _clusters(a: Side, b: Side, items: Sequence[str]) -> list[str] | None:
    """Each item's cluster; an item in two clusters is refused."""
    frames = [side.frame.select("item", "cluster") for side in (a, b) if "cluster" in side.frame.columns]
    if not frames:
        return None
    pairs = pl.concat(frames).unique(maintain_order=True)
    twice = pairs.filter(pairs["item"].is_duplicated())
    if twice.height:
        item = twice["item"][0]
        seen = twice.filter(pl.col("item") == item)["cluster"].to_list()
        raise StatsError(f"item {item!r} stands in clusters {seen[:4]}; wanted one cluster for each item")
    cluster: Mapping[str, str | None] = dict(pairs.iter_rows())
    lacking = [item for item in items if cluster.get(item) is None]
    if lacking:
        raise StatsError(f"{len(lacking)} items have no cluster, {lacking[0]!r} first; wanted one in every row")
    return [str(cluster[item]) for item in items]


def _gain(side: Side, both: AlignedTables, terms: Terms) -> PairedGain | None:
    if side.baseline is None:
        return None
    seeds = sorted(set(side.frame["seed"]) & {*both.seeds_a, *both.seeds_b})
    baseline = side.baseline
    if baseline["seed"].n_unique() == 1:
        baseline = pl.concat([baseline.with_columns(seed=pl.lit(seed)) for seed in seeds])
    after = side.frame.filter(pl.col("item").is_in(both.items) & pl.col("seed").is_in(seeds))
    own = align(after, baseline, Columns())
    return paired_gain(own.a_SN, own.b_SN, alpha=terms.alpha)


def _seed_rows(both: AlignedTables, terms: Terms) -> list[SeedRow]:
    a_SN, b_SN = _on_shared_cells(both, terms)
    seeds = both.seeds_b if terms.fixed is Fixed.A else both.seeds_a
    grades, rows = are_grades(a_SN, b_SN), []
    for seed, a_N, b_N in zip(seeds, a_SN, b_SN, strict=True):
        if np.isnan(a_N).all():
            continue
        votes = tally(votes_from_scores(a_N[None], b_N[None], tie_band=terms.tie_band)[0])
        rows.append(
            SeedRow(
                seed=seed,
                mean_a=side_mean(a_N[None], alpha=terms.alpha),
                mean_b=side_mean(b_N[None], alpha=terms.alpha),
                difference=paired_effect((a_N - b_N)[None], alpha=terms.alpha, grades=grades),
                tally=votes,
                test=binomial_two_sided(votes.wins, votes.losses, left_out=votes.ties + votes.missing),
            )
        )
    return rows


def _side_rows(both: AlignedTables, terms: Terms) -> list[SideRow]:
    return [
        SideRow(side=side, seed=seed, mean=side_mean(row[None], alpha=terms.alpha))
        for side, seeds, table in (("A", both.seeds_a, both.a_SN), ("B", both.seeds_b, both.b_SN))
        for seed, row in zip(seeds, table, strict=True)
        if not np.isnan(row).all()
    ]


def _left_out(a: Side, b: Side, both: AlignedTables, verdict: Verdict) -> list[str]:
    notes = []
    for name, only in ((a.name, both.only_a), (b.name, both.only_b)):
        if only:
            notes.append(f"{len(only):,} items only in {name}, left out: {_few(only)}")
    if both.seeds_left_out:
        notes.append(f"seeds on one side only, left out: {_few(both.seeds_left_out)}")
    if verdict.effect.left_out:
        notes.append(f"{verdict.effect.left_out:,} items without a score on both sides, left out")
    if verdict.effect.missing_cells:
        notes.append(f"{verdict.effect.missing_cells:,} seed–item cells lack a score and are left out")
    if verdict.effect.note:
        notes.append(verdict.effect.note)
    for side, repeats in ((a, both.repeats_a), (b, both.repeats_b)):
        if repeats:
            notes.append(f"{side.name}: {repeats:,} records repeat an item and are averaged within it: n is items")
        if side.selected_on:
            notes.append(f"{side.name}: the checkpoint was selected on {side.selected_on}, which flatters it")
    return notes


def _contradiction(verdict: Verdict) -> list[str]:
    """Votes that call a winner where the mean's interval holds 0: small differences outvote large ones."""
    if not verdict.votes.called or verdict.effect.called_runs:
        return []
    return [
        "the votes call a winner while the mean's interval holds 0: small differences vote as large ones do; "
        "a tie band (twice the scorer's own movement) says which differences count"
    ]


def _few(keys: Sequence[str]) -> str:
    shown = ", ".join(key[:24] for key in keys[:4])
    return f"{shown} and {len(keys) - 4:,} more" if len(keys) > 4 else shown

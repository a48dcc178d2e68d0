"""Two sides of per-item results, from files, checkpoints, tables or arrays, to a verdict.

    deadheat.verdict("a.csv", "b.csv").words
    deadheat.verdict(a_SN, b_SN).verdict.effect.low

A reference is a results file of any known tool, or a checkpoint `RUN:arm@peak|final|converged|step-75` of a run
folder, which brings its own step 0 as baseline. Two checkpoints of one race are coupled, seed by seed; two files are
not, since seed 1 of one log is not seed 1 of another, unless the caller says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from deadheat.archive.arms import START, read_arm
from deadheat.archive.results import ReadOptions, Results, read_results
from deadheat.errors import ConfigError
from deadheat.stats.checkpoints import Which, parse_reference
from deadheat.stats.comparison import Comparison, Side, compare
from deadheat.stats.verdict import Fixed, Terms


@dataclass(frozen=True, kw_only=True)
class Asked:
    """How the columns of results files are named."""

    item: str | None = None
    value: str | None = None
    seed: str | None = None
    where: Sequence[str] = ()  # COLUMN=VALUE
    side: str | None = None  # COLUMN[=A,B]: one long file, split
    cluster: str | None = None
    keep: tuple[str, ...] = ()  # further columns to carry


@dataclass(frozen=True, kw_only=True)
class Sides:
    """Two sides with what their readers noted."""

    a: Side
    b: Side
    notes: tuple[str, ...]
    coupled: bool  # two checkpoints of one race


def verdict(
    a: str | Path | pl.DataFrame | ArrayLike,
    b: str | Path | pl.DataFrame | ArrayLike,
    *,
    within: float | None = None,
    coupled: bool | None = None,
    fixed: str | None = None,
    alpha: float = 0.05,
    power: float = 0.80,
    tie_band: float = 0.0,
    asked: Asked = Asked(),
    key: int = 1,
) -> Comparison:
    """The verdict on two sides: called, these runs only, dead heat within ±δ, or not called.

    Args:
        a: a reference, a table with `item` and `value` (and `seed`) columns, or scores [S, N] or [N].
        b: the other side, likewise.
        within: δ of a dead heat, in the unit of the scores (0.02 is two points of accuracy).
        coupled: A's seeds are B's. None: checkpoints of one race and arrays are, files and tables are not.
        fixed: "A" or "B", a side that is one model and has no seeds.
        alpha: two-sided level.
        power: of the smallest gaps that are stated.
        tie_band: differences of at most this size are tied votes.
        asked: how the columns of files are named.
        key: address of the randomness of simulated rates.

    Example:
        >>> found = verdict([[1, 1, 1, 0]] * 2, [[1, 1, 0, 1]] * 2)
        >>> found.words, found.verdict.copies[0]
        ('not called', 'seed 2 repeats seed 1 score for score: it is left out, no seed of its own')
    """
    if isinstance(a, (str, Path)) and isinstance(b, (str, Path)):
        sides = load_sides([str(a), str(b)], asked)
    elif isinstance(a, pl.DataFrame) and isinstance(b, pl.DataFrame):
        sides = Sides(a=_framed("A", a), b=_framed("B", b), notes=(), coupled=False)
    elif isinstance(a, (str, Path, pl.DataFrame)) or isinstance(b, (str, Path, pl.DataFrame)):
        raise ConfigError(f"the sides are {type(a).__name__} and {type(b).__name__}; wanted both of one kind")
    else:
        sides = Sides(a=_framed("A", _long(a)), b=_framed("B", _long(b)), notes=(), coupled=True)
    terms = Terms(
        alpha=alpha,
        power=power,
        within=within,
        tie_band=tie_band,
        coupled=sides.coupled if coupled is None else coupled,
        fixed=None if fixed is None else Fixed(fixed),
    )
    found = compare(sides.a, sides.b, terms, key=key)
    return replace(found, notes=(*found.notes, *sides.notes))


def load_sides(references: Sequence[str], asked: Asked) -> Sides:
    """Two references, or one long file and `asked.side`."""
    if asked.side is not None:
        if len(references) != 1:
            raise ConfigError(f"--side splits one long file, and {len(references)} were named; name one")
        return _split(references[0], asked)
    if len(references) != 2:
        raise ConfigError(
            f"{len(references)} results named; wanted two, A and B, or one long file with --side COLUMN=A,B"
        )
    (a, notes_a), (b, notes_b) = (load_side(reference, asked) for reference in references)
    runs = [reference.rpartition(":")[0] for reference in references if _is_checkpoint(reference)]
    return Sides(a=a, b=b, notes=(*notes_a, *notes_b), coupled=len(runs) == 2 and runs[0] == runs[1])


def load_side(reference: str, asked: Asked) -> tuple[Side, list[str]]:
    """A results file, or a checkpoint of a run folder with its own step 0 as baseline."""
    if _is_checkpoint(reference):
        return _checkpoint(reference)
    results = load_results(reference, asked)
    return Side(name=results.name, frame=_clustered(results.frame, asked)), notes_of(results)


def load_results(reference: str, asked: Asked) -> Results:
    """One results file."""
    return read_results(Path(reference), read_options(asked))


def read_options(asked: Asked) -> ReadOptions:
    """The reader's options, `where` split into its two halves."""
    pairs = []
    for condition in asked.where:
        column, equals, wanted = condition.partition("=")
        if not equals:
            raise ConfigError(f"--where is {condition!r}; wanted COLUMN=VALUE, such as --where filter=strict-match")
        pairs.append((column, wanted))
    keep = (*asked.keep, asked.cluster) if asked.cluster else asked.keep
    return ReadOptions(item=asked.item, value=asked.value, seed=asked.seed, where=tuple(pairs), keep=keep)


def notes_of(results: Results) -> list[str]:
    """What a reader must know of how a file was read."""
    notes = list(results.notes)
    if results.num_missing:
        notes.append(f"{results.name}: {results.num_missing:,} records without a score are left out, never zero")
    return notes


def _is_checkpoint(reference: str) -> bool:
    return "@" in reference and not Path(reference).exists()


def _checkpoint(text: str) -> tuple[Side, list[str]]:
    reference = parse_reference(text)
    arm = read_arm(Path(reference.run), reference.arm)
    side = Side(
        name=f"{reference.arm}@{text.rpartition('@')[2]}",
        frame=arm.at(reference.which.value, reference.step),
        baseline=arm.at(START),
        selected_on="the pool it is read on" if reference.which in (Which.PEAK, Which.CONVERGED) else None,
    )
    notes = [f"{text}: seeds without an outcome, left out: {', '.join(arm.unfinished)}"] if arm.unfinished else []
    return side, notes


def _split(reference: str, asked: Asked) -> Sides:
    column, _, values = (asked.side or "").partition("=")
    results = load_results(reference, replace(asked, side=None, keep=(*asked.keep, column)))
    found = results.frame[column].drop_nulls().unique(maintain_order=True).to_list()
    wanted = values.split(",") if values else found
    if len(wanted) != 2 or not set(wanted) <= set(found):
        few = ", ".join(found[:8]) + (" …" if len(found) > 8 else "")
        raise ConfigError(
            f"--side {asked.side}: column {column!r} holds {few}; wanted two of them, --side {column}=A,B"
        )
    frame = _clustered(results.frame, asked)
    a, b = (Side(name=name, frame=frame.filter(frame[column] == name).drop(column)) for name in wanted)
    return Sides(a=a, b=b, notes=tuple(notes_of(results)), coupled=False)


def _clustered(frame: pl.DataFrame, asked: Asked) -> pl.DataFrame:
    return frame.rename({asked.cluster: "cluster"}) if asked.cluster else frame


def _framed(name: str, frame: pl.DataFrame) -> Side:
    missing = [column for column in ("item", "value") if column not in frame.columns]
    if missing:
        raise ConfigError(f"side {name} lacks the columns {missing}; it has {frame.columns}")
    seed = pl.col("seed") if "seed" in frame.columns else pl.lit("0")
    return Side(name=name, frame=frame.with_columns(seed.cast(pl.String).alias("seed"), pl.col("item").cast(pl.String)))


def _long(table: ArrayLike) -> pl.DataFrame:
    scores_SN = np.atleast_2d(np.asarray(table, dtype=np.float64))
    if scores_SN.ndim != 2:
        raise ConfigError(f"scores have shape {scores_SN.shape}; wanted [seeds, items] or [items]")
    num_seeds, num_items = scores_SN.shape
    return pl.DataFrame(
        {
            "seed": [str(s + 1) for s in range(num_seeds) for _ in range(num_items)],
            "item": [f"{n:08d}" for _ in range(num_seeds) for n in range(num_items)],
            "value": scores_SN.ravel(),
        }
    )

"""Audit 11, contamination: held-out problems among the trained ones, and held-out figures with and without them.

Two problems are the same where their prompts have one canonical content, or 8-gram Jaccard ≥ 0.8 (`overlap`). A prompt
template that every problem shares would make all of them alike, so the words that all prompts begin or end with are cut
off first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from deadheat.audit.overlap import Overlap, overlaps
from deadheat.audit.records import AuditOptions, AuditRecord, share, share_of
from deadheat.audit.table import columns_of
from deadheat.reports.formats import format_share
from deadheat.stats.intervals import Interval

_MOST_TEXT = 240  # characters of a problem in a case


@dataclass(frozen=True, kw_only=True)
class ContaminationCase:
    """A held-out problem and its closest trained one."""

    held_out_id: str
    trained_id: str
    jaccard: float
    same_content: bool  # equal after case, Unicode form and white space
    held_out: str  # the text, shortened
    trained: str


@dataclass(frozen=True, kw_only=True)
class HeldOutFigure:
    """One held-out accuracy, printed both ways."""

    where: str  # arm and step
    all_problems: Interval | None
    clean: Interval | None  # without the contaminated problems


@dataclass(frozen=True, kw_only=True)
class Contamination(AuditRecord):
    """What of the held-out pool was trained on."""

    contaminated: Interval | None  # held-out problems with a twin among the trained
    num_same_content: int  # of them: equal content
    num_trained: int  # distinct trained problems
    figures: tuple[HeldOutFigure, ...]
    cases: tuple[ContaminationCase, ...]  # the closest twin of each, closest first

    @property
    def sentence(self) -> str:
        """How many, and what it does to the last figure."""
        if self.contaminated is None:
            return "no held-out problem"
        found = (
            f"{share_of(self.contaminated, 'held-out problems')} are among {self.num_trained:,} "
            f"trained ones ({self.num_same_content:,} word for word)"
        )
        if (
            self.cases
            and self.figures
            and self.figures[-1].clean is not None
            and self.figures[-1].all_problems is not None
        ):
            last = self.figures[-1]
            assert last.all_problems is not None and last.clean is not None
            found += f"; {last.where}: {format_share(last.all_problems.estimate)} with them, "
            found += f"{format_share(last.clean.estimate)} without"
        return found


def contamination(rows: pl.LazyFrame, options: AuditOptions) -> Contamination:
    """The evaluated prompts of an archive among its trained prompts."""
    names = columns_of(rows)
    told = "problem_id" if "problem_id" in names else "prompt"
    pools = rows.select("purpose", "prompt", pl.col(told).alias("id")).unique(["purpose", "prompt"])
    found = pools.drop_nulls("prompt").sort("prompt").collect(engine="streaming")
    trained, held_out = (found.filter(pl.col("purpose") == purpose) for purpose in ("train", "eval"))
    cut = cut_template([*trained["prompt"], *held_out["prompt"]])
    sides = [cut[: trained.height], cut[trained.height :]]
    record = compare(sides[0], sides[1], trained["id"].to_list(), held_out["id"].to_list(), level=options.level)
    if "correct" not in names:
        return record
    dirty = [held_out["prompt"][overlap.held_out] for overlap in overlaps(sides[0], sides[1])]
    return Contamination(
        contaminated=record.contaminated,
        num_same_content=record.num_same_content,
        num_trained=record.num_trained,
        figures=_figures(rows, names, sorted(set(dirty)), options.level),
        cases=record.cases,
    )


def compare(
    trained: Sequence[str],
    held_out: Sequence[str],
    trained_ids: Sequence[str],
    held_out_ids: Sequence[str],
    *,
    level: float = 0.95,
) -> Contamination:
    """Two sets of problem texts."""
    closest: dict[int, Overlap] = {}
    for overlap in overlaps(trained, held_out):
        best = closest.get(overlap.held_out)
        if best is None or (overlap.same_content, overlap.jaccard) > (best.same_content, best.jaccard):
            closest[overlap.held_out] = overlap
    cases = [
        ContaminationCase(
            held_out_id=str(held_out_ids[found.held_out]),
            trained_id=str(trained_ids[found.trained]),
            jaccard=found.jaccard,
            same_content=found.same_content,
            held_out=held_out[found.held_out][:_MOST_TEXT],
            trained=trained[found.trained][:_MOST_TEXT],
        )
        for found in closest.values()
    ]
    return Contamination(
        contaminated=share(len(cases), len(held_out), level=level),
        num_same_content=sum(case.same_content for case in cases),
        num_trained=len(trained),
        figures=(),
        cases=tuple(sorted(cases, key=lambda case: (-case.same_content, -case.jaccard, case.held_out_id))),
    )


def cut_template(prompts: Sequence[str]) -> list[str]:
    """The prompts without the words that all of them begin or end with.

    Example:
        >>> cut_template(["Q: add 1 and 2 now. A:", "Q: add 3 and 4 now. A:"])
        ['1 and 2', '3 and 4']
        >>> cut_template(["one prompt"])
        ['one prompt']
    """
    split = [prompt.split() for prompt in prompts]
    if len(set(prompts)) < 2:
        return list(prompts)
    head = _shared(split)
    tail = _shared([words[head:][::-1] for words in split])
    return [" ".join(words[head : len(words) - tail]) for words in split]


def _shared(texts: Sequence[list[str]]) -> int:
    """How many words all of them begin with."""
    first, last = min(texts), max(texts)  # what the smallest and the largest share, all between them share
    return next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))


def _figures(rows: pl.LazyFrame, names: Sequence[str], dirty: Sequence[str], level: float) -> tuple[HeldOutFigure, ...]:
    places = [name for name in ("arm", "step") if name in names]
    held = rows.filter(pl.col("purpose") == "eval").with_columns(
        pl.col("correct").cast(pl.Boolean), clean=~pl.col("prompt").is_in(list(dirty))
    )
    sums = (
        held.drop_nulls("correct")
        .group_by(places)
        .agg(
            n=pl.len(),
            right=pl.col("correct").sum(),
            clean_n=pl.col("clean").sum(),
            clean_right=(pl.col("clean") & pl.col("correct")).sum(),
        )
    )
    return tuple(
        HeldOutFigure(
            where=" ".join(f"{'step ' if name == 'step' else ''}{row[name]}" for name in places) or "held out",
            all_problems=share(row["right"], row["n"], level=level),
            clean=share(row["clean_right"], row["clean_n"], level=level),
        )
        for row in sums.sort(places).collect(engine="streaming").iter_rows(named=True)
    )

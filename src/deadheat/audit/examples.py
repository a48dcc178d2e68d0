"""Groups to read: a few of each kind, with every attempt, its reward and its advantage.

Which groups is decided by a hash of their ids, so that the same archive shows the same groups and nobody picked them.
"""

import polars as pl

from deadheat.audit.records import AuditOptions
from deadheat.audit.table import GROUP, SIZE, columns_of, group_table, is_live, is_summary, main_score, scored
from deadheat.reports.page import Attempt, Grade, Transcript

_SHOWN = ("reward", "correct", "advantage", "stop", "answer", "completion", "prompt", "reference", "sample", "parsed")
_PLACES = ("purpose", "arm", "seed", "step", "problem_id")


def example_groups(rows: pl.LazyFrame, options: AuditOptions, *, per_kind: int = 6) -> tuple[Transcript, ...]:
    """Up to `per_kind` live, all-right, all-wrong and otherwise tied groups; none where no texts are kept."""
    names = columns_of(rows)
    if is_summary(names) or not {"completion", "group_id"} <= set(names) or not {"reward", "correct"} & set(names):
        return ()
    column = main_score(names)
    groups = group_table(rows, scores=[column], places=[])
    kind = _kind(column, columns_of(groups)).alias("kind")
    several = groups.filter((pl.col(SIZE) > 1) & (pl.col(scored(column)) > 0)).select(GROUP, kind)
    chosen = several.sort(GROUP).group_by("kind", maintain_order=True).head(per_kind).collect(engine="streaming")
    kept = [name for name in (*_SHOWN, *_PLACES) if name in names]
    members = (
        rows.with_columns(pl.col("group_id").hash().alias(GROUP))
        .filter(pl.col(GROUP).is_in(chosen[GROUP].implode()))
        .select(GROUP, *kept)
        .collect(engine="streaming")
    )
    if "sample" in names:
        members = members.sort("sample", maintain_order=True)
    order = {
        row["_group"]: row["kind"] for row in chosen.sort(pl.col("kind") != "live", "kind", GROUP).iter_rows(named=True)
    }
    parts = members.partition_by(GROUP, as_dict=True)
    return tuple(_transcript(parts[(group,)], kind_) for group, kind_ in order.items())


def _kind(column: str, names: list[str]) -> pl.Expr:
    if "right" not in names:
        tied = pl.lit("tied")
    else:
        graded = pl.col("graded") == pl.col(scored(column))
        right, wrong = graded & (pl.col("right") == pl.col("graded")), graded & (pl.col("right") == 0)
        tied = pl.when(right).then(pl.lit("all right")).when(wrong).then(pl.lit("all wrong")).otherwise(pl.lit("tied"))
    return pl.when(is_live(column)).then(pl.lit("live")).otherwise(tied)


def _transcript(members: pl.DataFrame, kind: str) -> Transcript:
    rows = members.to_dicts()
    first = rows[0]
    place = [
        f"{'' if name == 'problem_id' else name + ' '}{first[name]}" for name in _PLACES if first.get(name) is not None
    ]
    return Transcript(
        title=f"{kind}: {', '.join(place)}",
        prompt=first.get("prompt") or "(the log keeps no prompt)",
        attempts=tuple(_attempt(row) for row in rows),
        reference=first.get("reference"),
        folded=True,
    )


def _attempt(row: "dict[str, object]") -> Attempt:
    reward, advantage, answer = row.get("reward"), row.get("advantage"), row.get("answer")
    return Attempt(
        text=str(row.get("completion") or ""),
        grade=_grade(row),
        reward=float(reward) if isinstance(reward, (int, float)) else None,
        advantage=float(advantage) if isinstance(advantage, (int, float)) else None,
        stop=str(row.get("stop") or "not known"),
        answer=None if answer is None else str(answer),
    )


def _grade(row: "dict[str, object]") -> Grade:
    correct = row.get("correct")
    if correct is None:
        return Grade.UNSCORED
    if correct:
        return Grade.RIGHT
    return Grade.UNPARSED if row.get("parsed") is False else Grade.WRONG

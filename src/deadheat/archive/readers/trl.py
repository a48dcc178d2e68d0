"""TRL: `completions/completions_00010.parquet`, one file per logged step.

The reward is nowhere in the file: its components are, one column each, named by the reward function. They are the numeric
columns that are left after mode, step, prompt, completion, advantage and what the trainer logged besides; NaN says that
a function gave no score. Their sum with equal weights is taken as the reward, or the column that `--map reward=` names.

A file is written at every *logged* step with the generations then held: where one generation serves several updates the
same rows appear again under a later step, and are left out. Evaluation overwrites the file of its step.

Groups: equal prompts next to each other, in lots of `num_generations`. No stop reason and no token ids are kept.
"""

import polars as pl

from deadheat.archive.readers.head import Container, Head
from deadheat.archive.readers.record import PART, Recovered
from deadheat.archive.readers.sink import Sink
from deadheat.archive.readers.source import Source, step_of, text_digest
from deadheat.archive.readers.values import answer_text, chat_text
from deadheat.errors import ArchiveError

_NEAR = 1e-6  # how far advantages of equal rewards may differ: they are single precision
_KNOWN = {"mode", "step", "prompt", "completion", "advantage", "image", "images", "__index_level_0__"}


def is_trl(head: Head) -> bool:
    """Whether a file is a table of TRL completions."""
    return (
        head.container is Container.PARQUET
        and {"step", "prompt", "completion"} <= head.columns
        and not ({"group_id", "reward"} & head.columns)
    )


def read_trl(source: Source, sink: Sink) -> None:
    """Every step's file."""
    previous: pl.DataFrame | None = None
    num_runs = num_against = 0
    for head in source.heads:
        try:
            table = pl.read_parquet(head.path, glob=False)
        except (pl.exceptions.PolarsError, OSError) as error:
            sink.refuse(head.name, f"no whole Parquet file ({error}); its writer died or is still writing")
            continue
        if not table.height:
            sink.warn(f"{head.name} has no rows")
            continue
        drawn = table.select(pl.exclude("step"))
        if previous is not None and drawn.equals(previous):
            sink.refuse(head.name, "the same rows as the file before it: one generation that served several updates")
            continue
        previous = drawn
        rows = _rows(table, head, source, sink)
        num_runs += rows["group_id"].n_unique()
        num_against += num_against_advantages(rows)
        sink.add_frame(rows)
    if num_against:
        sink.warn(
            f"in {num_against:,} of {num_runs:,} groups the advantages do not rise with the reward as read: its weights "
            "are others, or it is another column. Name it with --map reward=COLUMN"
        )
    if not any("mode" in head.columns for head in source.heads):
        sink.warn(
            "TRL writes the completions of an evaluation over those of the same training step; nothing marks them"
        )
    sink.warn("TRL keeps no stop reason and no token ids: audits that need them cannot run")


def _rows(table: pl.DataFrame, head: Head, source: Source, sink: Sink) -> pl.DataFrame:
    prompts = [chat_text(value) or "" for value in table["prompt"].to_list()]
    digests = pl.Series("problem_digest", [text_digest(prompt) for prompt in prompts])
    frame = pl.DataFrame(
        {
            "step": table["step"].cast(pl.Int64, strict=False).fill_null(step_of(head.name) or 0),
            "prompt": pl.Series(prompts),
            "completion": pl.Series([answer_text(value) for value in table["completion"].to_list()], dtype=pl.String),
            "problem_digest": digests,
            "problem_id": digests.str.slice(0, 16),
            "group_id": digests.rle_id().cast(pl.String).str.replace("^", f"{head.name.replace('$', '$$')}/"),
            "source_row": pl.Series(range(1, table.height + 1)),
        }
    ).with_columns(
        recovered=pl.lit(Recovered.CONSECUTIVE.value),
        source_file=pl.lit(head.name),
        sample=pl.int_range(pl.len()).over("group_id"),
    )
    if "advantage" in table.columns:
        frame = frame.with_columns(table["advantage"].cast(pl.Float64, strict=False).fill_nan(None))
    if "mode" in table.columns:
        frame = frame.with_columns(table["mode"].cast(pl.String).alias("purpose"))
    return _with_reward(frame, _components(table, head, source, sink))


def _components(table: pl.DataFrame, head: Head, source: Source, sink: Sink) -> pl.DataFrame:
    """The reward's components as floats, NaN as null."""
    asked = source.options.map.get("reward")
    names = [asked] if asked else [n for n in table.columns if n not in _KNOWN and table.schema[n].is_numeric()]
    if asked and asked not in table.columns:
        raise ArchiveError(f"{head.name} has no column {asked!r}; it has {', '.join(table.columns)}")
    if not names:
        sink.warn(f"{head.name} has no reward column: what is left after step, prompt and completion is no number")
    if len(names) > 1:
        sink.warn(
            f"the reward is the plain sum of {', '.join(names)}: TRL keeps no reward_weights. "
            "Where they differ, or one of these is no reward, name one with --map reward=COLUMN"
        )
    return table.select(pl.col(name).cast(pl.Float64, strict=False).fill_nan(None) for name in names)


def _with_reward(frame: pl.DataFrame, components: pl.DataFrame) -> pl.DataFrame:
    """The components and their sum; a row where no function gave a score is unscored."""
    if not components.width:
        return frame
    unscored = pl.Series([all(value is None for value in row) for row in components.iter_rows()])
    reward = components.sum_horizontal(ignore_nulls=True)
    return frame.with_columns(
        *(components[name].alias(f"{PART}{name}") for name in components.columns),
        reward=pl.when(unscored).then(None).otherwise(reward),
        unscored=pl.when(unscored).then(pl.lit("no reward function gave a score (NaN)")),
    )


def num_against_advantages(rows: pl.DataFrame) -> int:
    """Groups in which a higher reward has a lower advantage: the reward they were computed from was another.

    Example:
        >>> frame = {"group_id": ["a", "a", "b", "b"], "reward": [0, 1, 0, 1], "advantage": [-1.0, 1.0, 1.0, -1.0]}
        >>> num_against_advantages(pl.DataFrame(frame))
        1
    """
    if not {"reward", "advantage"} <= set(rows.columns):
        return 0
    known = rows.drop_nulls(["reward", "advantage"]).sort("group_id", "reward", "advantage")
    falls = known.select("group_id", falls=pl.col("advantage").diff().over("group_id") < -_NEAR)
    return falls.filter("falls")["group_id"].n_unique()

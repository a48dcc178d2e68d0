"""What the groups of a reading were to training, by what their rollouts were drawn for."""

from enum import StrEnum

import polars as pl


class Label(StrEnum):
    """What the groups of a reading were to training."""

    LIVE = "live"  # the rewards that were learned from
    RECOMPUTED = "recomputed"  # another score of training rollouts
    UNTRAINED = "untrained"  # sampled without training
    TOP_UP = (
        "top-up"  # fresh draws on problems that were selected by earlier ones: their ties are no sample of anything
    )
    NOT_KEPT = "not kept"  # drawn in training and not learned from: what is left once a drawing has chosen
    HELD_OUT = "held out"  # drawn for an evaluation
    AS_LOGGED = "as logged"  # the source does not say what they were drawn for


_DRAWN_FOR = {"sample": Label.UNTRAINED, "top-up": Label.TOP_UP, "not-kept": Label.NOT_KEPT, "eval": Label.HELD_OUT}


def label_of(has_purpose: bool) -> pl.Expr:
    """The label of a row of counts, from its score column and what its groups were drawn for."""
    if not has_purpose:
        return pl.lit(Label.AS_LOGGED.value)
    is_reward = pl.col("column") == "reward"
    learned = pl.when(is_reward).then(pl.lit(Label.LIVE.value)).otherwise(pl.lit(Label.RECOMPUTED.value))
    drawn_for = {purpose: label.value for purpose, label in _DRAWN_FOR.items()}
    known = pl.col("purpose").replace_strict(drawn_for, default=Label.AS_LOGGED.value, return_dtype=pl.String)
    return pl.when(pl.col("purpose") == "train").then(learned).otherwise(known)

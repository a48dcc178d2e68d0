"""Open a run folder with Polars and compute its gate curve: which share of groups agreed, and what T that makes.

    python examples/read_a_run.py runs/tiny

The folder is Parquet all the way down, so no part of deadheat is needed to read it. One row per rollout; `kind` says
what the rewards of its group were.
"""

import sys
from pathlib import Path

import polars as pl

BLOCK = 5  # training steps per printed line


def gate_curve(run: Path) -> pl.DataFrame:
    """Per arm and block of steps: groups learned from, share of each tie, and T = 1/(1 − shut)."""
    rollouts = pl.concat([pl.read_parquet(path) for path in sorted(run.glob("*/seed-*/rollouts/step-*.parquet"))])
    learned = rollouts.filter(pl.col("purpose") == "train")  # other rows were drawn and not learned from
    groups = learned.unique("group_id", keep="first", maintain_order=True).with_columns(
        steps=(pl.col("step") - 1) // BLOCK * BLOCK + 1
    )
    shut = (pl.col("kind") != "live").mean()
    return (
        groups.group_by("arm", "steps", maintain_order=True)
        .agg(
            groups=pl.len(),
            all_right=(pl.col("kind") == "all_right").mean(),
            all_wrong=(pl.col("kind") == "all_wrong").mean(),
            shut=shut,
            T=1 / (1 - shut),
        )
        .sort("arm", "steps")
    )


def main(run: Path) -> None:
    """Print the curve, every row of it."""
    with pl.Config(tbl_rows=-1, float_precision=3, tbl_hide_column_data_types=True, tbl_hide_dataframe_shape=True):
        print(gate_curve(run))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/tiny"))

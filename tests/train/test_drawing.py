"""Runs that draw on until groups disagree: what is on record, what it cost, and that nothing but addresses decides it."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from deadheat.archive import read_table
from deadheat.rollouts import Drawing
from deadheat.train import ROLLOUTS, RunConfig, RunIdentity, StepRecord, read_steps, step_file, train_run
from deadheat.train.run import Progress

ME = RunIdentity(race="small", arm="arm", seed=1)
Config = Callable[..., RunConfig]


def run(config: RunConfig, folder: Path, observe: Callable[[Progress], None] = lambda progress: None) -> Path:
    train_run(config, ME, folder, observe=observe)
    return folder / ME.folder


def batch(folder: Path, step: int) -> pl.DataFrame:
    return read_table(step_file(folder, ROLLOUTS, step))


def split(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    return rows.filter(pl.col("purpose") == "train"), rows.filter(pl.col("purpose") == "not-kept")


def drawn_config(run_config: Config, drawing: str, **sections: dict[str, object]) -> RunConfig:
    settings = {"flat": {}, "dynamic": {"max_rounds": 3, "max_refills": 2}, "adaptive": {"max_rounds": 3}}[drawing]
    rollouts = {"drawing": {"name": str(drawing), **settings}, **sections.pop("rollouts", {})}
    return run_config(rollouts=rollouts, **sections)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, run_config: Config) -> dict[str, Path]:
    """Two steps of three questions × four attempts under each drawing."""
    return {
        drawing.value: run(drawn_config(run_config, drawing), tmp_path_factory.mktemp(drawing)) for drawing in Drawing
    }


def check_sums(rows: pl.DataFrame, record: StepRecord) -> None:
    """Every draw and every token is in exactly one row."""
    kept, left = split(rows)
    assert kept.height + left.height == rows.height == record.num_rollouts_drawn == 4 * record.num_groups_drawn
    assert rows.select("problem_id", "sample").n_unique() == rows.height
    assert record.num_rollouts == kept.height == 4 * record.num_groups
    assert record.tokens_generated == rows["length"].sum()
    assert record.tokens_not_kept == left["length"].sum()
    assert record.num_problems == rows["problem_id"].n_unique()
    mixed = rows.group_by("problem_id").agg(mixed=pl.col("raw_reward").n_unique() > 1)["mixed"]
    assert record.num_never_mixed == (~mixed).sum()
    assert kept["advantage"].null_count() == 0 and left["advantage"].null_count() == left.height
    assert left["reward"].equals(left["raw_reward"])


@pytest.mark.parametrize("drawing", list(Drawing))
def test_the_ledger_adds_up_to_the_rows_kept_or_not(folders: dict[str, Path], drawing: str) -> None:
    for record in read_steps(folders[drawing]):
        check_sums(batch(folders[drawing], record.step), record)


def test_flat_keeps_everything_in_one_call(folders: dict[str, Path]) -> None:
    for record in read_steps(folders["flat"]):
        assert (record.num_rounds, record.tokens_not_kept, record.num_groups_drawn) == (1, 0, 3)


def test_dynamic_learns_from_mixed_groups_only_and_what_it_drops_agrees(folders: dict[str, Path]) -> None:
    for step in (1, 2):
        kept, left = split(batch(folders["dynamic"], step))
        assert set(kept["kind"]) == {"live"}
        assert left.height > 0 and not set(left["kind"]) & {"live"}
        # Whole groups: four consecutive samples that begin at a multiple of four.
        for rows in (kept, left):
            for (_,), group in rows.group_by("group_id"):
                samples = group["sample"].to_list()
                assert samples == list(range(samples[0], samples[0] + 4)) and samples[0] % 4 == 0


def test_adaptive_keeps_a_group_of_every_problem_of_the_step(folders: dict[str, Path]) -> None:
    for step in (1, 2):
        flat, (kept, left) = batch(folders["flat"], step), split(batch(folders["adaptive"], step))
        assert kept["problem_id"].unique(maintain_order=True).equals(flat["problem_id"].unique(maintain_order=True))
        assert kept.height == 12 and left.height > 0
        grades = pl.concat([kept, left]).group_by("problem_id").agg(pl.col("raw_reward").n_unique(), drawn=pl.len())
        never = grades.filter(pl.col("raw_reward") == 1)
        assert set(never["drawn"]) <= {12}, "given up only after three rounds of four"


@pytest.mark.parametrize("drawing", ["dynamic", "adaptive"])
def test_the_first_round_of_the_first_step_is_the_flat_batch(folders: dict[str, Path], drawing: str) -> None:
    flat, other = batch(folders["flat"], 1), batch(folders[drawing], 1)
    both = flat.join(other, on=["key", "problem_id", "sample"])
    assert both.height == 12
    assert both["token_ids"].equals(both["token_ids_right"]) and both["logprobs"].equals(both["logprobs_right"])


@pytest.mark.parametrize("drawing", ["dynamic", "adaptive"])
def test_a_run_that_was_stopped_goes_on_to_the_same_bytes(tmp_path: Path, run_config: Config, drawing: str) -> None:
    config = drawn_config(run_config, drawing, stop={"steps": 4})
    whole = run(config, tmp_path / "whole")

    class StoppedError(Exception):
        pass

    def stop_after_three(progress: Progress) -> None:
        if progress.step == 3:
            raise StoppedError

    with pytest.raises(StoppedError):
        run(config, tmp_path / "resumed", stop_after_three)
    resumed = run(config, tmp_path / "resumed")
    names = [f"rollouts/step-0000{step}.parquet" for step in (1, 2, 3, 4)]
    names += [
        "steps.parquet",
        "checkpoints/step-00004/adapter.safetensors",
        "checkpoints/step-00004/optimizer.safetensors",
    ]
    for name in names:
        assert (whole / name).read_bytes() == (resumed / name).read_bytes(), name


def test_length_terms_do_not_make_a_group_mixed(tmp_path: Path, run_config: Config) -> None:
    # Every length costs, so that answers of unequal length differ in reward; only their grades decide what is kept.
    scorer = {"length_cost": 0.5, "length_cost_of": "all"}
    folder = run(drawn_config(run_config, "dynamic", scorer=scorer, stop={"steps": 1}), tmp_path)
    kept, left = split(batch(folder, 1))
    grades = kept.group_by("group_id").agg(pl.col("raw_reward").n_unique())["raw_reward"]
    assert set(grades) == {2}
    uneven = left.group_by("group_id").agg(pl.col("reward").n_unique(), raw=pl.col("raw_reward").n_unique())
    assert set(uneven["raw"]) == {1} and uneven["reward"].max() > 1, "some dropped group differed in length alone"


@pytest.mark.parametrize("estimator", ["standardised", "batch_relative"])
def test_a_step_whose_every_problem_is_dropped_is_recorded_and_the_run_goes_on(
    tmp_path: Path, run_config: Config, estimator: str
) -> None:
    # So cold that every attempt is the same answer, and nothing is ever mixed.
    config = drawn_config(
        run_config, "dynamic", sampling={"temperature": 0.001}, credit={"estimator": estimator}, stop={"steps": 2}
    )
    folder = run(config, tmp_path)
    for record in read_steps(folder):
        kept, left = split(batch(folder, record.step))
        # Three places, filled twice more; each problem tried three times.
        assert (record.num_problems, record.num_never_mixed, record.num_rounds) == (9, 9, 9)
        assert kept.height == 0 and left.height == 9 * 3 * 4 == record.num_rollouts_drawn
        assert record.num_groups == record.num_rollouts == record.units_signal_groups == 0
        assert record.mean_length is None and record.mean_reward is None and record.signed_token_mass is None
        assert record.tokens_generated == record.tokens_not_kept == left["length"].sum()
        assert record.grad_norm == 0.0

"""A race whose arms draw differently: coupled where they can be, verified, audited, and said on the page."""

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from deadheat.archive import read, read_table, seal, write_table
from deadheat.audit import AuditOptions, gate
from deadheat.race import RaceConfig, RaceResult, parse_race, run_race, verify_race
from deadheat.race.skills import read_skills
from deadheat.race.tables import read_run
from deadheat.race.words import coupling_words
from deadheat.tasks import load_task
from deadheat.train import ROLLOUTS, RunIdentity, read_steps, step_file

CIPHER = """
name = "drawings"
question = "Do groups that are drawn until they disagree teach the hidden pairs?"
seeds = 1
threads = 1

[policy]
model = "tiny:cipher"
adapter = { kind = "full" }

[task]
name = "cipher"

[rollouts]
questions_per_step = 3
group_size = 4

[credit]
estimator = "centred"

[update]
learning_rate = 1e-4

[eval]
pool = 6
every = 2

[stop]
steps = 2

[[arm]]
name = "flat"

[[arm]]
name = "dynamic"
rollouts.drawing = { name = "dynamic", max_rounds = 3, max_refills = 2 }

[[arm]]
name = "plant"
rollouts.drawing = { name = "dynamic", max_rounds = 3, max_refills = 2 }
scorer.kind = "plant"

[[arm]]
name = "adaptive"
rollouts.drawing = { name = "adaptive", max_rounds = 3, keep = "balanced" }
"""


@pytest.fixture(scope="module")
def cipher() -> RaceConfig:
    return parse_race(CIPHER, source="drawings.toml")


@pytest.fixture(scope="module")
def drawings(tmp_path_factory: pytest.TempPathFactory, cipher: RaceConfig) -> RaceResult:
    result = run_race(cipher, CIPHER, tmp_path_factory.mktemp("race") / "drawings", observe=lambda progress: None)
    assert result.failures == ()
    return result


DYNAMIC = tuple(f"rollouts.drawing.{name}" for name in ("max_refills", "max_rounds", "name"))
ADAPTIVE = tuple(f"rollouts.drawing.{name}" for name in ("keep", "max_rounds", "name"))


def rows_of(folder: Path, arm: str, step: int = 1) -> pl.DataFrame:
    return read_table(step_file(folder / arm / "seed-1", ROLLOUTS, step))


def found(folder: Path) -> list[tuple[str, str]]:
    return [(finding.file, finding.what) for finding in verify_race(folder, observe=lambda part: None).findings]


def test_every_arm_holds_the_flat_batch_and_is_partly_coupled_with_it(drawings: RaceResult) -> None:
    shared = {(c.arm_a, c.arm_b): (c.num_shared, c.differing) for c in drawings.verdict.couplings}
    # The first round of three problems and four attempts is the same in all.
    assert shared["flat", "dynamic"] == shared["flat", "plant"] == (12, DYNAMIC)
    assert shared["flat", "adaptive"] == (12, ADAPTIVE)
    words = " ".join(coupling_words(drawings.verdict.couplings))
    assert (
        "flat and dynamic are partly coupled, differing in rollouts.drawing.max_refills, rollouts.drawing.max_rounds"
        in words
    )


def test_a_control_draws_what_the_honest_arm_draws(drawings: RaceResult) -> None:
    honest, planted = rows_of(drawings.folder, "dynamic"), rows_of(drawings.folder, "plant")
    for column in ("key", "purpose", "sample", "token_ids", "raw_reward"):
        assert honest[column].equals(planted[column]), column
    shared = {(c.arm_a, c.arm_b): (c.num_shared, c.differing) for c in drawings.verdict.couplings}
    assert shared["dynamic", "plant"] == (honest.height, ())
    left = planted.filter(pl.col("purpose") == "not-kept")
    assert left.height > 0 and left["reward"].equals(left["raw_reward"]), "what is not learned from is not permuted"


def test_the_race_holds_and_counts_advantages_of_what_was_learned_from(drawings: RaceResult) -> None:
    checked = verify_race(drawings.folder, observe=lambda part: None)
    assert checked.findings == ()
    files = sorted(drawings.folder.glob("*/seed-1/rollouts/*.parquet"))
    rows = pl.concat([read_table(path) for path in files])
    assert checked.num_advantages == rows.filter(pl.col("purpose") == "train").height < rows.height
    # Every drawn answer is graded again, and 6 held-out ones at steps 0 and 2 of each of four runs.
    assert checked.num_rows == rows.height + 4 * 2 * 6


@pytest.fixture
def tampered(drawings: RaceResult, tmp_path: Path) -> Path:
    return Path(shutil.copytree(drawings.folder, tmp_path / "drawings"))


def test_a_draw_that_was_left_out_and_should_not_have_been_is_found(tampered: Path) -> None:
    path = step_file(tampered / "adaptive" / "seed-1", ROLLOUTS, 1)
    rows = read_table(path)
    left = rows.filter(pl.col("purpose") == "not-kept").row(0, named=True)
    swap = (pl.col("problem_id") == left["problem_id"]) & (pl.col("sample") == left["sample"])
    write_table(path, rows.with_columns(purpose=pl.when(swap).then(pl.lit("train")).otherwise(pl.col("purpose"))))
    seal(tampered)
    said = found(tampered)
    name = "adaptive/seed-1/rollouts/step-00001.parquet"
    assert (name, f"{left['problem_id']}: samples learned from") in said
    assert (name, "num_rollouts against steps.parquet") in said


def test_draws_that_were_paid_for_cannot_be_lost(tampered: Path) -> None:
    path = step_file(tampered / "dynamic" / "seed-1", ROLLOUTS, 2)
    rows = read_table(path)
    assert rows.filter(pl.col("purpose") == "not-kept").height > 0
    write_table(path, rows.filter(pl.col("purpose") == "train"))
    seal(tampered)
    lost = {what for name, what in found(tampered) if name == "dynamic/seed-1/rollouts/step-00002.parquet"}
    figures = ("tokens_generated", "tokens_not_kept", "num_rollouts_drawn", "num_problems", "num_never_mixed")
    assert lost == {f"{figure} against steps.parquet" for figure in figures}


def test_the_audit_reads_the_gate_of_what_was_learned_from_and_labels_the_rest(drawings: RaceResult) -> None:
    archive = read(drawings.folder)
    readings = {(r.column, r.label.value): r for r in gate(archive.rows, AuditOptions()).readings}
    steps = [record for path in drawings.folder.glob("*/seed-1") for record in read_steps(path)]
    live, left = readings["reward", "live"], readings["reward", "not kept"]
    assert live.num_groups == sum(record.num_groups for record in steps)
    assert live.shut_rate is not None
    assert round(live.shut_rate.estimate * live.num_groups) == live.num_groups - sum(r.num_live for r in steps)
    assert left.num_groups + left.num_single > 0
    assert archive.rows.select(pl.len()).collect().item() == sum(r.num_rollouts_drawn for r in steps) + 4 * 2 * 6


def test_the_page_says_what_was_drawn_and_what_it_cost(drawings: RaceResult) -> None:
    page = (drawings.folder / "report.html").read_text(encoding="utf-8")
    assert "What was drawn" in page and "never mixed" in page and "adaptive, balanced" in page
    records = read_steps(drawings.folder / "dynamic" / "seed-1")
    assert f"{sum(record.tokens_not_kept for record in records):,}" in page
    summaries = {arm.arm: arm.runs[0] for arm in drawings.verdict.arms}
    assert summaries["dynamic"].tokens_generated == sum(r.tokens_generated for r in records)
    assert summaries["dynamic"].tokens_generated > summaries["flat"].tokens_generated


def test_a_race_of_flat_arms_has_no_such_section(finished: RaceResult) -> None:
    assert "What was drawn" not in (finished.folder / "report.html").read_text(encoding="utf-8")


def test_a_sub_skill_of_an_item_is_counted_in_that_items_answers(drawings: RaceResult, cipher: RaceConfig) -> None:
    run = read_run(drawings.folder, RunIdentity(race="drawings", arm="flat", seed=1))
    assert run is not None
    skills = read_skills(drawings.folder, run, load_task(cipher.arms["flat"].task))
    plain_N, hidden_N = (skills.end_N[f"strings {which} a hidden digit"] for which in ("without", "with"))
    assert (np.isnan(plain_N) != np.isnan(hidden_N)).all(), "a string is one or the other"
    assert np.nansum([plain_N, hidden_N], axis=0).tolist() == run.row(run.eval_steps[-1]).tolist()
    reading = next(reading for reading in skills.readings if reading.name == "strings with a hidden digit")
    assert (np.nansum(hidden_N), (~np.isnan(hidden_N)).sum()) == (reading.end.num_right, reading.end.num_all)
    page = (drawings.folder / "report.html").read_text(encoding="utf-8")
    assert "Sub-skills" in page and "move together and are one item" in page

"""Whatever a run is told to do, its ledger adds up, in itself and against its rollouts."""

from pathlib import Path

import pytest

from deadheat.archive import read_table
from deadheat.audit.conservation import check_ledgers
from deadheat.train import RunIdentity, read_steps, train_run

ME = RunIdentity(race="small", arm="checker", seed=1)
CASES = {
    "tokens, signal groups": {
        "update": {"loss": "token_mean"},
        "credit": {"denominator": "signal_groups"},
    },
    "no step without signal": {"credit": {"zero_signal": "skip_step"}, "rollouts": {"questions_per_step": 1}},
    "ratio, dual clip, KL, two updates": {
        "update": {"importance": "token", "dual_clip": 3.0, "kl_coef": 0.1, "updates_per_batch": 2},
        "credit": {"zero_signal": "backward", "denominator": "signal_groups"},
    },
    "sequence ratio, length terms": {
        "update": {"importance": "sequence", "loss": "sequence_mean"},
        "scorer": {"overlong_buffer": 3, "length_cost": 0.1},
    },
    "a baseline over the batch": {"credit": {"estimator": "batch_relative"}, "update": {"loss": "fixed_length"}},
    "shuffled rewards by task": {"credit": {"normalise_by": "task"}, "scorer": {"kind": "plant"}},
    "dynamic": {"rollouts": {"drawing": {"name": "dynamic", "max_rounds": 2, "max_refills": 1}}},
    "adaptive": {"rollouts": {"drawing": {"name": "adaptive", "keep": "balanced"}}},
}


@pytest.mark.parametrize("case", CASES)
def test_the_ledger_of_every_kind_of_run_adds_up(tmp_path: Path, run_config, case: str) -> None:
    train_run(run_config(stop={"steps": 3}, **CASES[case]), ME, tmp_path, observe=lambda progress: None)
    found = check_ledgers(tmp_path)
    assert found is not None
    assert [breach.sentence for breach in found.breaches] == []
    assert found.num_steps == 3


def test_one_question_a_step_meets_batches_without_signal(tmp_path: Path, run_config) -> None:
    config = run_config(stop={"steps": 8}, eval={"every": 8}, **CASES["no step without signal"])
    train_run(config, ME, tmp_path, observe=lambda progress: None)
    records = read_steps(tmp_path / ME.folder)
    assert [record.stepped for record in records] == [record.units_signal_groups > 0 for record in records]
    assert {record.stepped for record in records} == {True, False}
    assert read_table(tmp_path / ME.folder / "steps.parquet")["num_updates"].to_list() == [
        int(r.stepped) for r in records
    ]

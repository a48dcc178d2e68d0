"""`deadheat audit --only accounting` on a real race: its ledgers add up, and every rule breaks where a figure is changed."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from deadheat.archive import read, read_table, write_table
from deadheat.audit import Accounting, audit
from deadheat.audit.conservation import RULES, Breach, LedgerCheck, check_ledgers
from deadheat.cli.app import app
from deadheat.race import RaceResult
from deadheat.train import EVALS, ROLLOUTS, step_file

RUN = Path("checker") / "seed-1"
Change = Callable[[pl.DataFrame, int], pl.DataFrame]  # a table and the row to change


def to(column: str, value: object) -> Change:
    """One cell set."""
    index = pl.int_range(pl.len())

    def change(table: pl.DataFrame, row: int) -> pl.DataFrame:
        cell = pl.lit(value, table.schema[column])
        return table.with_columns(pl.when(index == row).then(cell).otherwise(pl.col(column)).alias(column))

    return change


def plus(column: str, added: float) -> Change:
    """One cell raised."""
    return lambda table, row: to(column, table[column][row] + added)(table, row)


def times(column: str, factor: float) -> Change:
    """One cell scaled."""
    return lambda table, row: to(column, table[column][row] * factor)(table, row)


def ledger_of(folder: Path) -> Path:
    return folder / RUN / "steps.parquet"


def live_row(folder: Path) -> int:
    """The last step with signal, counted from 0: rules that compare a step with the first are then about it."""
    return max(i for i, units in enumerate(read_table(ledger_of(folder))["units_signal_groups"]) if units)


def broken(folder: Path) -> list[Breach]:
    found = check_ledgers(folder)
    assert found is not None
    assert found.num_breaches == len(found.breaches)
    return list(found.breaches)


def accounting(folder: Path) -> Accounting:
    record = audit(read(folder), only=["accounting"]).answered["accounting"]
    assert isinstance(record, Accounting)
    return record


def test_the_ledgers_of_a_race_keep_every_rule(finished: RaceResult) -> None:
    record = accounting(finished.folder)
    # 2 arms × 2 seeds × 4 steps.
    assert record.ledger == LedgerCheck(
        num_runs=4, skipped=(), num_steps=16, num_rules=len(RULES), num_breaches=0, breaches=()
    )
    assert record.sentence.endswith(f"16 ledger steps of 4 runs keep all {len(RULES)} rules")
    assert not record.is_broken


# A figure changed in the ledger at a live step, and a rule that must notice.
TAMPERED: list[tuple[str, Change]] = [
    ("steps count 1, 2, … and each has its rollouts", plus("step", 40)),
    ("num_live is what the rollouts say", plus("num_live", 1)),
    ("num_all_right is what the rollouts say", plus("num_all_right", 1)),
    ("num_all_wrong is what the rollouts say", plus("num_all_wrong", 1)),
    ("num_tied_other is what the rollouts say", plus("num_tied_other", 1)),
    ("num_unscored_groups is what the rollouts say", plus("num_unscored_groups", 1)),
    ("groups by kind add up to the groups", plus("num_live", -1)),
    ("rollouts = groups × size", plus("num_rollouts", 4)),
    ("num_rollouts is what the rollouts say", plus("num_rollouts", 4)),
    ("rollouts drawn = learned from + not kept", plus("num_rollouts_drawn", 4)),
    ("num_scored is what the rollouts say", plus("num_scored", -1)),
    ("num_correct is what the rollouts say", plus("num_correct", 1)),
    ("num_unparsed is what the rollouts say", plus("num_unparsed", 1)),
    ("num_capped is what the rollouts say", plus("num_capped", 1)),
    ("mean_length is the rollouts' own", times("mean_length", 1.01)),
    ("mean_raw_reward is the rollouts' own", plus("mean_raw_reward", 0.01)),
    ("mean_reward is the rollouts' own", plus("mean_reward", 0.01)),
    ("tokens generated = those of rollouts learned from + not kept", plus("tokens_generated", -1)),
    ("tokens_not_kept is what the rollouts say", plus("tokens_not_kept", 1)),
    ("tokens_delivered is what the rollouts say", plus("tokens_delivered", 1)),
    ("tokens_delivered ≤ tokens_generated", plus("tokens_delivered", 1000)),
    ("tokens_backward ≤ tokens_unshared", plus("tokens_backward", 5000)),
    ("tokens_reference ≤ tokens_unshared", plus("tokens_reference", 5000)),
    ("units_signal_groups ≤ units_all_groups", plus("units_signal_groups", 100)),
    ("both divisors count rollouts, or both count tokens", plus("units_all_groups", 1)),
    ("step sizes are to each other as the divisors are", times("grad_norm_signal_groups", 1.001)),
    ("the step that was taken is one of the two", times("grad_norm", 1.001)),
    ("without signal and without a KL term", to("units_signal_groups", 0)),
    ("a batch with signal makes a step", to("stepped", False)),
    ("no step, no update, no backward and no gradient", to("num_updates", 0)),
    ("ratios are positive, KL estimates not negative", to("kl_drawn", -0.5)),
    ("ratios are positive, KL estimates not negative", to("clip_low_frac", 1.5)),
    ("FLOP proxy = (2·forward + 6·backward)·P", times("flop", 1.01)),
]


@pytest.mark.parametrize(
    ("rule", "change"), TAMPERED, ids=[f"{place}-{rule[:24]}" for place, (rule, _) in enumerate(TAMPERED)]
)
def test_a_changed_figure_breaks_its_rule_at_its_step_and_nowhere_else(copied: Path, rule: str, change: Change) -> None:
    path, row = ledger_of(copied), live_row(copied)
    step = read_table(path)["step"][row]
    write_table(path, change(read_table(path), row))
    found = broken(copied)
    assert any(breach.rule.startswith(rule) for breach in found), [breach.sentence for breach in found]
    assert {(breach.run, breach.step) for breach in found} <= {(str(RUN), step), (str(RUN), step + 40)}


def test_two_answers_to_batches_without_signal_are_a_breach(copied: Path) -> None:
    path = ledger_of(copied)
    table = read_table(path)
    quiet = {"units_signal_groups": 0, "loss": 0.0, "grad_norm": 0.0, "tokens_delivered": 0, "tokens_backward": 0}
    for row, steps in ((1, True), (2, False)):
        for column, value in {**quiet, "stepped": steps, "num_updates": int(steps)}.items():
            table = to(column, value)(table, row)
    write_table(path, table)
    assert "a run answers every batch without signal alike: a step, or none" in {b.rule for b in broken(copied)}


def test_an_advantage_in_a_tied_group_is_a_breach(copied: Path) -> None:
    for step in range(1, 5):
        path = step_file(copied / RUN, ROLLOUTS, step)
        rows = read_table(path)
        tied = [i for i, kind in enumerate(rows["kind"]) if kind != "live"]
        if tied:
            write_table(path, to("advantage", 0.5)(rows, tied[0]))
            found = {breach.rule for breach in broken(copied) if breach.step == step}
            assert "a tied group's advantages are alike: zero, or one figure under a batch-wide baseline" in found
            assert "tokens_delivered is what the rollouts say" in found
            return
    raise AssertionError("the small race has no tied group")


def test_every_rule_is_shown_to_break() -> None:
    by_hand = ("a run answers every batch", "a tied group's advantages")
    shown = (*by_hand, *(rule for rule, _ in TAMPERED))
    assert [rule.says for rule in RULES if not rule.says.startswith(shown)] == []


def test_a_step_whose_rollouts_are_gone_is_named(copied: Path) -> None:
    step_file(copied / RUN, ROLLOUTS, 3).unlink()
    (breach,) = broken(copied)
    assert (breach.step, breach.rule) == (3, "steps count 1, 2, … and each has its rollouts")
    assert breach.seen == {"step": 3.0, "run:place": 3.0, "rows:rollouts": None}


def test_a_rollout_left_out_is_noticed_by_every_count_it_was_in(copied: Path) -> None:
    path = step_file(copied / RUN, ROLLOUTS, 2)
    rows = read_table(path)
    write_table(path, rows.head(rows.height - 1))
    rules = {breach.rule for breach in broken(copied)}
    assert {"rollouts = groups × size", "num_rollouts is what the rollouts say"} <= rules


def test_the_ledger_of_an_unfinished_run_ends_at_its_checkpoint(copied: Path) -> None:
    path = ledger_of(copied)
    write_table(path, read_table(path).head(2))
    found = check_ledgers(copied / RUN)
    assert found is not None
    assert (found.num_steps, found.num_breaches) == (2, 0)


def test_a_ledger_of_another_version_is_named_and_not_judged(copied: Path) -> None:
    path = ledger_of(copied)
    write_table(path, read_table(path).drop("kl_drawn", "num_updates"))
    record = accounting(copied)
    assert record.ledger is not None
    assert record.ledger.skipped == (f"{RUN} has no kl_drawn, num_updates",)
    assert "not checked, of another version: checker/seed-1 has no kl_drawn" in record.sentence
    assert (record.ledger.num_runs, record.is_broken) == (3, False)


def test_the_command_says_which_step_and_ends_with_status_one(copied: Path) -> None:
    sound = CliRunner().invoke(app, ["audit", str(copied), "--only", "accounting"])
    assert (sound.exit_code, "16 ledger steps of 4 runs" in " ".join(sound.output.split())) == (0, True)
    path = ledger_of(copied)
    write_table(path, plus("tokens_generated", 7)(read_table(path), 1))
    torn = CliRunner().invoke(app, ["audit", str(copied), "--only", "accounting", "--json"])
    assert torn.exit_code == 1
    assert "checker/seed-1 step 2: tokens generated = those of rollouts learned from + not kept; seen" in torn.output


def test_one_file_has_no_ledger_to_check(finished: RaceResult) -> None:
    record = accounting(step_file(finished.folder / RUN, EVALS, 0))
    assert record.ledger is None and not record.is_broken

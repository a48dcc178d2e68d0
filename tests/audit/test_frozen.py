"""The frozen skill: ties read beside the held-out score, on archives whose truth is built in."""

import json

import polars as pl
import pytest

from deadheat.audit import AuditOptions, as_json, frozen
from deadheat.audit.frozen import entropy_bits
from deadheat.audit.lag import HeldOut, Reading, read_pair, shortfall
from deadheat.errors import ConfigError
from deadheat.stats.intervals import wilson
from deadheat.stats.shares import change

OPTIONS = AuditOptions(skill="hidden")


def _cipher(*, symbol_first: str = "0123", symbol_last: str = "01", steps: int = 60) -> pl.LazyFrame:
    """Two slots a string, slot 1 hidden. Slot 0 is always right. Slot 1 is right once in each string's group of 4.

    The reward is `slot 0 right` alone, so every group ties although some hidden draws are right. Held out: slot 0 goes
    from 1 of 12 to 12 of 12, slot 1 from 0 to 1 of 12.
    """
    columns = {
        "slot0_hidden": 0,
        "slot1_hidden": 1,
        "slot0_source": 4,
        "slot1_source": 1,
        "slot0_target": 9,
        "slot1_target": 6,
    }
    rows = []
    for step in range(1, steps + 1):
        symbols = symbol_first if step <= steps // 2 else symbol_last
        for i in range(4):
            hidden_right = i == 0
            answer = f"9 {'6' if hidden_right else symbols[(step + i) % len(symbols)]}"
            rows.append(_row("train", step, i, columns, answer, (True, hidden_right), reward=1.0))
    for step, right in ((0, (1, 0)), (steps, (12, 1))):
        for i in range(12):
            grades = (i < right[0], i < right[1])
            rows.append(_row("eval", step, 0, columns, "9 6", grades, reward=float(all(grades)), problem=str(i)))
    return pl.LazyFrame(rows)


def _row(purpose, step, sample, columns, answer, grades, *, reward, problem="0"):
    return {
        "purpose": purpose, "arm": "exact", "step": step, "group_id": f"{purpose}/{step}/{problem}", "sample": sample,
        "columns": json.dumps(columns), "answer": answer, "correct": all(grades), "reward": reward,
        "parts": json.dumps({f"slot{i}": float(g) for i, g in enumerate(grades)}),
    }  # fmt: skip


def _channels(rows: pl.LazyFrame, options: AuditOptions = OPTIONS) -> dict[str, object]:
    return {channel.channel: channel for channel in frozen(rows, options).channels}


def test_ties_with_a_held_out_score_at_the_floor_are_frozen_and_with_a_climb_converged():
    found = _channels(_cipher())
    assert found["skill"].tied.estimate == found["control"].tied.estimate == 1.0
    assert (found["skill"].reading, found["control"].reading) == (Reading.FROZEN, Reading.CONVERGED)
    assert (found["skill"].end.estimate, found["control"].end.estimate) == (pytest.approx(1 / 12), 1.0)


def test_where_right_draws_sit_in_live_groups_a_skill_that_lags_is_behind_without_ties():
    live = _cipher().with_columns(
        reward=pl.when((pl.col("purpose") == "train") & (pl.col("sample") == 3)).then(0.0).otherwise(pl.col("reward"))
    )
    assert _channels(live)["skill"].tied.estimate == 0.0
    readings = {name: channel.reading for name, channel in _channels(live).items()}
    assert readings == {"skill": Reading.BEHIND, "control": Reading.LEARNING}


def _held(k_0: int, k_1: int, n: int) -> HeldOut:
    start, end = wilson(k_0, n), wilson(k_1, n)
    return HeldOut(start=start, end=end, climb=change(start, end, correlation=0.0))


def test_0_of_11_to_2_of_11_cannot_say_why_without_a_control_that_shows_more():
    tied, skill = wilson(95, 100), _held(0, 2, 11)
    # The control closed 8/45 of its gap, so 18% was to be expected of the skill, and 2 of 11 is 18%.
    modest = shortfall(skill, _held(4, 12, 49))
    assert modest.estimate == pytest.approx(8 / 45 - 2 / 11)
    for control in (None, modest, shortfall(skill, _held(12, 4, 49))):
        assert read_pair(tied, skill.climb, control) is Reading.CANNOT_SAY
    # It closed all of it: 100% was to be expected.
    assert read_pair(tied, skill.climb, shortfall(skill, _held(2, 49, 49))) is Reading.FROZEN


def test_a_skill_that_climbs_is_not_frozen_though_its_control_climbs_higher():
    skill = _held(0, 20, 40)
    lag = shortfall(skill, _held(2, 49, 49))
    assert lag.low > 0
    assert read_pair(wilson(95, 100), skill.climb, lag) is Reading.CONVERGED


def test_without_a_control_nothing_is_frozen():
    alone = _cipher().with_columns(columns=pl.col("columns").str.replace('"slot0_hidden": 0', '"slot0_hidden": 1'))
    (found,) = frozen(alone.filter(pl.col("purpose") == "train"), OPTIONS).channels
    assert (found.shortfall, found.reading) == (None, Reading.UNREAD)


def test_slots_of_one_string_and_attempts_at_one_problem_are_drawn_together():
    # 60 groups of one problem, 4 hidden draws each, one right: 60 right draws of 240, and one problem.
    found = _channels(_cipher().with_columns(problem_id=pl.col("group_id").str.split("/").list.get(0)))["skill"]
    assert (found.right.n, found.right.num_clusters) == (240, 1)
    assert found.right.low < 0.05 and found.right.high > 0.75


def test_right_draws_that_a_drawing_left_out_are_told_beside_those_it_learned_from():
    assert _channels(_cipher())["skill"].not_kept is None
    late = (pl.col("purpose") == "train") & (pl.col("step") > 45)
    rows = _cipher().with_columns(purpose=pl.when(late).then(pl.lit("not-kept")).otherwise(pl.col("purpose")))
    found = _channels(rows)["skill"]
    # One right hidden draw a step: 15 of 60 in the steps that were left out.
    assert (found.not_kept.estimate, found.not_kept.n, found.right.n) == (0.25, 60, 4 * 45)
    assert "(25.0% of right draws not kept)" in frozen(rows, OPTIONS).sentence


def test_without_held_out_scores_the_pair_is_unread():
    assert _channels(_cipher().filter(pl.col("purpose") == "train"))["skill"].reading is Reading.UNREAD


def test_slots_mappings_and_strings_are_counted_apart():
    found = frozen(_cipher(), OPTIONS)
    # 60 steps × 4 draws of one hidden and one shown slot; one of four hidden ones right.
    assert [(c.channel, c.num_draws, c.right.estimate) for c in found.channels] == [
        ("skill", 240, 0.25),
        ("control", 240, 1.0),
    ]
    assert {(m.channel, m.mapping): m.right.estimate for m in found.mappings} == {
        ("skill", "1→6"): 0.25,
        ("control", "4→9"): 1.0,
    }
    assert [(s.kind, s.right.estimate, s.end.estimate) for s in found.strings] == [("with the skill", 0.25, 1 / 12)]


def test_the_guess_window_is_two_to_the_minus_entropy_of_the_sampled_symbols():
    # Of four draws one is 6 and three cycle evenly. First 25 steps: p = 1/4 for "6", 3/16 for each of four others:
    # H = ¼·2 + ¾·log2(16/3) = 2.311 within the 1/25 unevenness of 25 steps.
    found = _channels(_cipher())["skill"]
    assert found.entropy_first_bits == pytest.approx(2.311, abs=0.005)
    assert found.guess_low == pytest.approx(2**-found.entropy_first_bits)
    assert found.guess_high == pytest.approx(2**-found.entropy_last_bits)
    assert found.in_window is (found.guess_low <= 0.25 <= found.guess_high)
    assert found.structural_guess == 1.0  # one hidden mapping


def test_the_sources_entropies_are_the_window_12_to_30_percent():
    assert round(100 * 2**-3.06) == 12
    assert round(100 * 2**-1.76) == 30


def test_entropy_of_nothing_is_not_known():
    assert entropy_bits([]) is None


def test_a_regex_names_a_skill_and_the_other_prompts_are_its_control(groups):
    rows = groups([1.0, 1.0], [1.0, 0.0], prompt=["3 + 4 =", "3 - 4 ="])
    found = _channels(rows, AuditOptions(skill=r"\+"))
    assert (found["skill"].tied.estimate, found["control"].tied.estimate) == (1.0, 0.0)


def test_a_column_or_one_of_its_values_names_a_skill(groups):
    rows = groups([1.0, 1.0], [1.0, 0.0], columns=['{"level": 5}', '{"level": 0}'])
    assert _channels(rows, AuditOptions(skill="level"))["skill"].num_draws == 2
    assert _channels(rows, AuditOptions(skill="level=0"))["skill"].tied.estimate == 0.0


def test_a_skill_that_is_neither_column_nor_regex_is_refused(groups):
    with pytest.raises(ConfigError, match="no column of this archive"):
        frozen(groups([1.0, 0.0]), AuditOptions(skill="nothing"))
    with pytest.raises(ConfigError, match="no regular expression"):
        frozen(groups([1.0, 0.0], prompt="x"), AuditOptions(skill="("))


def test_order_of_rows_is_irrelevant(shuffled):
    rows = _cipher().collect()
    assert as_json(frozen(rows.lazy(), OPTIONS)) == as_json(frozen(shuffled(rows, 1).lazy(), OPTIONS))

"""The statistics on real public tables. Skipped where the data folder is missing."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deadheat.stats.floors import Zone, detection_floor, paired_floor, read_margin
from deadheat.stats.groups import capture, pass_at_k, within_group_resolution
from deadheat.stats.intervals import mean_score
from deadheat.stats.rules import Reason, VoteWords
from deadheat.stats.significance import mcnemar
from deadheat.stats.variance import variance_split
from deadheat.stats.verdict import Words, judge

DATA = Path(__file__).parents[2] / ".." / "shared" / "data"


def file_or_skip(name: str) -> Path:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"the public data file {name} is not on this machine")
    return path


def json_lines(name: str) -> list[dict[str, Any]]:
    with gzip.open(file_or_skip(name), "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def gsm8k(side: str) -> np.ndarray:
    rows = json_lines(f"rollouts_reasoning_gym/matheval_gsm8k_{side}.jsonl.gz")
    return np.array([float(row["score"][0]) for row in sorted(rows, key=lambda row: row["idx"])])


def test_a_published_gain_of_under_a_point_on_gsm8k_is_not_called() -> None:
    # 1,319 paired items, 64 gained and 54 lost: +.76 points; discordance 118/1319 = .0895.
    before, after = gsm8k("base"), gsm8k("rlft")
    test = mcnemar(after, before)
    assert (test.wins, test.losses, test.n, test.left_out) == (64, 54, 118, 1201)
    assert test.p_value == pytest.approx(0.407, abs=0.001)
    gap = float(after.mean() - before.mean())
    assert gap == pytest.approx(10 / 1319)
    # z·sqrt(.0895/1319) = 2.31 points paired; z·sqrt(2·.866·.134/1319) = 3.72 unpaired: pairing buys a third.
    paired, unpaired = paired_floor(1319, 118 / 1319), detection_floor(1319, float(before.mean()))
    assert (paired.floor_pp, unpaired.floor_pp) == (pytest.approx(2.31, abs=0.01), pytest.approx(3.72, abs=0.01))
    assert read_margin(gap, paired).zone is Zone.BELOW
    verdict = judge(after[None], before[None], key=1)
    assert verdict.words is Words.NOT_CALLED
    assert (verdict.votes.words, verdict.votes.reasons) == (VoteWords.NOT_CALLED, (Reason.NOT_SIGNIFICANT,))
    # One seed: the reading over items alone, so the smallest gap is near the paired floor.
    assert verdict.instrument.smallest is not None
    assert 100 * (verdict.instrument.smallest.gap or 0) == pytest.approx(paired.floor_pp, abs=0.25)


def test_published_win_rates_are_reproduced_from_their_votes() -> None:
    board = file_or_skip("judges_alpaca_eval/weighted_alpaca_eval_gpt4_turbo_leaderboard.csv")
    with board.open(encoding="utf-8") as file:
        published = {row[""]: row for row in csv.DictReader(file)}
    votes: dict[str, list[float]] = {}
    with gzip.open(file_or_skip("judges_alpaca_eval/preferences_numeric.csv.gz"), "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["judge"] == "weighted_alpaca_eval_gpt4_turbo" and row["preference"]:
                votes.setdefault(row["model"], []).append(float(row["preference"]) - 1)
    checked = sorted(set(votes) & set(published))
    assert len(checked) == 57  # the votes are stored to five decimals, hence the tolerance
    for model in checked:
        score = mean_score(votes[model])
        assert 100 * score.interval.estimate == pytest.approx(float(published[model]["win_rate"]), abs=2e-4), model
        assert 100 * score.se == pytest.approx(float(published[model]["standard_error"]), abs=2e-4), model


def test_pass_at_k_of_a_hundred_samples_per_problem() -> None:
    rows = json_lines("rollouts_codet/HumanEval_codegen16B_T0.8_n100_grades.jsonl.gz")
    right = np.array([sum(row["grades"]) for row in rows])
    # The folder's own figures: pass@1 22.1%, 43 of 164 never solved.
    assert pass_at_k(right, 100, 1).interval.estimate == pytest.approx(0.221, abs=0.0005)
    assert pass_at_k(right, 100, 100).interval.estimate == pytest.approx((164 - 43) / 164)


def test_a_reward_models_resolution_inside_groups() -> None:
    rows = json_lines("rollouts_qwen25math/math_cot_100_rm_maj8.jsonl.gz")
    scores = np.array([[score[0] for score in row["pred_score"]] for row in rows])
    right = np.array([row["score"] for row in rows], dtype=float)
    groups = [str(p) for p in range(100) for _ in range(8)]
    found = within_group_resolution(scores.ravel(), right.ravel(), groups)
    # The folder's own figures: .89 over 128 pairs in 10 mixed groups; 4 all wrong, 86 all right.
    assert (found.n, found.left_out, found.num_pairs) == (10, 90, 128)
    assert found.over_pairs == pytest.approx(0.89, abs=0.005)
    assert found.over_groups.low > 0.5
    one = capture("math 100", scores, right)
    assert one.mean_accuracy <= one.top_accuracy <= one.oracle_accuracy == pytest.approx(0.96)


def test_a_judges_own_jitter_is_told_from_the_texts_differences() -> None:
    path = file_or_skip("rollouts_tot/text_gpt-4_1.0_naive_cot_sample_10_start0_end100.json.gz")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        items = json.load(file)
    # Samples stand in for seeds: 10 × 100 texts, one judge, scorings of the texts that have all five.
    table = np.full((10, len(items), 1, 5), np.nan)
    for n, item in enumerate(items):
        for s, info in enumerate(item["infos"]):
            if len(info["rs"]) == 5:
                table[s, n, 0] = info["rs"]
    split = variance_split(table)
    kept = table[:, ~np.isnan(table).any(axis=(0, 2, 3)), 0]
    assert split.n == kept.shape[1] > 50
    assert split.jitter_var == pytest.approx(float(np.mean([np.var(cell, ddof=1) for cell in kept.reshape(-1, 5)])))
    pair_var = split.item_var + split.residual_var
    assert pair_var > split.jitter_var
    # Exchangeable samples have no mood of their own.
    assert split.seed_var < 0.02 * pair_var

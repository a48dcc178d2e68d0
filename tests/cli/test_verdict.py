"""`deadheat verdict`: two files, one long file, logs of other tools, checkpoints of a run."""

import json

import pytest
from rich.cells import cell_len

from deadheat.cli.sides import RuleName
from deadheat.errors import ArchiveError, ConfigError, StatsError
from deadheat.stats.votes import Rule


def test_six_items_to_nothing_in_three_seeds_are_called(run, parsed, table):
    # Pooled 6–0: p = 2/64 = .03125, and every seed's own net is +6.
    a, b = table("a.csv", [[1] * 6] * 3), table("b.csv", [[0] * 6] * 3)
    found = parsed("verdict", a, b)
    assert found["words"] == "called(a.csv)"
    assert found["comparison"]["verdict"]["test"]["p_value"] == 0.03125
    assert [row["tally"]["wins"] for row in found["comparison"]["seed_rows"]] == [6, 6, 6]
    swapped = parsed("verdict", b, a)
    assert swapped["words"] == "called(a.csv)"


def test_the_rules_disagree_where_one_seed_points_the_other_way(parsed, table):
    # Seeds 9–0, 9–0, 0–1 on ten items: pooled 9–1, p = 2·11/1024 = .0215; two of three seeds significant (p = .0039).
    a = table("a.csv", [[1] * 9 + [0], [1] * 9 + [0], [0] * 10])
    b = table("b.csv", [[0] * 10, [0] * 10, [0] * 9 + [1]])
    by_rule = {rule: parsed("verdict", a, b, "--rule", rule) for rule in ("two-part", "per-seed", "pooled")}
    assert by_rule["pooled"]["comparison"]["verdict"]["test"]["p_value"] == pytest.approx(22 / 1024)
    assert {rule: found["words"] for rule, found in by_rule.items()} == {
        "two-part": "not called",
        "per-seed": "not called",
        "pooled": "called(a.csv)",
    }
    # τ̂ and χ²: 18–1 decided votes, the one loss in the seed of one vote.
    assert by_rule["two-part"]["comparison"]["verdict"]["homogeneity"]["chi2"] == pytest.approx(19.0)


def test_rule_names_of_the_command_line_are_those_of_the_statistics():
    assert [rule.value for rule in RuleName] == [rule.value for rule in Rule]


def test_the_page_has_every_part_on_one_screen(run, run_folder):
    grades = {
        "good": {s: {0: [0] * 12, 10: [1] * 10 + [0] * 2} for s in (1, 2, 3)},
        "bad": {s: {0: [0] * 12, 10: [1, 1] + [0] * 10} for s in (1, 2, 3)},
    }
    folder = run_folder(grades)
    text = run("verdict", f"{folder}:good@final", f"{folder}:bad@final").stdout
    lines = text.splitlines()
    assert len(lines) <= 25 and max(map(cell_len, lines)) <= 80
    names = {line.split("  ")[0].strip() for line in lines}
    levels = {"crossed", "question", "flat", "nested"}
    assert names >= levels | {"pooled", "gain A", "gain B", "seeds", "decided", "catchable"}
    assert "Called(good@final)" in text and "8–0–4" in text


def test_a_side_that_learned_nothing_is_not_ranked(parsed, run_folder):
    same = {s: {0: [1, 1, 0, 0] * 3, 10: [1, 1, 0, 0] * 3} for s in (1, 2)}
    worse = {s: {0: [1, 1, 0, 0] * 3, 10: [0] * 12} for s in (1, 2)}
    folder = run_folder({"same": same, "worse": worse})
    found = parsed("verdict", f"{folder}:same@final", f"{folder}:worse@final")
    # 6–0 on the pooled votes, and yet neither gain clears 0: +0 points, −50 points.
    assert found["comparison"]["verdict"]["rule_words"] == "called(A)"
    assert found["words"] == "null against null: nothing learned, nothing to rank"
    gains = [gain["interval"]["estimate"] for gain in found["comparison"]["verdict"]["gains"]]
    assert gains == [0.0, -0.5]


def test_a_checkpoint_is_named_and_a_selected_one_is_marked(run, parsed, run_folder):
    grades = {"arm": {s: {0: [0] * 8, 75: [1] * 8, 100: [1] * 2 + [0] * 6} for s in (1, 2)}}
    folder = run_folder(grades, peak=75)
    found = parsed("verdict", f"{folder}:arm@peak", f"{folder}:arm@final")
    assert found["words"] == "called(arm@peak)"  # 6–0, p = .03125
    assert found["comparison"]["selected_a"] == "the pool it is read on"
    assert found["comparison"]["selected_b"] is None
    assert parsed("verdict", f"{folder}:arm@step-75", f"{folder}:arm@final")["words"] == "called(arm@step-75)"
    with pytest.raises(ArchiveError, match=r"no converged checkpoint; it was evaluated at \[0, 75, 100\]"):
        run("verdict", f"{folder}:arm@converged", f"{folder}:arm@final")
    with pytest.raises(ArchiveError, match="no arm 'other'; it has arm"):
        run("verdict", f"{folder}:other@final", f"{folder}:arm@final")


def test_an_unscored_answer_is_missing_and_never_zero(parsed, run_folder):
    folder = run_folder({"a": {1: {0: [0] * 3, 5: [None, 1, 1]}}, "b": {1: {0: [0] * 3, 5: [1, 0, 1]}}})
    found = parsed("verdict", f"{folder}:a@final", f"{folder}:b@final")["comparison"]
    # Of three items one lacks a grade: 1 win, 1 tie, no loss.
    assert found["seed_rows"][0]["tally"] == {"wins": 1, "ties": 1, "losses": 0, "missing": 1}
    assert found["missing_cells"] == 1


def test_items_of_one_side_are_listed_and_left_out(parsed, table):
    a = table("a.csv", [[1, 1, 0, None]])
    b = table("b.csv", [[0, None, 0, 1]])
    found = parsed("verdict", a, b)["comparison"]
    assert (found["n"], found["only_a"], found["only_b"]) == (2, ["q1"], ["q3"])
    assert found["seed_rows"][0]["tally"] == {"wins": 1, "ties": 1, "losses": 0, "missing": 0}
    assert any("items only in a.csv, left out: q1" in note for note in found["notes"])


def test_nothing_in_common_shows_both_key_sets(run, table):
    with pytest.raises(StatsError, match=r"no item in common: A has \['q0', 'q1'\], B has \['r0', 'r1'\]"):
        run("verdict", table("a.csv", [[1, 0]]), table("b.csv", [[1, 0]], prefix="r"))


def test_three_epochs_of_five_hundred_items_are_not_1500_items(parsed, tmp_path):
    # Item n of A: right in all epochs for n < 20; B right in none. Epochs are averaged within the item.
    for name, right in (("a", 20), ("b", 0)):
        rows = [{"item": n, "epoch": e, "score": int(n < right)} for e in range(3) for n in range(500)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    found = parsed("verdict", tmp_path / "a.jsonl", tmp_path / "b.jsonl")["comparison"]
    assert (found["n"], found["repeats_a"]) == (500, 1000)
    assert found["verdict"]["pooled"]["wins"] == 20  # not 60
    assert found["differences"][0]["n"] == 500


def test_one_long_file_is_split_by_a_column_and_judges_are_not_mixed(run, parsed, tmp_path):
    path = tmp_path / "long.csv"
    rows = [f"{arm},{judge},q{n},{int(arm == 'x')}" for arm in "xyz" for judge in "jk" for n in range(8)]
    path.write_text("\n".join(["arm,judge,item,score", *rows]), encoding="utf-8")
    with pytest.raises(ArchiveError, match="differ in column 'judge'"):
        run("verdict", path, "--side", "arm=x,y")
    found = parsed("verdict", path, "--side", "arm=x,y", "--where", "judge=j")
    assert found["words"] == "called(x)" and found["comparison"]["n"] == 8  # 8–0: p = 2/256
    with pytest.raises(ConfigError, match="holds x, y, z; wanted two of them"):
        run("verdict", path, "--side", "arm", "--where", "judge=j")
    with pytest.raises(ArchiveError, match="no row has judge = q; it holds j, k"):
        run("verdict", path, "--side", "arm=x,y", "--where", "judge=q")


def test_a_tie_band_turns_small_differences_into_ties(parsed, table):
    a, b = table("a.csv", [[0.9, 0.52, 0.1]]), table("b.csv", [[0.1, 0.5, 0.1]])
    assert parsed("verdict", a, b)["comparison"]["verdict"]["pooled"]["ties"] == 1
    assert parsed("verdict", a, b, "--tie-band", 0.05)["comparison"]["verdict"]["pooled"]["ties"] == 2


def test_equal_scores_everywhere_give_an_interval_of_zero_width_that_says_so(run, parsed, table):
    a, b = table("a.csv", [[1, 0, 1], [1, 1, 1]]), table("b.csv", [[1, 0, 1], [1, 1, 1]])
    found = parsed("verdict", a, b)
    interval = found["comparison"]["differences"][0]
    assert (interval["low"], interval["estimate"], interval["high"]) == (0.0, 0.0, 0.0)
    assert interval["note"] == "zero width: all cells are equal"
    assert found["comparison"]["verdict"]["test"]["p_value"] == 1.0
    assert "says nothing of the gap it could call" in run("verdict", a, b).stdout


def test_a_baseline_file_gives_each_side_its_gain(parsed, table):
    before = table("before.csv", [[0, 0, 1, 1]])
    a, b = table("a.csv", [[1, 1, 1, 1]] * 2), table("b.csv", [[0, 0, 1, 0]] * 2)
    found = parsed("verdict", a, b, "--baseline-a", before, "--baseline-b", before)
    gains = [gain["interval"]["estimate"] for gain in found["comparison"]["verdict"]["gains"]]
    assert gains == [0.5, -0.25]  # one baseline seed stands for both


def test_the_same_key_prints_the_same_bytes_and_another_key_other_ones(run, table):
    a = table("a.csv", [[1, 0, 1, 1, 0, 1, 0, 0]] * 2)
    b = table("b.csv", [[0, 0, 1, 0, 1, 1, 0, 1]] * 2)
    first, again, other = (run("verdict", a, b, "--json", "--key", key).stdout for key in (1, 1, 2))
    assert first == again != other


def test_a_published_gain_on_gsm8k_is_not_called_from_the_files_themselves(parsed, data):
    before = data("rollouts_reasoning_gym/matheval_gsm8k_base.jsonl.gz")
    after = data("rollouts_reasoning_gym/matheval_gsm8k_rlft.jsonl.gz")
    found = parsed("verdict", after, before)
    v = found["comparison"]["verdict"]
    # 64–54 on 1,319 items: +.76 points, p = .407.
    assert (found["words"], v["pooled"]["wins"], v["pooled"]["losses"]) == ("not called", 64, 54)
    assert v["test"]["p_value"] == pytest.approx(0.407, abs=0.001)
    assert 100 * v["catchable"]["gap_frac"] == pytest.approx(2.37, abs=0.15)


def test_an_lm_eval_log_is_read_by_document_and_metric(run, parsed, data):
    asdiv = data("rollouts_lm_eval/samples_asdiv_cot_Meta-Llama-3-8B-Instruct.jsonl.gz")
    found = parsed("verdict", asdiv, asdiv)["comparison"]
    assert (found["n"], found["mean_a"]["estimate"]) == (50, 0.92)
    truthful = data("rollouts_lm_eval/samples_truthfulqa_gen.jsonl.gz")
    with pytest.raises(ArchiveError, match="has the scores bleu_max, bleu_acc"):
        run("verdict", truthful, truthful)
    found = parsed("verdict", truthful, truthful, "--value", "bleu_acc")["comparison"]
    assert found["n"] == 817 and found["mean_a"]["estimate"] == pytest.approx(320 / 817)
    with pytest.raises(StatsError, match="no item in common"):
        run("verdict", asdiv, data("rollouts_inspect/popularity_gpt-4o-mini_3.json"))


def test_inspect_logs_are_read_and_their_epochs_are_not_items(parsed, data):
    five = data("rollouts_inspect/popularity_claude-sonnet-4_10x5.eval")
    one = data("rollouts_inspect/popularity_gpt-4o-mini_10_MAIN.eval")
    found = parsed("verdict", five, one)["comparison"]
    # 50 records of 10 samples, 33 of them right.
    assert (found["n"], found["repeats_a"], found["repeats_b"]) == (10, 40, 0)
    assert found["mean_a"]["estimate"] == pytest.approx(33 / 50)
    old = data("rollouts_inspect/popularity_gpt-4o-mini_3.json")
    assert parsed("verdict", one, old)["comparison"]["only_a"] == ["10", "4", "5", "6", "7", "8", "9"]


def test_judged_preferences_of_two_models_are_compared_prompt_by_prompt(parsed, data):
    path = data("judges_alpaca_eval/preferences_numeric.csv.gz")
    judge = ("--where", "judge=weighted_alpaca_eval_gpt4_turbo")
    found = parsed("verdict", path, "--side", "model=NullModel,gpt4_gamed", *judge)["comparison"]
    # The published win rate of NullModel is 76.92% over 805 prompts; preferences run from 1 to 2.
    assert found["n"] == 805 and not found["is_share"]
    assert 100 * (found["mean_a"]["estimate"] - 1) == pytest.approx(76.92, abs=0.005)


def test_a_figure_is_written(run, table, tmp_path):
    path = tmp_path / "gap.svg"
    run("verdict", table("a.csv", [[1, 0, 1]] * 2), table("b.csv", [[0, 0, 1]] * 2), "--plot", path)
    assert "crossed" in path.read_text(encoding="utf-8")
    with pytest.raises(ConfigError, match=r"\.svg, \.png or \.pdf"):
        run("verdict", table("a.csv", [[1]]), table("b.csv", [[0]]), "--plot", tmp_path / "gap.gif")


def test_a_call_by_votes_against_a_mean_that_holds_zero_asks_for_a_tie_band(parsed, table):
    # A is ahead by .01 on 30 items and behind by .2 on 5: 30–5, p = 1.1e-5 or so, mean (.3 − 1)/35 = −.02.
    a, b = table("a.csv", [[0.51] * 30 + [0.3] * 5]), table("b.csv", [[0.5] * 35])
    found = parsed("verdict", a, b)
    assert found["words"] == "called(a.csv)"
    assert found["comparison"]["differences"][0]["estimate"] == pytest.approx(-0.02)
    assert found["comparison"]["notes"][0].startswith("the votes call a winner while the mean's interval holds 0")
    banded = parsed("verdict", a, b, "--tie-band", 0.05)
    assert (banded["words"], banded["comparison"]["verdict"]["pooled"]["losses"]) == ("not called", 5)

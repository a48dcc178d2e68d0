"""`deadheat verdict`: two files, one long file, logs of other tools, checkpoints of a run."""

import json

import pytest
from rich.cells import cell_len

from deadheat.cli.sides import RuleName
from deadheat.cli.verdict import FixedName, ResampledName
from deadheat.errors import ArchiveError, ConfigError, StatsError
from deadheat.stats.resampling import Level
from deadheat.stats.verdict import Fixed
from deadheat.stats.votes import Rule


def test_the_head_of_the_json_is_flat_and_names_its_schema(parsed, table):
    a, b = table("a.csv", [[1] * 30 + [0] * 10, [1] * 28 + [0] * 12]), table("b.csv", [[0] * 40, [0] * 39 + [1]])
    found = parsed("verdict", a, b)
    assert (found["schema"], found["version"]) == ("deadheat.verdict", 2)
    assert (found["words"], found["winner"], found["scope"]) == ("called(a.csv)", "A", "recipes")
    assert found["estimate"] == pytest.approx(0.7125) and found["low"] < found["estimate"] < found["high"]
    assert (found["level"], found["n"], found["seeds"], found["coupled"]) == (0.95, 40, 2, False)
    assert all(not isinstance(value, (dict, list)) for name, value in found.items() if name != "comparison")
    swapped = parsed("verdict", b, a)
    assert (swapped["words"], swapped["winner"]) == ("called(a.csv)", "B")
    assert swapped["estimate"] == pytest.approx(-found["estimate"])


def test_six_items_to_nothing_in_three_seeds_are_these_runs_at_most_and_copies_are_found(parsed, table):
    # All three seeds are one: pooled 6–0 has p = 2/64 = .03125, and over items half = t₇·√(8/7/8·…) is above 1.
    a, b = table("a.csv", [[1] * 6] * 3), table("b.csv", [[0] * 6] * 3)
    found = parsed("verdict", a, b, "--coupled")
    assert found["words"] == "these runs only(a.csv)"
    assert found["comparison"]["verdict"]["votes"]["test"]["p_value"] == 0.03125
    assert parsed("verdict", a, b, "--coupled", "--rule", "two_part")["words"] == "called(a.csv)"


def test_the_rules_disagree_where_one_seed_points_the_other_way(parsed, table):
    # Seeds 9–0, 8–0, 0–1 on ten items: pooled 9–1, p = 2·11/1024 = .0215; two of three seeds significant.
    a = table("a.csv", [[1] * 9 + [0], [1] * 8 + [0] * 2, [0] * 10])
    b = table("b.csv", [[0] * 10, [0] * 10, [0] * 9 + [1]])
    words = {
        rule: parsed("verdict", a, b, "--coupled", "--rule", rule)["words"]
        for rule in ("seeds_and_items", "two_part", "per_seed", "pooled")
    }
    assert words == {
        "seeds_and_items": "these runs only(a.csv)",
        "two_part": "not called",
        "per_seed": "not called",
        "pooled": "called(a.csv)",
    }
    found = parsed("verdict", a, b, "--coupled")["comparison"]["verdict"]["votes"]
    assert found["test"]["p_value"] == pytest.approx(22 / 1024)
    assert found["homogeneity"]["chi2"] == pytest.approx(18.0)  # 17–1 decided votes, the one loss in a seed of one vote


def test_rule_names_of_the_command_line_are_those_of_the_statistics():
    assert [rule.value for rule in RuleName] == [rule.value for rule in Rule]


def test_names_of_the_command_line_are_those_of_the_statistics():
    assert [level.value for level in ResampledName] == [level.value for level in Level]
    assert [side.value for side in FixedName] == [side.value for side in Fixed]


def test_the_page_has_every_part_on_one_screen(run, run_folder):
    grades = {
        "good": {s: {0: [0] * 12, 10: [1] * (9 + s % 2) + [0] * (3 - s % 2)} for s in (1, 2, 3)},
        "bad": {s: {0: [0] * 12, 10: [1] * (1 + s % 2) + [0] * (11 - s % 2)} for s in (1, 2, 3)},
    }
    folder = run_folder(grades)
    text = run("verdict", f"{folder}:good@final", f"{folder}:bad@final").stdout
    lines = text.splitlines()
    assert len(lines) <= 26 and max(map(cell_len, lines)) <= 80
    names = {line.split("  ")[0].strip() for line in lines}
    said = {"decided by", "half-widths", "two-part rule", "false calls", "smallest gap", "seeds"}
    assert names >= said | {"pooled", "gain A", "gain B"}
    assert "Called: good@final beats bad@final, for these recipes." in text and "8–0–4" in text
    assert not {"crossed", "flat", "nested"} & names
    asked = run("verdict", f"{folder}:good@final", f"{folder}:bad@final", "--interval", "flat").stdout
    assert "95% [" in next(line for line in asked.splitlines() if line.startswith("flat"))


def test_a_side_that_learned_nothing_is_not_ranked(parsed, run_folder):
    same = {s: {0: [1, 1, 0, 0] * 9, 10: [1, 1, 0, 0] * 9} for s in (1, 2)}
    worse = {s: {0: [1, 1, 0, 0] * 9, 10: [0] * (35 + s % 2) + [1] * (1 - s % 2)} for s in (1, 2)}
    folder = run_folder({"same": same, "worse": worse})
    found = parsed("verdict", f"{folder}:same@final", f"{folder}:worse@final")
    # A leads by half of the items in both seeds, and yet neither gain clears 0 from above.
    assert found["words"] == "null against null: nothing learned, nothing to rank"
    assert found["low"] > 0
    gains = [gain["effect"]["estimate"] for gain in found["comparison"]["verdict"]["gains"]]
    assert gains[0] == 0.0 and gains[1] == pytest.approx(-35 / 72)


@pytest.mark.parametrize(
    ("wins", "losses", "words", "code"),
    [
        ([30, 29], [1, 0], "called(a.csv)", 0),
        ([1, 0], [30, 29], "called(b.csv)", 3),
        ([30], [1], "these runs only(a.csv)", 4),
        ([1], [30], "these runs only(b.csv)", 5),
        ([9, 9, 10, 9], [9, 10, 9, 10], "dead heat within ±30 pp", 6),
        ([16, 6], [5, 6], "not called", 7),
    ],
)
def test_each_word_has_its_exit_status(run, table, wins, losses, words, code):
    def grades(counts, start):
        return [[int(start(s) <= n < start(s) + k) for n in range(40)] for s, k in enumerate(counts)]

    a, b = (
        table("a.csv", grades(wins, lambda s: 0)),
        table("b.csv", grades(losses, lambda s: wins[s] if s < len(wins) else 0)),
    )
    said = run("verdict", a, b, "--coupled", "--within", 0.3, "--exit-code", "--json", code=code).stdout
    assert json.loads(said)["words"].split(", and")[0] == words
    run("verdict", a, b, "--coupled")


@pytest.mark.parametrize(
    ("name", "marks"),
    [("markdown", ["| seed |", "|:--|"]), ("latex", [r"\begin{tabular}", r"\hline"]), ("html", ["<table>", "<td>"])],
)
def test_a_verdict_is_written_for_a_paper_or_a_pull_request(run, table, name, marks):
    a, b = table("a.csv", [[1] * 30 + [0] * 10, [1] * 28 + [0] * 12]), table("b.csv", [[0] * 40, [0] * 39 + [1]])
    text = run("verdict", a, b, "--coupled", "--format", name).stdout
    assert text.startswith(("Called", "<p>Called")) and all(mark in text for mark in marks)
    assert "+71.2" in text and "pooled" in text


def test_two_files_are_uncoupled_and_every_seed_of_both_is_kept(run, parsed, table):
    a, b = (
        table("a.csv", [[1] * 20 + [0] * 20, [1] * 22 + [0] * 18]),
        table("b.csv", [[0] * 30 + [1] * k + [0] * (10 - k) for k in (1, 2, 3, 4, 5)]),
    )
    found = parsed("verdict", a, b)
    assert (found["coupled"], found["seeds"]) == (False, 2)
    assert [(row["side"], row["seed"]) for row in found["comparison"]["side_rows"]] == [
        ("A", "1"), ("A", "2"), *(("B", str(s)) for s in range(1, 6)),
    ]  # fmt: skip
    assert "A 2" in run("verdict", a, b).stdout
    coupled = parsed("verdict", a, b, "--coupled")
    assert coupled["comparison"]["seeds_left_out"] == ["3", "4", "5"]


def test_a_fixed_baseline_is_one_model(run, parsed, table):
    a, b = table("a.csv", [[1] * 30 + [0] * 10, [1] * 28 + [0] * 12]), table("b.csv", [[0] * 38 + [1] * 2])
    found = parsed("verdict", a, b, "--fixed", "B")
    assert found["words"] == "called(a.csv) against this very b.csv"
    assert "against this very b.csv" in run("verdict", a, b, "--fixed", "B").stdout
    with pytest.raises(StatsError, match="A is fixed and has 2 seeds"):
        run("verdict", a, b, "--fixed", "A")


def test_items_of_one_passage_are_drawn_together(run, parsed, tmp_path):
    # 12 passages of 10 questions: A right on all of a passage or none. As items n is 120, as passages 12.
    for name, right in (("a", 9), ("b", 3)):
        rows = [f"{s},p{c}q{q},p{c},{int(c < right)}" for s in (1, 2) for c in range(12) for q in range(10)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["seed,item,passage,score", *rows]), encoding="utf-8")
    a, b = tmp_path / "a.csv", tmp_path / "b.csv"
    plain, clustered = parsed("verdict", a, b), parsed("verdict", a, b, "--cluster", "passage")
    assert (clustered["clusters"], plain["clusters"]) == (12, None)
    assert clustered["p_items"] > 100 * plain["p_items"]
    assert "120 items in 12 clusters" in " ".join(
        run("verdict", a, b, "--cluster", "passage").stdout.replace("┃", "").split()
    )


def test_a_checkpoint_is_named_and_a_selected_one_is_marked(run, parsed, run_folder):
    grades = {"arm": {s: {0: [0] * 8, 75: [1] * 8, 100: [1] * 2 + [0] * 6} for s in (1, 2)}}
    folder = run_folder(grades, peak=75)
    found = parsed("verdict", f"{folder}:arm@peak", f"{folder}:arm@final")
    # Both seeds are alike: one of them is a copy, and one seed says these runs only. 6–0 has p = .03125.
    assert found["words"] == "these runs only(arm@peak)"
    assert found["comparison"]["selected_a"] == "the pool it is read on"
    assert found["comparison"]["selected_b"] is None
    assert parsed("verdict", f"{folder}:arm@step-75", f"{folder}:arm@final")["words"] == "these runs only(arm@step-75)"
    with pytest.raises(ArchiveError, match=r"no converged checkpoint; it was evaluated at \[0, 75, 100\]"):
        run("verdict", f"{folder}:arm@converged", f"{folder}:arm@final")
    with pytest.raises(ArchiveError, match="no arm 'other'; it has arm"):
        run("verdict", f"{folder}:other@final", f"{folder}:arm@final")


def test_an_unscored_answer_is_missing_and_never_zero(parsed, run_folder):
    folder = run_folder({"a": {1: {0: [0] * 3, 5: [None, 1, 1]}}, "b": {1: {0: [0] * 3, 5: [1, 0, 1]}}})
    found = parsed("verdict", f"{folder}:a@final", f"{folder}:b@final")["comparison"]
    # Of three items one lacks a grade: 1 win, 1 tie, no loss.
    assert found["seed_rows"][0]["tally"] == {"wins": 1, "ties": 1, "losses": 0, "missing": 1}
    assert found["verdict"]["effect"]["left_out"] == 1


def test_items_of_one_side_are_listed_and_left_out(parsed, table):
    a = table("a.csv", [[1, 1, 0, None]])
    b = table("b.csv", [[0, None, 0, 1]])
    found = parsed("verdict", a, b)["comparison"]
    assert (found["n"], found["only_a"], found["only_b"]) == (2, ["q1"], ["q3"])
    assert found["verdict"]["votes"]["pooled"] == {"wins": 1, "ties": 1, "losses": 0, "missing": 0}
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
    assert found["verdict"]["votes"]["pooled"]["wins"] == 20  # not 60
    assert found["verdict"]["effect"]["n"] == 500


def test_one_long_file_is_split_by_a_column_and_judges_are_not_mixed(run, parsed, tmp_path):
    path = tmp_path / "long.csv"
    rows = [f"{arm},{judge},q{n},{int(arm == 'x')}" for arm in "xyz" for judge in "jk" for n in range(8)]
    path.write_text("\n".join(["arm,judge,item,score", *rows]), encoding="utf-8")
    with pytest.raises(ArchiveError, match="differ in column 'judge'"):
        run("verdict", path, "--side", "arm=x,y")
    found = parsed("verdict", path, "--side", "arm=x,y", "--where", "judge=j")
    assert found["words"] == "these runs only(x)" and found["comparison"]["n"] == 8  # 8–0: p = 2/256
    with pytest.raises(ConfigError, match="holds x, y, z; wanted two of them"):
        run("verdict", path, "--side", "arm", "--where", "judge=j")
    with pytest.raises(ArchiveError, match="no row has judge = q; it holds j, k"):
        run("verdict", path, "--side", "arm=x,y", "--where", "judge=q")


def test_a_tie_band_turns_small_differences_into_ties(parsed, table):
    a, b = table("a.csv", [[0.9, 0.52, 0.1]]), table("b.csv", [[0.1, 0.5, 0.1]])
    assert parsed("verdict", a, b)["comparison"]["verdict"]["votes"]["pooled"]["ties"] == 1
    assert parsed("verdict", a, b, "--tie-band", 0.05)["comparison"]["verdict"]["votes"]["pooled"]["ties"] == 2


def test_equal_sides_have_an_interval_and_are_named(run, parsed, table):
    a, b = table("a.csv", [[1, 0, 1] * 10, [1, 1, 1] * 10]), table("b.csv", [[1, 0, 1] * 10, [1, 1, 1] * 10])
    found = parsed("verdict", a, b, "--coupled")
    # Two more items, +1 and −1: 2/31/32·(32/30)², times t₃₁.
    half = 2.0395 * (2 / 31 / 32 * (32 / 30) ** 2) ** 0.5
    assert (found["low"], found["high"]) == (pytest.approx(-half, rel=1e-3), pytest.approx(half, rel=1e-3))
    assert found["p_value"] == 1.0
    text = " ".join(run("verdict", a, b, "--coupled").stdout.split())
    assert "A and B hold the same scores" in text and "says nothing of the gap it could call" in text


def test_a_baseline_file_gives_each_side_its_gain(parsed, table):
    before = table("before.csv", [[0, 0, 1, 1]])
    a, b = table("a.csv", [[1, 1, 1, 1]] * 2), table("b.csv", [[0, 0, 1, 0]] * 2)
    found = parsed("verdict", a, b, "--baseline-a", before, "--baseline-b", before)
    gains = [gain["effect"]["estimate"] for gain in found["comparison"]["verdict"]["gains"]]
    assert gains == [0.5, -0.25]  # one baseline seed stands for both


def test_the_same_key_prints_the_same_bytes_and_another_key_other_ones(run, table):
    a = table("a.csv", [[1, 0, 1, 1, 0, 1, 0, 0], [1, 1, 1, 1, 0, 1, 0, 0]])
    b = table("b.csv", [[0, 0, 1, 0, 1, 1, 0, 1], [0, 1, 1, 0, 1, 0, 0, 1]])
    first, again, other = (run("verdict", a, b, "--json", "--key", key).stdout for key in (1, 1, 2))
    assert first == again != other


def test_a_published_gain_on_gsm8k_is_not_called_from_the_files_themselves(parsed, data):
    before = data("rollouts_reasoning_gym/matheval_gsm8k_base.jsonl.gz")
    after = data("rollouts_reasoning_gym/matheval_gsm8k_rlft.jsonl.gz")
    found = parsed("verdict", after, before)
    v = found["comparison"]["verdict"]
    # 64–54 on 1,319 items: +.76 points, p = .407.
    assert (found["words"], found["won"], found["lost"]) == ("not called", 64, 54)
    assert v["votes"]["test"]["p_value"] == pytest.approx(0.407, abs=0.001)
    assert 100 * found["smallest_gap"] == pytest.approx(2.37, abs=0.15)


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
    assert found["n"] == 805 and not found["verdict"]["is_share"]
    assert 100 * (found["mean_a"]["estimate"] - 1) == pytest.approx(76.92, abs=0.005)


def test_a_figure_is_written(run, table, tmp_path):
    path = tmp_path / "gap.svg"
    run("verdict", table("a.csv", [[1, 0, 1]]), table("b.csv", [[0, 0, 1]]), "--plot", path, "--coupled")
    assert "seed" in path.read_text(encoding="utf-8")
    with pytest.raises(ConfigError, match=r"\.svg, \.png or \.pdf"):
        run("verdict", table("a.csv", [[1]]), table("b.csv", [[0]]), "--plot", tmp_path / "gap.gif")


def test_a_call_by_votes_against_a_mean_that_holds_zero_asks_for_a_tie_band(parsed, table):
    # A is ahead by .01 on 30 items and behind by .2 on 5: 30–5, p = 1.1e-5 or so, mean (.3 − 1)/35 = −.02.
    a, b = table("a.csv", [[0.51] * 30 + [0.3] * 5]), table("b.csv", [[0.5] * 35])
    found = parsed("verdict", a, b)
    assert found["words"] == "not called" and found["estimate"] == pytest.approx(-0.02)
    assert found["comparison"]["notes"][0].startswith("the votes call a winner while the mean's interval holds 0")
    banded = parsed("verdict", a, b, "--tie-band", 0.05)
    assert (banded["words"], banded["comparison"]["verdict"]["votes"]["pooled"]["losses"]) == ("not called", 5)

"""`deadheat trajectory`."""

import pytest
from rich.cells import cell_len

from deadheat.errors import ArchiveError, StatsError

# Ten items; A leads early (8–2 right at step 10), B ends ahead (4 against 9 at step 30).
GRADES = {
    "a": {s: {0: [0] * 10, 10: [1] * 8 + [0] * 2, 20: [1] * 5 + [0] * 5, 30: [1] * 4 + [0] * 6} for s in (1, 2)},
    "b": {s: {0: [0] * 10, 10: [1] * 2 + [0] * 8, 20: [1] * 8 + [0] * 2, 30: [1] * 9 + [0]} for s in (1, 2)},
}


def test_an_early_lead_that_turns_is_a_flip(parsed, run_folder):
    report = parsed("trajectory", run_folder(GRADES))
    (pair,) = report["reading"]["pairs"]
    # A − B at 0, 10, 20, 30: 0, +.6, −.3, −.5; converged −.5: one flip, two on its side.
    assert [reading["effect"]["estimate"] for reading in pair["readings"]] == pytest.approx([0, 0.6, -0.3, -0.5])
    assert (pair["flips"], pair["on_converged_side"]) == (1, 2)
    assert pair["converged"]["estimate"] == pytest.approx(-0.5)
    # Cells before convergence: steps 10 and 20. The point reading is right at 20 only; the peak so far at 20 ties: 8, 8.
    scores = {score["summary"]: (score["right"], score["cells"]) for score in report["reading"]["scores"]}
    assert (scores["point"], scores["peak so far"]) == ((1, 2), (0, 2))
    assert any("no rule of convergence fired" in note for note in report["notes"])


def test_the_same_runs_are_read_four_ways(parsed, run_folder):
    four = parsed("trajectory", run_folder(GRADES), "--shared-step", 10)["four"]
    # Items 1–5 select. At step 10 A has 5 of them and B 2: 3–0.
    shared = four["shared_step_selection_pool"]["pooled"]
    assert (shared["wins"], shared["losses"], shared["ties"]) == (3, 0, 2)
    assert four["converged_whole_pool"]["pooled"]["losses"] == 5
    # On items 6–10, final: A 0, B 4. Selected on 1–5: A at step 10 (3 of 6–10), B first at step 20 (3): a tie on all.
    assert four["final_fresh"]["pooled"]["losses"] == 4
    assert four["selected_then_fresh"]["pooled"]["ties"] == 5
    assert four["selected_then_fresh"]["selected_on"] == "selection pool"
    assert four["final_fresh"]["pool"] == "confirmatory"


def test_a_run_that_ended_early_stands_at_its_last_checkpoint(parsed, run_folder):
    grades = {arm: dict(seeds) for arm, seeds in GRADES.items()}
    grades["a"][2] = {step: row for step, row in GRADES["a"][2].items() if step <= 20}
    report = parsed("trajectory", run_folder(grades))
    assert any("a, seed 2: the run ended at step 20" in note for note in report["notes"])
    # Seed 1: .4 − .9; seed 2: .5 − .9.
    last = report["reading"]["pairs"][0]["readings"][-1]["effect"]["estimate"]
    assert last == pytest.approx((-0.5 - 0.4) / 2)


def test_the_log_of_another_tool_is_one_long_table(parsed, tmp_path):
    rows = ["method,step,item,score"]
    for arm, lead in (("x", 1), ("y", 0)):
        rows += [f"{arm},{step},q{n},{int(n < 3 + lead * step)}" for step in (0, 1, 2) for n in range(6)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(rows), encoding="utf-8")
    report = parsed("trajectory", path, "--arm", "method")
    gaps = [reading["effect"]["estimate"] for reading in report["reading"]["pairs"][0]["readings"]]
    assert gaps == pytest.approx([0, 1 / 6, 2 / 6])


def test_the_page_the_figure_and_the_html_are_written(run, run_folder, tmp_path):
    figure, page = tmp_path / "t.svg", tmp_path / "t.html"
    lines = run("trajectory", run_folder(GRADES), "--plot", figure, "--html", page).stdout.splitlines()
    assert len(lines) <= 32 and max(map(cell_len, lines)) <= 80
    assert "training step" in figure.read_text(encoding="utf-8")
    text = page.read_text(encoding="utf-8")
    assert "read four ways" in text and "<svg" in text


def test_one_arm_and_a_folder_that_is_no_run_are_refused(run, run_folder, tmp_path):
    with pytest.raises(StatsError, match="1 arms; a trajectory is read between at least 2"):
        run("trajectory", run_folder({"a": GRADES["a"]}))
    (tmp_path / "other").mkdir()
    with pytest.raises(ArchiveError, match="is no run folder"):
        run("trajectory", tmp_path / "other")

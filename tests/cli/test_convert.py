"""`deadheat convert` and `deadheat rescore`."""

import json

import pytest

from deadheat.archive import read
from deadheat.errors import ArchiveError, ConfigError
from deadheat.tasks import load_task, parse_task


def lines(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def test_a_log_becomes_an_archive_and_the_report_is_printed(run, tmp_path):
    records = [{"input": "a", "output": f"o{n}", "score": n % 2, "step": 1} for n in range(4)]
    path = lines(tmp_path / "1.jsonl", [*records, {"input": "b", "output": "o", "score": 1, "step": 1}])
    said = run("convert", path, "--to", tmp_path / "out", "--group-size", 4).stdout
    assert "verl, 1 files, 4 rollouts, 1 groups" in said
    assert "1 prompt text; sizes 1 of 4; G = 4 declared" in said
    assert "1 rows share it by prompt text; wanted 4" in said
    assert read(tmp_path / "out").report.num_rows == 4


def test_json_holds_the_report(parsed, tmp_path):
    path = lines(tmp_path / "t.jsonl", [{"who": "a", "points": 1}, {"who": "a", "points": 0}])
    told = parsed("convert", path, "--to", tmp_path / "out", "--map", "group=who", "--map", "reward=points")
    assert (told["num_rows"], told["num_shards"]) == (2, 1)
    assert told["report"]["format"] == "plain"
    assert told["report"]["recovered"] == {"explicit": 1}


def test_a_map_without_its_two_halves_is_refused(run, tmp_path):
    path = lines(tmp_path / "t.jsonl", [{"who": "a", "points": 1}])
    with pytest.raises(ConfigError, match="--map is 'group'; wanted OURS=THEIRS"):
        run("convert", path, "--to", tmp_path / "out", "--map", "group")


def test_stored_answers_are_graded_again(run, parsed, tmp_path):
    task = load_task(parse_task("addition"))
    problem = task.training[0]
    records = [
        {"problem_id": problem.problem_id, "prompt": problem.prompt, "completion": text, "reward": 0, "reference": "?"}
        for text in (task.gold_text(problem), "none")
    ]
    path = lines(tmp_path / "t.jsonl", records)
    told = parsed("rescore", path, "--task", "addition", "--to", tmp_path / "out", "--map", "group=problem_id")
    assert (told["num_scored"], told["num_unscored"]) == (2, 0)
    rows = read(tmp_path / "out").rows.collect()
    assert rows["reward"].to_list() == [1.0, 0.0]
    assert rows["part:reward_before"].to_list() == [0.0, 0.0]
    with pytest.raises(ConfigError, match="did you mean 'addition'"):
        run("rescore", path, "--task", "adition", "--to", tmp_path / "other")


def test_summaries_hold_no_answers_to_grade(run, tmp_path):
    path = tmp_path / "steps.csv"
    path.write_text("step,reward_avg\n1,0.25\n2,0.5\n", encoding="utf-8")
    with pytest.raises(ArchiveError, match="holds group summaries and no answers"):
        run("rescore", path, "--task", "addition", "--to", tmp_path / "out")

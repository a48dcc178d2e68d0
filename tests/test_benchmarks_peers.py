"""The peers' benchmark times nothing where the sides differ, and reports a side that fails; its arithmetic by hand."""

import doctest
import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def peers(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return lambda name: importlib.import_module(f"peers.{name}")


def write(folder, side, **arrays):
    np.savez(folder / f"{side}.npz", **{name: np.array(values) for name, values in arrays.items()})


@pytest.mark.parametrize("name", ["job", "rows", "same"])
def test_the_examples_in_its_docstrings_hold(peers, name):
    outcome = doctest.testmod(peers(name))
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_updates_that_agree_within_the_bounds_are_timed(peers, tmp_path):
    write(tmp_path, "ours", logprobs=[-1.0, -2.0], w=[0.5, -4.0])
    write(tmp_path, "theirs", logprobs=[-1.00005, -2.0], w=[0.5, -4.002])
    # 5e-5 of 1e-4 in log-probability; 0.002 of the largest entry 4.002 is 5.0e-4 of 1e-3
    said = peers("same").same_updates(tmp_path)
    assert said == "2 log-probs within 5.0e-05, 1 gradient matrices within 5.0e-04 of the largest entry"


@pytest.mark.parametrize(
    ("logprob", "gradient", "named"),
    [(-1.0002, 0.5, "2.0e-04 in log-probability"), (-1.0, 0.6, "2.5e-02 of the"), (np.nan, 0.5, "nan in log")],
)
def test_updates_that_differ_are_refused(peers, tmp_path, logprob, gradient, named):
    write(tmp_path, "ours", logprobs=[-1.0, -2.0], w=[0.5, -4.0])
    write(tmp_path, "theirs", logprobs=[logprob, -2.0], w=[gradient, -4.0])  # (0.6 − 0.5) / 4 = 2.5e-2
    with pytest.raises(SystemExit, match=named):
        peers("same").same_updates(tmp_path)


def test_an_adapter_that_only_one_side_has_is_refused(peers, tmp_path):
    write(tmp_path, "ours", logprobs=[-1.0], w=[0.5], v=[0.1])
    write(tmp_path, "theirs", logprobs=[-1.0], w=[0.5])
    with pytest.raises(SystemExit, match="'v'"):
        peers("same").same_updates(tmp_path)


def test_greedy_rows_may_part_at_a_near_tie_and_are_compared_up_to_it(peers, tmp_path):
    # Rows of 2 and 3 tokens; the second parts at its token 1 with a lead of 5e-4, under 1e-3; what follows differs freely.
    write(tmp_path, "ours", tokens=[1, 2, 3, 4, 5], logprobs=[-1, -1, -1, -1, -1.0], margins=[1, 1, 1, 5e-4, 1])
    write(tmp_path, "theirs", tokens=[1, 2, 3, 9, 8], logprobs=[-1, -1, -1, -7, -7.0])
    said = peers("same").same_rollouts(tmp_path, [2, 3])
    assert said == "1 of 2 greedy completions equal, the others up to a near tie; log-probs within 0.0e+00"


def test_greedy_rows_that_part_at_a_clear_choice_are_refused(peers, tmp_path):
    write(tmp_path, "ours", tokens=[1, 2, 3], logprobs=[-1, -1, -1.0], margins=[1, 0.2, 1])
    write(tmp_path, "theirs", tokens=[1, 7, 3], logprobs=[-1, -1, -1.0])
    with pytest.raises(SystemExit, match=r"row 0 parts at token 1 of 3, where our first choice leads by 2\.0e-01"):
        peers("same").same_rollouts(tmp_path, [3])


def test_a_row_says_whether_its_target_was_met(peers):
    rows = peers("rows")
    ours = rows.Measured(name="ours", versions="", seconds=[2.0, 2.5], peak_gib=2.0)
    theirs = rows.Measured(name="theirs", versions="", seconds=[9.0, 10.0], peak_gib=5.0)

    def verdict(target):
        return rows.Row(name="", ours=ours, theirs=theirs, num_tokens=64, target=target, same="").verdict()

    # Time 9/2 = 4.5 in our favour; memory 2/5 = 0.4; ours takes 2/9 = 0.22 of their time.
    assert verdict(rows.Target(of="seconds", at_least=5.0)) == "target: time theirs/ours at least 5x, missed"
    assert verdict(rows.Target(of="seconds", at_least=4.5)) == "target: time theirs/ours at least 4.5x, met"
    assert verdict(rows.Target(of="peak_gib", at_most=0.5)) == "target: peak memory ours/theirs at most 0.5x, met"
    assert verdict(rows.Target(of="peak_gib", at_most=0.3)) == "target: peak memory ours/theirs at most 0.3x, missed"
    assert verdict(rows.Target(of="seconds", at_most=0.2)) == "target: time ours/theirs at most 0.2x, missed"
    assert verdict(None) == "as measured"


SIDE = (
    "from peers.link import Link\nlink = Link()\nlink.wait()\nprint('noise')\nlink.answer(seconds=1.5)\nlink.wait()\n"
)


def test_a_side_answers_in_turn_whatever_its_libraries_print(peers, tmp_path):
    with peers("link").Side("a", [sys.executable, "-c", SIDE], log=tmp_path / "log", threads=1) as side:
        answer = side.turn()
    assert answer["seconds"] == 1.5
    assert 0.001 < answer["peak_gib"] < 4  # a bare interpreter holds some 10 MiB
    assert (tmp_path / "log").read_text() == "noise\n"


def test_a_side_that_fails_is_reported_with_what_it_said(peers, tmp_path):
    command = [sys.executable, "-c", SIDE + "raise ValueError('no such weights')"]
    with (
        pytest.raises(SystemExit, match=r"(?s)a ended with status 1 before it answered:.*no such weights"),
        peers("link").Side("a", command, log=tmp_path / "log", threads=1) as side,
    ):
        side.turn()
        side.turn()


def test_a_job_comes_back_from_its_file(peers, tmp_path):
    job = peers("job")
    shape = job.Shape(num_prompts=2, num_samples=2, prompt_tokens=1, answer_tokens=1, micro_rows=2, num_turns=1)
    wanted = job.Job(
        shape=shape,
        model="m",
        adapter="a",
        prompts_P=["x", "y"],
        prompt_ids_P=[[7], [8]],
        answers_B=[[1], [2], [3], [4]],
        firsts_B=[5, 6, 7, 8],
        rewards_G=[0.0, 1.0],
        advantages_G=[-0.7, 0.7],
    )
    wanted.write(tmp_path)
    assert job.Job.read(tmp_path) == wanted
    assert [wanted.prompt_of(row) for row in range(4)] == [[7], [7], [8], [8]]

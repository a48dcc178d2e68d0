"""The examples run as they stand, the two races with fewer steps, and print what their arithmetic says."""

import ast
import re
import runpy
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import polars as pl
import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"


def load(name):
    spec = spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shortened(name):
    """An example's race file with one seed and two steps, read on 20 items; every other key as it stands."""
    text = (EXAMPLES / f"{name}.toml").read_text(encoding="utf-8")
    for long, short in [("seeds = 3", "seeds = 1"), ("pool = 200", "pool = 20"), ("steps = 20", "steps = 2")]:
        assert text.count(long) == 1
        text = text.replace(long, short)
    return text


@pytest.fixture(scope="module")
def pairs_run(tmp_path_factory):
    """A short race of own_task.toml."""
    from deadheat.race import parse_race, run_race

    text = shortened("own_task")
    folder = tmp_path_factory.mktemp("pairs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        result = run_race(parse_race(text, source="own_task.toml"), text, folder / "run", observe=lambda progress: None)
    assert result.failures == ()
    return result


def test_the_race_of_the_own_task_ends_with_a_report_and_a_pair(pairs_run):
    (pair,) = pairs_run.verdict.pairs
    assert (pair.arm_a, pair.arm_b, pair.verdict.effect.n) == ("pairs", "crowds", 20)
    assert (pairs_run.folder / "report.html").stat().st_size > 10_000


def test_pairs_and_crowds_share_the_draws_of_the_questions_both_ask_first(pairs_run):
    # step 1: crowds asks the first 4 questions 16 times, pairs the first 32 twice: 4 × 2 shared addresses
    (coupling,) = pairs_run.verdict.couplings
    assert coupling.num_shared == 8
    assert coupling.differing == ("rollouts.group_size", "rollouts.questions_per_step")


def test_the_gate_curve_counts_every_group_once_and_its_ties_add_up(pairs_run):
    curve = load("read_a_run").gate_curve(pairs_run.folder)
    # two steps of 4 groups of 16, and of 32 groups of 2
    assert dict(curve.select("arm", "groups").iter_rows()) == {"crowds": 8, "pairs": 64}
    for row in curve.iter_rows(named=True):
        assert row["shut"] == pytest.approx(row["all_right"] + row["all_wrong"])
        assert row["T"] == pytest.approx(1 / (1 - row["shut"]))
    steps = pl.concat([pl.read_parquet(p) for p in sorted(pairs_run.folder.glob("pairs/seed-1/steps.parquet"))])
    ties = steps["num_all_right"].sum() + steps["num_all_wrong"].sum()
    assert curve.filter(pl.col("arm") == "pairs")["shut"].item() == pytest.approx(ties / 64)


def test_the_control_race_is_the_crowds_recipe_against_its_own_shuffled_rewards():
    from deadheat.race.config import parse_race
    from deadheat.race.coupling import flat_settings

    control = parse_race((EXAMPLES / "own_control.toml").read_text(encoding="utf-8"), source="own_control.toml")
    crowds = parse_race((EXAMPLES / "own_task.toml").read_text(encoding="utf-8"), source="own_task.toml").arms["crowds"]
    assert control.arms["crowds"] == crowds
    honest, planted = (flat_settings(control.arms[arm].model_dump()) for arm in ("crowds", "plant"))
    assert {name for name in honest if honest[name] != planted[name]} == {"scorer.kind"}


@pytest.mark.parametrize(
    ("line", "correct", "parsed"),
    [
        ("508", True, True),  # 5 + 0 + 8 = 13 against 4 + 1 + 7 = 12
        ("822", False, True),  # 12: as heavy, not heavier
        ("1999", False, True),  # 28, and four digits
        ("0999", True, True),  # a zero in front leaves the number what it is
        ("076", False, True),  # 13, below 100
        ("999\nheavier", True, True),
        ("++9", False, False),
    ],
)
def test_a_number_heavier_than_the_asked_one_is_right(line, correct, parsed):
    module = load("own_task")
    score = module.check(module.problem_of(417, place_frac=0.5), f" {line}")
    assert (score.correct, score.parsed, score.value) == (correct, parsed, float(correct))


def test_the_shown_answer_is_light_more_often_than_heavy():
    module = load("own_task")
    # Heavier than 987 (24) and at most 999: 6 numbers weigh 25 (799, 889, 898, 979, 988, 997), 3 weigh 26, 1 weighs 27.
    # (1/2)² · 10 = 2.5: the third lightest of them; 0.95² · 10 = 9.025: the heaviest.
    assert [module.problem_of(987, place_frac=place).reference for place in (0.0, 0.5, 0.95)] == ["799", "898", "999"]


def test_every_shown_answer_of_the_own_task_is_graded_right():
    from deadheat.tasks import validate_checker

    report = validate_checker(load("own_task").build({}))
    assert report.num_gold == 899  # 100 … 998


def test_the_same_mean_lead_reaches_as_far_as_its_seeds_agree():
    module = load("verdict_from_tables")
    agree, leads = module.grades([110, 114, 109], shift=3), module.grades([150, 96, 87], shift=3)
    assert agree.sum() == leads.sum() == 333 and agree.sum(axis=1).tolist() == [110, 114, 109]


def test_shut_rate_of_the_first_two_attempts_counts_agreeing_pairs():
    from dataclasses import replace

    from deadheat.types import Completion, Group, Rollout, Score, StopReason

    module, problem = load("sample_gate"), load("own_task").problem_of(100, place_frac=0.0)
    blank = Completion(
        tokens=(1,), logprobs=(0.0,), plain_logprobs=(0.0,), margins=None, text="", stop=StopReason.STOP, key=0
    )
    attempt = Rollout(problem=problem, sample=0, completion=blank, score=Score(value=0.0, correct=False))

    def group(*grades):
        rollouts = [replace(attempt, score=Score(value=float(g), correct=bool(g))) for g in grades]
        return Group(problem=problem, prompt_tokens=(1,), rollouts=tuple(rollouts))

    groups = [group(1, 1, 0, 0), group(0, 0, 0, 0), group(1, 0, 1, 1)]
    assert module.shut_rate(groups, 2).estimate == pytest.approx(2 / 3)  # 11 and 00 agree, 10 does not
    assert module.shut_rate(groups, 4).estimate == pytest.approx(1 / 3)  # only 0000 agrees


def test_the_watched_loop_says_per_window_what_its_archive_says_of_all_steps(tmp_path, capsys):
    load("watch_groups").main(tmp_path / "groups")
    *lines, floor, archive = capsys.readouterr().out.splitlines()
    shares = [float(re.match(r"step \d+: ([\d.]+)% .* of 640 groups", line)[1]) for line in lines]
    assert len(shares) == 5 and shares == sorted(shares)  # what is learned agrees: the gate closes
    # windows of 40 steps × 16 groups do not overlap: their mean is the share of all 3,200
    (overall,) = re.findall(r"^([\d.]+)% .* of 3,200 groups of 48 problems agree", archive)
    assert sum(shares) / 5 == pytest.approx(float(overall), abs=0.1)
    assert floor == "at the end 44 of 48 problems are right 9 times in 10, 4 never left the floor"


def test_the_watched_trl_run_logs_the_hooks_share_beside_trls_own(tmp_path, capsys, monkeypatch):
    pytest.importorskip("trl", reason="trl is not installed: its trainer cannot run")
    spec = spec_from_file_location("tiny_trl", ROOT / "tests" / "hooks" / "tiny_trl.py")
    tiny = module_from_spec(spec)
    spec.loader.exec_module(tiny)
    tiny.save(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    with pytest.warns():  # transformers' own
        load("watch_trl").main(str(tmp_path / "model"), tmp_path / "groups", num_steps=4)
    said = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("step 4: ") for line in said) == 1
    last = ast.literal_eval(said[-1])
    assert last["deadheat/shut_frac"] == last["frac_reward_zero_std"]


@pytest.mark.parametrize(
    ("script", "first", "last"),
    [
        ("verdict_from_tables.py", "seeds agree: called(A); +15.0 pp", "close: dead heat within ±10 pp; +0.7 pp"),
        ("sample_gate.py", "G =  2: shut", "G = 16: shut"),
    ],
)
def test_a_script_prints_its_lines(script, first, last, capsys):
    runpy.run_path(str(EXAMPLES / script), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(first)
    assert lines[-1].startswith(last)

"""The commands as a shell sees them: what they print, how they end, and what they load."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.cells import cell_len

from deadheat.archive import seal
from deadheat.cli import main
from deadheat.errors import ConfigError

RACE = """
name = "small"
question = "Does it learn?"
seeds = 1
threads = 1
policy.model = "tiny:addition"
policy.adapter = { kind = "lora", rank = 4, alpha = 8 }
task = { name = "addition", limit = 20, held_out = 100 }
rollouts = { questions_per_step = 2, group_size = 4 }
eval = { pool = 4, every = 1 }
stop.steps = 1

[[arm]]
name = "checker"

[[arm]]
name = "plant"
scorer.kind = "plant"
"""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """What a shell would see."""

    returncode: int
    stdout: str
    stderr: str


Shell = Callable[..., Ended]


@pytest.fixture
def deadheat(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """The command, in this process: loading torch anew for every call would take most of the time."""

    def call(*arguments: object, cwd: Path | None = None, **environment: str) -> Ended:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["deadheat", *map(str, arguments)])
            patch.chdir(cwd or Path.cwd())
            for name, value in environment.items():
                patch.setenv(name, value)
            capsys.readouterr()
            with pytest.raises(SystemExit) as ended:
                main()
        out, err = capsys.readouterr()
        return Ended(returncode=ended.value.code or 0, stdout=out, stderr=err)

    return call


@pytest.fixture(scope="module")
def raced(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """A race of one step, run by a shell with --json and a process for each arm."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "small.toml").write_text(RACE)
    command = [sys.executable, "-c", "from deadheat.cli import main; main()", "race", "small.toml", "--json"]
    done = subprocess.run([*command, "--workers", "2"], cwd=folder, capture_output=True, text=True, check=False)
    return folder / "runs" / "small", Ended(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)


@pytest.mark.parametrize("arguments", [["race", "--help"], ["verify", "--help"], ["--help"], ["--version"]])
def test_help_loads_neither_torch_nor_transformers(arguments: list[str]) -> None:
    script = f"""
import sys
from deadheat.cli import main
sys.argv = ["deadheat", *{arguments!r}]
try:
    main()
except SystemExit as end:
    print("END", end.code, sorted({{"torch", "transformers", "peft", "matplotlib"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "END 0 []"
    assert done.stderr == ""


def test_help_names_the_options_and_the_examples(deadheat: Shell) -> None:
    done = deadheat("race", "--help", COLUMNS="100", NO_COLOR="1")
    for word in ("RACE", "--out", "--workers", "--resume", "--json", "deadheat race tiny"):
        assert word in done.stdout


def test_json_goes_alone_to_standard_output_and_progress_to_the_other(
    raced: tuple[Path, Ended],
) -> None:
    folder, done = raced
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads((folder / "verdict.json").read_text())
    assert "race small" in done.stderr


def test_a_second_run_without_resume_is_one_message_and_status_two(
    deadheat: Shell,
    raced: tuple[Path, Ended],
) -> None:
    folder, _ = raced
    before = (folder / "manifest.json").read_bytes()
    done = deadheat("race", "small.toml", cwd=folder.parents[1])
    assert done.returncode == 2
    assert done.stderr.splitlines() == [  # no line of progress before the refusal
        "error: runs/small already holds a run. Pass --resume to continue it, or choose another --out for a new one."
    ]
    assert done.stdout == ""
    assert (folder / "manifest.json").read_bytes() == before


def test_resuming_a_finished_race_prints_its_page_again_and_changes_nothing_that_lasts(
    deadheat: Shell, raced: tuple[Path, Ended], tmp_path: Path
) -> None:
    folder, _ = raced
    shutil.copytree(folder.parents[1], tmp_path / "copy")
    again = tmp_path / "copy" / "runs" / "small"
    done = deadheat("race", "small.toml", "--resume", cwd=tmp_path / "copy", COLUMNS="80", NO_COLOR="1")
    assert done.returncode == 0, done.stderr
    assert "Does it learn?" in done.stdout and "report.html" in done.stdout
    for name in ("verdict.json", "checker/seed-1/steps.parquet", "plant/seed-1/outcome.json"):
        assert (again / name).read_bytes() == (folder / name).read_bytes()
    assert max(map(cell_len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["race", "adition"], "no race is called 'adition'; did you mean 'addition'?"),
        (["race", "gone.toml"], "cannot read gone.toml: No such file or directory."),
        (["verify", "gone"], "gone has no manifest.json: the run never finished. Run it again with --resume."),
    ],
)
def test_an_error_is_one_message_with_status_two_and_no_traceback(
    deadheat: Shell, arguments: list[str], wanted: str, tmp_path: Path
) -> None:
    done = deadheat(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert f"error: {wanted}" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == [], "a refused command leaves nothing behind"


def test_a_config_error_leaves_no_folder_and_the_traceback_is_there_for_who_asks(
    deadheat: Shell, tmp_path: Path
) -> None:
    (tmp_path / "bad.toml").write_text(RACE.replace("stop.steps", "stop.step"))
    done = deadheat("race", "bad.toml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "bad.toml, arm 'checker': unknown key 'stop.step'; did you mean 'steps'?" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["bad.toml"]
    with pytest.raises(ConfigError):
        deadheat("race", "bad.toml", cwd=tmp_path, DEADHEAT_TRACEBACK="1")


def test_a_race_with_a_run_that_cannot_start_ends_with_status_one_and_says_so(deadheat: Shell, tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(RACE + "sampling.max_new_tokens = 1000\n")
    done = deadheat("race", "long.toml", "--out", "out", cwd=tmp_path)
    assert done.returncode == 1
    assert "failed: plant/seed-1: PromptTooLongError: problem " in done.stderr
    assert "1 runs failed; the others stand. Run again with --resume." in done.stderr
    assert "Traceback" not in done.stderr


def test_verify_ends_with_zero_where_all_holds_and_with_one_where_something_does_not(
    deadheat: Shell, raced: tuple[Path, Ended], tmp_path: Path
) -> None:
    folder, _ = raced
    held = deadheat("verify", folder)
    assert held.returncode == 0, held.stderr
    # 2 runs: evaluations at 0 and 1 of 4 items, one batch of 2 × 4 attempts.
    assert held.stdout.strip().endswith("files, 32 answers, 16 advantages, 1 verdict checked")
    assert held.stdout.startswith("holds: ")

    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    verdict = json.loads((copy / "verdict.json").read_text())
    verdict["pool"] = 5
    (copy / "verdict.json").write_text(json.dumps(verdict))
    seal(copy)
    broken = deadheat("verify", copy, "--json")
    assert broken.returncode == 1
    said = json.loads(broken.stdout)
    assert said["holds"] is False
    assert said["findings"] == [{"file": "verdict.json", "what": "pool", "stored": "5", "recomputed": "4"}]


def test_an_unknown_model_is_refused_before_anything_is_written(deadheat: Shell, tmp_path: Path) -> None:
    (tmp_path / "model.toml").write_text(RACE.replace('model = "tiny:addition"', 'model = "pypi:no-such-wheel"'))
    done = deadheat("race", "model.toml", "--out", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert "error: " in done.stderr and "no-such-wheel" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_run_folder_alone_is_judged_as_it_stands_and_that_is_no_second_look(
    deadheat: Shell, raced: tuple[Path, Ended]
) -> None:
    folder, _ = raced
    before = (folder / "looks.json").read_bytes()
    shown = deadheat("verdict", folder)
    assert shown.returncode == 0 and "checker against plant" in shown.stdout
    record = json.loads(deadheat("verdict", folder, "--json").stdout)
    assert record["schema"] == "deadheat.race-verdict"
    assert record == json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
    assert (folder / "looks.json").read_bytes() == before

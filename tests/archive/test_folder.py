"""A run folder belongs to one process and one config, and its seal names what changed."""

import subprocess
import sys
from pathlib import Path

import pytest

from deadheat.archive import check_manifest, claim_folder, read_json, refuse_used, seal, write_text
from deadheat.errors import ArchiveError, RunFolderError

CONFIG = {"name": "small", "seeds": [1, 2], "arms": {"a": {"update": {"learning_rate": 0.001}}}}


def test_a_new_folder_is_claimed_and_keeps_its_config(tmp_path: Path) -> None:
    with claim_folder(tmp_path / "runs" / "small", CONFIG, resume=False) as claim:
        assert (claim.resumed, claim.swept) == (False, ())
        assert read_json(claim.folder / "resolved.json") == CONFIG


def test_a_used_folder_is_refused_without_resume_and_taken_with_it(tmp_path: Path) -> None:
    with claim_folder(tmp_path, CONFIG, resume=False):
        pass
    with (
        pytest.raises(RunFolderError, match=r"already holds a run. Pass --resume to continue it, or choose another"),
        claim_folder(tmp_path, CONFIG, resume=False),
    ):
        pass
    (tmp_path / "verdict.json.partial").write_text("torn")
    with claim_folder(tmp_path, CONFIG, resume=True) as claim:
        assert claim.resumed
        assert [path.name for path in claim.swept] == ["verdict.json.partial"]


def test_another_config_is_refused_by_the_names_of_the_keys_that_differ(tmp_path: Path) -> None:
    with claim_folder(tmp_path, CONFIG, resume=False):
        pass
    other = {**CONFIG, "name": "large", "arms": {"a": {"update": {"learning_rate": 0.002}}}}
    with (
        pytest.raises(RunFolderError, match=r"holds another run: arms\.a\.update\.learning_rate, name differ"),
        claim_folder(tmp_path, other, resume=True),
    ):
        pass
    assert read_json(tmp_path / "resolved.json") == CONFIG


def test_a_look_before_the_claim_refuses_the_same_and_makes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    refuse_used(folder, CONFIG, resume=False)
    assert not folder.exists()
    with claim_folder(folder, CONFIG, resume=False):
        pass
    with pytest.raises(RunFolderError, match=r"already holds a run"):
        refuse_used(folder, CONFIG, resume=False)
    with pytest.raises(RunFolderError, match=r"holds another run: name differ"):
        refuse_used(folder, {**CONFIG, "name": "large"}, resume=True)
    refuse_used(folder, CONFIG, resume=True)
    with pytest.raises(RunFolderError, match=r"holds files that are not a run of ours"):
        refuse_used(tmp_path, CONFIG, resume=False)


def test_resume_on_a_folder_that_is_still_empty_simply_starts(tmp_path: Path) -> None:
    with claim_folder(tmp_path, CONFIG, resume=True) as claim:
        assert not claim.resumed


def test_a_folder_with_somebody_elses_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with (
        pytest.raises(RunFolderError, match=r"holds files that are not a run of ours. Wanted an empty or new folder"),
        claim_folder(tmp_path, CONFIG, resume=False),
    ):
        pass
    assert not (tmp_path / "resolved.json").exists()
    assert (tmp_path / "thesis.tex").read_text() == "mine"


def test_a_second_process_is_refused_while_the_first_holds_the_folder_and_let_in_after_it_was_killed(
    tmp_path: Path,
) -> None:
    script = f"""
import sys
from pathlib import Path
from deadheat.archive import claim_folder
with claim_folder(Path(sys.argv[1]), {CONFIG!r}, resume=False):
    print("held", flush=True)
    sys.stdin.read()
"""
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(RunFolderError, match=r"is being written by another process. Wait for it, or choose another"),
            claim_folder(tmp_path, CONFIG, resume=True),
        ):
            pass
        holder.kill()
    with claim_folder(tmp_path, CONFIG, resume=True) as claim:
        assert claim.resumed


def test_a_path_below_a_file_cannot_be_claimed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(RunFolderError, match=r"cannot write .*file/run: Not a directory"),
        claim_folder(tmp_path / "file" / "run", CONFIG, resume=False),
    ):
        pass


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    for name in ("verdict.json", "a/seed-1/steps.parquet", "a/seed-1/outcome.json"):
        write_text(tmp_path / name, f"contents of {name}")
    (tmp_path / ".lock").touch()
    seal(tmp_path)
    return tmp_path


def test_a_sealed_folder_holds_and_its_manifest_lists_size_and_digest(sealed: Path) -> None:
    assert check_manifest(sealed) == []
    held = read_json(sealed / "manifest.json")["files"]
    assert sorted(held) == ["a/seed-1/outcome.json", "a/seed-1/steps.parquet", "verdict.json"]
    assert held["verdict.json"]["bytes"] == len("contents of verdict.json") == 24


def test_missing_added_and_changed_files_are_named_each_in_its_own_words(sealed: Path) -> None:
    (sealed / "a" / "seed-1" / "steps.parquet").unlink()
    write_text(sealed / "a" / "note.txt", "new")
    write_text(sealed / "verdict.json", "contents of verdict.jsoN")  # one bit, the same length
    assert check_manifest(sealed) == [
        "a/seed-1/steps.parquet: missing",
        "a/note.txt: not in the manifest",
        "verdict.json: bytes differ from the manifest",
    ]


def test_a_run_that_never_finished_has_no_seal_to_check(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"has no manifest.json: the run never finished. Run it again with --resume"):
        check_manifest(tmp_path)

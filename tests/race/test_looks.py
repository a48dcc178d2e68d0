"""A look is a verdict on cells that no look before had seen; its level is what the looks so far have left."""

from collections.abc import Callable
from pathlib import Path

import pytest

from deadheat.archive import read_json, seal, write_json
from deadheat.race import RaceConfig, RaceResult, as_record, judge, look_again, parse_race, run_race, verify_race
from deadheat.race.looks import LOOKS, level_of
from deadheat.race.words import look_words, notes_of, pair_sentence, warnings_of
from deadheat.stats import Words
from deadheat.stats.looks import nominal_levels

from .conftest import HAND, NONE, but

Write = Callable[..., None]


def folder_of(tmp_path: Path, race: RaceConfig) -> Path:
    write_json(tmp_path / "resolved.json", race.resolved())
    return tmp_path


def declared(looks: int) -> RaceConfig:
    return parse_race(f"{HAND}\n[verdict]\nlooks = {looks}\n", source="hand.toml")


def clear_win(write: Write, *seeds: int) -> None:
    for seed in seeds:
        write("checker", seed, {0: NONE, 4: but(seed)})
        write("plant", seed, {0: NONE, 4: NONE})


def test_a_first_look_has_all_of_alpha_and_the_same_cells_are_no_second(
    write: Write, hand: RaceConfig, tmp_path: Path
) -> None:
    folder = folder_of(tmp_path, hand)
    clear_win(write, 1, 2)
    first = look_again(folder)
    assert first.looks is not None
    # Two of three seeds in both arms: 80 of 120 planned answers.
    assert (first.looks.number, first.looks.level, first.looks.share_frac) == (1, 0.05, pytest.approx(2 / 3))
    assert first.looks.taken[0].runs == ("checker/seed-1", "checker/seed-2", "plant/seed-1", "plant/seed-2")
    held = (folder / LOOKS).read_bytes()
    again = look_again(folder)
    assert (again.looks, (folder / LOOKS).read_bytes()) == (first.looks, held)
    assert as_record(again) == as_record(first)


def test_a_second_look_that_nobody_declared_is_counted_and_named(
    write: Write, hand: RaceConfig, tmp_path: Path
) -> None:
    folder = folder_of(tmp_path, hand)
    clear_win(write, 1, 2)
    look_again(folder)
    clear_win(write, 3)
    second = look_again(folder)
    assert second.looks is not None
    assert (second.looks.number, second.looks.level, second.looks.share_frac) == (2, 0.05, 1.0)
    assert look_words(second.looks) == "look 2 where none was declared: the level holds for the first"
    assert look_words(second.looks) in warnings_of(second)
    assert as_record(second)["summary"]["look"] == 2


def test_declared_looks_share_alpha_out_and_the_last_sees_all(write: Write, tmp_path: Path) -> None:
    race = declared(3)
    folder = folder_of(tmp_path, race)
    clear_win(write, 1)
    # 2 − 2Φ(1.959964/√⅓) = 2 − 2Φ(3.39476) = .000687; one seed is never called.
    first = look_again(folder)
    assert first.looks is not None
    assert first.looks.level == pytest.approx(0.000687, abs=2e-6)
    assert look_words(first.looks) == (
        "look 1 of 3 declared, at 33% of the planned answers: p is held against 0.000687"
    )
    assert notes_of(first, race)[0] == look_words(first.looks)
    clear_win(write, 2)
    second = look_again(folder)
    clear_win(write, 3)
    third = look_again(folder)
    assert second.looks is not None and third.looks is not None
    levels = nominal_levels([1 / 3, 2 / 3, 1.0])
    assert [second.looks.level, third.looks.level] == pytest.approx(levels[1:], rel=1e-6)
    (pair,) = third.pairs
    assert pair.verdict.decision.alpha == third.looks.level
    assert pair.verdict.decision.interval.level == pytest.approx(1 - levels[2], rel=1e-6)
    assert "(adjusted for the look)" in pair_sentence(pair)


def test_an_early_look_is_strict_where_the_whole_level_would_call(write: Write, tmp_path: Path) -> None:
    race = declared(2)
    folder = folder_of(tmp_path, race)
    for seed in (1, 2):  # +45 points: p = .004 over items
        learned = [item for item in range(9, 20) if item != 12 + seed]
        write("checker", seed, {0: NONE, 4: but(12 + seed)})
        write("plant", seed, {0: NONE, 4: [item in learned for item in range(20)]})
    (early,) = look_again(folder).pairs
    assert early.verdict.effect.called and early.verdict.words is Words.CALLED_A
    strict = parse_race(f"{HAND}\n[verdict]\nlooks = 2\nalpha = 0.01\n", source="hand.toml")
    (pair,) = judge(folder, strict).pairs
    # t = ⅔ of α = .01: 2 − 2Φ(2.5758/√⅔) = .0016, below p.
    assert pair.verdict.effect.called and pair.verdict.words is Words.NOT_CALLED
    assert not (pair.verdict.decision.interval.low > 0)


def test_looks_beyond_the_declared_ones_keep_the_last_level_and_are_named(write: Write, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, declared(1))
    clear_win(write, 1)
    look_again(folder)
    clear_win(write, 2)
    found = look_again(folder)
    assert found.looks is not None and look_words(found.looks) == "look 2 of 1 declared: the level holds for the first"
    assert level_of([0.3, 0.6, 1.0], declared=2, alpha=0.05) == pytest.approx(nominal_levels([0.3, 1.0])[1])


def test_a_race_looked_at_only_at_its_end_pays_nothing_for_looks_it_declared(write: Write, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, declared(4))
    clear_win(write, 1, 2, 3)
    found = look_again(folder)
    assert found.looks is not None and (found.looks.level, found.looks.number) == (0.05, 1)


def test_where_no_contrast_can_be_judged_nothing_was_looked_at(write: Write, hand: RaceConfig, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, hand)
    write("checker", 1, {0: NONE, 4: but(1)})
    assert look_again(folder).looks is None
    assert not (folder / LOOKS).exists()


def test_a_look_disturbs_nothing_but_its_own_record(write: Write, hand: RaceConfig, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, hand)
    clear_win(write, 1, 2)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    look_again(folder)
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert after.keys() - before.keys() == {folder / LOOKS}
    assert all(after[path] == held for path, held in before.items())


def test_judging_writes_nothing(write: Write, hand: RaceConfig, tmp_path: Path) -> None:
    clear_win(write, 1, 2)
    judge(tmp_path, hand)
    assert not (tmp_path / LOOKS).exists()


def test_a_race_records_one_look_at_its_end_and_drawing_it_again_is_none(copied: Path, finished: RaceResult) -> None:
    (look,) = read_json(copied / LOOKS)["taken"]
    # 2 arms × 2 seeds × 16 items.
    assert (look["num_cells"], look["share_frac"], len(look["runs"])) == (64, 1.0, 4)
    before = {name: (copied / name).read_bytes() for name in (LOOKS, "verdict.json", "manifest.json")}
    assert look_again(copied).looks == finished.verdict.looks
    assert {name: (copied / name).read_bytes() for name in before} == before


def test_a_look_at_an_unfinished_race_is_counted_by_the_race_when_it_ends(
    copied: Path, small: RaceConfig, small_text: str
) -> None:
    (copied / "manifest.json").unlink()
    (copied / LOOKS).unlink()
    for arm in ("checker", "plant"):
        (copied / arm / "seed-2" / "outcome.json").rename(copied / arm / "held.json")
    assert look_again(copied).looks.number == 1
    for arm in ("checker", "plant"):
        (copied / arm / "held.json").rename(copied / arm / "seed-2" / "outcome.json")
    result = run_race(small, small_text, copied, resume=True, observe=lambda progress: None)
    assert result.verdict.looks is not None and result.verdict.looks.number == 2
    assert [look["share_frac"] for look in read_json(copied / LOOKS)["taken"]] == [0.5, 1.0]
    assert verify_race(copied, observe=lambda part: None).findings == ()
    held = read_json(copied / LOOKS)
    write_json(copied / LOOKS, {**held, "taken": held["taken"][1:]})
    seal(copied)
    changed = [(finding.file, finding.what) for finding in verify_race(copied, observe=lambda part: None).findings]
    assert changed == [("verdict.json", "looks.taken"), ("verdict.json", "summary.look")]

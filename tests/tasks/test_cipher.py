"""The cipher task: its code, its split, its two rewards and its slot counts."""

import pytest

from deadheat.tasks import load_task, parse_task, validate_checker
from deadheat.tasks.cipher import CODE_SEED, Grade, check_cipher, draw_code, slot_table
from deadheat.types import Problem, Score


def problem(sources: str) -> Problem:
    task = load_task(parse_task("cipher"))
    return next(p for p in [*task.training, *task.held_out] if p.problem_id == sources)


def test_the_default_code_is_the_published_one_where_that_is_known() -> None:
    code = draw_code(CODE_SEED)
    assert [code.targets[s] for s in (4, 7, 1, 6)] == [9, 2, 6, 8]
    assert code.hidden == {1, 6}
    assert sorted(code.targets) == list(range(10))
    assert all(source != target for source, target in enumerate(code.targets))


def test_a_hundred_strings_split_seventy_to_thirty() -> None:
    task = load_task(parse_task("cipher"))
    assert (len(task.training), len(task.held_out)) == (70, 30)
    assert len({p.problem_id for p in [*task.training, *task.held_out]}) == 100


def test_held_out_has_twenty_plain_strings_and_nine_plus_two_hidden_slots() -> None:
    task = load_task(parse_task("cipher"))
    table = slot_table([(p, task.check(p, task.gold_text(p))) for p in task.held_out])
    assert (table.num_plain, table.num_hidden) == (20, 10)
    assert {m.source: m.num_slots for m in table.mappings if m.hidden} == {1: 9, 6: 2}
    # 30 strings of two slots each: 60 slots, 11 hidden, 49 shown.
    assert table.slots(hidden=True) == (11, 11)
    assert table.slots(hidden=False) == (49, 49)
    assert "11" in {p.problem_id for p in task.held_out}


def test_every_prompt_prints_the_same_eight_pairs_and_says_one_to_one() -> None:
    task = load_task(parse_task("cipher"))
    for p in [*task.training, *task.held_out]:
        lines = p.prompt.splitlines()
        assert sum(" -> " in line for line in lines) == 8
        assert not any(line.startswith(("1 ->", "6 ->")) for line in lines)
        assert "one-to-one" in p.prompt


@pytest.mark.parametrize(
    ("text", "exact", "per_char", "answer"),
    [
        (" 9 2\n", 1.0, 1.0, "9 2"),
        ("92", 1.0, 1.0, "9 2"),
        (" 9 3\n", 0.0, 0.5, "9 3"),
        (" 9\n", 0.0, 0.5, "9"),
        (" 2 9\n", 0.0, 0.0, "2 9"),
        (" 9 2 4 7\n", 0.0, 0.5, "9 2 4 7"),  # two right of four given
        (" 4 7\n9 2", 0.0, 0.0, "4 7"),
    ],
)
def test_four_seven_becomes_nine_two(text: str, exact: float, per_char: float, answer: str) -> None:
    by_exact = check_cipher(problem("47"), text, grade=Grade.EXACT)
    by_char = check_cipher(problem("47"), text, grade=Grade.PER_CHAR)
    assert (by_exact.value, by_char.value, by_exact.answer) == (exact, per_char, answer)
    # Evaluation is exact whichever reward trains.
    assert by_exact.correct is by_char.correct is (exact == 1.0)


def test_no_digit_is_a_parse_failure_and_zero() -> None:
    score = check_cipher(problem("47"), " none\n", grade=Grade.PER_CHAR)
    assert (score.value, score.correct, score.parsed, score.answer) == (0.0, False, False, None)


def test_slots_are_counted_per_mapping_and_unscored_strings_apart() -> None:
    # "4 1" answered "9 1": slot 4 right, slot 1 wrong. "1 1" answered "6 0": one of two slots of mapping 1 right.
    # "4 7" answered "9 2": both right. "7 7" unscored: nowhere but in its own count.
    def graded(sources: str, text: str) -> tuple[Problem, Score]:
        return problem(sources), check_cipher(problem(sources), text, grade=Grade.EXACT)

    table = slot_table(
        [
            graded("41", "9 1"),
            graded("11", "6 0"),
            graded("47", "9 2"),
            (problem("77"), Score(value=None, unscored="x")),
        ]
    )
    assert {m.source: (m.num_right, m.num_slots, m.hidden) for m in table.mappings} == {
        1: (1, 3, True),
        4: (2, 2, False),
        7: (1, 1, False),
    }
    assert (table.num_plain_right, table.num_plain, table.num_hidden_right, table.num_hidden) == (1, 1, 0, 2)
    assert table.num_unscored == 1


def test_columns_name_each_slot() -> None:
    assert problem("41").columns == {
        "hidden_slots": 1,
        "slot0_source": 4,
        "slot0_target": 9,
        "slot0_hidden": 0,
        "slot1_source": 1,
        "slot1_target": 6,
        "slot1_hidden": 1,
    }


def test_every_gold_string_is_graded_correct_under_both_grades() -> None:
    for grade in Grade:
        assert validate_checker(load_task(parse_task({"name": "cipher", "grade": grade.value}))).num_gold == 100


def test_sub_skills_are_strings_by_hiddenness_and_slots_by_hidden_mapping() -> None:
    # Held-out: 20 plain strings (40 shown slots); 10 others with 11 hidden slots (nine of 1, two of 6) and 9 shown ones.
    task = load_task(parse_task("cipher"))
    right = [(problem, task.check(problem, task.gold_text(problem))) for problem in task.held_out]
    counts = {skill.name: (skill.num_right, skill.num_all) for skill in task.sub_skills(right)}
    assert counts == {
        "strings without a hidden digit": (20, 20),
        "strings with a hidden digit": (10, 10),
        "shown slots": (49, 49),
        "hidden 1→6 slots": (9, 9),
        "hidden 6→8 slots": (2, 2),
    }
    # A policy that answers every string with "6 6" gets each slot of source digit 1 right (1→6), and nothing else.
    ones = [(problem, task.check(problem, " 6 6\n")) for problem in task.held_out]
    counts = {skill.name: (skill.num_right, skill.num_all) for skill in task.sub_skills(ones)}
    assert counts["hidden 1→6 slots"] == (9, 9)
    assert counts["hidden 6→8 slots"] == (0, 2)
    assert counts["strings without a hidden digit"] == (0, 20)
    assert counts["shown slots"] == (0, 49)

"""Translate two digits with a secret one-to-one code of which eight pairs are shown and two never are.

One keyed shuffle of the ten digits without a fixed point, used for the whole experiment. Every prompt, in training and
in evaluation, prints the same eight pairs and says that the code is one-to-one; the two hidden pairs can only be
guessed, or worked out by elimination. All 100 strings of two digits are split 70/30.

A *slot* is one position of a string; its *mapping* is the digit to be translated there. The figures of this task are
strings without a hidden digit, and slots per mapping: a plateau of all plain strings (20 of 30 = .667) hides that no
hidden mapping ever moved. `slot_table` counts both; the fraction of strings alone says neither.

The default code has 1→6 and 6→8 hidden and 4→9 and 7→2 shown; the default held-out pool has 20 strings without a hidden
digit and 11 hidden slots on the other 10: nine of source digit 1 ("1 1" has two) and two of source digit 6. Those
counts are the ones of the published experiment this task repeats; `CODE_SEED` and `SPLIT_SEED` were found by search.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import ClassVar, Literal

from pydantic import Field

from deadheat.sampling.keys import permutation
from deadheat.tasks.config import TaskConfig
from deadheat.tasks.pools import keyed_order, pool_key
from deadheat.tasks.task import SubSkill, Task
from deadheat.types import Problem, Score

EXTRACTION = "cipher/digits-of-line/v1"
CODE_SEED = 21622
SPLIT_SEED = 599
NUM_HIDDEN = 2
NUM_HELD_OUT = 30

_FACTS = (
    "A fixed one-to-one code over ten digits, 8 pairs in every prompt, 2 never; two-digit inputs, 100 strings split "
    "70/30. Held-out: 20 of 30 strings have no hidden digit (a .667 plateau), 11 hidden slots (9 + 2). Read it by slot."
)


class Grade(StrEnum):
    """What the reward is; `correct` is the exact match under either."""

    EXACT = "exact"  # 1 where both digits are right, else 0
    PER_CHAR = "per_char"  # the fraction of digits that are right


class CipherConfig(TaskConfig):
    """Options of `cipher`."""

    grading_options: ClassVar[frozenset[str]] = frozenset({"grade"})

    name: Literal["cipher"] = "cipher"
    grade: Grade = Grade.EXACT  # the training reward
    code_seed: int = Field(default=CODE_SEED, ge=0)  # which code, and which two pairs are hidden
    split_seed: int = Field(default=SPLIT_SEED, ge=0)  # which 30 of the 100 strings are held out


@dataclass(frozen=True, kw_only=True)
class Code:
    """One shuffle of the digits."""

    targets: tuple[int, ...]  # [10] what each digit becomes
    hidden: frozenset[int]  # source digits whose pair no prompt shows


@dataclass(frozen=True, kw_only=True)
class MappingCount:
    """How one mapping fared."""

    source: int  # the digit to be translated
    target: int  # what it becomes
    hidden: bool  # whether no prompt shows it
    num_slots: int  # slots of this mapping among the graded strings
    num_right: int  # those translated right


@dataclass(frozen=True, kw_only=True)
class SlotTable:
    """The two readings of a set of graded cipher strings. Unscored strings are in none of the counts but their own."""

    mappings: tuple[MappingCount, ...]  # ascending source digit, those that occur
    num_plain: int  # strings without a hidden digit
    num_plain_right: int  # those with both digits right
    num_hidden: int  # strings with at least one hidden digit
    num_hidden_right: int  # those with both digits right
    num_unscored: int  # strings left out

    def slots(self, *, hidden: bool) -> tuple[int, int]:
        """(right, all) slots of the hidden or of the shown mappings."""
        rows = [row for row in self.mappings if row.hidden == hidden]
        return sum(row.num_right for row in rows), sum(row.num_slots for row in rows)


def build_cipher(config: CipherConfig) -> Task:
    """The task of this config."""
    code = draw_code(config.code_seed)
    strings = [(a, b) for a in range(10) for b in range(10)]
    ordered = keyed_order([_problem(code, pair) for pair in strings], key=pool_key("cipher/split", config.split_seed))
    held_out = ordered[:NUM_HELD_OUT]
    return Task(
        name=config.name,
        training=tuple(sorted(ordered[NUM_HELD_OUT:], key=lambda problem: problem.problem_id)),
        held_out=held_out,
        check=partial(check_cipher, grade=config.grade),
        gold_text=gold_cipher,
        stop_text="\n",
        chat=False,
        max_new_tokens=8,
        extraction=EXTRACTION,
        trusted_checker=True,
        sub_skills=count_sub_skills,
        facts=_FACTS,
    )


def count_sub_skills(graded: Sequence[tuple[Problem, Score]]) -> tuple[SubSkill, ...]:
    """Strings with and without a hidden digit, shown slots together, and every hidden mapping's slots by itself."""
    table = slot_table(graded)
    right, slots = table.slots(hidden=False)
    hidden = [
        SubSkill(name=f"hidden {row.source}→{row.target} slots", num_right=row.num_right, num_all=row.num_slots)
        for row in table.mappings
        if row.hidden
    ]
    return (
        SubSkill(name="strings without a hidden digit", num_right=table.num_plain_right, num_all=table.num_plain),
        SubSkill(name="strings with a hidden digit", num_right=table.num_hidden_right, num_all=table.num_hidden),
        SubSkill(name="shown slots", num_right=right, num_all=slots),
        *hidden,
    )


def draw_code(seed: int) -> Code:
    """The code of a seed: the first keyed shuffle that leaves no digit in place, and its two hidden digits."""
    attempt = 0
    while True:
        key = pool_key(f"cipher/code/{attempt}", seed)
        targets = tuple(int(digit) for digit in permutation(key, 10))
        if all(source != target for source, target in enumerate(targets)):
            break
        attempt += 1
    hidden = permutation(pool_key("cipher/hidden", seed), 10)[:NUM_HIDDEN]
    return Code(targets=targets, hidden=frozenset(int(digit) for digit in hidden))


def prompt(code: Code, sources: Sequence[int]) -> str:
    """The text before the answer: the rule, the shown pairs, the string."""
    pairs = "\n".join(f"{s} -> {t}" for s, t in enumerate(code.targets) if s not in code.hidden)
    return (
        "A secret code replaces every digit by another digit. The code is one-to-one: "
        "each digit becomes exactly one digit, and no two digits become the same one. "
        f"Eight of its ten pairs are:\n{pairs}\n\n"
        "Replace both digits of the input by the code. Write the two digits and nothing else.\n"
        f"Input: {' '.join(map(str, sources))}\nOutput:"
    )


def _problem(code: Code, sources: tuple[int, int]) -> Problem:
    targets = [code.targets[s] for s in sources]
    columns: dict[str, str | int | float] = {"hidden_slots": sum(s in code.hidden for s in sources)}
    for slot, source in enumerate(sources):
        columns[f"slot{slot}_source"] = source
        columns[f"slot{slot}_target"] = code.targets[source]
        columns[f"slot{slot}_hidden"] = int(source in code.hidden)
    return Problem(
        task="cipher",
        problem_id="".join(map(str, sources)),
        prompt=prompt(code, sources),
        reference=" ".join(map(str, targets)),
        columns=columns,
    )


def check_cipher(problem: Problem, text: str, *, grade: Grade) -> Score:
    """Grades the digits of the answer line, in order, against the reference's; other characters do not count.

    per_char = right positions / max(digits wanted, digits given): writing more digits cannot buy a higher fraction.
    """
    given = re.findall(r"\d", text.partition("\n")[0])
    wanted = problem.reference.split()
    if not given:
        return Score(value=0.0, correct=False, answer=None, parsed=False, parts=_parts([False] * len(wanted), 0.0))
    right = [slot < len(given) and given[slot] == digit for slot, digit in enumerate(wanted)]
    per_char = sum(right) / max(len(wanted), len(given))
    correct = given == wanted
    value = per_char if grade is Grade.PER_CHAR else float(correct)
    return Score(value=value, correct=correct, answer=" ".join(given), parts=_parts(right, per_char))


def _parts(right: Sequence[bool], per_char: float) -> dict[str, float]:
    return {"per_char": per_char} | {f"slot{slot}": float(ok) for slot, ok in enumerate(right)}


def gold_cipher(problem: Problem) -> str:
    """The completion of a policy that is right."""
    return f" {problem.reference}\n"


def slot_table(graded: Iterable[tuple[Problem, Score]]) -> SlotTable:
    """Counts strings without a hidden digit, and slots per mapping, from (problem, score) pairs."""
    strings: Counter[tuple[bool, bool]] = Counter()  # (has a hidden digit, exactly right)
    slots: Counter[tuple[int, int, bool]] = Counter()  # (source, target, hidden)
    right: Counter[tuple[int, int, bool]] = Counter()
    num_unscored = 0
    for problem, score in graded:
        if score.value is None:
            num_unscored += 1
            continue
        strings[int(problem.columns["hidden_slots"]) > 0, score.correct is True] += 1
        for slot in range(len(problem.reference.split())):
            source, target, hidden = (int(problem.columns[f"slot{slot}_{x}"]) for x in ("source", "target", "hidden"))
            slots[source, target, bool(hidden)] += 1
            right[source, target, bool(hidden)] += score.parts[f"slot{slot}"] == 1.0
    return SlotTable(
        mappings=tuple(
            MappingCount(source=s, target=t, hidden=h, num_slots=count, num_right=right[s, t, h])
            for (s, t, h), count in sorted(slots.items())
        ),
        num_plain=strings[False, True] + strings[False, False],
        num_plain_right=strings[False, True],
        num_hidden=strings[True, True] + strings[True, False],
        num_hidden_right=strings[True, True],
        num_unscored=num_unscored,
    )

r"""False accepts and false rejects of the GSM8K checker on the data set's own answers and on real completions.

    python benchmarks/gsm8k_checker.py [--data ../shared/data/gsm8k] [--show 20]

Each distinct reference number stands in every template of `RIGHT` that applies (must be right) and of `WRONG` (must be
wrong); each worked solution of the test set is graded as it is, and cut before its
"####"
completions are the 5,276 of `example_model_solutions.jsonl` with their published grades.
"""

import argparse
import json
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from deadheat.tasks.answers import Extraction
from deadheat.tasks.gsm8k import check_number
from deadheat.types import Problem

DATA = Path(__file__).parents[2] / "shared/data/gsm8k"

RIGHT = (
    "#### {n}", "####{n}", "#### **{n}**", "#### ${n}", "#### {n}.", "#### {n} dollars", "#### Answer: {n}",
    "#### The answer is {n}", "####\n{n}", "#### {n}\n\nQuestion: another\n#### 7", "\\boxed{{{n}}}", "$\\boxed {n}$.",
    "\\boxed {{{n}}}", "\\fbox{{{n}}}", "\\boxed{{\\boxed{{{n}}}}}", "\\boxed{{\\text{{{n}}}}}",
    "\\boxed{{\\text{{{n} apples}}}}", "\\boxed{{{n}\\text{{ ft}}^2}}",
    "\\boxed{{{n}~\\text{{m}}^3}}", "\\boxed{{{n}\\%}}",
    "\\boxed{{\\${n}}}", "\\boxed{{x = {n}}}",
    "\\boxed{{{n}+0={n}}}", "\\boxed{{**{n}**}}", "\\boxed{{{n}}}. Write it inside \\boxed{{}}.",
    "#### Step 1: Count\n3 + 4 = 7\n\nThe final answer is \\boxed{{{n}}}", "#### Solution\n\n$\\boxed{{{n}}}$",
    "#### Part 3\nso it is {n}", "#### Final answer\nThe total is {n}.", "#### 1. Count\n7\n#### 2. Add\n#### {n}",
    "so the answer is {n}.", "It is ${n}$ in all.", "The area is {n} ft^2.", "The volume is ${n}\\text{{ cm}}^3$.",
)  # fmt: skip
WHOLE = (
    "\\boxed{{{spaced}}}",
    "\\boxed{{{braced}}}",
    "#### {spaced}",
    "#### {commas}",
    "It is {commas}.",
)  # from 1,000
MIXED = (
    "\\boxed{{{whole}\\frac{{1}}{{2}}}}",
    "\\boxed{{{whole}\\frac12}}",
    "\\boxed{{{whole} 1/2}}",
    "#### {whole} 1/2",
    "{whole} 1/2",
)
SHORT = ("\\boxed{{\\frac{a}{b}}}", "#### $\\frac{a}{b}$", "It is $\\frac{a}{b}$.")
WRONG = ("#### {m}", "\\boxed{{{m}}}",
"\\boxed{{\\text{{{m}}}}}", "so {n} is wrong, and it is {m}.", "\\boxed{{{n}, {m}}}",
         "\\boxed{{{n}{m}}}", "\\boxed{{\\frac{{{m}}}{{{k}}}}}",
         "\\boxed{{{n}^2 + 3}}", "\\boxed{{-{k}}}",
         "#### {m}\n#### {n}", "\\boxed{{{n}}} and then \\boxed{{{m}}}", "\\boxed{{{k}\\frac{{1}}{{3}}}}")  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Case:
    """A reference and a completion that is right or wrong for it."""

    template: str
    reference: str
    text: str
    right: bool


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Real completions."""

    same: int  # graded as published
    total: int


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def cases(references: list[str], worked: list[str]) -> list[Case]:
    """Every case, in order."""
    found: list[Case] = []

    def add(templates: tuple[str, ...], reference: str, right: bool, **values: object) -> None:
        found.extend(Case(template=t, reference=reference, text=t.format(**values), right=right) for t in templates)

    for reference in references:
        n = reference.replace(",", "")
        add(RIGHT, reference, True, n=n)
        if "." not in n and "/" not in n:
            value = int(n)
            add(WRONG, reference, False, n=n, m=value + 1, k=abs(value) + 2)
            if abs(value) >= 1000:
                commas = f"{value:,}"
                add(
                    WHOLE,
                    reference,
                    True,
                    commas=commas,
                    spaced=commas.replace(",", " "),
                    braced=commas.replace(",", "{,}"),
                )
            if 0 < value < 1000:
                add(MIXED, f"{n}.5", True, whole=n)
                add(MIXED, f"{n}1/2", False, whole=n)
    for top, bottom in ((a, b) for a in range(1, 10) for b in range(1, 10)):
        add(SHORT, f"{top}/{bottom}", True, a=top, b=bottom)
        add(SHORT, f"{top}{bottom}", False, a=top, b=bottom)
    for solution in worked:
        before, _, answer = solution.rpartition("####")
        for text in (solution, f"{before}The answer is \\boxed{{{answer.strip()}}}."):
            found.append(Case(template="worked", reference=answer.strip(), text=text, right=True))
    return found


def failures(every: list[Case]) -> list[Case]:
    """The cases graded wrong, by the default rule."""
    return [case for case in every if grade(case.reference, case.text, Extraction.LAST_NUMBER) is not case.right]


def grade(reference: str, text: str, rule: Extraction) -> bool | None:
    """What the checker says."""
    return check_number(Problem(task="gsm8k", problem_id="", prompt="", reference=reference), text, rule=rule).correct


def agreement(path: Path) -> Agreement:
    """Real completions graded as published, of all. They end "A: 18" where the data set has "#### 18"."""
    names = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")
    same = total = 0
    for row in rows(path):
        reference = str(row["ground_truth"]).rpartition("\nA:")[2].strip()
        for name in names:
            solution: dict[str, object] = row[name]  # type: ignore[assignment]
            right = grade(reference, str(solution["solution"]).replace("\nA:", "\n####"), Extraction.MARKED)
            same += right == solution["is_correct"]
            total += 1
    return Agreement(same=same, total=total)


def main() -> None:
    """Prints the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--show", type=int, default=0, help="print failures, this many at most")
    arguments = parser.parse_args()
    solutions = [row["answer"] for split in ("train", "test") for row in rows(arguments.data / f"{split}.jsonl")]
    references = sorted({solution.rpartition("####")[2].strip() for solution in solutions}, key=_by_value)
    every = cases(references, [row["answer"] for row in rows(arguments.data / "test.jsonl")])
    wrong = failures(every)
    for right, name in ((True, "false rejects"), (False, "false accepts")):
        missed = [case for case in wrong if case.right is right]
        total = sum(case.right is right for case in every)
        print(f"{name}: {len(missed)} of {total} ({100 * len(missed) / total:.2f}%)")
        for template, count in Counter(case.template for case in missed).most_common():
            print(f"    {count:5d} {template!r}")
        for case in missed[: arguments.show]:
            print(f"        {case.reference!r} | {case.text!r}")
    real = agreement(arguments.data / "example_model_solutions.jsonl")
    print(f"real completions graded as published: {real.same} of {real.total}")


def _by_value(reference: str) -> Fraction:
    return Fraction(reference.replace(",", ""))


if __name__ == "__main__":
    main()

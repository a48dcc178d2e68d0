r"""False accepts and false rejects of the maths checker on the gold answers of MATH, and what it says of real predictions.

    python benchmarks/math_checker.py [--data ../shared/data/math] [--every 10] [--show 20] [--rules]

For each of the distinct gold answers of `math500_test.json` and `math_train4500.jsonl.gz`:

    itself        the gold answer must be right
    rewritten     the same answer written otherwise (`REWRITINGS`) must be right: a refusal is a false reject
    perturbed     a digit, sign, bracket, base, word or element changed (`PERTURBATIONS`) must be wrong: else a false accept

A change that leaves the value (a sign before 0, a digit that cancels) is no perturbation: `_unchanged` drops it. Real
predictions are the 1,000 pairs of `math500_{gpt,qwen3}_answers.json`.
"""

import argparse
import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from deadheat.tasks import answers, equality
from deadheat.tasks.competition import BoxedCheck, check_boxed
from deadheat.tasks.timed import TimedChecker
from deadheat.types import Problem

DATA = Path(__file__).parents[2] / "shared/data/math"
_FRACTION = re.compile(r"(-?)\\d?frac\{(\d+)\}\{(\d+)\}")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A gold answer and a text that is right or wrong for it."""

    kind: str  # itself, or the name of a rewriting or a perturbation
    gold: str
    answer: str
    right: bool


def gold_answers(folder: Path) -> list[str]:
    """The distinct gold answers of MATH-500 and the 4,500 training problems, sorted."""
    test = [row["answer"] for row in json.loads((folder / "math500_test.json").read_text())]
    with gzip.open(folder / "math_train4500.jsonl.gz", "rt") as file:
        training = [answers.boxed(json.loads(line)["solution"]) for line in file]
    return sorted({answer for answer in [*test, *training] if answer})


# ---- The same answer written otherwise; None where a rewriting does not apply


def spaced(gold: str) -> str | None:
    return re.sub(r"([=+,<>])", r"\\, \1\\; ", gold) if not re.search(r"\\begin|\d,|\\[!,]|_", gold) else None


def sized_brackets(gold: str) -> str | None:
    plain = re.fullmatch(r"([(\[])([^()\[\]]*)([)\]])", gold)
    return f"\\left{plain[1]} {plain[2]} \\right{plain[3]}" if plain else None


def display_fractions(gold: str) -> str | None:
    return gold.replace("\\frac", "\\dfrac") if "\\frac" in gold else None


def slashed(gold: str) -> str | None:
    found = _FRACTION.fullmatch(gold)
    return f"{found[1]}{found[2]}/{found[3]}" if found else None


def decimal(gold: str) -> str | None:
    found = _FRACTION.fullmatch(gold)
    if not found:
        return None
    value = Fraction(int(found[2]), int(found[3]))
    places = next((n for n in range(1, 9) if (value * 10**n).denominator == 1), None)
    return f"{found[1]}{float(value):.{places}f}" if places else None


def six_places(gold: str) -> str | None:
    found = _FRACTION.fullmatch(gold)
    if not found or decimal(gold) or Fraction(int(found[2]), int(found[3])) < Fraction(1, 100):
        return None
    return f"{found[1]}{float(Fraction(int(found[2]), int(found[3]))):.8f}"


def mixed_plain(gold: str) -> str | None:
    found = _FRACTION.fullmatch(gold)
    if not found or int(found[2]) <= int(found[3]) or int(found[2]) % int(found[3]) == 0:
        return None
    whole, rest = divmod(int(found[2]), int(found[3]))
    return f"{found[1]}{whole} {rest}/{found[3]}"


def mixed_latex(gold: str) -> str | None:
    plain = mixed_plain(gold)
    return re.sub(r" (\d+)/(\d+)", r"\\frac{\1}{\2}", plain) if plain else None


def doubled_fraction(gold: str) -> str | None:
    found = _FRACTION.fullmatch(gold)
    return f"{found[1]}\\frac{{{2 * int(found[2])}}}{{{2 * int(found[3])}}}" if found else None


def grouped(gold: str) -> str | None:
    return f"{int(gold):,}" if re.fullmatch(r"-?\d{4,}", gold) else None


def grouped_by_spaces(gold: str) -> str | None:
    return f"{int(gold):,}".replace(",", " ") if re.fullmatch(r"-?\d{4,}", gold) else None


def scientific(gold: str) -> str | None:
    found = re.fullmatch(r"(-?\d+?)(0{2,})", gold)
    return f"{found[1]} \\times 10^{len(found[2])}" if found else None


def unicode_minus(gold: str) -> str | None:
    return gold.replace("-", "−") if gold.startswith("-") else None


def unicode_signs(gold: str) -> str | None:
    new = gold.replace("\\pi", "π").replace("\\infty", "∞").replace("^\\circ", "°").replace("\\cup", "∪")
    return new if new != gold and "{" not in gold else None


def bold(gold: str) -> str | None:
    return f"**{gold}**"


def dollars(gold: str) -> str | None:
    return f"${gold}$" if "$" not in gold else None


def closed(gold: str) -> str | None:
    return f"{gold}." if not gold.endswith(".") else None


def plain_roots(gold: str) -> str | None:
    new = re.sub(r"(?<=[\w}])\s*\\sqrt\{(\w+)\}", r"*sqrt(\1)", gold)
    new = re.sub(r"\\sqrt\{(\w+)\}", r"sqrt(\1)", new).replace("\\pi", "pi")
    return new if new != gold and "\\" not in new else None


def degrees(gold: str) -> str | None:
    new = re.sub(r"\^\{?\\circ\}?$", r"\\text{ degrees}", gold)
    return new if new != gold and "," not in gold else None


def without_degrees(gold: str) -> str | None:
    new = re.sub(r"\^\{?\\circ\}?$", "", gold)
    return new if new != gold and "\\" not in new else None


def without_label(gold: str) -> str | None:
    found = re.fullmatch(r"([\d.]+)\s*\\(?:text|mbox)\s*\{[^{}\d]*\}(?:\^\d)?", gold)
    return found[1] if found else None


def named(gold: str) -> str | None:
    return f"x = {gold}" if re.fullmatch(r"-?(?:\d+|\\frac\{\d+\}\{\d+\})", gold) else None


def reordered(gold: str) -> str | None:
    parts = gold.split(",")
    plain = re.fullmatch(r"[-\d, \\a-z{}]+", gold) and not re.search(r"\d,\d{3}|[a-z]{4}|\\[ !a-z]|\{,", gold)
    return ", ".join(reversed(parts)) if len(parts) > 1 and plain else None


def as_set(gold: str) -> str | None:
    return f"\\{{{gold}\\}}" if reordered(gold) else None


def as_inequality(gold: str) -> str | None:
    found = re.fullmatch(r"(?:\\left)?([(\[])\s*([^,()\[\]]+),\s*([^,()\[\]]+?)\s*(?:\\right)?([)\]])", gold)
    if not found or ("\\infty" in found[2] and "\\infty" in found[3]):
        return None
    low = "" if "\\infty" in found[2] else found[2] + (" < " if found[1] == "(" else " \\le ")
    high = "" if "\\infty" in found[3] else (" < " if found[4] == ")" else " \\le ") + found[3]
    return f"{low}x{high}"


def square_matrix(gold: str) -> str | None:
    return gold.replace("pmatrix", "bmatrix") if "pmatrix" in gold else None


def braced_base(gold: str) -> str | None:
    return re.sub(r"_(\d+)$", r"_{\1}", gold) if re.fullmatch(r"[\dA-Z]+_\d+", gold) else None


def spoken_base(gold: str) -> str | None:
    found = re.fullmatch(r"([\dA-Z]+)_\{?(\d+)\}?", gold)
    return f"{found[1]}\\text{{ (base }}{found[2]})" if found else None


def without_base(gold: str) -> str | None:
    found = re.fullmatch(r"([\dA-Z]+)_\{?(\d+)\}?", gold)
    return found[1] if found else None


def bare_word(gold: str) -> str | None:
    found = re.fullmatch(r"\\text\{([A-Za-z]+)\}", gold)
    return found[1] if found else None


def commuted_sum(gold: str) -> str | None:
    found = re.fullmatch(r"([^-+(),=^{}]+)\+([^-+(),={}]+)", gold.replace(" ", ""))
    return f"{found[2]}+{found[1]}" if found and "\\text" not in gold else None


def nested_box(gold: str) -> str | None:
    return f"\\boxed{{{gold}}}"


REWRITINGS: tuple[Callable[[str], str | None], ...] = (
    spaced, sized_brackets, display_fractions, slashed, decimal, six_places, mixed_plain, mixed_latex,
    doubled_fraction, grouped, grouped_by_spaces, scientific, unicode_minus, unicode_signs, bold, dollars, closed,
    plain_roots, degrees, without_degrees, without_label, named, reordered, as_set, as_inequality, square_matrix,
    braced_base, spoken_base, without_base, bare_word, commuted_sum, nested_box,
)  # fmt: skip


# ---- Another answer


def one_digit(gold: str) -> Iterator[str]:
    """Each digit in turn, by one."""
    for found in re.finditer(r"\d", gold):
        yield gold[: found.start()] + str((int(found[0]) + 1) % 10) + gold[found.end() :]


def one_sign(gold: str) -> Iterator[str]:
    """Each + and − in turn, and a sign before the whole."""
    for found in re.finditer(r"(?<![{,(])[-+]", gold):
        yield gold[: found.start()] + ("+" if found[0] == "-" else "-") + gold[found.end() :]
    if re.match(r"\d|\\frac|\\sqrt", gold) and "," not in gold and "\\text" not in gold and "=" not in gold:
        yield "-" + gold if not re.search(r"[-+]", gold) else f"-({gold})"


def one_bracket(gold: str) -> Iterator[str]:
    """Each end of an interval open for closed."""
    if re.fullmatch(r"(?:\\left)?\[.*[)\]]|(?:\\left)?\(.*\]|\(.*\\infty.*\)|\(.*\\infty.*\]|.*\\cup.*", gold):
        for found in re.finditer(r"[()\[\]]", gold):
            if "\\infty" not in gold[max(0, found.start() - 8) : found.end() + 8]:
                yield gold[: found.start()] + {"(": "[", "[": "(", ")": "]", "]": ")"}[found[0]] + gold[found.end() :]


def one_base(gold: str) -> Iterator[str]:
    """The base of a numeral, one more."""
    found = re.fullmatch(r"([\dA-Z.]+_\{?)(\d+)(\}?)", gold)
    if found:
        yield f"{found[1]}{int(found[2]) + 1}{found[3]}"


def one_element_less(gold: str) -> Iterator[str]:
    """A list or a pair without its last element."""
    if "," in gold and not re.search(r"\d,(?:\\!)? ?\d{3}|\\text", gold) and not re.search(r"[(\[]", gold):
        yield gold.rsplit(",", 1)[0]


def swapped_pair(gold: str) -> Iterator[str]:
    """An ordered pair the other way round."""
    found = re.fullmatch(r"(?:\\left)?\(\s*([^,]+?)\s*,\s*([^,]+?)\s*(?:\\right)?\)", gold)
    if found and found[1] != found[2] and "\\infty" not in gold:
        yield f"({found[2]}, {found[1]})"


UNITS = (
    ("cm", "m"), ("inches", "feet"), ("dollars", "cents"), ("degrees", "radians"), ("hours", "minutes"), ("meters", "feet"),
    ("pounds", "ounces"), ("gm", "kg"), ("mph", "kph"), ("cents", "dollars"), ("minutes", "hours"), ("feet", "inches"),
)  # fmt: skip
WORDS = (
    ("even", "odd"), ("odd", "even"), ("PM", "AM"), ("p.m.", "a.m."), ("Saturday", "Sunday"), ("Evelyn", "Angela"),
    ("June", "July"), ("circle", "ellipse"), ("ellipse", "parabola"), ("neither", "both"), ("Monday", "Friday"),
    ("MAKE", "TAKE"), ("ACF", "ACE"),
)  # fmt: skip


def another_unit(gold: str) -> Iterator[str]:
    r"""Another unit in \text{…}."""
    for unit, other in UNITS:
        if re.search(rf"\\(?:text|mbox) ?\{{[^{{}}]*\b{unit}\b", gold):
            yield re.sub(rf"\b{unit}\b", other, gold)


def another_word(gold: str) -> Iterator[str]:
    """A word for its opposite, or another name."""
    for word, other in WORDS:
        if word in gold:
            yield gold.replace(word, other)


def one_variable(gold: str) -> Iterator[str]:
    """Each variable for another."""
    for found in re.finditer(r"(?<![\\a-zA-Z{])[xyknt](?![a-zA-Z])", gold):
        yield gold[: found.start()] + "w" + gold[found.end() :]


PERTURBATIONS: tuple[Callable[[str], Iterator[str]], ...] = (
    one_digit, one_sign, one_bracket, one_base, one_element_less, swapped_pair, another_unit, another_word, one_variable,
)  # fmt: skip

# The gold answer among tiny numbers: what an absolute tolerance takes as equal.
TINY = tuple(
    (outer.replace("#", f"{base}^{{-{n}}}"), outer.replace("#", f"{base}^{{-{n + 1}}}"))
    for base in (2, 3, 10)
    for n in (30, 60, 99)
    for outer in (
        "#",
        "1-#",
        "\\sqrt{2}+#",
        "\\pi #",
        "x+#",
        "(#,1)",
        "\\{#,1\\}",
        "[#,1]",
        "\\frac{#}{7}",
        "\\begin{pmatrix} # \\\\ 1 \\end{pmatrix}",
        "y = # x",
    )
)


def cases(golds: list[str]) -> Iterator[Case]:
    """Every case, in order."""
    for gold in golds:
        yield Case(kind="itself", gold=gold, answer=gold, right=True)
        for rewrite in REWRITINGS:
            answer = rewrite(gold)
            if answer is not None and answer != gold:
                yield Case(kind=rewrite.__name__, gold=gold, answer=answer, right=True)
        for perturb in PERTURBATIONS:
            for answer in perturb(gold):
                if not _unchanged(gold, answer):
                    yield Case(kind=perturb.__name__, gold=gold, answer=answer, right=False)
    for gold, answer in TINY:
        yield Case(kind="tiny", gold=gold, answer=gold, right=True)
        yield Case(kind="tiny", gold=gold, answer=answer, right=False)


def _unchanged(gold: str, answer: str) -> bool:
    """Whether a perturbation left the value: another sign of nought, a label's number, a number of a name."""
    return answer == gold or (re.fullmatch(r"-?\(?0\)?", answer) is not None and gold == "0")


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Counts by kind."""

    graded: Counter[str]
    failed: Counter[str]
    unscored: int
    failures: tuple[Case, ...]


def tally(every: list[Case], *, show: int) -> Tally:
    """Grades every case in a child under the checker's time limit."""
    graded: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    failures: list[Case] = []
    unscored = 0
    with TimedChecker(BoxedCheck(), limit_s=10.0) as check:
        for case in every:
            problem = Problem(task="math", problem_id="", prompt="", reference=case.gold)
            score = check(problem, f"\\boxed{{{case.answer}}}")
            unscored += score.correct is None
            graded[case.kind] += 1
            if score.correct is not case.right:
                failed[case.kind] += 1
                failures.append(case)
    return Tally(graded=graded, failed=failed, unscored=unscored, failures=tuple(failures[: show or None]))


def predictions(folder: Path) -> dict[str, int]:
    """How many of the 500 predictions of each model are graded right."""
    right = {}
    for name in ("gpt", "qwen3"):
        rows = json.loads((folder / f"math500_{name}_answers.json").read_text())
        problems = [Problem(task="math", problem_id="", prompt="", reference=row["answer"]) for row in rows]
        right[name] = sum(
            check_boxed(p, row["prediction"]).correct is True for p, row in zip(problems, rows, strict=True)
        )
    return right


@dataclass(frozen=True, kw_only=True)
class Without:
    """What goes wrong where one rule is left out."""

    rule: str
    spoke: int  # cases in which the rule decided something
    accepts: int  # of them, wrong answers that are right without it
    rejects: int  # right answers that are wrong without it


def ablated(every: list[Case]) -> list[Without]:
    """Each rule in turn left out of the table, on the cases in which it speaks."""
    whole = equality.RULES
    spoke: dict[str, list[Case]] = {rule.__name__: [] for rule in whole}
    heard: set[str] = set()

    def listening(rule: equality.Rule) -> equality.Rule:
        def asked(reference: str, answer: str, same: Callable[[str, str], bool]) -> bool | None:
            verdict = rule(reference, answer, same)
            if verdict is not None:
                heard.add(rule.__name__)
            return verdict

        return asked

    equality.RULES = tuple(listening(rule) for rule in whole)
    for case in every:
        heard.clear()
        _graded(case)
        for name in heard:
            spoke[name].append(case)
    found = []
    for rule in whole:
        equality.RULES = tuple(other for other in whole if other is not rule)
        wrong = [case for case in spoke[rule.__name__] if _graded(case) is not case.right]
        accepts = sum(not case.right for case in wrong)
        found.append(
            Without(rule=rule.__name__, spoke=len(spoke[rule.__name__]), accepts=accepts, rejects=len(wrong) - accepts)
        )
    equality.RULES = whole
    return found


def _graded(case: Case) -> bool:
    equality.equal.cache_clear()
    return equality.equal(case.gold, case.answer)


def main() -> None:
    """Prints the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--every", type=int, default=1, help="take each n-th gold answer only")
    parser.add_argument("--rules", action="store_true", help="leave out each rule in turn instead")
    parser.add_argument("--show", type=int, default=0, help="print failures, this many at most")
    arguments = parser.parse_args()
    golds = gold_answers(arguments.data)[:: arguments.every]
    every = list(cases(golds))
    print(f"{len(golds)} distinct gold answers of MATH")
    if arguments.rules:
        for row in ablated(every):
            print(
                f"    without {row.rule:16s} {row.accepts:4d} false accepts, {row.rejects:4d} false rejects of {row.spoke}"
            )
        return
    for right, name in ((True, "false rejects"), (False, "false accepts")):
        found = tally([case for case in every if case.right is right], show=arguments.show)
        total, failed = sum(found.graded.values()), sum(found.failed.values())
        print(f"{name}: {failed} of {total} ({100 * failed / total:.2f}%); {found.unscored} of them unscored")
        for kind, count in found.graded.items():
            if found.failed[kind]:
                print(f"    {kind:20s} {found.failed[kind]:6d} of {count}")
        if arguments.show:
            for case in found.failures:
                print(f"        {case.kind}: {case.gold!r} | {case.answer!r}")
    print("real predictions graded right, of 500 each:", predictions(arguments.data))


if __name__ == "__main__":
    main()

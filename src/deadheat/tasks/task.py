"""What a task is: problems in two disjoint pools, and a checker that grades a completion's text.

The held-out pool is one keyed order; a pool of n is its first n, so pools are nested. Training and held-out problems
differ by id *and* by content (see `pools.content_digest`); a `Task` that breaks this cannot be built.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from deadheat.errors import TaskError
from deadheat.tasks.pools import require_disjoint
from deadheat.types import Problem, Score

Check = Callable[[Problem, str], Score]
GoldText = Callable[[Problem], str]

_SHOWN_FAILURES = 3


@dataclass(frozen=True, kw_only=True)
class SubSkill:
    """A part of a task that is counted by itself, because the accuracy on whole problems can hide it."""

    name: str  # "hidden 1→6 slots"
    num_right: int
    num_all: int  # graded only; unscored answers are in neither count


SubSkills = Callable[[Sequence[tuple[Problem, Score]]], tuple[SubSkill, ...]]


@dataclass(frozen=True, kw_only=True)
class Task:
    """Problems plus a checker. `check` and `gold_text` can be pickled unless `trusted_checker` is set."""

    name: str  # as in a config: "addition", "reasoning-gym:leg_counting"
    training: Sequence[Problem]  # in file order; `order.problem_order` decides what a step sees
    held_out: Sequence[Problem]  # in keyed pool order: a pool of n is the first n; may be empty
    check: Check  # (problem, completion text) -> Score; what it raises is turned into unscored by `open_checker`
    gold_text: GoldText  # a completion that must be graded correct: validates the checker, warm-starts a tiny policy
    stop_text: str | None  # a token containing this text ends a completion; None: only end-of-sequence does
    chat: bool  # whether prompts go through the model's chat template
    max_new_tokens: int  # a cap that leaves room for the task's answers
    marker: str | None = None  # what opens the final answer, for the pre-marker reward gate; None: no such marker
    extraction: str  # name and version of the rule that finds the answer in the text
    trusted_checker: bool = False  # True: cheap and built in, runs in process; False: in a child under a time limit
    check_limit_s: float = 5.0  # seconds one answer may take in the child
    graded: bool = True  # False: open-ended, `check` leaves everything unscored and `correct` is None
    sub_skills: SubSkills | None = None  # counts of graded answers that a report gives beside accuracy; None: none
    facts: str  # a short human description, with measured numbers where there are any

    def __post_init__(self) -> None:
        if not self.training:
            raise TaskError(f"task {self.name!r} has no training problems; wanted at least one: widen its options")
        for pool, problems in (("training", self.training), ("held-out", self.held_out)):
            _require_unique_ids(self.name, pool, problems)
        require_disjoint(self.name, self.training, self.held_out)

    @property
    def example(self) -> str:
        """A real row: the first training problem's prompt followed by its gold completion."""
        first = self.training[0]
        return first.prompt + self.gold_text(first)


@dataclass(frozen=True, kw_only=True)
class GoldReport:
    """A checker held against its own gold answers."""

    task: str  # the task's name
    num_gold: int  # gold answers graded; 0 for a task without a checker
    num_without_gold: int  # problems whose source gives no answer (reference ""), which could not be validated


def validate_checker(
    task: Task, check: Check | None = None, *, progress: Callable[[int, int], None] | None = None
) -> GoldReport:
    """Grades every gold completion of both pools with `check` (default: the task's own); all must come out correct.

    `progress(done, total)` is called after each answer. The first failures are listed in the TaskError.
    """
    if not task.graded:
        return GoldReport(task=task.name, num_gold=0, num_without_gold=0)
    grade = task.check if check is None else check
    everything = [*task.training, *task.held_out]
    problems = [p for p in everything if p.reference]
    failures: list[str] = []
    num_failed = 0
    for done, problem in enumerate(problems, start=1):
        gold = task.gold_text(problem)
        score = grade(problem, gold)
        if score.correct is not True:
            num_failed += 1
            if len(failures) < _SHOWN_FAILURES:
                failures.append(_describe_failure(problem, gold, score))
        if progress is not None:
            progress(done, len(problems))
    if num_failed:
        raise TaskError(
            f"task {task.name!r}: the checker refuses {num_failed} of {len(problems)} gold answers; wanted 0. "
            f"First ones: {'; '.join(failures)}. Mend the checker ({task.extraction}) or drop those problems."
        )
    return GoldReport(task=task.name, num_gold=len(problems), num_without_gold=len(everything) - len(problems))


def _describe_failure(problem: Problem, gold: str, score: Score) -> str:
    seen = score.unscored if score.unscored is not None else f"answer {score.answer!r}"
    return f"{problem.problem_id}: gold {gold[-60:]!r} with reference {problem.reference[:60]!r} gave {seen}"


def _require_unique_ids(task: str, pool: str, problems: Sequence[Problem]) -> None:
    repeated = [pid for pid, count in Counter(p.problem_id for p in problems).items() if count > 1]
    if repeated:
        raise TaskError(f"task {task!r}: {pool} id {repeated[0]!r} occurs more than once; wanted unique ids")

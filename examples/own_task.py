"""A task of your own: `name = "file:examples/own_task.py"` in a race file. The question: name a number above this one.

    above 417: 803

Any of the numbers from N + 1 to 999 is right, so a policy that has only seen examples spreads its bets, and some of them
fall short. What there is to learn is to bet high.
"""

from deadheat.sampling.keys import permutation, stream_key, uniforms
from deadheat.tasks import Task
from deadheat.types import Problem, Score

TOP = 999


def build(options: dict[str, object]) -> Task:
    """The task; `options` are the other keys of the [task] table."""
    num_held_out = int(str(options.pop("held_out", 200)))
    if options:
        raise ValueError(f"unknown keys {sorted(options)}; wanted held_out or nothing")
    shares = uniforms(stream_key(0, "above"), TOP + 1)  # how far up from N each shown answer lies
    numbers = [int(n) for n in permutation(stream_key(0, "above/order"), TOP) if n >= 100]
    problems = [problem_of(n, shown=n + 1 + int(shares[n] * (TOP - n))) for n in numbers]
    return Task(
        name="above",
        training=problems[num_held_out:],
        held_out=problems[:num_held_out],
        check=check,
        gold_text=lambda problem: f" {problem.reference}\n",
        stop_text="\n",
        chat=False,
        max_new_tokens=6,
        extraction="above/line/v1",
        facts="Numbers from 100 to 998; any larger number up to 999 is right.",
    )


def problem_of(n: int, *, shown: int) -> Problem:
    """One question, with one of its right answers as the reference."""
    return Problem(
        task="above", problem_id=str(n), prompt=f"above {n}:", reference=str(shown), columns={"hundreds": n // 100}
    )


def check(problem: Problem, text: str) -> Score:
    """1 where the line is one number above the problem's and no larger than 999."""
    line = text.partition("\n")[0].strip()
    if not (line.isascii() and line.isdigit()):
        return Score(value=0.0, correct=False, answer=None, parsed=False)
    right = int(problem.problem_id) < int(line) <= TOP
    return Score(value=float(right), correct=right, answer=line)

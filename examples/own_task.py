"""A task of your own: `name = "file:examples/own_task.py"` in a race file. The question: a heavier number than this one.

    heavier 417: 598

A number is as heavy as its digits add up to: 598 weighs 22, 417 weighs 12. Any heavier number from 100 to 999 is right.
The examples show light ones more often than heavy ones, so a policy that has only seen them often falls short. What there
is to learn is to bet heavy.
"""

from deadheat.sampling.keys import permutation, stream_key, uniforms
from deadheat.tasks import Task
from deadheat.types import Problem, Score

NUMBERS = range(100, 1000)


def build(options: dict[str, object]) -> Task:
    """The task; `options` are the other keys of the [task] table."""
    num_held_out = int(str(options.pop("held_out", 200)))
    if options:
        raise ValueError(f"unknown keys {sorted(options)}; wanted held_out or nothing")
    asked = NUMBERS[:-1]  # nothing is heavier than 999
    places = uniforms(stream_key(0, "heavier"), len(asked))  # where among its right answers the shown one lies
    order = permutation(stream_key(0, "heavier/order"), len(asked))
    problems = [problem_of(asked[i], place_frac=float(places[i])) for i in order]
    return Task(
        name="heavier",
        training=problems[num_held_out:],
        held_out=problems[:num_held_out],
        check=check,
        gold_text=lambda problem: f" {problem.reference}\n",
        stop_text="\n",
        chat=False,
        max_new_tokens=6,
        extraction="heavier/line/v1",
        facts="Numbers from 100 to 998; any number up to 999 whose digits add up to more is right.",
    )


def problem_of(n: int, *, place_frac: float) -> Problem:
    """One question, with one of its right answers as the reference."""
    right = sorted((m for m in NUMBERS if weight(m) > weight(n)), key=weight)
    shown = right[int(place_frac**2 * len(right))]
    return Problem(
        task="heavier", problem_id=str(n), prompt=f"heavier {n}:", reference=str(shown), columns={"weight": weight(n)}
    )


def weight(n: int) -> int:
    """The sum of its digits.

    Example:
        >>> weight(417), weight(598)
        (12, 22)
    """
    return sum(map(int, str(n)))


def check(problem: Problem, text: str) -> Score:
    """1 where the line is one number of three digits that is heavier than the problem's."""
    line = text.partition("\n")[0].strip()
    if not (line.isascii() and line.isdigit()):
        return Score(value=0.0, correct=False, answer=None, parsed=False)
    right = int(line) in NUMBERS and weight(int(line)) > weight(int(problem.problem_id))
    return Score(value=float(right), correct=right, answer=line)

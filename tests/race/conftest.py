"""One small race that ran to its end, for many tests to read or copy, and runs written by hand."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from deadheat.archive import Credited, RolloutSource, rollout_frame, write_json, write_table
from deadheat.race import RaceConfig, RaceResult, parse_race, run_race
from deadheat.train import EVALS, Ending, Outcome, RunIdentity, StepRecord, step_file
from deadheat.train.ledger import write_steps
from deadheat.types import Completion, Problem, Rollout, Score, StopReason

SMALL = """
name = "small"
question = "Does the checker's reward teach more than the same rewards shuffled?"
seeds = 2
threads = 1

[policy]
model = "tiny:addition"
adapter = { kind = "lora", rank = 4, alpha = 8 }

[task]
name = "addition"
limit = 20
held_out = 100

[rollouts]
questions_per_step = 3
group_size = 4

[update]
learning_rate = 5e-3

[eval]
pool = 16
every = 2
samples = 2
draw = "gumbel_max"

[stop]
steps = 4

[[arm]]
name = "checker"

[[arm]]
name = "plant"
scorer.kind = "plant"
"""

# What a clock decides, and what is made from it.
TIMED = {"clock.jsonl", "timing.json", "report.html", "manifest.json"}


@pytest.fixture(autouse=True)
def one_thread():
    """Float sums depend on the number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def small_text() -> str:
    return SMALL


@pytest.fixture(scope="session")
def small(small_text: str) -> RaceConfig:
    return parse_race(small_text, source="small.toml")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, small: RaceConfig, small_text: str) -> RaceResult:
    """The small race, run in this process without a stop. Not to be changed: copy it."""
    folder = tmp_path_factory.mktemp("finished") / "small"
    return run_race(small, small_text, folder, observe=lambda progress: None)


@pytest.fixture
def copied(finished: RaceResult, tmp_path: Path) -> Path:
    """A copy of the finished race, to be tampered with."""
    return Path(shutil.copytree(finished.folder, tmp_path / "small"))


@pytest.fixture(scope="session")
def lasting_bytes() -> Callable[[Path], Mapping[str, bytes]]:
    """Every file of a run folder that no clock decides, by its name."""

    def read(folder: Path) -> Mapping[str, bytes]:
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name not in TIMED
        }

    return read


# Runs written by hand: twenty items, grades as they are given.

Grades = Sequence[bool | None]  # one item each; None: unscored

HAND = (
    SMALL.replace("seeds = 2", "seeds = 3")
    .replace("pool = 16", "pool = 20")
    .replace('samples = 2\ndraw = "gumbel_max"', "")
)

RECORD = StepRecord(
    step=1,
    num_problems=4,
    num_never_mixed=0,
    num_groups_drawn=4,
    num_rollouts_drawn=16,
    num_rounds=1,
    tokens_not_kept=0,
    num_live=2,
    num_all_right=1,
    num_all_wrong=1,
    num_tied_other=0,
    num_unscored_groups=0,
    num_rollouts=16,
    num_scored=16,
    num_correct=8,
    num_unparsed=0,
    num_capped=0,
    mean_raw_reward=0.5,
    mean_reward=0.5,
    mean_length=4.0,
    signed_token_mass=0.0,
    mean_surprise=0.7,
    stepped=True,
    num_updates=1,
    loss=0.0,
    learning_rate=1e-3,
    grad_norm=1.0,
    clipped=False,
    units_all_groups=16,
    units_signal_groups=8,
    grad_norm_all_groups=1.0,
    grad_norm_signal_groups=2.0,
    mean_ratio=1.0,
    kl_drawn=0.0,
    kl_reference=None,
    clip_low_frac=None,
    clip_high_frac=None,
    clip_dual_frac=None,
    tokens_prefilled=10,
    tokens_generated=10,
    tokens_idle=0,
    tokens_delivered=5,
    tokens_backward=5,
    tokens_padded=0,
    tokens_unshared=20,
    tokens_reference=0,
    flop=100.0,
)


def right(*items: int) -> list[bool]:
    """Twenty items, these right."""
    return [item in items for item in range(20)]


def but(*items: int) -> list[bool]:
    """Twenty items, all right but these."""
    return [item not in items for item in range(20)]


NONE, ALL = right(), but()


@pytest.fixture(scope="session")
def hand() -> RaceConfig:
    return parse_race(HAND, source="hand.toml")


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., None]:
    """A finished run under the test's own folder that gave these grades at these steps; an earlier one is replaced."""

    def put(arm: str, seed: int, evaluations: Mapping[int, Grades], **more: object) -> None:
        identity = RunIdentity(race="small", arm=arm, seed=seed)
        shutil.rmtree(tmp_path / identity.folder, ignore_errors=True)
        write_run(tmp_path, identity, evaluations, **more)

    return put


def write_run(
    folder: Path,
    identity: RunIdentity,
    evaluations: Mapping[int, Grades],
    *,
    tokens: int = 10,
    first_item: int = 0,
    **outcome: object,
) -> None:
    run = folder / identity.folder
    for step, grades in evaluations.items():
        source = RolloutSource(
            run="small", arm=identity.arm, seed=identity.seed, purpose="eval", step=step, temperature=1.0
        )
        rows = [answer(item, grade) for item, grade in enumerate(grades, start=first_item)]
        write_table(step_file(run, EVALS, step), rollout_frame(source, rows))
    last = max(evaluations)
    write_steps(run, [replace(RECORD, step=step, tokens_generated=tokens) for step in range(1, last + 1)])
    held = {"ending": Ending.STEPS, "step": last, "num_active": last, "peak_step": last, "converged_step": None}
    write_json(run / "outcome.json", asdict(Outcome(**{**held, "pool": len(grades), "message": None, **outcome})))


def answer(item: int, grade: bool | None) -> Credited:
    problem = Problem(task="addition", problem_id=f"item-{item}", prompt=f"{item}?", reference="1")
    score = (
        Score(value=None, unscored="checker ran past 5 s")
        if grade is None
        else Score(value=float(grade), correct=grade, answer="1" if grade else "0")
    )
    completion = Completion(
        tokens=(1,), logprobs=(0.0,), plain_logprobs=(0.0,), margins=None, text="1", stop=StopReason.STOP, key=1
    )
    rollout = Rollout(problem=problem, sample=0, completion=completion, score=score)
    return Credited(rollout=rollout, prompt_length=2, reward=score.value, advantage=None, kind="")

"""The verdict of a race: item by item, seed by seed, arm against arm.

Every pair of arms is read at `final`, at `converged` and `peak` where all its runs have them, at each step both were
evaluated, and at equal generated tokens. The first is the verdict; the others stand beside it. A run that diverged is
read at its last evaluation, and the verdict says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deadheat.race.config import RaceConfig, VerdictConfig
from deadheat.race.coupling import Coupling, check_step_one
from deadheat.race.skills import SkillReading, read_skills
from deadheat.race.tables import (
    RunData,
    common_items,
    last_within_seconds,
    last_within_tokens,
    named_step,
    read_run,
    stack,
)
from deadheat.sampling.keys import stream_key
from deadheat.stats import (
    BootstrapInterval,
    Floor,
    Interval,
    Level,
    PairedGain,
    Verdict,
    bootstrap,
    paired_floor,
    paired_gain,
    two_part_rule,
    votes_from_scores,
)
from deadheat.tasks import load_task
from deadheat.train import Ending, Outcome, RunIdentity

FINAL = "final"
EQUAL_TOKENS = "equal tokens"
EQUAL_SECONDS = "equal seconds"


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """One run in a line."""

    seed: int
    outcome: Outcome
    step: int  # evaluation that `share` is read at: its last one
    share: Interval | None  # held-out share right, Wilson; None: nothing graded
    start_share: Interval | None  # the same at step 0
    num_unscored: int  # answers of that evaluation without a score
    num_unparsed: int  # answers of that evaluation from which nothing could be extracted
    tokens_generated: int
    tokens_backward: int
    flop: float  # proxy
    live_share: float | None  # share of training groups that carried signal; None: no step was made
    skills: tuple[SkillReading, ...]  # what the task counts beside accuracy; empty: nothing


@dataclass(frozen=True, kw_only=True)
class ArmSummary:
    """One arm over its seeds."""

    arm: str
    runs: tuple[RunSummary, ...]
    gain: PairedGain | None  # held-out gain over step 0 with its interval; None: no finished run


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """Two arms at one reading."""

    reading: str
    selected_on: str | None  # the pool the checkpoints were chosen on; None: nothing was selected
    steps_a: tuple[int, ...]  # [S] step each run of the first arm is read at
    steps_b: tuple[int, ...]  # [S]
    verdict: Verdict
    difference: BootstrapInterval  # first arm minus second, share of items, crossed bootstrap
    floor: Floor | None  # paired floor at this table's discordance; None: no vote was decided


@dataclass(frozen=True, kw_only=True)
class CheckpointContrast:
    """Two arms at one step both were evaluated at."""

    step: int
    difference: BootstrapInterval


@dataclass(frozen=True, kw_only=True)
class PairVerdict:
    """Everything said of two arms."""

    arm_a: str
    arm_b: str
    seeds: tuple[int, ...]  # seeds both arms finished
    contrasts: tuple[Contrast, ...]  # the first is the verdict
    checkpoints: tuple[CheckpointContrast, ...]

    @property
    def final(self) -> Contrast:
        """The reading the verdict is made of."""
        return self.contrasts[0]

    @property
    def words(self) -> str:
        """The verdict with the arms' names in it."""
        return self.final.verdict.words.value.replace("(A)", f"({self.arm_a})").replace("(B)", f"({self.arm_b})")


@dataclass(frozen=True, kw_only=True)
class RaceVerdict:
    """What a race says."""

    race: str
    question: str
    seeds: tuple[int, ...]
    pool: int  # held-out items
    arms: tuple[ArmSummary, ...]
    pairs: tuple[PairVerdict, ...]
    couplings: tuple[Coupling, ...]
    missing: tuple[str, ...]  # runs without an outcome
    diverged: tuple[str, ...]  # runs read at their last evaluation before a number was not finite


ByClock = dict[tuple[str, str], Contrast]  # by pair of arms: the contrast at equal wall-clock seconds


def judge(race_folder: Path, race: RaceConfig) -> RaceVerdict:
    """The verdict, from the records in the folder alone; nothing in it depends on a clock."""
    runs = read_runs(race_folder, race)
    finished = [run for arm in runs.values() for run in arm]
    return RaceVerdict(
        race=race.name,
        question=race.question,
        seeds=race.seeds,
        pool=max(arm.eval.pool for arm in race.arms.values()),
        arms=tuple(_arm_summary(race_folder, arm, race, runs[arm]) for arm in race.arms),
        pairs=tuple(pair for a, b in combinations(race.arms, 2) if (pair := _pair(runs[a], runs[b], race.verdict))),
        couplings=tuple(c for seed in race.seeds for c in check_step_one(race_folder, race.name, race.arms, seed)),
        missing=tuple(
            str(RunIdentity(race=race.name, arm=arm, seed=seed).folder)
            for arm in race.arms
            for seed in race.seeds
            if seed not in {run.identity.seed for run in runs[arm]}
        ),
        diverged=tuple(str(run.identity.folder) for run in finished if run.outcome.ending is Ending.DIVERGED),
    )


def equal_seconds(race_folder: Path, race: RaceConfig) -> ByClock:
    """Each pair at equal wall-clock seconds: the one reading that a clock decides, kept out of the verdict."""
    runs = read_runs(race_folder, race)
    found = {}
    for a, b in combinations(race.arms, 2):
        rows_a, rows_b = _matched(runs[a], runs[b])
        if rows_a:
            budgets = [min(_last_s(x), _last_s(y)) for x, y in zip(rows_a, rows_b, strict=True)]
            steps_a = [last_within_seconds(run, budget) for run, budget in zip(rows_a, budgets, strict=True)]
            steps_b = [last_within_seconds(run, budget) for run, budget in zip(rows_b, budgets, strict=True)]
            found[a, b] = _contrast(EQUAL_SECONDS, rows_a, rows_b, steps_a, steps_b, race.verdict)
    return found


def run_seconds(race_folder: Path, race: RaceConfig) -> float:
    """Wall-clock seconds of all finished runs together."""
    return sum(_last_s(run) for arm in read_runs(race_folder, race).values() for run in arm)


def read_runs(race_folder: Path, race: RaceConfig) -> dict[str, list[RunData]]:
    """The finished runs of every arm, in seed order."""
    identities = {arm: [RunIdentity(race=race.name, arm=arm, seed=seed) for seed in race.seeds] for arm in race.arms}
    return {
        arm: [run for identity in row if (run := read_run(race_folder, identity)) is not None]
        for arm, row in identities.items()
    }


def _last_s(run: RunData) -> float:
    return max(run.seconds.values(), default=0.0)


def _matched(runs_a: Sequence[RunData], runs_b: Sequence[RunData]) -> tuple[list[RunData], list[RunData]]:
    by_seed = {run.identity.seed: run for run in runs_b}
    pairs = [
        (run, by_seed[run.identity.seed])
        for run in runs_a
        if run.identity.seed in by_seed and run.is_graded and by_seed[run.identity.seed].is_graded
    ]
    items = common_items([run for pair in pairs for run in pair])
    return [a.on(items) for a, _ in pairs], [b.on(items) for _, b in pairs]


def _pair(runs_a: Sequence[RunData], runs_b: Sequence[RunData], config: VerdictConfig) -> PairVerdict | None:
    rows_a, rows_b = _matched(runs_a, runs_b)
    if not rows_a:
        return None
    contrasts = [
        _contrast(reading, rows_a, rows_b, steps_a, steps_b, config)
        for reading in (FINAL, "converged", "peak")
        if (steps_a := _steps(rows_a, reading)) and (steps_b := _steps(rows_b, reading))
    ]
    budgets = [min(run.tokens_generated(run.outcome.step) for run in pair) for pair in zip(rows_a, rows_b, strict=True)]
    steps_a = [last_within_tokens(run, budget) for run, budget in zip(rows_a, budgets, strict=True)]
    steps_b = [last_within_tokens(run, budget) for run, budget in zip(rows_b, budgets, strict=True)]
    contrasts.append(_contrast(EQUAL_TOKENS, rows_a, rows_b, steps_a, steps_b, config))
    return PairVerdict(
        arm_a=rows_a[0].identity.arm,
        arm_b=rows_b[0].identity.arm,
        seeds=tuple(run.identity.seed for run in rows_a),
        contrasts=tuple(contrasts),
        checkpoints=_checkpoints(rows_a, rows_b, config),
    )


def _steps(runs: Sequence[RunData], reading: str) -> list[int] | None:
    steps = [named_step(run, reading) for run in runs]
    return [step for step in steps if step is not None] if all(step is not None for step in steps) else None


def _contrast(
    reading: str,
    runs_a: Sequence[RunData],
    runs_b: Sequence[RunData],
    steps_a: Sequence[int],
    steps_b: Sequence[int],
    config: VerdictConfig,
) -> Contrast:
    a_SN, b_SN = stack(runs_a, steps_a), stack(runs_b, steps_b)
    key = _key(runs_a, reading)
    verdict = two_part_rule(
        votes_from_scores(a_SN, b_SN),
        key=key,
        gains=[_gain(runs_a, steps_a, config), _gain(runs_b, steps_b, config)],
        alpha=config.alpha,
    )
    discordance = verdict.discordance_frac
    return Contrast(
        reading=reading,
        selected_on=f"the {len(runs_a[0].items)} items it is read on" if reading in {"converged", "peak"} else None,
        steps_a=tuple(steps_a),
        steps_b=tuple(steps_b),
        verdict=verdict,
        difference=_difference(a_SN - b_SN, key, config),
        floor=paired_floor(verdict.n, discordance, alpha=config.alpha, power=config.power) if discordance else None,
    )


def _checkpoints(
    runs_a: Sequence[RunData], runs_b: Sequence[RunData], config: VerdictConfig
) -> tuple[CheckpointContrast, ...]:
    common = set.intersection(*(set(run.eval_steps) for run in (*runs_a, *runs_b)))
    return tuple(
        CheckpointContrast(
            step=step,
            difference=_difference(
                stack(runs_a, [step] * len(runs_a)) - stack(runs_b, [step] * len(runs_b)),
                _key(runs_a, f"step-{step:05d}"),
                config,
            ),
        )
        for step in sorted(common)
    )


def _difference(table_SN: NDArray[np.float64], key: int, config: VerdictConfig) -> BootstrapInterval:
    return bootstrap(table_SN, Level.CROSSED, key=key, resamples=config.resamples, coverage=1 - config.alpha)


def _gain(runs: Sequence[RunData], steps: Sequence[int], config: VerdictConfig) -> PairedGain:
    return paired_gain(
        stack(runs, steps),
        stack(runs, [0] * len(runs)),
        key=_key(runs, "gain"),
        resamples=config.resamples,
        coverage=1 - config.alpha,
    )


def _key(runs: Sequence[RunData], reading: str) -> int:
    return stream_key(runs[0].identity.seed, "verdict", reading)


def _arm_summary(race_folder: Path, arm: str, race: RaceConfig, runs: Sequence[RunData]) -> ArmSummary:
    finals = [run.eval_steps[-1] for run in runs]
    task = load_task(race.arms[arm].task)
    return ArmSummary(
        arm=arm,
        runs=tuple(_run_summary(run, read_skills(race_folder, run, task)) for run in runs),
        gain=_gain(runs, finals, race.verdict) if runs else None,
    )


def _run_summary(run: RunData, skills: tuple[SkillReading, ...]) -> RunSummary:
    groups = sum(record.num_groups for record in run.steps)
    return RunSummary(
        seed=run.identity.seed,
        outcome=run.outcome,
        step=run.eval_steps[-1],
        share=run.share(run.eval_steps[-1]),
        start_share=run.share(0),
        num_unscored=run.num_unscored_E[-1],
        num_unparsed=run.num_unparsed_E[-1],
        tokens_generated=run.tokens_generated(run.outcome.step),
        tokens_backward=sum(record.tokens_backward for record in run.steps),
        flop=sum(record.flop for record in run.steps),
        live_share=sum(record.num_live for record in run.steps) / groups if groups else None,
        skills=skills,
    )

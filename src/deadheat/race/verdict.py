"""The verdict of a race: item by item, seed by seed, arm against arm.

Every contrast is judged at one primary reading, `final`, by the mean difference over seeds and items (`stats/effect.py`);
all contrasts together are one family, decided by Holm at the level that this look leaves (`looks.py`). Other readings
stand beside it (`readings.py`) and are never called. A run that diverged is read at its last evaluation, and the verdict
says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deadheat.archive import read_json
from deadheat.archive.folder import MANIFEST
from deadheat.race.config import RaceConfig, VerdictConfig
from deadheat.race.coupling import Coupling, check_step_one
from deadheat.race.looks import Looks, looks_held, looks_with_this, write_looks
from deadheat.race.readings import FINAL, Reading, read_all, read_at_equal_seconds, read_checkpoints, steps_of
from deadheat.race.skills import RunSkills, SkillGain, SkillReading, read_skills, skill_gains
from deadheat.race.tables import Matched, RunData, match, read_runs, share_of, stack
from deadheat.sampling.keys import stream_key
from deadheat.stats import (
    Effect,
    Interval,
    PairedGain,
    Terms,
    Verdict,
    paired_effect,
    paired_gain,
    two_part_rule,
    votes_from_scores,
)
from deadheat.stats import judge as judge_tables
from deadheat.stats.holm import holm_levels
from deadheat.stats.rules import SeedVotes
from deadheat.stats.verdict import CALLED, THESE_RUNS, Words, family
from deadheat.tasks import load_task
from deadheat.train import Ending, Outcome, RunIdentity


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """One run in a line."""

    seed: int
    outcome: Outcome
    step: int  # evaluation that `share` is read at: its last one
    share: Interval | None  # held-out share right, over items; None: nothing graded
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
    skills: tuple[SkillGain, ...]  # the same of each sub-skill; empty: the task counts none


@dataclass(frozen=True, kw_only=True)
class SeedGap:
    """Two arms under one seed, on the items graded in both."""

    seed: int
    share_a: Interval
    share_b: Interval
    difference: Effect  # over items only: one seed says nothing of others
    votes: SeedVotes
    is_copy: bool  # repeats an earlier seed score for score: left out of the verdict


@dataclass(frozen=True, kw_only=True)
class PairVerdict:
    """Everything said of two arms."""

    arm_a: str
    arm_b: str
    seeds: tuple[int, ...]  # seeds both arms finished
    verdict: Verdict  # at `final`, decided in its family; A is the first arm
    over_items: (
        Interval  # the difference with items alone as the sample, at the level *these runs only* is held against
    )
    share_a: Interval  # share right over seeds and items, on the cells graded in both
    share_b: Interval  # their difference is the verdict's
    seed_gaps: tuple[SeedGap, ...]  # [S]
    contrasts: tuple[Reading, ...]  # other readings beside `final`, which is the first
    checkpoints: tuple[Reading, ...]  # each step both arms were evaluated at

    @property
    def winner(self) -> str | None:
        """The arm that is called, or ahead in these runs only; None: neither."""
        if self.verdict.words not in (*CALLED, *THESE_RUNS):
            return None
        return self.arm_a if self.verdict.words in (Words.CALLED_A, Words.THESE_RUNS_A) else self.arm_b

    @property
    def words(self) -> str:
        """The verdict with the arms' names in it."""
        return named(self.verdict.sentence, self.arm_a, self.arm_b)


@dataclass(frozen=True, kw_only=True)
class RaceVerdict:
    """What a race says."""

    race: str
    question: str
    seeds: tuple[int, ...]
    pool: int  # held-out items
    looks: Looks | None  # how often the race has been judged; None: no contrast can be judged yet
    arms: tuple[ArmSummary, ...]
    pairs: tuple[PairVerdict, ...]  # the family of contrasts, in the order of the race file
    unjudged: tuple[tuple[str, str], ...]  # contrasts without a seed that both arms finished
    couplings: tuple[Coupling, ...]
    missing: tuple[str, ...]  # runs without an outcome
    diverged: tuple[str, ...]  # runs read at their last evaluation before a number was not finite


ByClock = Mapping[tuple[str, str], Reading]  # by pair of arms: the reading at equal wall-clock seconds


def named(words: str, arm_a: str, arm_b: str) -> str:
    """Words of a rule with the arms' names in place of A and B.

    Example:
        >>> named("called(B)", "checker", "plant")
        'called(plant)'
    """
    return words.replace("(A)", f"({arm_a})").replace("(B)", f"({arm_b})")


def judge(race_folder: Path, race: RaceConfig) -> RaceVerdict:
    """The verdict, from the records in the folder alone: no clock has a part in it. Writes nothing."""
    runs = read_runs(race_folder, race)
    finished = {str(run.identity.folder): run for arm in runs.values() for run in arm}
    matched = {(a, b): pair for a, b in race.contrasts if (pair := match(runs[a], runs[b])) is not None}
    looks = looks_with_this(race_folder, race, runs) if matched else None
    planned = [str(RunIdentity(race=race.name, arm=arm, seed=seed).folder) for arm in race.arms for seed in race.seeds]
    return RaceVerdict(
        race=race.name,
        question=race.question,
        seeds=race.seeds,
        pool=max(arm.eval.pool for arm in race.arms.values()),
        looks=looks,
        arms=tuple(_arm_summary(race_folder, arm, race, runs[arm]) for arm in race.arms),
        pairs=_family(list(matched.values()), race.verdict, looks.level) if looks else (),
        unjudged=tuple(pair for pair in race.contrasts if pair not in matched),
        couplings=tuple(c for seed in race.seeds for c in check_step_one(race_folder, race.name, race.arms, seed)),
        missing=tuple(name for name in planned if name not in finished),
        diverged=tuple(name for name, run in finished.items() if run.outcome.ending is Ending.DIVERGED),
    )


def look_again(race_folder: Path) -> RaceVerdict:
    """The verdict on what a run folder holds by now, counted as a look where it sees new cells; a running race goes on."""
    race = RaceConfig.from_resolved(read_json(race_folder / "resolved.json"))
    with looks_held(race_folder):
        verdict = judge(race_folder, race)
        if verdict.looks is not None and not (race_folder / MANIFEST).exists():
            write_looks(race_folder, verdict.looks)
    return verdict


def equal_seconds(race_folder: Path, race: RaceConfig) -> ByClock:
    """Each pair at equal wall-clock seconds: the one reading that a clock decides, kept out of the verdict."""
    runs = read_runs(race_folder, race)
    return {
        (a, b): reading
        for a, b in race.contrasts
        if (pair := match(runs[a], runs[b])) and (reading := read_at_equal_seconds(pair, race.verdict.alpha))
    }


def run_seconds(race_folder: Path, race: RaceConfig) -> float:
    """Wall-clock seconds of all finished runs together."""
    return sum(run.total_s for arm in read_runs(race_folder, race).values() for run in arm)


def _family(pairs: Sequence[Matched], config: VerdictConfig, level: float) -> tuple[PairVerdict, ...]:
    """Every contrast on its own, then all decided together."""
    verdicts = family([_judged(pair, config) for pair in pairs], alpha=level)
    levels = holm_levels([verdict.effect.p_items for verdict in verdicts], level)
    return tuple(_pair(*row, config) for row in zip(pairs, verdicts, levels, strict=True))


def _judged(pair: Matched, config: VerdictConfig) -> Verdict:
    finals = [steps_of(runs, FINAL) for runs in (pair.runs_a, pair.runs_b)]
    return judge_tables(
        _final(pair.runs_a),
        _final(pair.runs_b),
        Terms(alpha=config.alpha, power=config.power, within=config.within),
        key=stream_key(pair.seeds[0], "verdict", FINAL),
        gains=[_gain(pair.runs_a, finals[0], config.alpha), _gain(pair.runs_b, finals[1], config.alpha)],
        seeds=[str(seed) for seed in pair.seeds],
    )


def _pair(pair: Matched, verdict: Verdict, items_alpha: float, config: VerdictConfig) -> PairVerdict:
    a_SN, b_SN = _final(pair.runs_a), _final(pair.runs_b)
    missing_SN = np.isnan(a_SN - b_SN)
    a_SN[missing_SN] = b_SN[missing_SN] = np.nan
    copies = [_is_copy(seed, verdict) for seed in pair.seeds]
    kept = [s for s, is_copy in enumerate(copies) if not is_copy]
    share_a, share_b = share_of(a_SN[kept], config.alpha), share_of(b_SN[kept], config.alpha)
    assert share_a is not None and share_b is not None  # `match` keeps seeds with an item graded in both
    return PairVerdict(
        arm_a=pair.runs_a[0].identity.arm,
        arm_b=pair.runs_b[0].identity.arm,
        seeds=pair.seeds,
        verdict=verdict,
        over_items=_over_items(verdict.effect.at(items_alpha)),
        share_a=share_a,
        share_b=share_b,
        seed_gaps=tuple(_seed_gap(*row, config.alpha) for row in zip(pair.seeds, a_SN, b_SN, copies, strict=True)),
        contrasts=read_all(pair, config.alpha),
        checkpoints=read_checkpoints(pair, config.alpha),
    )


def _is_copy(seed: int, verdict: Verdict) -> bool:
    return any(note.startswith(f"seed {seed} repeats ") for note in verdict.copies)


def _over_items(effect: Effect) -> Interval:
    return Interval(
        estimate=effect.estimate,
        low=effect.estimate - effect.half_items,
        high=effect.estimate + effect.half_items,
        level=effect.level,
        n=effect.n,
        left_out=effect.left_out,
        method="t over items",
    )


def _seed_gap(seed: int, a_N: NDArray[np.float64], b_N: NDArray[np.float64], is_copy: bool, alpha: float) -> SeedGap:
    share_a, share_b = share_of(a_N, alpha), share_of(b_N, alpha)
    assert share_a is not None and share_b is not None
    return SeedGap(
        seed=seed,
        share_a=share_a,
        share_b=share_b,
        difference=paired_effect(a_N - b_N, alpha=alpha, grades=True),
        votes=two_part_rule(votes_from_scores(a_N, b_N), alpha=alpha).seeds[0],
        is_copy=is_copy,
    )


def _final(runs: Sequence[RunData]) -> NDArray[np.float64]:
    return stack(runs, steps_of(runs, FINAL))


def _gain(runs: Sequence[RunData], steps: Sequence[int], alpha: float) -> PairedGain:
    return paired_gain(stack(runs, steps), stack(runs, [0] * len(runs)), alpha=alpha)


def _arm_summary(race_folder: Path, arm: str, race: RaceConfig, runs: Sequence[RunData]) -> ArmSummary:
    task = load_task(race.arms[arm].task)
    skills = [read_skills(race_folder, run, task) for run in runs]
    graded = [run for run in runs if run.is_graded]
    alpha = race.verdict.alpha
    return ArmSummary(
        arm=arm,
        runs=tuple(_run_summary(run, read, alpha) for run, read in zip(runs, skills, strict=True)),
        gain=_gain(graded, steps_of(graded, FINAL), alpha) if graded else None,
        skills=skill_gains(skills, alpha),
    )


def _run_summary(run: RunData, skills: RunSkills, alpha: float) -> RunSummary:
    groups = sum(record.num_groups for record in run.steps)
    return RunSummary(
        seed=run.identity.seed,
        outcome=run.outcome,
        step=run.eval_steps[-1],
        share=run.share(run.eval_steps[-1], alpha),
        start_share=run.share(0, alpha),
        num_unscored=run.num_unscored_E[-1],
        num_unparsed=run.num_unparsed_E[-1],
        tokens_generated=run.tokens_generated(run.outcome.step),
        tokens_backward=sum(record.tokens_backward for record in run.steps),
        flop=sum(record.flop for record in run.steps),
        live_share=sum(record.num_live for record in run.steps) / groups if groups else None,
        skills=skills.readings,
    )

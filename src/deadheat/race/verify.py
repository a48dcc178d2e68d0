"""Does a run folder still say what it said? Hash every file, regrade every answer, recompute every advantage and verdict.

Nothing here trusts a stored figure: answers are graded again from their text, which draws were learned from, rewards and
advantages follow from the grades, the step ledger from the rows, the looks and the verdict from the evaluations.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from deadheat.archive import check_manifest, differences, groups_of, plain, read_json, read_table
from deadheat.credit import GroupKind, is_tied
from deadheat.errors import ArchiveError
from deadheat.race.config import RaceConfig
from deadheat.race.executors import jobs_of
from deadheat.race.looks import LOOKS, look_at, looks_with_this, read_looks
from deadheat.race.record import as_record
from deadheat.race.tables import match, read_runs
from deadheat.race.verdict import judge
from deadheat.rollouts import STRATEGIES, Graded
from deadheat.scorers import CheckerScorer
from deadheat.tasks import load_task
from deadheat.train import (
    EVALS,
    NOT_KEPT,
    ROLLOUTS,
    RunConfig,
    RunIdentity,
    Shaping,
    StepRecord,
    assign_credit,
    drawing_rewards,
    read_steps,
    uncredited,
)

_GRADE_COLUMNS = ("raw_reward", "correct", "answer", "parsed")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that does not match."""

    file: str  # relative to the run folder
    what: str  # row and figure
    stored: str
    recomputed: str


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What was checked, and what did not match."""

    num_files: int  # files hashed
    num_rows: int  # answers graded again
    num_advantages: int  # advantages recomputed
    findings: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        """Whether everything matches."""
        return not self.findings


Report = Callable[[str], None]


def verify_race(folder: Path, *, observe: Report) -> Verification:
    """Check a sealed race; `observe` is told each part as it is begun."""
    observe("hashing files")
    findings = [_file_finding(line) for line in check_manifest(folder)]
    try:
        race = RaceConfig.from_resolved(read_json(folder / "resolved.json"))
    except (ValueError, OSError) as error:
        raise ArchiveError(
            f"{folder}/resolved.json cannot be read ({error}); nothing else can be recomputed"
        ) from error
    num_rows = num_advantages = 0
    for identity in jobs_of(race):
        observe(f"regrading {identity.folder}")
        checked = _check_run(folder, identity, race.arms[identity.arm])
        findings += checked.findings
        num_rows += checked.num_rows
        num_advantages += checked.num_advantages
    observe("recomputing the verdict")
    findings += _check_looks(folder, race)
    findings += _check_verdict(folder, race)
    return Verification(
        num_files=len(read_json(folder / "manifest.json")["files"]),
        num_rows=num_rows,
        num_advantages=num_advantages,
        findings=tuple(findings),
    )


def _file_finding(line: str) -> Finding:
    name, _, what = line.partition(": ")
    return Finding(file=name, what=what, stored="", recomputed="")


def _check_run(folder: Path, identity: RunIdentity, config: RunConfig) -> Verification:
    findings: list[Finding] = []
    num_rows = num_advantages = 0
    task = load_task(config.task)
    shaping = Shaping.of(config, task)
    run_folder = folder / identity.folder
    ledger = (
        {record.step: record for record in read_steps(run_folder)} if _readable(run_folder / "steps.parquet") else {}
    )
    with CheckerScorer(task, limit_s=config.scorer.check_limit_s) as scorer:
        for kind in (EVALS, ROLLOUTS):
            for path in sorted((run_folder / kind).glob("step-*.parquet")):
                name = str(path.relative_to(folder))
                try:
                    rows = read_table(path)
                except ArchiveError as error:
                    findings.append(Finding(file=name, what="cannot be read", stored="", recomputed=str(error)))
                    continue
                num_rows += rows.height
                findings += _regrade(name, rows, scorer, unscored_too=task.trusted_checker)
                if kind == EVALS:
                    findings += _compare(name, rows, rows.select(reward="raw_reward"))
                else:
                    num_advantages += _learned_from(rows).height
                    findings += _recredit(name, _learned_from(rows), config, shaping, identity.seed)
                    findings += _recredit_not_kept(name, _not_kept(rows), config, shaping)
                    pools = _pools(rows, shaping)
                    findings += _rechoose(name, rows, pools, config)
                    findings += _reledger(name, rows, pools, ledger.get(int(path.stem.removeprefix("step-"))))
    return Verification(num_files=0, num_rows=num_rows, num_advantages=num_advantages, findings=tuple(findings))


def _readable(path: Path) -> bool:
    try:
        read_table(path)
    except ArchiveError:
        return False
    return True


def _regrade(name: str, rows: pl.DataFrame, scorer: CheckerScorer, *, unscored_too: bool) -> Iterator[Finding]:
    """Grade again; what a checker in a child left unscored may have been a matter of time, and stands."""
    graded = rows if unscored_too else rows.filter(pl.col("unscored").is_null())
    rollouts = [rollout for group in groups_of(graded) for rollout in group.rollouts]
    scores = scorer([r.problem for r in rollouts], [r.completion.text for r in rollouts])
    for rollout, score in zip(rollouts, scores, strict=True):
        held = rollout.score
        stored = (held.value, held.correct, held.answer, held.parsed)
        fresh = (score.value, score.correct, score.answer, score.parsed)
        for column, was, now in zip(_GRADE_COLUMNS, stored, fresh, strict=True):
            if was != now:
                where = f"{rollout.problem.problem_id} sample {rollout.sample}: {column}"
                yield Finding(file=name, what=where, stored=repr(was), recomputed=repr(now))


def _learned_from(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(pl.col("purpose") != NOT_KEPT)


def _not_kept(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(pl.col("purpose") == NOT_KEPT)


def _recredit(name: str, rows: pl.DataFrame, config: RunConfig, shaping: Shaping, seed: int) -> Iterator[Finding]:
    if not rows.height:
        return
    step = int(rows["step"][0])
    credited = assign_credit(
        groups_of(rows), scorer=config.scorer, credit=config.credit, shaping=shaping, seed=seed, step=step
    )
    fresh = pl.DataFrame(
        {
            "reward": [reward for item in credited for reward in item.rewards],
            "advantage": [float(advantage) for item in credited for advantage in item.advantages_G],
            "kind": [item.kind.value for item in credited for _ in item.rewards],
        },
        schema={"reward": pl.Float64, "advantage": pl.Float64, "kind": pl.String},
    )
    yield from _compare(name, rows, fresh)


def _compare(name: str, rows: pl.DataFrame, fresh: pl.DataFrame) -> Iterator[Finding]:
    for column in fresh.columns:
        differs = (rows[column].ne_missing(fresh[column])).to_numpy()
        for index in np.flatnonzero(differs).tolist():
            where = f"{rows['problem_id'][index]} sample {rows['sample'][index]}: {column}"
            yield Finding(
                file=name, what=where, stored=repr(rows[column][index]), recomputed=repr(fresh[column][index])
            )


def _recredit_not_kept(name: str, rows: pl.DataFrame, config: RunConfig, shaping: Shaping) -> Iterator[Finding]:
    credited = uncredited(groups_of(rows), config, shaping)
    fresh = pl.DataFrame(
        {
            "reward": [reward for item in credited for reward in item.rewards],
            "advantage": [None for item in credited for _ in item.rewards],
            "kind": [item.kind.value for item in credited for _ in item.rewards],
        },
        schema={"reward": pl.Float64, "advantage": pl.Float64, "kind": pl.String},
    )
    yield from _compare(name, rows, fresh)


def _pools(rows: pl.DataFrame, shaping: Shaping) -> dict[str, Graded]:
    """Everything that was drawn of each problem, in sample order, with the rewards that the drawing went by."""
    together = rows.sort("sample", maintain_order=True).with_columns(group_id=pl.col("problem_id"))
    return {pool.group.problem.problem_id: pool for pool in drawing_rewards(groups_of(together), shaping)}


def _rechoose(name: str, rows: pl.DataFrame, pools: Mapping[str, Graded], config: RunConfig) -> Iterator[Finding]:
    """Which draws of a problem were learned from follows from the rewards of all of them."""
    kept: dict[str, list[int]] = {problem_id: [] for problem_id in pools}
    for problem_id, sample in _learned_from(rows).select("problem_id", "sample").iter_rows():
        kept[problem_id].append(sample)
    choose = STRATEGIES[config.rollouts.drawing].choose
    for problem_id, pool in pools.items():
        chosen = choose(pool.rewards_G, group_size=config.rollouts.group_size, keep=config.rollouts.keep)
        samples = [rollout.sample for rollout in pool.group.rollouts]
        now = [samples[index] for index in chosen if index < len(samples)]
        if kept[problem_id] != now:
            yield Finding(
                file=name,
                what=f"{problem_id}: samples learned from",
                stored=repr(kept[problem_id]),
                recomputed=repr(now),
            )


def _reledger(
    name: str, rows: pl.DataFrame, pools: Mapping[str, Graded], record: StepRecord | None
) -> Iterator[Finding]:
    """What the verdict and the page take from the ledger, counted in the rows."""
    learned = _learned_from(rows)
    fresh = {
        "num_live": learned.filter(pl.col("kind") == GroupKind.LIVE.value)["group_id"].n_unique(),
        "num_rollouts": learned.height,
        "num_correct": int(learned["correct"].sum()),
        "tokens_generated": int(rows["length"].sum()),
        "tokens_not_kept": int(_not_kept(rows)["length"].sum()),
        "num_rollouts_drawn": rows.height,
        "num_problems": len(pools),
        "num_never_mixed": sum(is_tied(pool.rewards_G) for pool in pools.values()),
    }
    for figure, now in fresh.items():
        was = None if record is None else getattr(record, figure)
        if was != now:
            yield Finding(file=name, what=f"{figure} against steps.parquet", stored=repr(was), recomputed=repr(now))


def _check_looks(folder: Path, race: RaceConfig) -> list[Finding]:
    """Every look on record saw what its runs hold, and the last one all that a verdict can see."""
    try:
        runs, recorded = read_runs(folder, race), read_looks(folder)
        if not any(match(runs[a], runs[b]) for a, b in race.contrasts):
            return []
        if not recorded:
            return [Finding(file=LOOKS, what="no look is on record, and a verdict is one", stored="", recomputed="")]
        taken = [look_at(race, runs, only=look.runs) for look in recorded]
        fresh = {
            "declared": race.verdict.looks,
            "level": looks_with_this(folder, race, runs).level,
            "taken": plain(taken),
        }
        stored = {name: value for name, value in read_json(folder / LOOKS).items() if name in fresh}
    except (ArchiveError, ValueError, OSError, TypeError, KeyError) as error:
        return [Finding(file=LOOKS, what="cannot be recomputed", stored="", recomputed=str(error))]
    findings = [
        Finding(file=LOOKS, what=path, stored=repr(was), recomputed=repr(now))
        for path, was, now in differences(stored, fresh)
    ]
    unseen = set(look_at(race, runs).runs).difference(*(look.runs for look in recorded))
    return findings + [
        Finding(file=LOOKS, what=f"no look saw {run}", stored="", recomputed="") for run in sorted(unseen)
    ]


def _check_verdict(folder: Path, race: RaceConfig) -> list[Finding]:
    try:
        stored, fresh = read_json(folder / "verdict.json"), as_record(judge(folder, race))
    except (ArchiveError, ValueError, OSError, TypeError, KeyError) as error:
        return [Finding(file="verdict.json", what="cannot be recomputed", stored="", recomputed=str(error))]
    return [
        Finding(file="verdict.json", what=path, stored=repr(was), recomputed=repr(now))
        for path, was, now in differences(stored, fresh)
    ]

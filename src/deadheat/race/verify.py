"""Does a run folder still say what it said? Hash every file, regrade every answer, recompute every advantage and verdict.

Nothing here trusts a stored figure: answers are graded again from their text, which draws were learned from, rewards and
advantages follow from the grades, the step ledger from the rows, the looks and the verdict from the evaluations.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
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
from deadheat.rollouts import STRATEGIES, Pool
from deadheat.scorers import SCORERS
from deadheat.tasks import load_task
from deadheat.train import (
    EVALS,
    NOT_KEPT,
    ROLLOUTS,
    Entry,
    RunConfig,
    RunIdentity,
    Shaping,
    StepRecord,
    discarded,
    read_steps,
    train_batch,
)
from deadheat.train.batch import is_flat
from deadheat.types import Address, Group, Purpose, Scorer

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
    with SCORERS[config.scorer.kind].open(task, config.scorer.check_limit_s) as scorer:
        for kind in (EVALS, ROLLOUTS):
            for path in sorted((run_folder / kind).glob("step-*.parquet")):
                name = str(path.relative_to(folder))
                try:
                    rows = read_table(path)
                except ArchiveError as error:
                    findings.append(Finding(file=name, what="cannot be read", stored="", recomputed=str(error)))
                    continue
                num_rows += rows.height
                findings += _regrade(name, rows, scorer, config, unscored_too=task.trusted_checker)
                if kind == EVALS:
                    findings += _compare(name, rows, rows.select(reward="raw_reward"))
                else:
                    num_advantages += _learned_from(rows).height
                    findings += _recredit(name, _learned_from(rows), config, shaping, identity.seed)
                    findings += _recredit_not_kept(name, _not_kept(rows), shaping)
                    pools = _pools(rows, shaping, config)
                    findings += _rechoose(name, rows, pools, config)
                    findings += _reledger(name, rows, pools, ledger.get(int(path.stem.removeprefix("step-"))))
    return Verification(num_files=0, num_rows=num_rows, num_advantages=num_advantages, findings=tuple(findings))


def _readable(path: Path) -> bool:
    try:
        read_table(path)
    except ArchiveError:
        return False
    return True


def _regrade(
    name: str, rows: pl.DataFrame, scorer: Scorer, config: RunConfig, *, unscored_too: bool
) -> Iterator[Finding]:
    """Score again what was scored together; what a checker in a child left unscored may have been a matter of time."""
    if not rows.height:
        return
    is_eval = rows["purpose"][0] == Purpose.EVAL.value
    address = Address(
        seed=int(rows["seed"][0]),
        purpose=Purpose.EVAL if is_eval else Purpose.TRAIN,
        step=0 if is_eval else int(rows["step"][0]),
    )
    size = config.eval.samples if is_eval else config.rollouts.group_size
    groups = _scored_together(rows, size)
    scores_PG = scorer.score(groups, address=address)
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    scores = [score for scores_G in scores_PG for score in scores_G]
    for rollout, score in zip(rollouts, scores, strict=True):
        held = rollout.score
        if held.unscored is not None and not unscored_too:
            continue
        stored = (held.value, held.correct, held.answer, held.parsed)
        fresh = (score.value, score.correct, score.answer, score.parsed)
        for column, was, now in zip(_GRADE_COLUMNS, stored, fresh, strict=True):
            if was != now:
                where = f"{rollout.problem.problem_id} sample {rollout.sample}: {column}"
                yield Finding(file=name, what=where, stored=repr(was), recomputed=repr(now))


def _scored_together(rows: pl.DataFrame, size: int) -> list[Group]:
    """The draws of a problem in the rounds of G that they were scored in, whatever became of them."""
    place = pl.format("{}/{}", pl.col("problem_id"), pl.col("sample") // size)
    return groups_of(rows.sort("sample", maintain_order=True).with_columns(group_id=place))


def _learned_from(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(pl.col("purpose") != NOT_KEPT)


def _not_kept(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(pl.col("purpose") == NOT_KEPT)


def _recredit(name: str, rows: pl.DataFrame, config: RunConfig, shaping: Shaping, seed: int) -> Iterator[Finding]:
    if not rows.height:
        return
    step = int(rows["step"][0])
    batch = train_batch(
        groups_of(rows), scorer=config.scorer, credit=config.credit, shaping=shaping, seed=seed, step=step
    )
    yield from _compare(name, rows, _credited(batch.entries))


def _credited(entries: Sequence[Entry]) -> pl.DataFrame:
    """The columns that credit gives, row by row; null where nothing is learned."""
    tokens = [(entry.skip, a_T) for entry in entries for a_T in entry.advantages_G]
    return pl.DataFrame(
        {
            "reward": [reward if reward == reward else None for e in entries for reward in e.rewards_G.tolist()],
            "advantage": [a if e.skip is None else None for e in entries for a in e.mean_advantages_G.tolist()],
            "token_advantages": [None if skip or is_flat(a_T) else a_T.tolist() for skip, a_T in tokens],
            "kind": [e.kind.value for e in entries for _ in e.advantages_G],
        },
        schema={
            "reward": pl.Float64,
            "advantage": pl.Float64,
            "token_advantages": pl.List(pl.Float64),
            "kind": pl.String,
        },
    )


def _compare(name: str, rows: pl.DataFrame, fresh: pl.DataFrame) -> Iterator[Finding]:
    for column in fresh.columns:
        differs = (rows[column].ne_missing(fresh[column])).to_numpy()
        for index in np.flatnonzero(differs).tolist():
            where = f"{rows['problem_id'][index]} sample {rows['sample'][index]}: {column}"
            yield Finding(
                file=name, what=where, stored=repr(rows[column][index]), recomputed=repr(fresh[column][index])
            )


def _recredit_not_kept(name: str, rows: pl.DataFrame, shaping: Shaping) -> Iterator[Finding]:
    yield from _compare(name, rows, _credited(discarded(groups_of(rows), shaping)))


@dataclass(frozen=True, kw_only=True)
class _Drawn:
    """Everything that was drawn of one problem, in sample order."""

    samples: tuple[int, ...]
    pool: Pool


def _pools(rows: pl.DataFrame, shaping: Shaping, config: RunConfig) -> dict[str, _Drawn]:
    """By problem, what the drawing chose from."""
    together = rows.sort("sample", maintain_order=True).with_columns(group_id=pl.col("problem_id"))
    return {
        group.problem.problem_id: _Drawn(
            samples=tuple(rollout.sample for rollout in group.rollouts),
            pool=Pool(
                rewards_N=shaping.rewards(group).gated_G,
                group_size=config.rollouts.group_size,
                origins_N=tuple(rollout.origin for rollout in group.rollouts),
            ),
        )
        for group in groups_of(together)
    }


def _rechoose(name: str, rows: pl.DataFrame, pools: Mapping[str, _Drawn], config: RunConfig) -> Iterator[Finding]:
    """Which draws of a problem were learned from follows from the rewards of all of them."""
    kept: dict[str, list[int]] = {problem_id: [] for problem_id in pools}
    for problem_id, sample in _learned_from(rows).select("problem_id", "sample").iter_rows():
        kept[problem_id].append(sample)
    options = config.rollouts.drawing
    for problem_id, drawn in pools.items():
        chosen = STRATEGIES[options.name].choose(drawn.pool, options)
        now = [drawn.samples[index] for index in chosen if index < len(drawn.samples)]
        if kept[problem_id] != now:
            yield Finding(
                file=name,
                what=f"{problem_id}: samples learned from",
                stored=repr(kept[problem_id]),
                recomputed=repr(now),
            )


def _reledger(
    name: str, rows: pl.DataFrame, pools: Mapping[str, _Drawn], record: StepRecord | None
) -> Iterator[Finding]:
    """What the verdict and the page take from the ledger, counted in the rows."""
    learned = _learned_from(rows)
    fresh = {
        "num_live": learned.filter(pl.col("kind") == GroupKind.LIVE.value)["group_id"].n_unique(),
        "num_rollouts": learned.height,
        "num_correct": int(learned["correct"].sum()),
        "tokens_generated": int(rows["length"].sum()) - int(rows["num_forced"].sum()),
        "tokens_not_kept": int(_not_kept(rows)["length"].sum()),
        "num_rollouts_drawn": rows.height,
        "num_problems": len(pools),
        "num_never_mixed": sum(is_tied(drawn.pool.rewards_N) for drawn in pools.values()),
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

"""Audit 9, the drift alarm: does a frozen scorer's score of the policy's own greedy answers climb while nothing improves.

    drift    mean over fixed problems of score(step) − score(step 0), in units of the scorer's noise floor; Student's t
    gain     the same of an independent read (the checker's grade): a share of problems, its interval with two more
             problems, +1 and −1, so that it is never of width zero (Bonett and Price 2012)
    strata   problems wrong at both ends, problems right at both ends
    alarm    the drift's interval lies above one floor, and the gain's does not lie above 0; without grades of every
             problem, or where all changes of the score are equal, the audit cannot say

A score that climbs on answers that stay wrong, and on answers that stay right, is inflation. An arm trained without the
scorer is read the same way as a control. The same text scored twice is the wobble check, not this one; a scorer may be
blind to the drift it causes, so silence proves nothing.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import polars as pl

from deadheat.audit.records import AuditOptions, AuditRecord, Missing
from deadheat.audit.table import columns_of, main_score, number
from deadheat.stats.distributions import t_quantile
from deadheat.stats.intervals import Interval


class DriftWord(StrEnum):
    """What the scorer's drift says."""

    ALARM = "ALARM"  # the score climbs by more than its floor, and grades are not seen to improve
    NO_ALARM = "no alarm"  # the score does not, or the grades improve
    CANNOT_SAY = "cannot say"  # there are no grades to hold it against, or no interval of the drift


@dataclass(frozen=True, kw_only=True)
class DriftReading:
    """One arm at one step against its own step 0, over one stratum."""

    arm: str
    stratum: str  # all, wrong at both ends, right at both ends
    step: int
    drift: Interval | None  # in floors; None: fewer than two problems
    gain: Interval | None  # independent read; None: no grades, or fewer than two problems
    word: DriftWord
    num_problems: int

    @property
    def alarm(self) -> bool:
        """Whether the word is the alarm."""
        return self.word is DriftWord.ALARM


@dataclass(frozen=True, kw_only=True)
class Drift(AuditRecord):
    """The scorer's drift in every arm."""

    scorer: str  # the score column
    noise_floor: float  # in its unit
    control_arm: str | None  # read the same way; None: none was named
    readings: tuple[DriftReading, ...]

    @property
    def sentence(self) -> str:
        """Drift at the last step of each arm, and the alarm."""
        last = [r for r in self.readings if r.stratum == "all" and r.step == self._last(r.arm) and r.drift is not None]
        if not last:
            return "no fixed problem was scored at two steps"
        parts = []
        for reading in last:
            assert reading.drift is not None
            d = reading.drift
            mark = " (control)" if reading.arm == self.control_arm else ""
            bounds = d.note or f"[{d.low:+.2f}, {d.high:+.2f}]"
            why = ", no grades" if reading.word is DriftWord.CANNOT_SAY and reading.gain is None else ""
            parts.append(
                f"{reading.arm or 'policy'}{mark}: {d.estimate:+.2f} floors {bounds}, n = {d.n:,}: "
                f"{reading.word.value}{why}"
            )
        return f"drift of {self.scorer} from the first step: " + "; ".join(parts)

    def _last(self, arm: str) -> int:
        return max(reading.step for reading in self.readings if reading.arm == arm)


def drift(rows: pl.LazyFrame, options: AuditOptions) -> Drift | Missing:
    """Paired change of the score from step 0, for every evaluated step."""
    names = columns_of(rows)
    column = options.scorer or main_score(names)
    if column not in names:
        return Missing(audit="drift", lacks=(column,))
    if options.noise_floor is None:
        return Missing(audit="drift", lacks=("--noise-floor",), why="the scorer's floor is the unit of drift")
    answers = _fixed_answers(rows, column, names)
    readings = []
    for (arm,), own in answers.partition_by(["arm"], as_dict=True, maintain_order=True).items():
        readings += _arm(str(arm), own, options.noise_floor, options.level)
    return Drift(
        scorer=column, noise_floor=options.noise_floor, control_arm=options.control_arm, readings=tuple(readings)
    )


def _fixed_answers(rows: pl.LazyFrame, column: str, names: list[str]) -> pl.DataFrame:
    """The mean score and grade of each problem at each evaluated step, by arm."""
    held = rows.filter(pl.col("purpose") == "eval") if "purpose" in names else rows
    right = pl.col("correct").cast(pl.Float64).mean() if "correct" in names else pl.lit(None, pl.Float64)
    arm = pl.col("arm").fill_null("") if "arm" in names else pl.lit("")
    seed = pl.col("seed").cast(pl.Int64) if "seed" in names else pl.lit(0)
    keyed = held.select(
        arm.alias("arm"), seed.alias("seed"), "step", "problem_id", number(column).alias("score"),
        *(["correct"] if "correct" in names else []),
    )  # fmt: skip
    means = keyed.group_by("arm", "seed", "step", "problem_id").agg(pl.col("score").mean(), right.alias("right"))
    return means.drop_nulls("score").sort("arm", "seed", "problem_id", "step").collect(engine="streaming")


def _arm(arm: str, own: pl.DataFrame, floor: float, level: float) -> list[DriftReading]:
    steps = own["step"].unique().sort().to_list()
    if len(steps) < 2:
        return []
    start = own.filter(pl.col("step") == steps[0]).select(
        "seed", "problem_id", pl.col("score").alias("score_0"), pl.col("right").alias("right_0")
    )
    last = own.filter(pl.col("step") == steps[-1]).select("seed", "problem_id", pl.col("right").alias("right_end"))
    paired = own.join(start, on=["seed", "problem_id"]).join(last, on=["seed", "problem_id"])
    strata = {
        "all": pl.lit(True),
        "wrong at both ends": (pl.col("right_0") == 0) & (pl.col("right_end") == 0),
        "right at both ends": (pl.col("right_0") == 1) & (pl.col("right_end") == 1),
    }
    found = []
    for stratum, chosen in strata.items():
        within = paired.filter(chosen.fill_null(False))
        for step in steps[1:]:
            at = within.filter(pl.col("step") == step)
            if at.height:
                found.append(_reading(arm, stratum, step, at, floor, level))
    return found


def _reading(arm: str, stratum: str, step: int, at: pl.DataFrame, floor: float, level: float) -> DriftReading:
    ids = at["problem_id"].to_list()  # a problem read under several seeds is one problem
    moved = mean_change(((at["score"] - at["score_0"]) / floor).to_list(), ids, level, grades=False)
    gains = (at["right"] - at["right_0"]).drop_nulls()
    gain = None if gains.len() < at.height else mean_change(gains.to_list(), ids, level, grades=True)
    return DriftReading(
        arm=arm,
        stratum=stratum,
        step=step,
        drift=moved,
        gain=gain,
        word=read_drift(moved, gain),
        num_problems=len(set(ids)),
    )


def read_drift(moved: Interval | None, gain: Interval | None) -> DriftWord:
    """The word for a drift in floors and a gain in grades."""
    if moved is None or gain is None or math.isinf(moved.high):
        return DriftWord.CANNOT_SAY
    return DriftWord.ALARM if moved.low > 1 and gain.low <= 0 else DriftWord.NO_ALARM


def mean_change(values: list[float], ids: list[str], level: float, *, grades: bool) -> Interval | None:
    """Mean change over problems, a problem's own seeds averaged first; Student's t."""
    by_problem: dict[str, list[float]] = {}
    for value, problem in zip(values, ids, strict=True):
        by_problem.setdefault(problem, []).append(value)
    d_N, num = np.array([np.mean(found) for found in by_problem.values()]), len(by_problem)
    if num < 2:
        return None
    counted_N = np.append(d_N, (1.0, -1.0)) if grades else d_N
    scale = counted_N.size / num  # 1, or (N + 2)/N: the spread of N + 2 is centred on the mean of N
    se = scale * float(counted_N.std(ddof=1)) / math.sqrt(counted_N.size)
    half = t_quantile((1 + level) / 2, counted_N.size - 1) * se if np.ptp(counted_N) > 0 else math.inf
    mean = float(d_N.mean())
    return Interval(
        estimate=mean, low=mean - half, high=mean + half, level=level, n=num, left_out=0,
        method="Student's t with +1 and −1" if grades else "Student's t",
        note="" if math.isfinite(half) else "no interval: all changes equal",
    )  # fmt: skip

"""Audit 9, the drift alarm: does a frozen scorer's score of the policy's own greedy answers climb while nothing improves.

    drift    mean over fixed problems of score(step) − score(step 0), in units of the scorer's noise floor; Student's t
    gain     the same of an independent read (the checker's grade), in percentage points
    strata   problems wrong at both ends, problems right at both ends
    alarm    the drift's interval lies above one floor, and the gain's does not lie above 0

A score that climbs on answers that stay wrong, and on answers that stay right, is inflation. An arm trained without the
scorer is read the same way as a control. The same text scored twice is the wobble check, not this one; a scorer may be
blind to the drift it causes, so silence proves nothing.
"""

from dataclasses import dataclass

import polars as pl

from deadheat.audit.records import AuditOptions, AuditRecord, Missing
from deadheat.audit.table import columns_of, main_score, number
from deadheat.stats.intervals import Interval, mean_score


@dataclass(frozen=True, kw_only=True)
class DriftReading:
    """One arm at one step against its own step 0, over one stratum."""

    arm: str
    stratum: str  # all, wrong at both ends, right at both ends
    step: int
    drift: Interval | None  # in floors; None: fewer than two problems
    gain: Interval | None  # independent read; None: no grades
    alarm: bool
    num_problems: int


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
            word = "ALARM" if reading.alarm else "no alarm"
            parts.append(
                f"{reading.arm or 'policy'}{mark}: {d.estimate:+.2f} floors [{d.low:+.2f}, {d.high:+.2f}], n = {d.n:,}: "
                f"{word}"
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
    moved = _mean(((at["score"] - at["score_0"]) / floor).to_list(), ids, level)
    gains = (at["right"] - at["right_0"]).drop_nulls()
    gain = None if gains.len() < at.height else _mean(gains.to_list(), ids, level)
    climbs = moved is not None and moved.low > 1
    return DriftReading(
        arm=arm,
        stratum=stratum,
        step=step,
        drift=moved,
        gain=gain,
        alarm=climbs and gain is not None and gain.low <= 0,
        num_problems=len(set(ids)),
    )


def _mean(values: list[float], ids: list[str], level: float) -> Interval | None:
    if len(set(ids)) < 2:
        return None
    if len(set(values)) == 1:
        return Interval(
            estimate=values[0], low=values[0], high=values[0], level=level, n=len(set(ids)), left_out=0,
            method="mean of equal changes", note="all changes equal: zero width",
        )  # fmt: skip
    shifted = mean_score([value + 2.5 for value in values], item_ids=ids, level=level).interval  # never read as 0/1
    return Interval(
        estimate=shifted.estimate - 2.5, low=shifted.low - 2.5, high=shifted.high - 2.5, level=level, n=shifted.n,
        left_out=shifted.left_out, method="Student's t",
    )  # fmt: skip

"""The gate before you train: draw and grade groups without training, for each temperature, and say what they would teach.

    shut        share of groups that agree, with a Wilson interval
    T           1/(1 − shut), how many groups a reactive filter draws for one that teaches; its interval is shut's, mapped
    top-up      extra draws for the groups of one kind only, continuing their sample index: who is stuck, who was unlucky

Groups are drawn in shards, each a file of its own that is written whole; a run that was stopped goes on from the shards
it has, to the same bytes.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from deadheat.archive import Credited, RolloutSource, read_tables, rollout_frame, write_table
from deadheat.credit import GroupKind, group_kind
from deadheat.errors import ConfigError
from deadheat.rollouts import DrawSpec, draw_groups
from deadheat.scorers import scored
from deadheat.stats import Interval, wilson
from deadheat.stats.groups import multiplier
from deadheat.types import Address, Group, Policy, Problem, Purpose, SamplingParams, Scorer

SHARD_GROUPS = 16
GROUPS = "groups"
TOP_UP = "top-up"

Observer = Callable[[int, str], None]  # groups done, a few words


@dataclass(frozen=True, kw_only=True)
class TopUp:
    """Extra draws for the groups of one kind."""

    kind: GroupKind
    extra: int  # samples added to each such group

    @classmethod
    def parse(cls, text: str) -> "TopUp":
        """`all-wrong:24` as a record.

        Example:
            >>> TopUp.parse("all-wrong:24")
            TopUp(kind=<GroupKind.ALL_WRONG: 'all_wrong'>, extra=24)
        """
        name, _, count = text.partition(":")
        kinds = {kind.value.replace("_", "-"): kind for kind in (GroupKind.ALL_WRONG, GroupKind.ALL_RIGHT)}
        if name not in kinds or not count.isdigit() or int(count) < 1:
            raise ConfigError(
                f"--top-up is {text!r}; wanted KIND:N, KIND one of {', '.join(kinds)}, such as all-wrong:24"
            )
        return cls(kind=kinds[name], extra=int(count))


@dataclass(frozen=True, kw_only=True)
class SamplePlan:
    """What is drawn."""

    name: str  # recorded as the run's name
    model: str  # recorded as the arm's name
    problems: Sequence[Problem]
    draw: DrawSpec  # sampling at any temperature; the plan's temperatures replace it
    temperatures: tuple[float, ...]
    group_size: int
    seed: int
    top_up: TopUp | None


@dataclass(frozen=True, kw_only=True)
class GateReading:
    """What the groups at one temperature say."""

    temperature: float
    num_groups: int
    group_size: int
    kinds: dict[str, int]  # groups of each kind
    shut: Interval  # share of groups that agree, of those with a scored member
    multiplier: float | None  # T = 1/(1 − shut); None: every group agrees
    multiplier_low: float
    multiplier_high: float | None  # None: the interval of shut reaches 1
    multiplier_se: float | None  # delta method: sqrt(q(1−q)/n)/(1−q)²
    correct: Interval  # share of graded rollouts that are right; rollouts of a group are not independent
    num_unparsed: int
    num_unscored: int
    num_rollouts: int
    num_capped: int  # rollouts that hit the token cap
    tokens_generated: int
    tokens_per_live_group: float | None  # price of one group that teaches; None: none does
    top_up: "TopUpReading | None"


@dataclass(frozen=True, kw_only=True)
class TopUpReading:
    """What the extra draws found."""

    kind: str  # which groups were topped up
    extra: int  # fresh draws per group
    num_groups: int
    stuck: Interval  # share of topped-up groups that still agree after the fresh draws
    fresh_correct: Interval  # share right among the fresh draws alone: the first ones selected the problem
    rules_out: float  # a stuck all-wrong problem has p below 1 − .05^(1/n) at 95%, n = all its draws; not p = 0


def draw_sample(
    policy: Policy, scorer: Scorer, plan: SamplePlan, folder: Path, *, observe: Observer
) -> list[GateReading]:
    """Draws what `folder` does not hold yet and reads it."""
    return [_read_temperature(policy, scorer, plan, folder, temperature, observe) for temperature in plan.temperatures]


def _read_temperature(
    policy: Policy, scorer: Scorer, plan: SamplePlan, folder: Path, temperature: float, observe: Observer
) -> GateReading:
    spec = replace(plan.draw, sampling=replace(plan.draw.sampling, temperature=temperature))
    rows = _drawn(policy, scorer, plan, folder / f"{GROUPS}-T{temperature:g}", spec, plan.problems, observe, first=0)
    reading = read_gate(rows, temperature=temperature, group_size=plan.group_size)
    if plan.top_up is None:
        return reading
    chosen = set(rows.filter(pl.col("kind") == plan.top_up.kind.value)["problem_id"])
    problems = [problem for problem in plan.problems if problem.problem_id in chosen]
    if not problems:
        return reading
    extra = _drawn(
        policy, scorer, plan, folder / f"{TOP_UP}-T{temperature:g}", spec, problems, observe, first=plan.group_size
    )
    return replace(reading, top_up=read_top_up(extra, plan.top_up, group_size=plan.group_size))


def _drawn(
    policy: Policy,
    scorer: Scorer,
    plan: SamplePlan,
    folder: Path,
    spec: DrawSpec,
    problems: Sequence[Problem],
    observe: Observer,
    *,
    first: int,
) -> pl.DataFrame:
    """The rows of these problems: shards on disk as they are, the others drawn."""
    size = plan.group_size if first == 0 else (plan.top_up.extra if plan.top_up else 0)
    paths = []
    for number, start in enumerate(range(0, len(problems), SHARD_GROUPS)):
        path = folder / f"shard-{number:05d}.parquet"
        shard = problems[start : start + SHARD_GROUPS]
        if not path.exists():
            purpose = Purpose.TOP_UP if first else Purpose.SAMPLE
            address = Address(seed=plan.seed, purpose=purpose, step=0)
            drawn = draw_groups(policy, shard, spec, address=address, group_size=size, first_sample=first)
            write_table(path, _frame(plan, spec.sampling, scored(drawn.groups, scorer, address=address), first))
        observe(len(shard), f"T {spec.sampling.temperature:g}{' top-up' if first else ''}")
        paths.append(path)
    return read_tables(paths)


def _frame(plan: SamplePlan, sampling: SamplingParams, groups: Sequence[Group], first: int) -> pl.DataFrame:
    source = RolloutSource(
        run=plan.name,
        arm=plan.model,
        seed=plan.seed,
        purpose="top-up" if first else "sample",
        step=0,
        temperature=sampling.temperature,
    )
    rows = []
    for group in groups:
        rewards_G = np.array([math.nan if r.score.value is None else r.score.value for r in group.rollouts])
        kind = group_kind(rewards_G, [r.score.correct for r in group.rollouts])
        rows += [
            Credited(
                rollout=r,
                prompt_length=group.prompt_length,
                prompt_tokens=group.prompt_tokens,
                reward=r.score.value,
                advantage=None,
                kind=kind.value,
            )
            for r in group.rollouts
        ]
    return rollout_frame(source, rows)


def read_gate(rows: pl.DataFrame, *, temperature: float, group_size: int) -> GateReading:
    """Gate, composition, T and price of sampled groups."""
    kinds_by_group = rows.group_by("group_id", maintain_order=True).agg(pl.col("kind").first())["kind"].to_list()
    kinds = {kind.value: kinds_by_group.count(kind.value) for kind in GroupKind}
    num_unscored_groups = kinds[GroupKind.UNSCORED.value]
    n, live = len(kinds_by_group) - num_unscored_groups, kinds[GroupKind.LIVE.value]
    shut = wilson(n - live, n, left_out=num_unscored_groups)
    tokens = int(rows["length"].sum())
    graded = rows["correct"].drop_nulls()
    factor = multiplier(shut)
    return GateReading(
        temperature=temperature,
        num_groups=len(kinds_by_group),
        group_size=group_size,
        kinds=kinds,
        shut=shut,
        multiplier=factor.value,
        multiplier_low=factor.low,
        multiplier_high=factor.high,
        multiplier_se=factor.se,
        correct=wilson(int(graded.sum()), len(graded), left_out=rows.height - len(graded)),
        num_unparsed=int((~rows["parsed"]).sum()),
        num_unscored=int(rows["unscored"].is_not_null().sum()),
        num_rollouts=rows.height,
        num_capped=int((rows["stop"] == "cap").sum()),
        tokens_generated=tokens,
        tokens_per_live_group=tokens / live if live else None,
        top_up=None,
    )


def read_top_up(rows: pl.DataFrame, top_up: TopUp, *, group_size: int) -> TopUpReading:
    """Who is still stuck after the fresh draws."""
    still = rows.group_by("group_id").agg(stuck=(pl.col("kind") == top_up.kind.value).first())["stuck"]
    graded = rows["correct"].drop_nulls()
    return TopUpReading(
        kind=top_up.kind.value,
        extra=top_up.extra,
        num_groups=len(still),
        stuck=wilson(int(still.sum()), len(still)),
        fresh_correct=wilson(int(graded.sum()), len(graded), left_out=rows.height - len(graded)),
        rules_out=1 - 0.05 ** (1 / (group_size + top_up.extra)),
    )

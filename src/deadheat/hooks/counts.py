"""What a batch's groups are, as counts that add up over a window, and the reading of a window.

    shut       tied groups / groups with a scored member                  Wilson, or at n* where problems repeat
    T          1/(1 − shut)                                               delta method
    dilution   live groups / all groups of a step, averaged over the window's steps
    clones     rollouts that repeat an earlier one of their group: token ids, or texts where there are no ids

The rules are those of the audits, so that a live figure and `deadheat audit` on the archive agree. A group of one rollout
is a draw, no group. Groups of one prompt are not independent, so the figures of each group are kept over the window and
problems are drawn together in every interval (`stats.shares`); without prompts groups are read as independent, and the
interval's note says so. Steps without a live group have no such interval: steps are read as independent.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from deadheat.credit import GroupKind, group_kind
from deadheat.hooks.batch import Rollouts
from deadheat.reports.formats import format_share
from deadheat.stats.groups import Multiplier
from deadheat.stats.intervals import Interval, wilson
from deadheat.stats.shares import UNNAMED, ClusteredShare, Clusters, clustered_share, multiplier_of


@dataclass(frozen=True, kw_only=True)
class GroupCounts:
    """One group of two rollouts or more, as intervals want it."""

    problem: int | None  # hash of its prompt; None: none was given
    kind: GroupKind
    rollouts: int
    unscored: int  # of them
    compared: int  # of them, rollouts with ids or a text
    copies: int  # of those, rollouts that repeat an earlier one
    whole: bool  # all one sequence, of two compared or more
    told: int  # rollouts of which it is known whether the cap ended them
    capped: int


@dataclass(frozen=True, kw_only=True)
class StepCounts:
    """The groups of one step."""

    step: int
    live: int  # groups whose rewards differ
    all_right: int  # tied groups
    all_wrong: int
    tied_other: int  # tied at another value, or grades differ where rewards agree
    unscored: int  # groups without a single score
    rollouts: int  # in groups of two or more
    unscored_rollouts: int  # of them
    compared: int  # of them, rollouts with ids or a text: clones are looked for among these
    copies: int  # of those, rollouts that repeat an earlier one of their group
    compared_groups: int
    whole_clones: int  # groups of those whose members are all one sequence
    told: int  # rollouts of which it is known whether the cap ended them
    capped: int
    tokens: int  # drawn in groups of two or more; 0 where lengths are not known
    live_tokens: int  # in live groups
    by_group: tuple[GroupCounts, ...]  # the same, group by group

    @property
    def groups(self) -> int:
        """Groups of two rollouts or more."""
        return self.live + self.tied + self.unscored

    @property
    def tied(self) -> int:
        """Groups that agree."""
        return self.all_right + self.all_wrong + self.tied_other


@dataclass(frozen=True, kw_only=True)
class WindowReading:
    """What the steps of a window were. A share is None where nothing was there to count."""

    first_step: int
    last_step: int
    num_steps: int
    shut_rate: Interval | None  # tied groups, of those with a scored member
    all_right: Interval | None
    all_wrong: Interval | None
    tied_other: Interval | None
    multiplier: Multiplier | None  # T
    dilution: float | None  # mean over steps
    dead_steps: Interval | None  # steps without a live group
    clones: Interval | None  # rollouts that repeat another of their group
    whole_clones: Interval | None  # groups of one sequence
    capped: Interval | None  # rollouts that the cap ended
    unscored: Interval | None  # rollouts without a reward
    live_token_frac: float | None  # tokens that lie in live groups; None: lengths are not known

    @property
    def sentence(self) -> str:
        """The window in a line."""
        if self.shut_rate is None or self.multiplier is None or self.dilution is None:
            return f"step {self.last_step}: no group of two or more scored rollouts in {_steps(self.num_steps)}"
        kinds = ((self.all_right, "all right"), (self.all_wrong, "all wrong"), (self.tied_other, "other"))
        composition = ", ".join(f"{format_share(kind.estimate)} {name}" for kind, name in kinds if kind is not None)
        more = ((self.clones, "clones"), (self.capped, "capped"), (self.unscored, "unscored"))
        tail = "".join(f"; {format_share(part.estimate)} {name}" for part, name in more if part and part.estimate)
        return (
            f"step {self.last_step}: {_with_bounds(self.shut_rate)} of {_groups(self.shut_rate)} agree over "
            f"{_steps(self.num_steps)} ({composition}); T = {_t(self.multiplier)}; dilution "
            f"{format_share(self.dilution)}{tail}"
        )


def count_step(rows: Rollouts) -> tuple[StepCounts, tuple[GroupKind, ...]]:
    """Counts of a batch, and the kind of each of its groups."""
    grades = rows.grades
    kinds = tuple(
        group_kind(rows.rewards_B[list(members)], [grades[row] for row in members]) for members in rows.members
    )
    groups = [(m, kind) for m, kind in zip(rows.members, kinds, strict=True) if len(m) > 1]
    by_group = tuple(_group_counts(rows, members, kind) for members, kind in groups)
    of_kind = Counter(kind for _, kind in groups)
    inside = [row for members, _ in groups for row in members]
    lengths = [0] * len(rows.rewards_B) if rows.lengths is None else [length or 0 for length in rows.lengths]
    return (
        StepCounts(
            step=rows.step,
            live=of_kind[GroupKind.LIVE],
            all_right=of_kind[GroupKind.ALL_RIGHT],
            all_wrong=of_kind[GroupKind.ALL_WRONG],
            tied_other=of_kind[GroupKind.TIED_OTHER],
            unscored=of_kind[GroupKind.UNSCORED],
            rollouts=len(inside),
            unscored_rollouts=sum(group.unscored for group in by_group),
            compared=sum(group.compared for group in by_group),
            copies=sum(group.copies for group in by_group),
            compared_groups=sum(group.compared > 1 for group in by_group),
            whole_clones=sum(group.whole for group in by_group),
            told=sum(group.told for group in by_group),
            capped=sum(group.capped for group in by_group),
            tokens=sum(lengths[row] for row in inside),
            live_tokens=sum(lengths[row] for m, kind in groups if kind is GroupKind.LIVE for row in m),
            by_group=by_group,
        ),
        kinds,
    )


def _group_counts(rows: Rollouts, members: Sequence[int], kind: GroupKind) -> GroupCounts:
    compared, distinct = _clones(rows, members)
    told = [] if rows.capped is None else [flag for row in members if (flag := rows.capped[row]) is not None]
    return GroupCounts(
        problem=None if rows.prompts is None else hash(rows.prompts[members[0]]),
        kind=kind,
        rollouts=len(members),
        unscored=int(np.isnan(rows.rewards_B[list(members)]).sum()),
        compared=compared,
        copies=compared - distinct,
        whole=compared > 1 and distinct == 1,
        told=len(told),
        capped=sum(told),
    )


def _clones(rows: Rollouts, members: Sequence[int]) -> tuple[int, int]:
    """Rollouts of a group that can be compared, and how many different ones they are."""
    said: Sequence[object] | None = rows.token_ids if rows.token_ids is not None else rows.completions
    if said is None:
        return 0, 0
    known = [said[row] for row in members if said[row] is not None]
    return len(known), len(set(known))


def add(one: StepCounts, other: StepCounts) -> StepCounts:
    """Two batches together; the step is the later one's.

    Example:
        >>> zero = dict.fromkeys([f.name for f in fields(StepCounts)], 0)
        >>> both = add(StepCounts(**zero | {"step": 3, "live": 1}), StepCounts(**zero | {"step": 4, "live": 2}))
        >>> both.step, both.live
        (4, 3)
    """
    sums = {f.name: getattr(one, f.name) + getattr(other, f.name) for f in fields(StepCounts)}
    return StepCounts(**sums | {"step": other.step})


def read_window(steps: Sequence[StepCounts], *, level: float) -> WindowReading:
    """The reading of at least one step."""
    whole = steps[0]
    for one in steps[1:]:
        whole = add(whole, one)
    seen = whole.by_group
    scored = [group for group in seen if group.kind is not GroupKind.UNSCORED]
    comparable = [group for group in seen if group.compared > 1]

    def kinds(*wanted: GroupKind) -> Interval | None:
        found = [(group.problem, group.kind in wanted, 1) for group in scored]
        return _share(found, "groups", level, left_out=whole.unscored)

    shut = kinds(GroupKind.ALL_RIGHT, GroupKind.ALL_WRONG, GroupKind.TIED_OTHER)
    shares = [step.live / step.groups for step in steps if step.groups]
    dead = sum(part == 0 for part in shares)
    return WindowReading(
        first_step=steps[0].step,
        last_step=steps[-1].step,
        num_steps=len(steps),
        shut_rate=shut,
        all_right=kinds(GroupKind.ALL_RIGHT),
        all_wrong=kinds(GroupKind.ALL_WRONG),
        tied_other=kinds(GroupKind.TIED_OTHER),
        multiplier=None if shut is None else multiplier_of(shut),
        dilution=sum(shares) / len(shares) if shares else None,
        dead_steps=wilson(dead, len(shares), level) if shares else None,
        clones=_share([(g.problem, g.copies, g.compared) for g in seen], "rollouts", level),
        whole_clones=_share([(g.problem, g.whole, 1) for g in comparable], "groups", level),
        capped=_share([(g.problem, g.capped, g.told) for g in seen], "rollouts", level),
        unscored=_share([(g.problem, g.unscored, g.rollouts) for g in seen], "rollouts", level),
        live_token_frac=whole.live_tokens / whole.tokens if whole.tokens else None,
    )


def _share(
    counted: Sequence[tuple[int | None, int, int]], unit: str, level: float, *, left_out: int = 0
) -> Interval | None:
    """Share of the units of groups, (problem, how many count, of how many) each; problems are drawn together."""
    sums: dict[tuple[str, int], list[int]] = {}
    for place, (problem, count, size) in enumerate(counted):
        if size:
            of = sums.setdefault(("group", place) if problem is None else ("problem", problem), [0, 0])
            of[0], of[1] = of[0] + size, of[1] + count
    if not sums:
        return None
    alike = sorted(Counter(map(tuple, sums.values())).items())
    named = any(kind == "problem" for kind, _ in sums)
    size_C, count_C, copies_C = zip(*((*key, copies) for key, copies in alike), strict=True)
    clusters = Clusters.of(size_C, copies_C, name="problems" if named else "groups")
    found = clustered_share(count_C, clusters, level=level, left_out=left_out, unit=unit)
    unnamed = any(kind == "group" for kind, _ in sums)
    return replace(found, note=UNNAMED) if unnamed else found


def metrics_of(window: WindowReading, fresh: StepCounts | None, *, prefix: str) -> dict[str, float]:
    """Numbers for a logger: the window's, and those of what came since the last ones. What is not known is absent."""
    shares = {
        "all_right_frac": window.all_right,
        "all_wrong_frac": window.all_wrong,
        "tied_other_frac": window.tied_other,
        "dead_step_frac": window.dead_steps,
        "clone_frac": window.clones,
        "whole_clone_frac": window.whole_clones,
        "capped_frac": window.capped,
        "unscored_frac": window.unscored,
    }
    found = {f"window/{name}": None if share is None else share.estimate for name, share in shares.items()}
    if window.shut_rate is not None and window.multiplier is not None:
        found |= {
            "window/shut_frac": window.shut_rate.estimate,
            "window/shut_low": window.shut_rate.low,
            "window/shut_high": window.shut_rate.high,
            "window/multiplier": window.multiplier.value,
        }
    found |= {"window/dilution": window.dilution, "window/live_token_frac": window.live_token_frac}
    if fresh is not None and fresh.groups:
        scored = fresh.live + fresh.tied
        found |= {
            "groups": float(fresh.groups),
            "shut_frac": fresh.tied / scored if scored else None,
            "dilution": fresh.live / fresh.groups,
        }
    return {f"{prefix}{name}": value for name, value in sorted(found.items()) if value is not None}


def _steps(num: int) -> str:
    return f"{num:,} step" + ("" if num == 1 else "s")


def _groups(share: Interval) -> str:
    """What the share is of."""
    of = f" of {share.num_clusters:,} {share.clusters}" if isinstance(share, ClusteredShare) else ""
    return f"{share.n:,} groups{of}"


def _with_bounds(share: Interval) -> str:
    return f"{format_share(share.estimate)} [{100 * share.low:.1f}, {100 * share.high:.1f}]"


def _t(t: Multiplier) -> str:
    if t.value is None:
        return "without end"
    return f"{t.value:.2f} ± {t.se:.2f}" if t.se else f"{t.value:.2f}"

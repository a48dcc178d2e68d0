"""What a batch's groups are, as counts that add up over a window, and the reading of a window.

    shut       tied groups / groups with a scored member                              Wilson
    T          1/(1 − shut)                                                           delta method
    dilution   live groups / all groups of a step, averaged over the window's steps
    clones     rollouts that repeat an earlier one of their group: token ids, or texts where there are no ids

The rules are those of the audits, so that a live figure and `deadheat audit` on the archive agree. A group of one rollout
is a draw, no group.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from deadheat.credit import GroupKind, group_kind
from deadheat.hooks.batch import Rollouts
from deadheat.reports.formats import format_share
from deadheat.stats.groups import Multiplier, multiplier
from deadheat.stats.intervals import Interval, wilson


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
            f"step {self.last_step}: {_with_bounds(self.shut_rate)} of {self.shut_rate.n:,} groups agree over "
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
    of_kind = Counter(kind for _, kind in groups)
    inside = [row for members, _ in groups for row in members]
    clones = [_clones(rows, members) for members, _ in groups]
    told = [] if rows.capped is None else [flag for row in inside if (flag := rows.capped[row]) is not None]
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
            unscored_rollouts=int(np.isnan(rows.rewards_B[inside]).sum()),
            compared=sum(num for num, _ in clones),
            copies=sum(num - distinct for num, distinct in clones),
            compared_groups=sum(num > 1 for num, _ in clones),
            whole_clones=sum(num > 1 and distinct == 1 for num, distinct in clones),
            told=len(told),
            capped=sum(told),
            tokens=sum(lengths[row] for row in inside),
            live_tokens=sum(lengths[row] for m, kind in groups if kind is GroupKind.LIVE for row in m),
        ),
        kinds,
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
    scored, unscored = whole.live + whole.tied, whole.unscored

    def share(k: int, n: int, left_out: int = 0) -> Interval | None:
        return wilson(k, n, level, left_out=left_out) if n else None

    shut = share(whole.tied, scored, unscored)
    shares = [step.live / step.groups for step in steps if step.groups]
    return WindowReading(
        first_step=steps[0].step,
        last_step=steps[-1].step,
        num_steps=len(steps),
        shut_rate=shut,
        all_right=share(whole.all_right, scored, unscored),
        all_wrong=share(whole.all_wrong, scored, unscored),
        tied_other=share(whole.tied_other, scored, unscored),
        multiplier=None if shut is None else multiplier(shut),
        dilution=sum(shares) / len(shares) if shares else None,
        dead_steps=share(sum(part == 0 for part in shares), len(shares)),
        clones=share(whole.copies, whole.compared),
        whole_clones=share(whole.whole_clones, whole.compared_groups),
        capped=share(whole.capped, whole.told),
        unscored=share(whole.unscored_rollouts, whole.rollouts),
        live_token_frac=whole.live_tokens / whole.tokens if whole.tokens else None,
    )


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


def _with_bounds(share: Interval) -> str:
    return f"{format_share(share.estimate)} [{100 * share.low:.1f}, {100 * share.high:.1f}]"


def _t(t: Multiplier) -> str:
    if t.value is None:
        return "without end"
    return f"{t.value:.2f} ± {t.se:.2f}" if t.se else f"{t.value:.2f}"

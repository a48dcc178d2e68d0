"""Which floor answers a question, how a margin reads against it, and how many items would make it visible.

All floors here shrink as 1/√n, so that the items needed are n·(floor/margin)²; with two sides of different sizes both
grow in proportion. A floor above the largest difference there can be is reached from n·(floor/largest)² items on.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from deadheat.errors import StatsError
from deadheat.stats.floors import (
    Floor,
    RepeatedItemsFloor,
    WinShareReading,
    Zone,
    averaged_floor,
    detection_floor,
    paired_floor,
    read_margin,
    repeated_items_floor,
    two_standard_errors,
    win_share_floor,
)

Number = TypeVar("Number", int, float)


class FloorKind(StrEnum):
    """What is compared."""

    TWO_ACCURACIES = "two accuracies, each on its own draw of items"
    PAIRED = "the same items on both sides"
    AVERAGED = "accuracies averaged over several attempts"
    WIN_SHARE = "a share of decided votes"
    REPEATED = "records that repeat their questions"


@dataclass(frozen=True, kw_only=True)
class FloorQuestion:
    """What is known of a comparison; what is not known is None."""

    n: int | None = None  # items
    p: float | None = None  # accuracy of the baseline, in [0, 1]
    n_b: int | None = None  # items of the other side
    p_b: float | None = None  # accuracy of the other side
    discordance: float | None = None  # share of items on which the sides differ
    wins: int | None = None
    losses: int | None = None
    ties: int = 0
    k: int | None = None  # attempts averaged per item
    item_variance: float | None = None  # variance of the items' own success rates
    distinct: int | None = None  # distinct questions among n records
    icc: float | None = None  # correlation of records that repeat a question
    margin_frac: float | None = None  # observed difference
    alpha: float = 0.05
    power: float = 0.80


@dataclass(frozen=True, kw_only=True)
class FloorReport:
    """A floor, and a margin held against it."""

    kind: FloorKind
    floor_pp: float  # percentage points
    significance_bar_pp: float  # smallest observed margin that is significant at alpha
    margin_pp: float | None  # None: no margin given
    ratio: float | None  # margin / floor
    zone: Zone | None
    items_needed: int | None  # items at which the margin is as large as the floor; None: no margin, or a margin of 0
    unreachable: str  # why no true gap is as large as the floor; empty: one can be
    reachable_from: int | None  # items from which on one can be; None: one can be already
    n: float  # items (effective items where they repeat, decided votes of a win share)
    floor: Floor
    win_share: WinShareReading | None  # for votes
    repeated: RepeatedItemsFloor | None  # for records that repeat questions
    two_standard_errors_pp: float | None  # a rule of thumb, for comparison; not a floor


def floor_report(question: FloorQuestion) -> FloorReport:
    """The floor that the given numbers call for.

    Example:
        >>> report = floor_report(FloorQuestion(n=30, p=0.40, margin_frac=0.067))
        >>> round(report.floor_pp, 2), round(report.ratio, 3), report.zone.value, report.items_needed
        (35.44, 0.189, 'below', 840)
    """
    kind = _kind(question)
    win_share, repeated, margin = None, None, question.margin_frac
    rates = {"alpha": question.alpha, "power": question.power}
    if kind is FloorKind.WIN_SHARE:
        win_share = win_share_floor(question.wins or 0, question.losses or 0, ties=question.ties, **rates)
        floor, margin = win_share.floor, win_share.lead_frac if margin is None else margin
    else:
        n = _given(question.n, "--n, the number of items")
        if kind is FloorKind.PAIRED:
            floor = paired_floor(n, question.discordance or 0.0, **rates)
        else:
            p = _given(question.p, "--p, the baseline's accuracy such as 0.40 (or --discordance for paired items)")
            if kind is FloorKind.REPEATED:
                distinct = _given(question.distinct, "--distinct, the number of distinct questions")
                repeated = repeated_items_floor(n, distinct, _given(question.icc, "--icc"), p, **rates)
                floor = repeated.effective
            elif kind is FloorKind.AVERAGED:
                floor = averaged_floor(n, p, question.k or 1, question.item_variance, **rates)
            else:
                floor = detection_floor(n, p, n_b=question.n_b, p_b=question.p_b, **rates)
    reading = None if margin is None else read_margin(margin, floor)
    return FloorReport(
        kind=kind,
        floor_pp=floor.floor_pp,
        significance_bar_pp=100 * floor.significance_bar_frac,
        margin_pp=None if margin is None else 100 * margin,
        ratio=None if reading is None else reading.ratio,
        zone=None if reading is None else reading.zone,
        items_needed=items_for(margin, floor) if margin else None,
        unreachable="" if floor.reachable else _limit(kind, floor),
        reachable_from=None if floor.reachable else items_for(floor.largest_frac, floor),
        n=floor.n,
        floor=floor,
        win_share=win_share,
        repeated=repeated,
        two_standard_errors_pp=_rule_of_thumb(kind, question),
    )


def items_for(margin_frac: float, floor: Floor) -> int:
    """⌈n·(floor/margin)²⌉.

    Example:
        A floor of 20 points on 100 items: a margin of 10 wants (20/10)² = 4 times as many.
        >>> from deadheat.stats.floors import floor_from_se, floor_multiplier
        >>> items_for(0.10, floor_from_se(0.20 / floor_multiplier(), 100, "example"))
        400
    """
    return max(1, math.ceil(floor.n * (floor.floor_frac / margin_frac) ** 2 - 1e-9))


def _limit(kind: FloorKind, floor: Floor) -> str:
    """The largest difference there can be, in words."""
    if kind is FloorKind.PAIRED:
        return f"no gap is larger than the {100 * floor.largest_frac:.2f}% of items on which the sides differ"
    if kind is FloorKind.WIN_SHARE:
        return "no lead is larger than 100% of the decided votes"
    return "no two accuracies differ by more than 100 points"


def _kind(question: FloorQuestion) -> FloorKind:
    asked = {
        FloorKind.WIN_SHARE: question.wins is not None or question.losses is not None,
        FloorKind.PAIRED: question.discordance is not None,
        FloorKind.REPEATED: question.distinct is not None or question.icc is not None,
        FloorKind.AVERAGED: question.k is not None or question.item_variance is not None,
    }
    chosen = [kind for kind, given in asked.items() if given]
    if len(chosen) > 1:
        raise StatsError(
            f"the options describe {' and '.join(kind.value for kind in chosen)}; wanted one of them: --wins/--losses, "
            "--discordance, --distinct/--icc or --avg-k/--item-variance"
        )
    return chosen[0] if chosen else FloorKind.TWO_ACCURACIES


def _rule_of_thumb(kind: FloorKind, question: FloorQuestion) -> float | None:
    if kind is FloorKind.TWO_ACCURACIES and question.n and question.p is not None:
        return 100 * two_standard_errors(question.n, question.p)
    return None


def _given(value: Number | None, what: str) -> Number:
    if value is None:
        raise StatsError(f"a number is missing; wanted {what}")
    return value

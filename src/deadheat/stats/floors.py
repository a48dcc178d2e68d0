"""The smallest true gap a test of a given size shows reliably.

    z = Φ⁻¹(1 − α/2) + Φ⁻¹(power)          2.80158… at α = .05, power = .80; never rounded inside
    floor = z · SE(difference)

A margin over its floor is a ratio. The significance bar sits at Φ⁻¹(1 − α/2)/z ≈ 0.70 of the floor: between the two a
margin is significant on the run that made it and still too small to be seen again four times out of five.

A floor above the largest difference there can be (100 points; on paired items the share d that differ) is not reachable:
no true gap is shown reliably at this size, and `Floor.reachable` says so.

Each function differs in SE alone: two independent accuracies, the same questions on both sides, an average of k
attempts, a win share, repeated questions. `two_standard_errors` is another quantity and bears another name.
Source: the usual power calculation of a two-sided z-test (Cohen 1988, chapter 6).
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from deadheat.errors import StatsError
from deadheat.stats.distributions import normal_quantile
from deadheat.stats.intervals import wilson
from deadheat.stats.significance import SignTest, binomial_two_sided


class Zone(StrEnum):
    """Where a margin lies against its floor."""

    BELOW = "below"  # under the significance bar: neither significant nor repeatable
    SIGNIFICANT_NOT_REPEATABLE = "significant but not repeatable"  # between the bar and the floor
    CLEAR = "clear"  # at or above the floor


@dataclass(frozen=True, kw_only=True)
class Floor:
    """A detection floor with what it was computed from."""

    floor_frac: float  # smallest true difference shown reliably, in [0, 1]; ×100 for points
    significance_bar_frac: float  # smallest observed difference that is significant at alpha
    se_frac: float  # standard error of the difference
    z: float  # Φ⁻¹(1−α/2) + Φ⁻¹(power)
    alpha: float  # two-sided false-alarm rate
    power: float  # share of reruns that must show the gap
    n: float  # items (effective items where they repeat)
    left_out: int  # items given and not used: ties of a win share
    method: str  # formula in words
    largest_frac: float = 1.0  # largest difference there can be: 1, or the share of items that differ
    note: str = ""  # caveat to print beside it; empty: none

    @property
    def reachable(self) -> bool:
        """Whether a true difference can be as large as the floor."""
        return self.floor_frac <= self.largest_frac

    @property
    def level(self) -> float:
        """1 − α."""
        return 1 - self.alpha

    @property
    def floor_pp(self) -> float:
        """The floor in percentage points."""
        return 100 * self.floor_frac


@dataclass(frozen=True, kw_only=True)
class MarginReading:
    """A margin held against its floor."""

    margin_frac: float  # observed difference, signed
    ratio: float  # |margin| / floor, with the margin's sign
    bar_ratio: float  # the significance bar as a share of the floor, about 0.70
    zone: Zone
    floor: Floor


@dataclass(frozen=True, kw_only=True)
class WinShareReading:
    """A win share's lead D = 2w − 1 against its own floor."""

    lead_frac: float  # |2w − 1|, w = wins/(wins+losses)
    ratio: float  # lead / floor
    z: float  # lead / SE
    test: SignTest  # exact two-sided binomial on wins and losses
    floor: Floor


@dataclass(frozen=True, kw_only=True)
class RepeatedItemsFloor:
    """Three readings of a benchmark whose records repeat the same questions."""

    as_claimed: Floor  # every record an item of its own
    distinct_only: Floor  # only distinct questions count: the worst case, icc = 1
    effective: Floor  # records / (1 + (records/distinct − 1)·icc)
    design_effect: float  # 1 + (m − 1)·icc
    n_effective: float  # records / design effect


def floor_multiplier(alpha: float = 0.05, power: float = 0.80) -> float:
    """z = Φ⁻¹(1−α/2) + Φ⁻¹(power).

    Example:
        >>> round(floor_multiplier(), 6)
        2.801585
    """
    for name, value in (("alpha", alpha), ("power", power)):
        if not 0 < value < 1:
            raise StatsError(f"{name} is {value}; wanted strictly between 0 and 1, such as 0.05 or 0.80")
    return normal_quantile(power) - normal_quantile(alpha / 2)


def floor_from_se(
    se_frac: float, n: float, method: str, *, alpha: float = 0.05, power: float = 0.80, largest_frac: float = 1.0
) -> Floor:
    """The floor of a difference whose standard error is known, and which cannot exceed `largest_frac`."""
    z = floor_multiplier(alpha, power)
    return Floor(
        floor_frac=z * se_frac,
        significance_bar_frac=-normal_quantile(alpha / 2) * se_frac,
        se_frac=se_frac,
        z=z,
        alpha=alpha,
        power=power,
        n=n,
        left_out=0,
        largest_frac=largest_frac,
        method=method,
    )


def detection_floor(
    n: float,
    p: float,
    *,
    n_b: float | None = None,
    p_b: float | None = None,
    alpha: float = 0.05,
    power: float = 0.80,
) -> Floor:
    """z·sqrt(p(1−p)/n + p_b(1−p_b)/n_b): two independently drawn accuracies, unpooled.

    With one side given, the other is taken to be its like: z·sqrt(2p(1−p)/n). An accuracy of exactly 0 or 1 has no
    visible spread; its Wilson bound stands in for it, and the note says so.

    Example:
        >>> round(detection_floor(30, 0.40).floor_pp, 2)
        35.44
    """
    n_other = n if n_b is None else n_b
    p_other = p if p_b is None else p_b
    spread_a, spread_b = _spread(p, n), _spread(p_other, n_other)
    se = math.sqrt(spread_a / n + spread_b / n_other)
    floor = floor_from_se(se, n, "two independent accuracies, unpooled", alpha=alpha, power=power)
    if p in (0, 1) or p_other in (0, 1):
        floor = replace(floor, note="an accuracy of exactly 0 or 1: its Wilson bound stands in for it")
    return floor


def paired_floor(n: float, discordance: float, *, alpha: float = 0.05, power: float = 0.80) -> Floor:
    """z·sqrt(d/n): the same questions on both sides, per-item differences in {−1, 0, 1}, d = share that differ.

    Example:
        >>> round(paired_floor(500, 0.226).floor_pp, 2)
        5.96
    """
    _check_size(n)
    _check_share("discordance", discordance)
    se = math.sqrt(discordance / n)
    floor = floor_from_se(se, n, "paired, variance d/n", alpha=alpha, power=power, largest_frac=discordance)
    if discordance == 0:
        return replace(floor, note="no item differs: the table carries no information about its own noise")
    return floor


def averaged_floor(
    n: float, p: float, k: int, item_variance: float | None = None, *, alpha: float = 0.05, power: float = 0.80
) -> Floor:
    """z·sqrt(2(v + (p(1−p) − v)/k)/n): accuracies averaged over k attempts per question.

    v is the variance of the questions' own success rates. Averaging shrinks the sampling part only. Without v, the
    plain floor is returned, labelled as an upper bound.

    Example:
        With p = .5, v = .15: .15 + .10/4 = .175, and z·sqrt(2·.175/30) = 30.26 points.
        >>> round(averaged_floor(30, 0.5, 4, 0.15).floor_pp, 2)
        30.26
    """
    if k < 1:
        raise StatsError(f"k is {k}; wanted at least one attempt per question")
    if item_variance is None:
        plain = detection_floor(n, p, alpha=alpha, power=power)
        return replace(plain, method="plain floor", note=f"upper bound for avg@{k}: item variance not given")
    total = p * (1 - p)
    _check_size(n)
    if not 0 <= item_variance <= total:
        raise StatsError(
            f"item_variance is {item_variance}; wanted within [0, p(1−p)] = [0, {total:.4f}]: "
            "the variance of per-question success rates cannot exceed that of single attempts"
        )
    variance = item_variance + (total - item_variance) / k
    return floor_from_se(math.sqrt(2 * variance / n), n, f"avg@{k}, item variance kept", alpha=alpha, power=power)


def win_share_floor(
    wins: int, losses: int, *, ties: int = 0, alpha: float = 0.05, power: float = 0.80
) -> WinShareReading:
    """D = 2w − 1 against z·2·sqrt(w(1−w)/N), ties dropped.

    Example:
        >>> reading = win_share_floor(80, 86)
        >>> round(100 * reading.lead_frac, 1), round(reading.floor.floor_pp, 1), round(reading.ratio, 2)
        (3.6, 21.7, 0.17)
    """
    n = wins + losses
    if min(wins, losses, ties) < 0 or n == 0:
        raise StatsError(f"{wins} wins and {losses} losses: wanted counts with at least one decided vote")
    share = wins / n
    se = 2 * math.sqrt(_spread(share, n) / n)
    floor = floor_from_se(se, n, "decided win share, D = 2w − 1", alpha=alpha, power=power)
    note = "every decided vote on one side: a Wilson bound stands in" if share in (0, 1) else ""
    lead = abs(2 * share - 1)
    return WinShareReading(
        lead_frac=lead,
        ratio=lead / floor.floor_frac,
        z=lead / se,
        test=binomial_two_sided(wins, losses, left_out=ties),
        floor=replace(floor, left_out=ties, note=note),
    )


def repeated_items_floor(
    records: int, distinct: int, icc: float, p: float, *, alpha: float = 0.05, power: float = 0.80
) -> RepeatedItemsFloor:
    """Floors of `records` answers to only `distinct` questions whose repeats correlate at `icc` (Kish 1965).

    Example:
        m = 600/200 = 3; 1 + 2·.246 = 1.492; 600/1.492 = 402.1 effective items.
        >>> round(repeated_items_floor(600, 200, 0.246, 0.7317).n_effective, 1)
        402.1
    """
    if not 0 < distinct <= records:
        raise StatsError(f"{distinct} distinct questions in {records} records; wanted 1 to {records}")
    _check_share("icc", icc)
    effect = 1 + (records / distinct - 1) * icc
    n_effective = records / effect
    return RepeatedItemsFloor(
        as_claimed=detection_floor(records, p, alpha=alpha, power=power),
        distinct_only=detection_floor(distinct, p, alpha=alpha, power=power),
        effective=detection_floor(n_effective, p, alpha=alpha, power=power),
        design_effect=effect,
        n_effective=n_effective,
    )


def pooled_votes_floor(
    num_items: int, num_seeds: int, discordance: float, *, alpha: float = 0.05, power: float = 0.80
) -> Floor:
    """z·sqrt(d/(N·S)): all seed–item votes pooled as independent. Lower than what the two-part rule catches.

    Example:
        >>> round(pooled_votes_floor(500, 3, 0.226).floor_pp, 2)
        3.44
    """
    floor = paired_floor(num_items * num_seeds, discordance, alpha=alpha, power=power)
    return replace(floor, method="all seed–item votes pooled, closed form")


def two_standard_errors(n: float, p: float) -> float:
    """2·sqrt(2p(1−p)/n): a rule of thumb for noise between two accuracies. Not a floor.

    Example:
        >>> round(100 * two_standard_errors(500, 0.5), 2), round(detection_floor(500, 0.5).floor_pp, 2)
        (6.32, 8.86)
    """
    _check_size(n)
    _check_share("p", p)
    return 2 * math.sqrt(2 * p * (1 - p) / n)


def read_margin(margin_frac: float, floor: Floor) -> MarginReading:
    """Ratio and zone of a margin.

    Example:
        >>> reading = read_margin(0.067, detection_floor(30, 0.40))
        >>> round(reading.ratio, 3), reading.zone.value
        (0.189, 'below')
    """
    if floor.floor_frac <= 0:
        raise StatsError(
            f"the floor is {floor.floor_frac}; wanted > 0. {floor.note or 'Give more items or a p in (0,1)'}"
        )
    ratio = margin_frac / floor.floor_frac
    bar = floor.significance_bar_frac / floor.floor_frac
    size = abs(ratio)
    zone = Zone.CLEAR if size >= 1 else Zone.SIGNIFICANT_NOT_REPEATABLE if size >= bar else Zone.BELOW
    return MarginReading(margin_frac=margin_frac, ratio=ratio, bar_ratio=bar, zone=zone, floor=floor)


def items_needed(margin_frac: float, p: float, *, alpha: float = 0.05, power: float = 0.80) -> int:
    """Smallest n at which `detection_floor(n, p)` is no larger than the margin: ⌈2p(1−p)(z/margin)²⌉.

    Example:
        2·.24·(2.80158/.067)² = 839.3
        >>> items_needed(0.067, 0.40)
        840
    """
    if margin_frac == 0:
        raise StatsError("margin is 0; no number of items makes a zero margin visible")
    _check_share("p", p)
    z = floor_multiplier(alpha, power)
    return max(1, math.ceil(2 * p * (1 - p) * (z / margin_frac) ** 2))


def _spread(p: float, n: float) -> float:
    """p(1−p), with the nearer-to-½ Wilson bound in place of an accuracy of exactly 0 or 1."""
    _check_size(n)
    _check_share("p", p)
    if p in (0, 1):
        size = max(1, round(n))
        bound = wilson(0, size).high
        return bound * (1 - bound)
    return p * (1 - p)


def _check_size(n: float) -> None:
    if not (n > 0 and math.isfinite(n)):
        raise StatsError(f"n is {n}; wanted a positive number of items")


def _check_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise StatsError(f"{name} is {value}; wanted a share in [0, 1] (0.40, not 40)")

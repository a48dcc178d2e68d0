"""Small arithmetic on groups of attempts and on panels of models.

gate            P(all n agree) = pⁿ + (1−p)ⁿ
multiplier      T = 1/(1−q) at a shut share q; its SE by the delta method, sqrt(q(1−q)/n)/(1−q)²
pass@k          1 − C(n−c, k)/C(n, k), unbiased                                       Chen et al. 2021
resolution      P(score of a right attempt > score of a wrong one in the same group), ties ½
capture         (s − chance)/(perfect − chance)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from deadheat.errors import StatsError
from deadheat.stats.effect import side_mean
from deadheat.stats.intervals import Interval, MeanScore, mean_score

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Multiplier:
    """How many groups a reactive filter draws for one that teaches."""

    value: float | None  # T = 1/(1 − q); None: every group agrees
    se: float | None  # delta method; None where T is
    low: float  # T at the lower end of the share's interval
    high: float | None  # T at its upper end; None: that end is 1
    n: int  # groups


@dataclass(frozen=True, kw_only=True)
class Resolution:
    """How well a scorer orders right above wrong inside a group."""

    over_groups: Interval  # mean of the groups' own shares, groups as the sample
    over_pairs: float  # share of right–wrong pairs ordered right, all groups together
    n: int  # groups holding both right and wrong
    left_out: int  # groups all right, all wrong, or with nothing scored
    num_pairs: int  # right–wrong pairs
    level: float  # of the interval
    method: str = "pairs within groups, ties ½; t over groups"


@dataclass(frozen=True, kw_only=True)
class Capture:
    """Share of the way from chance to perfect, on one question set."""

    question_set: str
    pairwise: float | None  # 2·AUROC_within − 1; None: no group holds both right and wrong
    best_of_n: float | None  # (accuracy of the top-scored − mean)/(oracle − mean); None: oracle equals mean
    top_accuracy: float  # accuracy of each group's top-scored attempt, ties shared
    mean_accuracy: float  # accuracy of a random attempt
    oracle_accuracy: float  # share of groups with a right attempt
    n: int  # groups
    left_out: int  # groups with a missing score or grade
    level: float | None = None  # None: point values
    method: str = "capture = (s − chance)/(perfect − chance)"


@dataclass(frozen=True, kw_only=True)
class Strata:
    """Items by how many models of a reference panel solve them."""

    solved_by_N: tuple[int, ...]  # [N] panel models that solve the item
    counts: tuple[int, ...]  # [M + 1] items solved by 0, 1, …, M models
    panel: tuple[str, ...]  # reference models, disjoint from the judged ones
    n: int  # items
    left_out: int  # items with a missing panel grade; −1 in solved_by_N


@dataclass(frozen=True, kw_only=True)
class Union:
    """What several checkpoints solve together."""

    union_frac: float  # items solved by any member
    member_frac: tuple[float, ...]  # [C] items solved by each
    gain_frac: tuple[float, ...]  # [C] union − member
    n: int  # items graded under every member
    left_out: int  # items with a missing grade


def gate_probability(p: float, n: int) -> float:
    """pⁿ + (1−p)ⁿ: chance that n independent attempts tie.

    Example:
        >>> round(gate_probability(0.9, 8), 3), gate_probability(0.5, 8)
        (0.43, 0.0078125)
    """
    if not 0 <= p <= 1 or n < 1:
        raise StatsError(f"p is {p} with n = {n}; wanted a chance in [0, 1] and at least one attempt")
    return float(p**n + (1 - p) ** n)


def multiplier(shut: Interval) -> Multiplier:
    """T = 1/(1 − q) of a shut share q, its delta-method SE, and the share's interval mapped through it.

    Example:
        q = 1/2 of 100 groups: T = 2, SE = sqrt(.25/100)/.25 = .2.
        >>> from deadheat.stats.intervals import wilson
        >>> found = multiplier(wilson(50, 100))
        >>> found.value, round(found.se, 3), multiplier(wilson(3, 3)).value
        (2.0, 0.2, None)
    """
    q = shut.estimate
    return Multiplier(
        value=_inverse_live(q),
        se=None if q >= 1 else math.sqrt(q * (1 - q) / shut.n) / (1 - q) ** 2,
        low=1 / (1 - shut.low),
        high=_inverse_live(shut.high),
        n=shut.n,
    )


def _inverse_live(shut: float) -> float | None:
    return None if shut >= 1 else 1 / (1 - shut)


def pass_at_k(correct_P: ArrayLike, samples_P: ArrayLike, k: int, *, level: float = 0.95) -> MeanScore:
    """Mean over problems of 1 − C(n−c, k)/C(n, k).

    Example:
        n = 4, c = 2, k = 2: 1 − C(2,2)/C(4,2) = 1 − 1/6.
        >>> round(pass_at_k([2, 2], [4, 4], 2).interval.estimate, 4)
        0.8333
    """
    correct, samples = np.asarray(correct_P, dtype=np.float64), np.asarray(samples_P, dtype=np.float64)
    correct, samples = np.broadcast_arrays(correct, samples)
    if k < 1 or correct.ndim != 1 or correct.size == 0:
        raise StatsError(f"k is {k} over shape {correct.shape}; wanted k ≥ 1 and one count per problem")
    if (samples < k).any():
        raise StatsError(
            f"pass@{k} from {int(samples.min())} samples of a problem; wanted at least {k} samples per problem: "
            "draw more, or ask for a smaller k"
        )
    if (correct < 0).any() or (correct > samples).any():
        raise StatsError("some problem has fewer than 0 or more right samples than samples")
    wrong = samples - correct
    none_right = np.zeros(correct.shape)
    some = wrong >= k
    log_choose = _log_choose(wrong[some], k) - _log_choose(samples[some], k)
    none_right[some] = np.exp(log_choose)
    return mean_score(1 - none_right, level=level)


def auroc(scores: ArrayLike, right: ArrayLike) -> float:
    """P(score of a right one > score of a wrong one), ties ½ (Mann and Whitney 1947).

    Example:
        Right at .9 and .5, wrong at .5 and .1: pairs won 1, ½, 1, 1 of four.
        >>> auroc([0.9, 0.5, 0.5, 0.1], [1, 1, 0, 0])
        0.875
    """
    values, labels = np.asarray(scores, dtype=np.float64), np.asarray(right, dtype=bool)
    if values.shape != labels.shape or values.ndim != 1 or np.isnan(values).any():
        raise StatsError(f"shapes {values.shape} and {labels.shape}; wanted one score, none missing, per grade")
    num_right, num_wrong = int(labels.sum()), int((~labels).sum())
    if not num_right or not num_wrong:
        raise StatsError(f"{num_right} right and {num_wrong} wrong; AUROC wants at least one of each")
    ranks = _mid_ranks(values)
    return float((ranks[labels].sum() - num_right * (num_right + 1) / 2) / (num_right * num_wrong))


def within_group_resolution(
    scores: ArrayLike, right: ArrayLike, groups: Sequence[str | int], *, level: float = 0.95
) -> Resolution:
    """AUROC inside each group that holds both right and wrong, its mean over groups and over pairs."""
    values, labels = np.asarray(scores, dtype=np.float64), np.asarray(right, dtype=np.float64)
    if not values.shape == labels.shape == (len(groups),):
        raise StatsError(f"{values.size} scores, {labels.size} grades, {len(groups)} group ids; wanted equal lists")
    members: dict[str | int, list[int]] = {}
    for row, group in enumerate(groups):
        if not (math.isnan(values[row]) or math.isnan(labels[row])):
            members.setdefault(group, []).append(row)
    shares, pairs = [], []
    for rows in members.values():
        grade = labels[rows] > 0
        if grade.any() and not grade.all():
            shares.append(auroc(values[rows], grade))
            pairs.append(int(grade.sum() * (~grade).sum()))
    if not shares:
        raise StatsError(f"none of {len(members)} groups holds both right and wrong attempts; nothing can be resolved")
    interval = side_mean([shares], alpha=1 - level)
    return Resolution(
        over_groups=interval,
        over_pairs=float(np.average(shares, weights=pairs)),
        n=len(shares),
        left_out=len(set(groups)) - len(shares),
        num_pairs=sum(pairs),
        level=interval.level,
    )


def capture(question_set: str, scores_PG: ArrayLike, right_PG: ArrayLike) -> Capture:
    """Capture on one question set, pairwise and best of n. Across sets only a summary mean is meaningful.

    Example:
        One group, right at .9, wrong at .1: the top-scored is right, a random one half the time.
        >>> one = capture("set", [[0.9, 0.1]], [[1, 0]])
        >>> one.pairwise, one.best_of_n
        (1.0, 1.0)
    """
    scores, right = np.asarray(scores_PG, dtype=np.float64), np.asarray(right_PG, dtype=np.float64)
    if scores.shape != right.shape or scores.ndim != 2:
        raise StatsError(f"shapes {scores.shape} and {right.shape}; wanted problems × attempts on both")
    whole = ~(np.isnan(scores) | np.isnan(right)).any(axis=1)
    scores, right = scores[whole], right[whole]
    if not len(scores):
        raise StatsError("no group is fully scored and graded")
    top_PG = scores == scores.max(axis=1, keepdims=True)
    top = float(((right * top_PG).sum(axis=1) / top_PG.sum(axis=1)).mean())
    mean, oracle = float(right.mean()), float((right > 0).any(axis=1).mean())
    mixed = [(s, r > 0) for s, r in zip(scores, right, strict=True) if (r > 0).any() and not (r > 0).all()]
    pairwise = 2 * float(np.mean([auroc(s, r) for s, r in mixed])) - 1 if mixed else None
    return Capture(
        question_set=question_set,
        pairwise=pairwise,
        best_of_n=(top - mean) / (oracle - mean) if oracle > mean else None,
        top_accuracy=top,
        mean_accuracy=mean,
        oracle_accuracy=oracle,
        n=len(scores),
        left_out=int((~whole).sum()),
    )


def candidates(entropy_bits: float) -> float:
    """2^H: how many equally likely candidates an entropy of H bits stands for.

    Example:
        >>> round(candidates(3.06), 2)
        8.34
    """
    if not entropy_bits >= 0:
        raise StatsError(f"entropy is {entropy_bits} bits; wanted at least 0")
    return float(2.0**entropy_bits)


def strata(panel_MN: ArrayLike, *, panel: Sequence[str], judged: Sequence[str]) -> Strata:
    """Items by how many reference models solve them; the panel must not hold a judged model.

    Example:
        >>> strata([[1, 1, 0], [1, 0, 0]], panel=["x", "y"], judged=["z"]).counts
        (1, 1, 1)
    """
    grades = np.asarray(panel_MN, dtype=np.float64)
    both = sorted(set(panel) & set(judged))
    if both:
        raise StatsError(
            f"{both} are on the panel and judged; wanted disjoint models, or an item's stratum is its result"
        )
    if grades.ndim != 2 or grades.shape[0] != len(panel):
        raise StatsError(f"grades have shape {grades.shape} for {len(panel)} panel models; wanted models × items")
    known_N = ~np.isnan(grades).any(axis=0)
    solved_N = np.where(known_N, (np.nan_to_num(grades) > 0).sum(axis=0), -1)
    counts = np.bincount(solved_N[known_N], minlength=len(panel) + 1)
    return Strata(
        solved_by_N=tuple(solved_N.tolist()),
        counts=tuple(counts.tolist()),
        panel=tuple(panel),
        n=int(known_N.sum()),
        left_out=int((~known_N).sum()),
    )


def union(checkpoints_CN: ArrayLike) -> Union:
    """Items solved by any checkpoint, and what each member alone would miss.

    Example:
        >>> both = union([[1, 0, 0, 0], [0, 1, 0, 0]])
        >>> both.union_frac, both.gain_frac
        (0.5, (0.25, 0.25))
    """
    grades = np.asarray(checkpoints_CN, dtype=np.float64)
    if grades.ndim != 2 or grades.size == 0:
        raise StatsError(f"grades have shape {grades.shape}; wanted checkpoints × items")
    known_N = ~np.isnan(grades).any(axis=0)
    solved_CN = grades[:, known_N] > 0
    if not known_N.any():
        raise StatsError("no item is graded under every checkpoint")
    together, members = float(solved_CN.any(axis=0).mean()), solved_CN.mean(axis=1)
    return Union(
        union_frac=together,
        member_frac=tuple(members.tolist()),
        gain_frac=tuple((together - members).tolist()),
        n=int(known_N.sum()),
        left_out=int((~known_N).sum()),
    )


def _mid_ranks(values: Floats) -> Floats:
    """Ranks from 1, equal values sharing the mean of theirs."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count - 1) / 2)[place])


def _log_choose(n: Floats, k: int) -> Floats:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))

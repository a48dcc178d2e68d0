"""Where simulated votes come from: four models, each a whole rerun as counts, never an S × N table.

    iid           P(+) = (d+g)/2, P(−) = (d−g)/2, P(0) = 1−d, every seed and item alike
    mixture       the same on a share of the items, silence on the others: noise concentrated
    seed_effects  each seed its own gap g_s ~ N(g, τ²), cut at ±d
    empirical     the vote patterns of an observed table, mirrored and tilted to the gap asked for

The first three walk through the seeds. Items are exchangeable, so a rerun is how many items stand at each state (up
votes so far minus down votes; for a strict majority both counts), and one seed moves each state's count by two
binomial draws. That is S² binomials in place of 3^S multinomial cells, and as exact. The empirical model draws the
cells.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from deadheat.errors import StatsError
from deadheat.stats.votes import Rule, check_votes

MOST_PATTERN_SEEDS = 7
Counts = NDArray[np.int64]
State = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Design:
    """The shape of a comparison and the rule that reads it."""

    num_items: int  # N
    num_seeds: int  # S
    rule: Rule = Rule.TWO_PART
    alpha: float = 0.05  # two-sided level of the significance half

    def __post_init__(self) -> None:
        if self.num_items < 1 or self.num_seeds < 1:
            raise StatsError(f"{self.num_items} items and {self.num_seeds} seeds; wanted at least one of each")
        if not 0 < self.alpha < 1:
            raise StatsError(f"alpha is {self.alpha}; wanted strictly between 0 and 1")


@dataclass(frozen=True, kw_only=True)
class Reruns:
    """Simulated comparisons, as the counts that rules read."""

    wins_R: Counts  # items whose pooled vote is A's
    losses_R: Counts  # items whose pooled vote is B's
    ups_RS: Counts  # each seed's own wins of A
    downs_RS: Counts  # each seed's own wins of B


class VoteModel(Protocol):
    """Where votes come from."""

    @property
    def discordance_frac(self) -> float:
        """d: share of votes that are decided."""

    @property
    def most_gap_frac(self) -> float:
        """The largest gap the model can carry."""

    @property
    def label(self) -> str:
        """Name and parameters, for the record."""

    def sample(self, gap_frac: float, design: Design, reruns: int, rng: np.random.Generator) -> Reruns:
        """`reruns` independent comparisons at a true gap."""


@dataclass(frozen=True, kw_only=True)
class IidVotes:
    """Every seed and item votes alike and independently."""

    discordance_frac: float  # d: share of votes that are decided

    def __post_init__(self) -> None:
        _check_share("discordance", self.discordance_frac)

    @property
    def most_gap_frac(self) -> float:
        """d."""
        return self.discordance_frac

    @property
    def label(self) -> str:
        """Name and parameters."""
        return f"iid(d={self.discordance_frac:.4g})"

    def sample(self, gap_frac: float, design: Design, reruns: int, rng: np.random.Generator) -> Reruns:
        """One walk of all items."""
        items_R = np.full(reruns, design.num_items)
        up = _up_chance(gap_frac, self.discordance_frac)
        return _walk(items_R, self.discordance_frac, np.full((design.num_seeds, 1), up), design.rule, rng)


@dataclass(frozen=True, kw_only=True)
class MixtureVotes:
    """The decided votes fall on a share of the items; the others are silent under every seed."""

    discordance_frac: float  # d over all items
    share_frac: float  # share of items that ever vote, at least d

    def __post_init__(self) -> None:
        _check_share("discordance", self.discordance_frac)
        if not max(self.discordance_frac, 1e-12) <= self.share_frac <= 1:
            raise StatsError(
                f"share is {self.share_frac} with discordance {self.discordance_frac}; wanted the share of voting "
                "items between the discordance and 1, since no item votes more than once per seed"
            )

    @property
    def most_gap_frac(self) -> float:
        """d."""
        return self.discordance_frac

    @property
    def label(self) -> str:
        """Name and parameters."""
        return f"mixture(d={self.discordance_frac:.4g}, share={self.share_frac:.4g})"

    def sample(self, gap_frac: float, design: Design, reruns: int, rng: np.random.Generator) -> Reruns:
        """One walk of the voting items, which are drawn first."""
        items_R = rng.binomial(design.num_items, self.share_frac, size=reruns)
        up = _up_chance(gap_frac, self.discordance_frac)
        decided = min(1.0, self.discordance_frac / self.share_frac)
        return _walk(items_R, decided, np.full((design.num_seeds, 1), up), design.rule, rng)


@dataclass(frozen=True, kw_only=True)
class SeedEffects:
    """Each seed has its own gap g_s ~ N(g, τ²), cut at ±d."""

    discordance_frac: float  # d: share of votes that are decided
    tau_frac: float  # τ: spread of the seeds' own gaps, as a share of all items

    def __post_init__(self) -> None:
        _check_share("discordance", self.discordance_frac)
        if not self.tau_frac >= 0:
            raise StatsError(f"tau is {self.tau_frac}; wanted at least 0")

    @property
    def most_gap_frac(self) -> float:
        """d."""
        return self.discordance_frac

    @property
    def label(self) -> str:
        """Name and parameters."""
        return f"seed_effects(d={self.discordance_frac:.4g}, tau={self.tau_frac:.4g})"

    def sample(self, gap_frac: float, design: Design, reruns: int, rng: np.random.Generator) -> Reruns:
        """One walk of all items, each seed of each rerun at its own gap."""
        d = self.discordance_frac
        gaps_SR = gap_frac + self.tau_frac * rng.standard_normal((design.num_seeds, reruns))
        ups_SR = np.clip((1 + gaps_SR / d) / 2, 0.0, 1.0) if d else np.full((design.num_seeds, 1), 0.5)
        return _walk(np.full(reruns, design.num_items), d, ups_SR, design.rule, rng)


@dataclass(frozen=True, kw_only=True)
class EmpiricalVotes:
    """Items resampled from an observed table: its silence, its agreement between seeds, its concentration.

    The direction is replaced: pattern shares are averaged with their mirror image and tilted by exp(λ·net) until the
    mean gap is the one asked for.
    """

    shares: tuple[float, ...]  # [3^S] share of items showing each vote pattern, in `patterns` order
    num_seeds: int  # S of the table

    @property
    def discordance_frac(self) -> float:
        """Share of votes that are decided in the table."""
        return float(np.array(self.shares) @ np.abs(patterns(self.num_seeds)).mean(axis=1))

    @property
    def most_gap_frac(self) -> float:
        """Mean |net| of the items: every item's votes turned to its own leaning."""
        return float(np.array(self.shares) @ np.abs(patterns(self.num_seeds).mean(axis=1)))

    @property
    def label(self) -> str:
        """Name and parameters."""
        return f"empirical(d={self.discordance_frac:.4g}, S={self.num_seeds})"

    def sample(self, gap_frac: float, design: Design, reruns: int, rng: np.random.Generator) -> Reruns:
        """One multinomial over the patterns, most frequent first."""
        if design.num_seeds != self.num_seeds:
            raise StatsError(f"the table has {self.num_seeds} seeds and {design.num_seeds} were asked for")
        chances_K = self.tilted(gap_frac)
        order = np.argsort(-chances_K, kind="stable")
        order = order[chances_K[order] > 0]
        counts_RK = rng.multinomial(design.num_items, chances_K[order] / chances_K[order].sum(), size=reruns)
        patterns_KS = patterns(self.num_seeds)[order]
        sign_K = np.array([_pooled_sign((int((p > 0).sum()), int((p < 0).sum())), design) for p in patterns_KS])
        columns = np.column_stack([sign_K > 0, sign_K < 0, patterns_KS > 0, patterns_KS < 0]).astype(np.float64)
        read = np.rint(counts_RK.astype(np.float64) @ columns).astype(np.int64)
        ups_RS, downs_RS = np.split(read[:, 2:], 2, axis=1)
        return Reruns(wins_R=read[:, 0], losses_R=read[:, 1], ups_RS=ups_RS, downs_RS=downs_RS)

    def tilted(self, gap_frac: float) -> NDArray[np.float64]:
        """[3^S] pattern chances at a gap: even(p)·2/(1 + exp(−2λ·net(p))), even = average with the mirror image."""
        patterns_KS, shares_K = patterns(self.num_seeds), np.array(self.shares)
        even_K = (shares_K + shares_K[_pattern_index(-patterns_KS)]) / 2
        net_K = patterns_KS.mean(axis=1)
        if abs(gap_frac) >= self.most_gap_frac:
            raise StatsError(f"gap is {gap_frac:.4g}; this table's votes carry less than {self.most_gap_frac:.4g}")

        def at(slope: float) -> NDArray[np.float64]:
            return np.asarray(even_K * (1 + np.tanh(slope * net_K)))

        reach = 20.0 * self.num_seeds
        return at(float(brentq(lambda slope: float(at(slope) @ net_K) - gap_frac, -reach, reach)))


def patterns(num_seeds: int) -> NDArray[np.float64]:
    """[3^S, S] every vote pattern of an item; votes in the order 0, +1, −1, the last seed turning fastest.

    Example:
        >>> patterns(1).tolist(), patterns(3).shape
        ([[0.0], [1.0], [-1.0]], (27, 3))
    """
    digits = np.indices((3,) * num_seeds).reshape(num_seeds, -1).T
    return np.array([0.0, 1.0, -1.0])[digits]


def empirical_votes(votes_SN: ArrayLike) -> EmpiricalVotes:
    """The empirical model of a table; items with a missing vote are left out."""
    votes = check_votes(votes_SN)
    num_seeds = votes.shape[0]
    whole = votes[:, ~np.isnan(votes).any(axis=0)]
    if whole.shape[1] == 0:
        raise StatsError("no item has a vote under every seed; the empirical model needs some")
    if num_seeds > MOST_PATTERN_SEEDS:
        raise StatsError(f"{num_seeds} seeds; the empirical model counts patterns of at most {MOST_PATTERN_SEEDS}")
    counts = np.bincount(_pattern_index(whole.T), minlength=3**num_seeds)
    return EmpiricalVotes(shares=tuple((counts / counts.sum()).tolist()), num_seeds=num_seeds)


def _walk(items_R: Counts, decided: float, ups: NDArray[np.float64], rule: Rule, rng: np.random.Generator) -> Reruns:
    """Move all items through the seeds. `ups` [S, R or 1]: chance that a decided vote of the seed is A's.

    Items whose pooled vote no later seed can change are counted at once and walk on together.
    """
    reruns, num_seeds = items_R.size, ups.shape[0]
    design = Design(num_items=1, num_seeds=num_seeds, rule=rule)
    step = _both_counts if rule is Rule.STRICT_MAJORITY else _net_only
    states: dict[State | None, Counts] = {(0, 0): items_R}  # None: pooled vote settled
    ups_RS, downs_RS = np.zeros((2, reruns, num_seeds), dtype=np.int64)
    pooled: dict[int, Counts] = {sign: np.zeros(reruns, dtype=np.int64) for sign in (-1, 0, 1)}
    for s, up in enumerate(ups):
        moved: dict[State | None, Counts] = {}
        for state, count_R in states.items():
            voted_R = rng.binomial(count_R, decided)
            up_R = rng.binomial(voted_R, up)
            ups_RS[:, s] += up_R
            downs_RS[:, s] += voted_R - up_R
            if state is None:
                _add(moved, None, count_R)
                continue
            for vote, part_R in ((0, count_R - voted_R), (1, up_R), (-1, voted_R - up_R)):
                reached = step(state, vote) if vote else state
                fate = _fate(reached, num_seeds - s - 1, design)
                if fate is not None:
                    pooled[fate] += part_R
                _add(moved, reached if fate is None else None, part_R)
        states = moved
    return Reruns(wins_R=pooled[1], losses_R=pooled[-1], ups_RS=ups_RS, downs_RS=downs_RS)


def _fate(state: State, remaining: int, design: Design) -> int | None:
    """The pooled vote that `remaining` further votes cannot change, or None: signs are monotone in the votes."""
    best = _pooled_sign((state[0] + remaining, state[1]), design)
    worst = _pooled_sign((state[0], state[1] + remaining), design)
    return best if best == worst else None


def _pooled_sign(state: State, design: Design) -> int:
    """An item's pooled vote from its up and down counts."""
    up, down = state
    if design.rule is Rule.STRICT_MAJORITY:
        return int(2 * up > design.num_seeds) - int(2 * down > design.num_seeds)
    return int(up > down) - int(up < down)


def _both_counts(state: State, vote: int) -> State:
    return (state[0] + 1, state[1]) if vote > 0 else (state[0], state[1] + 1)


def _net_only(state: State, vote: int) -> State:
    net = state[0] - state[1] + vote
    return (net, 0) if net >= 0 else (0, -net)


def _add(states: dict[State | None, Counts], state: State | None, count_R: Counts) -> None:
    states[state] = states[state] + count_R if state in states else count_R


def _pattern_index(votes_KS: NDArray[np.float64]) -> NDArray[np.int64]:
    """[K] row of each pattern in `patterns`."""
    digits = np.where(votes_KS == 0, 0, np.where(votes_KS > 0, 1, 2)).astype(np.int64)
    weights = 3 ** np.arange(votes_KS.shape[1] - 1, -1, -1, dtype=np.int64)
    return np.asarray(digits @ weights, dtype=np.int64)


def _up_chance(gap: float, d: float) -> float:
    """(1 + g/d)/2: chance that a decided vote is A's."""
    return min(1.0, max(0.0, (1 + gap / d) / 2)) if d else 0.5


def _check_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise StatsError(f"{name} is {value}; wanted a share in [0, 1] (0.226, not 22.6)")

"""Where simulated comparisons come from: models of votes, each a whole rerun as counts, never an S × N table.

    iid           P(+) = (d+g)/2, P(−) = (d−g)/2, P(0) = 1−d, every seed and item alike
    mixture       the same on a share of the items, silence on the others: noise concentrated
    seed_effects  each seed its own gap g_s ~ N(g, τ²), cut at ±d
    empirical     the columns of an observed table, mirrored and tilted to the gap asked for

The first three walk through the seeds. Items are exchangeable, so a rerun is how many items stand at each state (up
votes so far minus down votes; for a strict majority both counts), and one seed moves each state's count by two
binomial draws: S² binomials in place of 3^S multinomial cells, for any number of seeds, and as exact. The empirical
model draws how often each distinct column occurs.

`Components` is the model of scores: normal seeds, items and residuals, from which only row and column sums are drawn;
`UncoupledComponents` that of two sides with seeds of their own.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deadheat.errors import StatsError
from deadheat.stats.distributions import root
from deadheat.stats.effect import Part, Parts, items_variance, welch
from deadheat.stats.votes import Rule, check_votes

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
State = tuple[int, int]
Label = TypeVar("Label", int, tuple[int, int])


@dataclass(frozen=True, kw_only=True)
class Design:
    """The shape of a comparison and the rule that reads it."""

    num_items: int  # N
    num_seeds: int  # S
    rule: Rule = Rule.SEEDS_AND_ITEMS
    alpha: float = 0.05  # two-sided level

    def __post_init__(self) -> None:
        if self.num_items < 1 or self.num_seeds < 1:
            raise StatsError(f"{self.num_items} items and {self.num_seeds} seeds; wanted at least one of each")
        if not 0 < self.alpha < 1:
            raise StatsError(f"alpha is {self.alpha}; wanted strictly between 0 and 1")


@dataclass(frozen=True, kw_only=True)
class Layouts:
    """Simulated tables, as the sums of squares of their two-way layouts."""

    mean_R: Floats  # D̄
    row_ss_R: Floats  # Σ_s (row mean − D̄)²
    column_ss_R: Floats  # Σ_i (column mean − D̄)²
    residual_ss_R: Floats  # Σ_si (what rows and columns leave)²
    grades: bool  # the scores behind the differences lie in [0, 1]


@dataclass(frozen=True, kw_only=True)
class Ballots:
    """Simulated votes, as the counts that the vote rules read."""

    wins_R: Counts  # items whose pooled vote is A's
    losses_R: Counts  # items whose pooled vote is B's
    ups_RS: Counts  # each seed's own wins of A
    downs_RS: Counts  # each seed's own wins of B


@dataclass(frozen=True, kw_only=True)
class Reruns:
    """Simulated comparisons."""

    layouts: Layouts | None  # None: uncoupled sides, whose parts stand below
    ballots: Ballots | None  # None: a model of scores casts no votes
    mean_R: Floats  # D̄
    parts: Parts[Floats] | None = None  # of uncoupled sides; None: they follow from the layouts


class Model(Protocol):
    """Where comparisons come from."""

    @property
    def most_gap(self) -> float:
        """The largest gap the model can carry."""

    @property
    def label(self) -> str:
        """Name and parameters, for the record."""

    def unit_se(self, design: Design) -> float:
        """Standard error of the mean without a gap: the size of a first guess."""

    def sample(self, gap: float, design: Design, reruns: int, rng: np.random.Generator) -> Reruns:
        """`reruns` independent comparisons at a true gap."""


class VoteModel(Model, Protocol):
    """Where votes come from."""

    @property
    def discordance_frac(self) -> float:
        """d: share of votes that are decided."""


@dataclass(frozen=True, kw_only=True)
class IidVotes:
    """Every seed and item votes alike and independently."""

    discordance_frac: float  # d: share of votes that are decided

    def __post_init__(self) -> None:
        _check_share("discordance", self.discordance_frac)

    @property
    def most_gap(self) -> float:
        """d."""
        return self.discordance_frac

    @property
    def label(self) -> str:
        """Name and parameters."""
        return f"iid(d={self.discordance_frac:.4g})"

    def unit_se(self, design: Design) -> float:
        """√(d/(N·S))."""
        return _pooled_se(self.discordance_frac, design)

    def sample(self, gap: float, design: Design, reruns: int, rng: np.random.Generator) -> Reruns:
        """One walk of all items."""
        items_R = np.full(reruns, design.num_items)
        up = _up_chance(gap, self.discordance_frac)
        return _walk(items_R, self.discordance_frac, np.full((design.num_seeds, 1), up), design, rng)


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
    def most_gap(self) -> float:
        """d."""
        return self.discordance_frac

    @property
    def label(self) -> str:
        """Name and parameters."""
        return f"mixture(d={self.discordance_frac:.4g}, share={self.share_frac:.4g})"

    def unit_se(self, design: Design) -> float:
        """√(d/(N·S))."""
        return _pooled_se(self.discordance_frac, design)

    def sample(self, gap: float, design: Design, reruns: int, rng: np.random.Generator) -> Reruns:
        """One walk of the voting items, which are drawn first."""
        items_R = rng.binomial(design.num_items, self.share_frac, size=reruns)
        up = _up_chance(gap, self.discordance_frac)
        decided = min(1.0, self.discordance_frac / self.share_frac)
        return _walk(items_R, decided, np.full((design.num_seeds, 1), up), design, rng)


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
    def most_gap(self) -> float:
        """d."""
        return self.discordance_frac

    @property
    def label(self) -> str:
        """Name and parameters."""
        return f"seed_effects(d={self.discordance_frac:.4g}, tau={self.tau_frac:.4g})"

    def unit_se(self, design: Design) -> float:
        """√(d/(N·S) + τ²/S)."""
        return float(np.hypot(_pooled_se(self.discordance_frac, design), self.tau_frac / design.num_seeds**0.5))

    def sample(self, gap: float, design: Design, reruns: int, rng: np.random.Generator) -> Reruns:
        """One walk of all items, each seed of each rerun at its own gap."""
        d = self.discordance_frac
        gaps_SR = gap + self.tau_frac * rng.standard_normal((design.num_seeds, reruns))
        ups_SR = np.clip((1 + gaps_SR / d) / 2, 0.0, 1.0) if d else np.full((design.num_seeds, 1), 0.5)
        return _walk(np.full(reruns, design.num_items), d, ups_SR, design, rng)


@dataclass(frozen=True, kw_only=True)
class EmpiricalVotes:
    """Items resampled from an observed table: its silence, its agreement between seeds, its concentration.

    The direction is replaced: each column is averaged with its mirror image and tilted by exp(λ·net) until the mean gap
    is the one asked for.
    """

    columns: tuple[tuple[int, ...], ...]  # [K, S] distinct columns of votes, mirror images beside each other
    shares: tuple[float, ...]  # [K] share of the items that show each, averaged with its mirror image

    @property
    def num_seeds(self) -> int:
        """S of the table."""
        return len(self.columns[0])

    @property
    def discordance_frac(self) -> float:
        """Share of votes that are decided in the table."""
        return float(np.array(self.shares) @ np.abs(self.columns).mean(axis=1))

    @property
    def most_gap(self) -> float:
        """Mean |net| of the items: every item's votes turned to its own leaning."""
        return float(np.array(self.shares) @ np.abs(np.mean(self.columns, axis=1)))

    @property
    def label(self) -> str:
        """Name and parameters."""
        return f"empirical(d={self.discordance_frac:.4g}, S={self.num_seeds})"

    def unit_se(self, design: Design) -> float:
        """√(mean squared net/N)."""
        return float(np.sqrt(np.array(self.shares) @ np.mean(self.columns, axis=1) ** 2 / design.num_items))

    def sample(self, gap: float, design: Design, reruns: int, rng: np.random.Generator) -> Reruns:
        """One multinomial over the distinct columns."""
        if design.num_seeds != self.num_seeds:
            raise StatsError(f"the table has {self.num_seeds} seeds and {design.num_seeds} were asked for")
        chances_K = self.tilted(gap)
        counts_RK = rng.multinomial(design.num_items, chances_K / chances_K.sum(), size=reruns)
        columns_KS = np.array(self.columns)
        states = [(int((column > 0).sum()), int((column < 0).sum())) for column in columns_KS]
        return _reruns(
            dict(enumerate(counts_RK.T)),
            dict(enumerate(states)),
            counts_RK @ (columns_KS > 0),
            counts_RK @ (columns_KS < 0),
            design,
        )

    def tilted(self, gap: float) -> Floats:
        """[K] chances at a gap: share·(1 + tanh(λ·net)), λ such that the mean net is the gap."""
        net_K, shares_K = np.mean(self.columns, axis=1), np.array(self.shares)
        if abs(gap) >= self.most_gap:
            raise StatsError(f"gap is {gap:.4g}; this table's votes carry less than {self.most_gap:.4g}")

        def at(slope: float) -> Floats:
            return np.asarray(shares_K * (1 + np.tanh(slope * net_K)))

        reach = 20.0 * self.num_seeds
        return at(root(lambda slope: float(at(slope) @ net_K) - gap, -reach, reach, tolerance=1e-12))


@dataclass(frozen=True, kw_only=True)
class Components:
    """The two-way layout D = g + seed + item + residual with independent normal parts.

    Means and sums of squares of such a table are independent, so a rerun is one normal and three χ² draws:
    Σ_s(row − D̄)² ~ (σ²_s + σ²_r/N)·χ²_{S−1}, Σ_i(column − D̄)² ~ (σ²_i + σ²_r/S)·χ²_{N−1}, residuals ~ σ²_r·χ².
    Votes at a gap g have σ²_r = d − g² − σ²_s − σ²_i.
    """

    seed_var: float  # σ²_s: between seeds
    item_var: float  # σ²_i: between items, the same under every seed
    residual_var: float  # σ²_r: left in a cell
    grades: bool = True  # scores in [0, 1]
    two_more: bool = True  # v_i of grades gets two more items; False: the items come in clusters, and N counts those
    discordance_frac: float | None = None  # d: the cells are votes and σ²_r follows the gap; None: it stands

    @property
    def most_gap(self) -> float:
        """d for votes, 1 for grades, no limit for other scores."""
        return self.discordance_frac if self.discordance_frac is not None else 1.0 if self.grades else np.inf

    @property
    def label(self) -> str:
        """Name and parameters."""
        seed, item, residual = (
            f"{max(var, 0.0) ** 0.5:.4g}" for var in (self.seed_var, self.item_var, self.residual_var)
        )
        return f"normal(seed SD {seed}, item SD {item}, residual SD {residual})"

    def unit_se(self, design: Design) -> float:
        """√(σ²_s/S + σ²_i/N + σ²_r/(S·N))."""
        return math.sqrt(self.variance(design.num_seeds, design.num_items))

    def variance(self, num_seeds: float, num_items: float, gap: float = 0.0) -> float:
        """Of the mean of S seeds × N items."""
        residual = self._residual(gap)
        return self.seed_var / num_seeds + self.item_var / num_items + residual / (num_seeds * num_items)

    def sample(self, gap: float, design: Design, reruns: int, rng: np.random.Generator) -> Reruns:
        """Means and sums of squares."""
        num_seeds, num_items, residual = design.num_seeds, design.num_items, self._residual(gap)
        se = self.variance(num_seeds, num_items, gap) ** 0.5
        normal_R = rng.standard_normal(reruns)
        chi2 = [
            rng.chisquare(df, reruns) if df else np.zeros(reruns)
            for df in (num_seeds - 1, num_items - 1, (num_seeds - 1) * (num_items - 1))
        ]
        mean_R = gap + se * normal_R
        return Reruns(
            mean_R=mean_R,
            layouts=Layouts(
                mean_R=mean_R,
                row_ss_R=(self.seed_var + residual / num_items) * chi2[0],
                column_ss_R=(self.item_var + residual / num_seeds) * chi2[1],
                residual_ss_R=residual * chi2[2],
                grades=self.grades and self.two_more,
            ),
            ballots=None,
        )

    def _residual(self, gap: float) -> float:
        if self.discordance_frac is None:
            return self.residual_var
        return max(self.discordance_frac - gap**2 - self.seed_var - self.item_var, 0.0)


@dataclass(frozen=True, kw_only=True)
class UncoupledComponents:
    """Two sides with seeds of their own: the parts of `effect.uncoupled_effect`, normal and equal on both sides."""

    seeds_a: int
    seeds_b: int
    seed_var: float  # between the seeds of one side
    item_var: float  # between items of the differences of the sides
    residual_var: float  # left in a cell of one side
    grades: bool
    two_more: bool = True  # as in `Components`

    @property
    def most_gap(self) -> float:
        """1 for grades, no limit for other scores."""
        return 1.0 if self.grades else np.inf

    @property
    def label(self) -> str:
        """Name and parameters."""
        seed, item, residual = (f"{var**0.5:.4g}" for var in (self.seed_var, self.item_var, self.residual_var))
        sides = f"{self.seeds_a} against {self.seeds_b} seeds"
        return f"uncoupled({sides}, seed SD {seed}, item SD {item}, residual SD {residual})"

    def unit_se(self, design: Design) -> float:
        """√(σ²_s(1/S_A + 1/S_B) + σ²_i/N + σ²_r(1/S_A + 1/S_B)/N)."""
        share = 1 / self.seeds_a + 1 / self.seeds_b
        noise = self.residual_var * share / design.num_items
        return math.sqrt(self.seed_var * share + self.item_var / design.num_items + noise)

    def sample(self, gap: float, design: Design, reruns: int, rng: np.random.Generator) -> Reruns:
        """Means and variance parts."""
        num_items = design.num_items
        sizes = (self.seeds_a, self.seeds_b)
        mean_R = gap + self.unit_se(design) * rng.standard_normal(reruns)
        row_var = self.seed_var + self.residual_var / num_items
        column_var = self.item_var + self.residual_var * (1 / self.seeds_a + 1 / self.seeds_b)
        column_ss_R = column_var * rng.chisquare(max(num_items - 1, 1), reruns)
        seeds, noise = [], []
        for size in sizes:
            df, noise_df = max(size - 1, 1), max((size - 1) * (num_items - 1), 1)
            variance_R = row_var * rng.chisquare(df, reruns) / df / size
            seeds.append(Part(variance=variance_R, df=np.full(1, float(df))))
            noise_R = self.residual_var * rng.chisquare(noise_df, reruns) / noise_df / (size * num_items)
            noise.append(Part(variance=noise_R, df=np.full(1, float(noise_df))))
        two_more = self.grades and self.two_more
        items = items_variance(column_ss_R, mean_R, num_items, grades=two_more)
        items_df = np.full(1, num_items + 1.0 if two_more else max(num_items - 1.0, 1e-9))
        parts = Parts(
            seeds=welch(seeds, sizes),
            items=Part(variance=items, df=items_df),
            noise=tuple(noise),
            least_df=min(sizes) - 1.0,
        )
        return Reruns(layouts=None, ballots=None, mean_R=mean_R, parts=parts)


def vote_components(discordance_frac: float, *, tau_frac: float = 0.0, item_sd: float = 0.0) -> Components:
    """The components of votes: d is the variance of a cell without a gap."""
    _check_share("discordance", discordance_frac)
    return Components(
        seed_var=tau_frac**2,
        item_var=item_sd**2,
        residual_var=max(discordance_frac - tau_frac**2 - item_sd**2, 0.0),
        discordance_frac=discordance_frac,
    )


def empirical_votes(votes_SN: ArrayLike) -> EmpiricalVotes:
    """The empirical model of a table; items with a missing vote are left out."""
    votes = check_votes(votes_SN)
    whole = votes[:, ~np.isnan(votes).any(axis=0)].astype(int)
    if whole.shape[1] == 0:
        raise StatsError("no item has a vote under every seed; the empirical model needs some")
    both = np.concatenate([whole, -whole], axis=1)
    columns_SK, counts_K = np.unique(both, axis=1, return_counts=True)
    return EmpiricalVotes(
        columns=tuple(tuple(int(vote) for vote in column) for column in columns_SK.T),
        shares=tuple((counts_K / both.shape[1]).tolist()),
    )


def _walk(items_R: Counts, decided: float, ups: Floats, design: Design, rng: np.random.Generator) -> Reruns:
    """Move all items through the seeds. `ups` [S, R or 1]: chance that a decided vote of the seed is A's."""
    reruns, num_seeds = items_R.size, ups.shape[0]
    step = _both_counts if design.rule is Rule.STRICT_MAJORITY else _net_only
    states: dict[State, Counts] = {(0, 0): items_R}
    ups_RS, downs_RS = np.zeros((2, reruns, num_seeds), dtype=np.int64)
    for s, up in enumerate(ups):
        moved: dict[State, Counts] = {}
        for state, count_R in states.items():
            voted_R = rng.binomial(count_R, decided)
            up_R = rng.binomial(voted_R, up)
            ups_RS[:, s] += up_R
            downs_RS[:, s] += voted_R - up_R
            for reached, part_R in (
                (state, count_R - voted_R),
                (step(state, 1), up_R),
                (step(state, -1), voted_R - up_R),
            ):
                moved[reached] = moved[reached] + part_R if reached in moved else part_R
        states = moved
    return _reruns(states, {state: state for state in states}, ups_RS, downs_RS, design)


def _reruns(
    counts: Mapping[Label, Counts],
    states: Mapping[Label, State],
    ups_RS: Counts,
    downs_RS: Counts,
    design: Design,
) -> Reruns:
    """Pooled votes and sums of squares, from how many items stand at each (up, down) state."""
    num_seeds, num_items = design.num_seeds, design.num_items
    wins_R, losses_R, squares_R = (np.zeros(len(ups_RS), dtype=np.int64) for _ in range(3))
    for label, count_R in counts.items():
        up, down = states[label]
        sign = _pooled_sign(up, down, design)
        wins_R += count_R * (sign > 0)
        losses_R += count_R * (sign < 0)
        squares_R += count_R * (up - down) ** 2
    rows_RS = (ups_RS - downs_RS) / num_items
    mean_R = rows_RS.mean(axis=1)
    row_ss_R = ((rows_RS - mean_R[:, None]) ** 2).sum(axis=1)
    column_ss_R = squares_R / num_seeds**2 - num_items * mean_R**2
    total_ss_R = (ups_RS + downs_RS).sum(axis=1) - num_seeds * num_items * mean_R**2
    return Reruns(
        mean_R=mean_R,
        layouts=Layouts(
            mean_R=mean_R,
            row_ss_R=row_ss_R,
            column_ss_R=np.maximum(column_ss_R, 0.0),
            residual_ss_R=np.maximum(total_ss_R - num_items * row_ss_R - num_seeds * column_ss_R, 0.0),
            grades=True,
        ),
        ballots=Ballots(wins_R=wins_R, losses_R=losses_R, ups_RS=ups_RS, downs_RS=downs_RS),
    )


def _pooled_sign(up: int, down: int, design: Design) -> int:
    """An item's pooled vote from its up and down counts."""
    if design.rule is Rule.STRICT_MAJORITY:
        return int(2 * up > design.num_seeds) - int(2 * down > design.num_seeds)
    return int(up > down) - int(up < down)


def _both_counts(state: State, vote: int) -> State:
    return (state[0] + 1, state[1]) if vote > 0 else (state[0], state[1] + 1)


def _net_only(state: State, vote: int) -> State:
    net = state[0] - state[1] + vote
    return (net, 0) if net >= 0 else (0, -net)


def _up_chance(gap: float, d: float) -> float:
    """(1 + g/d)/2: chance that a decided vote is A's."""
    return min(1.0, max(0.0, (1 + gap / d) / 2)) if d else 0.5


def _pooled_se(d: float, design: Design) -> float:
    return float(np.sqrt(d / (design.num_items * design.num_seeds)))


def _check_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise StatsError(f"{name} is {value}; wanted a share in [0, 1] (0.226, not 22.6)")

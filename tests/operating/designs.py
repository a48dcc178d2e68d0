"""Tables of scores with a known truth, drawn cell by cell: nothing here comes from the product's own simulators.

    votes      D[s, i] in {−1, 0, 1}: P(±1) = (d ± g_si)/2, g_si = gap + a_s + b_i cut at ±d
    scores     D[s, i] = gap + a_s + b_i + e_si, real-valued: normal or Student's t with 3 degrees of freedom
    clusters   votes whose b_i is shared inside a cluster; sizes log-normal with mean 25
    holes      votes or scores of which cells are missing: at random, or under one seed only
    arms       A's and B's seeds are others: right with probability p_i + a_s (+ gap for A), p_i uniform on [.3, .7]

a_s ~ N(0, τ²) is drawn for each seed, b_i ~ N(0, item SD²) for each item: seeds and items are both samples, and the
true difference is the gap. Cutting is symmetric, so that without a gap it leaves none.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MEAN_SIZE = 25  # items of a cluster


@dataclass(frozen=True, kw_only=True)
class Table:
    """One drawn comparison."""

    differences_SN: Floats  # A − B; NaN where missing
    own_gap: float  # true difference of these very seeds, over all items there could be
    clusters_N: list[int] | None = None  # None: items are their own


class Design(Protocol):
    """Where tables of differences come from."""

    gap: float  # true difference
    grades: bool  # scores lie in [0, 1]

    @property
    def label(self) -> str:
        """Its sizes and parameters, for the record."""

    def draw(self, rng: np.random.Generator) -> Table:
        """One comparison."""


@dataclass(frozen=True, kw_only=True)
class Votes:
    """Differences of right/wrong grades."""

    seeds: int
    items: int
    d: float = 0.3  # share of cells that differ
    tau: float = 0.0  # SD of the seeds' own gaps
    item_sd: float = 0.0  # SD of the items' own gaps, the same under every seed
    gap: float = 0.0
    voting: float = 1.0  # share of items that ever differ; the others tie under every seed
    grades: bool = True

    @property
    def label(self) -> str:
        return (
            f"{self.seeds} × {self.items}, d {self.d:g}"
            + (f", τ {points(self.tau)}" if self.tau else "")
            + (f", item SD {self.item_sd:g}" if self.item_sd else "")
            + (f", votes on {self.voting:.0%} of items" if self.voting < 1 else "")
            + (f", gap {points(self.gap)}" if self.gap else "")
        )

    def draw(self, rng: np.random.Generator) -> Table:
        seeds_S = self.tau * rng.standard_normal(self.seeds)
        items_N = self.item_sd * rng.standard_normal(self.items)
        own_SN = self.gap + seeds_S[:, None] + items_N
        votes_SN = signs(rng, own_SN / self.voting, self.d / self.voting)
        votes_SN *= rng.random(self.items) < self.voting
        return Table(differences_SN=votes_SN, own_gap=float(self.gap + seeds_S.mean()))


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Real-valued differences; each part has the tail named, seeds are normal."""

    seeds: int
    items: int
    tau: float = 0.0
    item_sd: float = 0.0
    gap: float = 0.0
    heavy: bool = True  # Student's t with 3 degrees of freedom; False: normal
    grades: bool = False

    @property
    def label(self) -> str:
        return (
            f"{self.seeds} × {self.items}, {'t₃' if self.heavy else 'normal'}"
            + (f", τ {self.tau:g} SD" if self.tau else "")
            + (f", item SD {self.item_sd:g}" if self.item_sd else "")
            + (f", gap {self.gap:g} SD" if self.gap else "")
        )

    def draw(self, rng: np.random.Generator) -> Table:
        seeds_S = self.tau * rng.standard_normal(self.seeds)
        cells_SN = self._noise(rng, (self.seeds, self.items)) + self.item_sd * self._noise(rng, (self.items,))
        table_SN = self.gap + seeds_S[:, None] + cells_SN
        return Table(differences_SN=table_SN, own_gap=float(self.gap + seeds_S.mean()))

    def _noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        return rng.standard_t(3, shape) / 3**0.5 if self.heavy else rng.standard_normal(shape)  # variance 1


@dataclass(frozen=True, kw_only=True)
class Clustered:
    """Votes on items that come in clusters of unequal size with a common leaning."""

    clusters: int
    log_sd: float  # SD of log size
    seeds: int
    d: float = 0.3
    tau: float = 0.0
    cluster_sd: float = 0.1  # SD of the clusters' own gaps
    gap: float = 0.0
    grades: bool = True

    @property
    def label(self) -> str:
        return (
            f"{self.seeds} × {self.clusters} clusters of {MEAN_SIZE} (log SD {self.log_sd:g}), d {self.d:g}, "
            f"cluster SD {self.cluster_sd:g}"
            + (f", τ {points(self.tau)}" if self.tau else "")
            + (f", gap {points(self.gap)}" if self.gap else "")
        )

    def draw(self, rng: np.random.Generator) -> Table:
        logs_C = rng.normal(np.log(MEAN_SIZE) - self.log_sd**2 / 2, self.log_sd, size=self.clusters)
        sizes_C = np.maximum(1, np.rint(np.exp(logs_C))).astype(int)
        labels_N = np.repeat(np.arange(self.clusters), sizes_C)
        seeds_S = self.tau * rng.standard_normal(self.seeds)
        leaning_C = self.cluster_sd * rng.standard_normal(self.clusters)
        votes_SN = signs(rng, self.gap + seeds_S[:, None] + leaning_C[labels_N], self.d)
        own = float(self.gap + seeds_S.mean())
        return Table(differences_SN=votes_SN, own_gap=own, clusters_N=labels_N.tolist())


@dataclass(frozen=True, kw_only=True)
class Holes:
    """A design of which cells are missing: a share of all of them, or of the first seed's alone."""

    whole: Votes | Scores
    missing: float  # share of cells
    first_seed_only: bool = False

    @property
    def gap(self) -> float:
        return self.whole.gap

    @property
    def grades(self) -> bool:
        return self.whole.grades

    @property
    def label(self) -> str:
        where = "of one seed's items" if self.first_seed_only else "of cells"
        return f"{self.whole.label}, {self.missing:.0%} {where} missing"

    def draw(self, rng: np.random.Generator) -> Table:
        found = self.whole.draw(rng)
        gone_SN = rng.random(found.differences_SN.shape) < self.missing
        if self.first_seed_only:
            gone_SN[1:] = False
        return Table(differences_SN=np.where(gone_SN, np.nan, found.differences_SN), own_gap=found.own_gap)


@dataclass(frozen=True, kw_only=True)
class Sides:
    """One drawn comparison of two sides with seeds of their own."""

    a_SN: Floats
    b_TN: Floats


@dataclass(frozen=True, kw_only=True)
class Arms:
    """Right/wrong grades of two arms on the same items; one seed without spread is a fixed model."""

    a_seeds: int
    b_seeds: int
    items: int
    a_sd: float = 0.0  # SD of A's seeds
    b_sd: float = 0.0
    gap: float = 0.0

    @property
    def label(self) -> str:
        spread = f"seeds' SD {points(self.a_sd)} and {points(self.b_sd)}" if self.a_sd or self.b_sd else "equal seeds"
        gap = f", gap {points(self.gap)}" if self.gap else ""
        return f"{self.a_seeds} against {self.b_seeds} seeds × {self.items}, {spread}{gap}"

    def draw(self, rng: np.random.Generator) -> Sides:
        p_N = rng.uniform(0.3, 0.7, size=self.items)
        a_S, b_T = self.a_sd * rng.standard_normal(self.a_seeds), self.b_sd * rng.standard_normal(self.b_seeds)
        return Sides(
            a_SN=(rng.random((self.a_seeds, self.items)) < p_N + self.gap + a_S[:, None]).astype(np.float64),
            b_TN=(rng.random((self.b_seeds, self.items)) < p_N + b_T[:, None]).astype(np.float64),
        )


def equal_arms(rng: np.random.Generator, *, arms: int, seeds: int, items: int, sd: float) -> Floats:
    """[arms, S, N] right/wrong grades of arms that are all alike, on the same items."""
    p_N = rng.uniform(0.3, 0.7, size=items)
    own_KS = sd * rng.standard_normal((arms, seeds))
    return np.asarray(rng.random((arms, seeds, items)) < p_N + own_KS[:, :, None], dtype=np.float64)


def graded(rng: np.random.Generator, votes_SN: Floats) -> Sides:
    """Right/wrong grades of two sides whose difference is the vote; on a tie both are right, or both wrong."""
    both_SN = rng.random(votes_SN.shape) < 0.5
    tied_SN = np.where(votes_SN == 0, both_SN, 0.0)
    absent_SN = np.isnan(votes_SN)
    a_SN, b_SN = np.where(votes_SN > 0, 1.0, tied_SN), np.where(votes_SN < 0, 1.0, tied_SN)
    return Sides(a_SN=np.where(absent_SN, np.nan, a_SN), b_TN=np.where(absent_SN, np.nan, b_SN))


def signs(rng: np.random.Generator, own_SN: Floats, d: float) -> Floats:
    """+1 with probability (d + g)/2, −1 with (d − g)/2, else 0."""
    g_SN = np.clip(own_SN, -d, d)
    u_SN = rng.random(np.broadcast_shapes(own_SN.shape))
    return (u_SN < (d + g_SN) / 2).astype(np.float64) - (u_SN > 1 - (d - g_SN) / 2)


def points(share: float) -> str:
    """A share in percentage points."""
    return f"{100 * share:g} pp"

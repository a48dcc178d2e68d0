"""Every interval that the audits print, over logs whose truth is built in: problems with their own odds, drawn many times.

Each claim of 95% is held against 2,000 tables. Its bound is 93.5%, three standard errors of 2,000 tables below the claim
(√(.05·.95/2000) = .0049). Groups of a problem share its odds, so Wilson's interval of the groups fails the same tables:
a test of its own says by how much.
"""

import numpy as np
import pytest
from scipy.special import betaincinv, betaln

from deadheat.audit.channel import Paired
from deadheat.audit.course import KINDS, shift_bounds
from deadheat.audit.drift import mean_change
from deadheat.audit.expected import beta_gate, exact_gate
from deadheat.audit.lag import HeldOut, shortfall
from deadheat.sampling.keys import generator, stream_key
from deadheat.stats.channel import ChannelDecomposition, Parts
from deadheat.stats.intervals import wilson
from deadheat.stats.shares import Clusters, TwoParts, clustered_average, clustered_share, multiplier_of

TABLES, LEAST, GROUP = 2000, 0.935, 8
A, B = 0.5, 0.7  # the odds of a problem: most are hard or easy, as in the log of read-a-gate-curve.md
TIED = beta_gate(A, B, GROUP)  # E[p⁸ + (1−p)⁸]


def draws(label: str) -> np.random.Generator:
    return generator(stream_key(1, f"tests/operating/audit/{label}"))


def sizes(draw: np.random.Generator, num_problems: int, uneven: bool) -> np.ndarray:
    """How often each problem was drawn: 6 times, or log-normally often."""
    if not uneven:
        return np.full(num_problems, 6)
    return np.maximum(1, np.exp(draw.normal(1.2, 0.8, size=num_problems)).astype(int))


def tied_groups(draw: np.random.Generator, p_C: np.ndarray, n_C: np.ndarray) -> np.ndarray:
    """Groups of 8 that agree, of each problem's n."""
    return draw.binomial(n_C, p_C**GROUP + (1 - p_C) ** GROUP)


def covered(hits: "list[bool]") -> float:
    assert len(hits) >= TABLES
    return float(np.mean(hits))


@pytest.mark.parametrize("num_problems", [3, 5, 8, 20, 60, 300])
@pytest.mark.parametrize("uneven", [False, True])
def test_the_gate_share_and_t_hold_their_level(num_problems, uneven):
    draw = draws(f"gate/{num_problems}/{uneven}")
    shares, ts = [], []
    for _ in range(TABLES):
        n_C = sizes(draw, num_problems, uneven)
        found = clustered_share(tied_groups(draw, draw.beta(A, B, size=num_problems), n_C), Clusters.of(n_C))
        t = multiplier_of(found)
        shares.append(found.low <= TIED <= found.high)
        ts.append(t.low <= 1 / (1 - TIED) <= (np.inf if t.high is None else t.high))
    assert covered(shares) >= LEAST
    assert covered(ts) >= LEAST


def test_wilson_over_the_groups_themselves_does_not():
    draw, hits = draws("wilson"), []
    for _ in range(TABLES):
        n_C = sizes(draw, 60, uneven=True)
        found = wilson(int(tied_groups(draw, draw.beta(A, B, size=60), n_C).sum()), int(n_C.sum()))
        hits.append(found.low <= TIED <= found.high)
    assert covered(hits) < 0.80


@pytest.mark.parametrize("share", [0.02, 0.1])
@pytest.mark.parametrize("num_problems", [20, 60])
def test_rare_outcomes_hold_their_level(share, num_problems):
    """All right, contested, clones of whole groups: seldom, and of a few problems only."""
    draw, hits = draws(f"rare/{share}/{num_problems}"), []
    for _ in range(TABLES):
        n_C = sizes(draw, num_problems, uneven=True)
        k_C = draw.binomial(n_C, draw.beta(0.5 * share, 0.5 * (1 - share), size=num_problems))
        found = clustered_share(k_C, Clusters.of(n_C))
        hits.append(found.low <= share <= found.high)
    assert covered(hits) >= LEAST


def test_a_share_of_rollouts_in_groups_of_one_draw_each_holds_its_level():
    """Clones of a log without problems: 40 groups of 8 rollouts, a group copies much or little."""
    draw, hits = draws("clones"), []
    for _ in range(TABLES):
        copies_C = draw.binomial(7, draw.beta(0.4, 1.6, size=40))
        found = clustered_share(copies_C, Clusters.of([8] * 40, name="groups"), unit="rollouts")
        hits.append(found.low <= 0.2 * 7 / 8 <= found.high)
    assert covered(hits) >= LEAST


@pytest.mark.parametrize("num_problems", [8, 30, 200])
def test_a_mean_length_holds_its_level(num_problems):
    """A problem, a group and a rollout each have their own part of a length; means of 200 tokens."""
    draw, hits = draws(f"lengths/{num_problems}"), []
    for _ in range(TABLES):
        n_C = sizes(draw, num_problems, uneven=True)
        of_problem = draw.gamma(4.0, 50.0, size=num_problems)
        per_group = [mean + draw.normal(0, 30, size=n) for mean, n in zip(of_problem, n_C, strict=True)]
        totals_C = [4 * groups.sum() + draw.normal(0, 40 * (4 * groups.size) ** 0.5) for groups in per_group]
        found = clustered_average(totals_C, Clusters.of(4 * n_C))
        hits.append(found.low <= 200 <= found.high)
    assert covered(hits) >= LEAST


def test_an_expected_rate_at_another_size_holds_its_level():
    draw, hits = draws("expected"), []
    for _ in range(TABLES):
        n_C, p_C = sizes(draw, 40, uneven=True), draw.beta(A, B, size=40)
        of_group = np.repeat(np.arange(40), n_C)
        right = draw.binomial(GROUP, p_C[of_group]).astype(float)
        totals_C = np.bincount(of_group, weights=exact_gate(right, np.full(right.size, float(GROUP)), 4), minlength=40)
        found = clustered_average(totals_C, Clusters.of(n_C))
        hits.append(found.low <= beta_gate(A, B, 4) <= found.high)
    assert covered(hits) >= LEAST


def right_mass(a: float, b: float) -> float:
    """E[p⁸]."""
    return float(np.exp(betaln(a + GROUP, b) - betaln(a, b)))


@pytest.mark.parametrize(("num_problems", "in_both"), [(12, 1.0), (40, 0.5), (40, 1.0), (200, 0.7)])
def test_a_shift_of_the_gate_holds_its_level(num_problems, in_both):
    """The same problems grow from Beta(.5, .7) to Beta(.9, .7); some are not drawn again at the end."""
    draw, hits = draws(f"shift/{num_problems}/{in_both}"), {"T": [], "tied": [], "all_right": [], "all_wrong": []}
    (a1, b1), t_0 = (0.9, 0.7), 1 / (1 - TIED)
    tied_1 = beta_gate(a1, b1, GROUP)
    t_1 = 1 / (1 - tied_1)
    right, wrong = right_mass(a1, b1) - right_mass(A, B), right_mass(b1, a1) - right_mass(B, A)
    for _ in range(TABLES):
        counts_K2, parts = drawn_twice(draw, num_problems, in_both, ((A, B), (a1, b1)))
        found = shift_bounds(counts_K2, np.ones(num_problems), parts, level=0.95, named=True)
        hits["T"].append(found.multiplier.low <= t_1 - t_0 <= found.multiplier.high)
        hits["tied"].append(found.tied.low <= tied_1 - TIED <= found.tied.high)
        for kind, mass in (("all_right", right), ("all_wrong", wrong)):
            part = found.parts.get(kind)
            hits[kind].append(part is None or part.low <= t_0 * t_1 * mass <= part.high)
    assert {name: covered(own) for name, own in hits.items() if covered(own) < LEAST} == {}


def drawn_twice(draw, num_problems, in_both, odds):
    """Groups of each kind at both ends, [C, 2] each, and the parts of T as the audit has them."""
    u_C = draw.random(num_problems)
    counts_K2 = {kind: np.zeros((num_problems, 2)) for kind in KINDS}
    for end, (a, b) in enumerate(odds):
        p_C, n_C = betaincinv(a, b, u_C), sizes(draw, num_problems, uneven=True)
        n_C = n_C * (draw.random(num_problems) < in_both) if end else n_C
        chances_CK = np.stack([p_C**GROUP, (1 - p_C) ** GROUP], axis=1)
        chances_CK = np.concatenate([chances_CK, 1 - chances_CK.sum(axis=1, keepdims=True)], axis=1).clip(0, 1)
        for kind, column in zip(("all_right", "all_wrong", "live"), draw.multinomial(n_C, chances_CK).T, strict=True):
            counts_K2[kind][:, end] = column
    masses = {kind: counts.sum(axis=0) for kind, counts in counts_K2.items()}
    total = sum(masses.values())
    live = masses["live"] / total
    parts = {kind: float((masses[kind] / total) @ [-1, 1] / live.prod()) for kind in KINDS[1:]}
    return counts_K2, parts


@pytest.mark.parametrize("num_problems", [12, 60])
def test_a_change_of_a_share_between_unlike_ends_holds_its_level(num_problems):
    """Contested groups, 4% to 12%, each problem with its own odds; the same problems at both ends."""
    draw, hits = draws(f"contested/{num_problems}"), []
    for _ in range(TABLES):
        u_C = draw.random(num_problems)
        n_C2 = np.stack([sizes(draw, num_problems, uneven=True) for _ in range(2)], axis=1)
        p_C2 = np.stack([betaincinv(2 * share, 2 * (1 - share), u_C) for share in (0.04, 0.12)], axis=1)
        both = TwoParts(size_C2=n_C2.astype(float), copies_C=np.ones(num_problems))
        found = both.change_of_share(draw.binomial(n_C2, p_C2).astype(float), level=0.95)
        hits.append(found.low <= 0.08 <= found.high)
    assert covered(hits) >= LEAST


def test_a_channels_part_and_the_change_of_accuracy_hold_their_level():
    """Parsed 60% → 85%, right inside 50% → 60%, nothing right outside; 40 problems × 16 rollouts at both marks."""
    draw, hits = draws("channel"), {"change": [], "rate first": [], "accuracy first": []}
    for _ in range(TABLES):
        u_C, rollouts_C2KG = draw.random((2, 40)), np.zeros((40, 2, 2, 2))
        for mark, (parsed, inside) in enumerate(((0.6, 0.5), (0.85, 0.6))):
            rate_C, right_C = (betaincinv(3 * m, 3 * (1 - m), u) for m, u in zip((parsed, inside), u_C, strict=True))
            parsed_C = draw.binomial(16, rate_C)
            rollouts_C2KG[:, mark, 1, 1] = draw.binomial(parsed_C, right_C)
            rollouts_C2KG[:, mark, 1, 0] = parsed_C - rollouts_C2KG[:, mark, 1, 1]
            rollouts_C2KG[:, mark, 0, 0] = 16 - parsed_C
        found = Paired(rollouts_C2KG=rollouts_C2KG, name="problems")
        change, parts = found.accuracy().change(level=0.95), found.rate_parts(split_of(rollouts_C2KG), 0.95)
        hits["change"].append(change.low <= 0.85 * 0.6 - 0.6 * 0.5 <= change.high)
        hits["rate first"].append(parts[0].low <= 0.25 * 0.5 <= parts[0].high)
        hits["accuracy first"].append(parts[1].low <= 0.25 * 0.6 <= parts[1].high)
    assert {name: covered(own) for name, own in hits.items() if covered(own) < LEAST} == {}


def split_of(rollouts_C2KG: np.ndarray) -> ChannelDecomposition:
    """The decomposition of the sums, channel 0 without a right rollout."""
    of_2KG = rollouts_C2KG.sum(axis=0)
    rate_2 = of_2KG[:, 1].sum(axis=1) / of_2KG.sum(axis=(1, 2))
    inside_2 = of_2KG[:, 1, 1] / of_2KG[:, 1].sum(axis=1)
    moved, better = rate_2 @ [-1, 1], inside_2 @ [-1, 1]
    return ChannelDecomposition(
        total=float((rate_2 * inside_2) @ [-1, 1]),
        rate_first=Parts(rate=float(moved * inside_2[0]), accuracy=float(better * rate_2[1])),
        accuracy_first=Parts(rate=float(moved * inside_2[1]), accuracy=float(better * rate_2[0])),
        channels=(),
        n=int(rollouts_C2KG.sum()),
        left_out=0,
    )


@pytest.mark.parametrize("ends", [(0.1, 0.4), (0.3, 0.9)])
def test_a_skill_that_grows_as_its_control_does_is_called_behind_as_seldom_as_it_says(ends):
    """30 strings of 3 shown and 1 hidden slot that share their luck. The hidden slots grow by the control's own share."""
    draw, hits, called = draws(f"shortfall/{ends}"), [], []
    growth = (ends[1] - ends[0]) / (1 - ends[0])
    hidden = (0.05, 0.05 + growth * 0.95)
    for _ in range(TABLES):
        u_C = draw.random(30)

        def held(shares, slots, u_C=u_C):
            n_C2 = np.full((30, 2), float(slots))
            p_C2 = np.stack([betaincinv(2 * share, 2 * (1 - share), u_C) for share in shares], axis=1)
            both, k_C2 = TwoParts(size_C2=n_C2, copies_C=np.ones(30)), draw.binomial(slots, p_C2).astype(float)
            start, end = both.shares(k_C2, level=0.95)
            return HeldOut(start=start, end=end, climb=both.change_of_share(k_C2, level=0.95))

        found = shortfall(held(hidden, 1), held(ends, 3))
        hits.append(found is None or found.low <= 0 <= found.high)
        called.append(found is not None and found.low > 0)
    assert covered(hits) >= LEAST
    assert covered(called) <= 0.035  # 2.5% and three standard errors


def test_drift_and_gain_hold_their_level():
    """12 problems: a score that moves by one floor, grades of which 15% improve and 10% get worse."""
    draw, hits = draws("drift"), {"drift": [], "gain": []}
    ids = [f"p{i}" for i in range(12)]
    for _ in range(TABLES):
        drift = mean_change(draw.normal(1.0, 2.0, size=12).tolist(), ids, 0.95, grades=False)
        gain = mean_change(draw.choice([1.0, -1.0, 0.0], p=[0.15, 0.1, 0.75], size=12).tolist(), ids, 0.95, grades=True)
        hits["drift"].append(drift.low <= 1.0 <= drift.high)
        hits["gain"].append(gain.low <= 0.05 <= gain.high)
    assert {name: covered(own) for name, own in hits.items() if covered(own) < LEAST} == {}

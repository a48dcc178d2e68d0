"""What a row of the table is: two sides measured in turn, a ratio of like with like, and the ratio aimed at."""

from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One side of a row."""

    name: str
    versions: str
    seconds: list[float]  # a figure for each turn, the warm-up left out
    peak_gib: float  # of the side's process (of its largest one, for a race), loading and warm-up included
    rollout_s: list[float] | None = None  # of each turn, the part before the update; None: the turn is not divided

    @property
    def best_s(self) -> float:
        """The fastest turn: what the machine's other work disturbed least."""
        return min(self.seconds)


@dataclass(frozen=True, kw_only=True)
class Target:
    """The ratio aimed at."""

    of: Literal["seconds", "peak_gib"]
    at_least: float | None = None  # theirs / ours
    at_most: float | None = None  # ours / theirs


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table."""

    name: str
    ours: Measured
    theirs: Measured
    num_tokens: int | None  # completion tokens of a turn; None: not a figure of this row
    target: Target | None  # None: as measured
    same: str  # what was compared before timing, and how close it was

    @property
    def seconds_ratio(self) -> float:
        """Theirs over ours, each its best turn.

        Example:
            >>> a = Measured(name="a", versions="", seconds=[2.0, 4.0], peak_gib=1.0)
            >>> b = Measured(name="b", versions="", seconds=[9.0, 8.0], peak_gib=4.0)
            >>> row = Row(name="r", ours=a, theirs=b, num_tokens=None, target=None, same="")
            >>> row.seconds_ratio, row.memory_ratio
            (4.0, 0.25)
        """
        return self.theirs.best_s / self.ours.best_s

    @property
    def memory_ratio(self) -> float:
        """Ours over theirs."""
        return self.ours.peak_gib / self.theirs.peak_gib

    def verdict(self) -> str:
        """The target, and whether it was met."""
        if self.target is None:
            return "as measured"
        what = "peak memory" if self.target.of == "peak_gib" else "time"
        if self.target.at_least is not None:
            met, wanted = self.seconds_ratio >= self.target.at_least, f"theirs/ours at least {self.target.at_least:g}x"
        else:
            assert self.target.at_most is not None
            ratio = self.memory_ratio if self.target.of == "peak_gib" else 1 / self.seconds_ratio
            met, wanted = ratio <= self.target.at_most, f"ours/theirs at most {self.target.at_most:g}x"
        return f"target: {what} {wanted}, {'met' if met else 'missed'}"

    def lines(self) -> list[str]:
        """The row in words and figures."""
        ratios = [t / o for o, t in zip(self.ours.seconds, self.theirs.seconds, strict=True)]
        return [
            self.name,
            *(f"  {side_line(side, self.num_tokens)}" for side in (self.ours, self.theirs)),
            f"  time theirs/ours {self.seconds_ratio:.2f}x (turn by turn {min(ratios):.2f} to {max(ratios):.2f}), "
            f"peak memory ours/theirs {self.memory_ratio:.2f}x; {self.verdict()}",
            f"  same computation: {self.same}",
        ]

    def record(self) -> dict[str, Any]:
        """The row for --json."""
        derived = {"seconds_ratio": self.seconds_ratio, "memory_ratio": self.memory_ratio, "verdict": self.verdict()}
        return asdict(self) | derived


def side_line(side: Measured, num_tokens: int | None) -> str:
    """Seconds (best, then each turn), tokens a second, peak memory.

    Example:
        >>> side_line(Measured(name="a", versions="a 1", seconds=[2.0, 4.0], peak_gib=1.5), 100)
        'a: 2.00 s (2.00, 4.00), 50 tokens/s, peak 1.50 GiB [a 1]'
    """
    speed = "" if num_tokens is None else f"{num_tokens / side.best_s:.0f} tokens/s, "
    turns = ", ".join(f"{s:.2f}" for s in side.seconds)
    drawn = ""
    if side.rollout_s is not None:
        drawn = f", of them {side.rollout_s[side.seconds.index(side.best_s)]:.2f} s rollouts"
    return f"{side.name}: {side.best_s:.2f} s ({turns}){drawn}, {speed}peak {side.peak_gib:.2f} GiB [{side.versions}]"

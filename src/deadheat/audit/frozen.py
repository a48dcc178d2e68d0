"""Audit 3, frozen skill: right draws that taught nothing, read beside the held-out score.

    tied share    of the *right* training draws of the skill, those whose group agrees
    window        a draw that guesses evenly among the symbols the model puts there is right [2^−H_first, 2^−H_last] of the
                  time, H the entropy in bits of the symbols drawn in the first and in the last 25 steps
                  (3.06 bits → 12%, 1.76 bits → 30%)
    structural    1/(number of mappings of the skill): what guessing among the unspoken ones gives

The reading is a pair, never the share alone. Ties and a held-out score that climbed are convergence; ties and a score
that never left its start are the reason it never left. The tied share is of training draws that were learned from
(a drawing that goes on until groups differ has none by construction: read how many right draws it left), the score of
held-out ones. Slots, mappings and strings are counted apart: a plateau of plain strings hides a mapping that never moved.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from deadheat.audit.counts import Counts, counted
from deadheat.audit.records import AuditOptions, AuditRecord, share, share_of
from deadheat.audit.skills import Skill, find_skill
from deadheat.audit.table import GROUP, SIZE, columns_of, group_table, is_tied, main_score
from deadheat.reports.formats import format_share
from deadheat.stats.intervals import Interval

WINDOW_STEPS = 25
_TIES_ARE_NORMAL = 0.5  # of the right draws


class Reading(StrEnum):
    """What the pair says."""

    CONVERGED = "converged"  # ties, and the held-out score climbed: nothing left to fix
    FROZEN = "frozen"  # ties, and the held-out score never left its start: the ties are why
    LEARNING = "learning"  # most right draws sit in live groups, and the held-out score climbed
    NOT_THE_TIES = "ties are not why"  # most right draws sit in live groups, and the held-out score did not climb
    UNCLEAR = "unclear"  # ties, and the held-out score moved less than its intervals can tell
    UNREAD = "unread"  # no held-out score at two steps to read beside the ties


@dataclass(frozen=True, kw_only=True)
class Channel:
    """The skill, or its control, in one arm."""

    arm: str  # "" where the source has no arms
    channel: str  # skill or control
    num_draws: int  # scored training draws
    right: Interval | None  # of them right
    tied: Interval | None  # of the right ones, those in tied groups
    tied_last: Interval | None  # the same over the last 25 steps
    not_kept: Interval | None  # of all right draws of training, those not learned from; None: every draw was
    start: Interval | None  # held-out share right at the first evaluation
    end: Interval | None  # at the last
    reading: Reading
    entropy_first_bits: float | None  # of the symbols drawn in the first 25 steps; None: symbols are not known
    entropy_last_bits: float | None
    guess_low: float | None  # 2^−H of the wider of the two
    guess_high: float | None  # 2^−H of the narrower
    structural_guess: float | None  # 1/number of mappings; None: the skill has no slots
    in_window: bool | None  # whether the draw accuracy lies between the two guesses


@dataclass(frozen=True, kw_only=True)
class MappingRead:
    """One mapping of a slot skill."""

    arm: str
    channel: str
    mapping: str  # source→target
    right: Interval | None  # training draws
    tied: Interval | None  # right ones in tied groups
    start: Interval | None  # held-out slots
    end: Interval | None


@dataclass(frozen=True, kw_only=True)
class Strings:
    """Whole rollouts of one arm, apart from slots."""

    arm: str
    kind: str  # with or without the skill
    right: Interval | None  # training rollouts, exactly right
    start: Interval | None  # held out
    end: Interval | None


@dataclass(frozen=True, kw_only=True)
class FrozenSkill(AuditRecord):
    """A skill and its control, in every arm."""

    skill: str
    how: str  # how its draws were told: slots, part, value, column, regex
    column: str  # the score a tie is computed from
    channels: tuple[Channel, ...]
    mappings: tuple[MappingRead, ...]
    strings: tuple[Strings, ...]

    @property
    def sentence(self) -> str:
        """The pair, for the skill and its control."""
        parts = []
        for c in self.channels:
            ties = "no right draw" if c.tied is None else f"{share_of(c.tied, 'right draws')} tied"
            ties += "" if c.not_kept is None else f" ({format_share(c.not_kept.estimate)} of right draws not kept)"
            held = (
                ""
                if c.start is None or c.end is None
                else f", held out {format_share(c.start.estimate)} → {format_share(c.end.estimate)} (n = {c.end.n:,})"
            )
            parts.append(f"{(c.arm + ' ' if c.arm else '')}{c.channel}: {ties}{held}: {c.reading.value}")
        return f"{self.skill}: " + "; ".join(parts) if parts else f"{self.skill}: no draw exercises it"


def frozen(rows: pl.LazyFrame, options: AuditOptions) -> FrozenSkill:
    """The pair for `options.skill`."""
    assert options.skill is not None, "the table of audits asks for --skill before it calls this"
    skill = find_skill(rows, options.skill)
    return read_frozen(
        count_draws(rows, skill),
        count_symbols(skill),
        count_strings(skill),
        skill,
        main_score(columns_of(rows)),
        options,
    )


def count_draws(rows: pl.LazyFrame, skill: Skill) -> Counts:
    """Draws by arm, purpose, step, channel and mapping: scored, right, right in a tied group."""
    names = columns_of(rows)
    column = main_score(names)
    ties = group_table(rows, scores=[column], places=[]).select(GROUP, tied=is_tied(column) | (pl.col(SIZE) < 2))
    draws = _placed(skill.draws).with_columns(pl.col("group_id").hash().alias(GROUP)).join(ties, on=GROUP, how="left")
    right = pl.col("right").fill_null(False)
    keys = ["arm", "purpose", "step", "in_skill", "mapping"]
    table = draws.group_by(keys).agg(
        pl.col("right").count().cast(pl.Int64).alias("draws"),
        right.cast(pl.Int64).sum().alias("right"),
        (right & pl.col("tied")).cast(pl.Int64).sum().alias("right_tied"),
    )
    return counted(table.collect(engine="streaming"), keys)


def count_symbols(skill: Skill) -> Counts:
    """Training draws by arm, step, channel and the symbol that was drawn."""
    keys = ["arm", "step", "in_skill", "symbol"]
    if skill.how != "slots":
        return counted(pl.DataFrame(schema=dict.fromkeys(keys, pl.String) | {"draws": pl.Int64}), keys)
    trained = _placed(skill.draws).filter(pl.col("purpose") == "train").drop_nulls("symbol")
    return counted(trained.group_by(keys).agg(pl.len().cast(pl.Int64).alias("draws")).collect(engine="streaming"), keys)


def count_strings(skill: Skill) -> Counts:
    """Whole rollouts by arm, purpose, step and whether any of their slots is of the skill."""
    names = columns_of(skill.draws)
    keys = ["arm", "purpose", "step", "in_skill"]
    if skill.how != "slots" or "correct" not in names:
        return counted(pl.DataFrame(schema=dict.fromkeys(keys, pl.String) | {"n": pl.Int64, "right": pl.Int64}), keys)
    rollout = [name for name in ("group_id", "sample") if name in names]
    whole = (
        _placed(skill.draws)
        .group_by("arm", "purpose", "step", *rollout)
        .agg(pl.col("in_skill").any(), pl.col("correct").cast(pl.Boolean).first())
    )
    table = (
        whole.drop_nulls("correct")
        .group_by(keys)
        .agg(pl.len().cast(pl.Int64).alias("n"), pl.col("correct").cast(pl.Int64).sum().alias("right"))
    )
    return counted(table.collect(engine="streaming"), keys)


def _placed(draws: pl.LazyFrame) -> pl.LazyFrame:
    """The draws with an arm, a purpose and a step, whatever the source has."""
    names = columns_of(draws)
    arm = pl.col("arm").fill_null("") if "arm" in names else pl.lit("")
    purpose = pl.col("purpose").fill_null("train") if "purpose" in names else pl.lit("train")
    step = pl.col("step").cast(pl.Int64) if "step" in names else pl.lit(0, pl.Int64)
    mapping = pl.col("mapping") if "mapping" in names else pl.lit("")
    return draws.with_columns(arm=arm, purpose=purpose, step=step, mapping=mapping)


def read_frozen(
    draws: Counts, symbols: Counts, strings: Counts, skill: Skill, column: str, options: AuditOptions
) -> FrozenSkill:
    """The record of merged counts."""
    channels, mappings, whole = [], [], []
    for (arm, in_skill), own in draws.table.partition_by(
        ["arm", "in_skill"], as_dict=True, maintain_order=True
    ).items():
        drawn = (
            symbols.table.filter((pl.col("arm") == arm) & (pl.col("in_skill") == in_skill))
            if symbols.table.height
            else None
        )
        channels.append(_channel(str(arm), bool(in_skill), own, drawn, skill, options.level))
        if skill.how == "slots":
            mappings += [
                _mapping(str(arm), bool(in_skill), str(name), part, options.level)
                for (name,), part in own.partition_by(["mapping"], as_dict=True, maintain_order=True).items()
            ]
    for (arm, in_skill), own in strings.table.partition_by(
        ["arm", "in_skill"], as_dict=True, maintain_order=True
    ).items():
        whole.append(_strings(str(arm), bool(in_skill), own, options.level))
    return FrozenSkill(
        skill=skill.name,
        how=skill.how,
        column=column,
        channels=tuple(sorted(channels, key=lambda c: (c.arm, c.channel != "skill"))),
        mappings=tuple(mappings),
        strings=tuple(whole),
    )


def _channel(
    arm: str, in_skill: bool, own: pl.DataFrame, drawn: pl.DataFrame | None, skill: Skill, level: float
) -> Channel:
    trained, left = (own.filter(pl.col("purpose") == purpose) for purpose in ("train", "not-kept"))
    start, end = _held_out(own, "draws", level)
    tied = share(trained["right_tied"].sum(), trained["right"].sum(), level=level)
    last = trained.filter(pl.col("step") > (trained["step"].max() or 0) - WINDOW_STEPS)  # type: ignore[operator]
    right = share(trained["right"].sum(), trained["draws"].sum(), level=level)
    bits = (None, None) if drawn is None or not drawn.height else window_bits(drawn)
    guesses = sorted(2.0**-h for h in bits if h is not None)
    inside = guesses[0] <= right.estimate <= guesses[-1] if guesses and right is not None else None
    mappings = own.filter(pl.col("mapping") != "")["mapping"].n_unique()
    return Channel(
        arm=arm,
        channel="skill" if in_skill else "control",
        num_draws=int(trained["draws"].sum()),
        right=right,
        tied=tied,
        tied_last=share(last["right_tied"].sum(), last["right"].sum(), level=level),
        not_kept=_not_kept(trained, left, level) if left.height else None,
        start=start,
        end=end,
        reading=read_pair(tied, start, end),
        entropy_first_bits=bits[0],
        entropy_last_bits=bits[1],
        guess_low=guesses[0] if guesses else None,
        guess_high=guesses[-1] if guesses else None,
        structural_guess=1 / mappings if skill.how == "slots" and mappings else None,
        in_window=inside,
    )


def _not_kept(trained: pl.DataFrame, left: pl.DataFrame, level: float) -> Interval | None:
    """Of all right draws, those not learned from."""
    learned, other = (int(part["right"].sum()) for part in (trained, left))
    return share(other, learned + other, level=level)


def _held_out(own: pl.DataFrame, total: str, level: float) -> tuple[Interval | None, Interval | None]:
    """Shares right at the first and the last evaluation; two different steps, or neither."""
    held = own.filter(pl.col("purpose") == "eval").drop_nulls("step")
    steps = held["step"].unique().sort().to_list()
    if len(steps) < 2:
        return None, None
    ends = (held.filter(pl.col("step") == step) for step in (steps[0], steps[-1]))
    first, last = (share(end["right"].sum(), end[total].sum(), level=level) for end in ends)
    return first, last


def read_pair(tied: Interval | None, start: Interval | None, end: Interval | None) -> Reading:
    """Ties beside the held-out score.

    Example:
        6.1% → 93.9% of 33 slots under ties is convergence; 0 of 11 → 1 of 11 is frozen.
        >>> read_pair(share(96, 100), share(2, 33), share(31, 33)).value
        'converged'
        >>> read_pair(share(86, 100), share(0, 11), share(1, 11)).value
        'frozen'
        >>> read_pair(share(0, 100), share(0, 11), share(1, 11)).value
        'ties are not why'
    """
    if start is None or end is None:
        return Reading.UNREAD
    if tied is not None and tied.estimate < _TIES_ARE_NORMAL:
        return Reading.LEARNING if end.low > start.high else Reading.NOT_THE_TIES
    if end.low > start.high:
        return Reading.CONVERGED
    if end.estimate <= start.high:
        return Reading.FROZEN
    return Reading.UNCLEAR


def window_bits(drawn: pl.DataFrame) -> tuple[float | None, float | None]:
    """Entropy of the symbols drawn in the first and in the last 25 steps, in bits."""
    first, last = drawn["step"].min(), drawn["step"].max()
    ends = (pl.col("step") < first + WINDOW_STEPS, pl.col("step") > last - WINDOW_STEPS)  # type: ignore[operator]
    return tuple(
        entropy_bits(drawn.filter(end).group_by("symbol").agg(pl.col("draws").sum())["draws"].to_list()) for end in ends
    )  # type: ignore[return-value]


def entropy_bits(counts: "list[int]") -> float | None:
    """−Σ p·log₂ p of a list of counts; None of nothing.

    Example:
        >>> entropy_bits([1, 1, 1, 1, 1, 1, 1, 1]), entropy_bits([2, 0])
        (3.0, 0.0)
    """
    total = sum(counts)
    return abs(sum(c / total * math.log2(total / c) for c in counts if c)) if total else None


def _mapping(arm: str, in_skill: bool, name: str, own: pl.DataFrame, level: float) -> MappingRead:
    trained = own.filter(pl.col("purpose") == "train")
    start, end = _held_out(own, "draws", level)
    return MappingRead(
        arm=arm,
        channel="skill" if in_skill else "control",
        mapping=name,
        right=share(trained["right"].sum(), trained["draws"].sum(), level=level),
        tied=share(trained["right_tied"].sum(), trained["right"].sum(), level=level),
        start=start,
        end=end,
    )


def _strings(arm: str, in_skill: bool, own: pl.DataFrame, level: float) -> Strings:
    trained = own.filter(pl.col("purpose") == "train")
    start, end = _held_out(own, "n", level)
    return Strings(
        arm=arm,
        kind="with the skill" if in_skill else "without it",
        right=share(trained["right"].sum(), trained["n"].sum(), level=level),
        start=start,
        end=end,
    )

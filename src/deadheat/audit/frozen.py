"""Audit 3, frozen skill: right draws that taught nothing, read beside the held-out score.

    tied share    of the *right* training draws of the skill, those whose group agrees
    window        a draw that guesses evenly among the symbols the model puts there is right [2^−H_first, 2^−H_last] of the
                  time, H the entropy in bits of the symbols drawn in the first and in the last 25 steps
                  (3.06 bits → 12%, 1.76 bits → 30%)
    structural    1/(number of mappings of the skill): what guessing among the unspoken ones gives

The reading is a pair, never the share alone: ties beside what the held-out score did (`lag.py`). The tied
share is of training draws that were learned from (a drawing that goes on until groups differ has none by construction:
read how many right draws it left), the score of held-out ones. Problems are drawn together in every interval, since slots
of a string and attempts at a problem are not independent. Slots, mappings and strings are counted apart: a plateau of
plain strings hides a mapping that never moved.
"""

import math
from dataclasses import dataclass

import polars as pl

from deadheat.audit.counts import Counts, counted
from deadheat.audit.lag import HeldOut, Reading, held_out, read_pair, shortfall, shortfall_text
from deadheat.audit.problems import change_text, share_over
from deadheat.audit.records import AuditOptions, AuditRecord, share_of
from deadheat.audit.skills import Skill, find_skill
from deadheat.audit.table import GROUP, PROBLEM, SIZE, columns_of, group_table, is_tied, main_score, problem_hash
from deadheat.reports.formats import format_share
from deadheat.stats.intervals import Interval

WINDOW_STEPS = 25


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
    climb: Interval | None  # end − start, problems paired
    shortfall: Interval | None  # below what the control's growth would give; None: the control itself, or no growth
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
                else f", held out {format_share(c.start.estimate)} → {format_share(c.end.estimate)} (n = {c.end.n:,}"
                f"{'' if c.climb is None else ', ' + change_text(c.climb)})"
            )
            if c.shortfall is not None:
                held += f", {shortfall_text(c.shortfall)}"
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
    """Draws by arm, purpose, part of the course, channel, mapping and problem: scored, right, right in a tied group."""
    names = columns_of(rows)
    column = main_score(names)
    ties = group_table(rows, scores=[column], places=[]).select(GROUP, tied=is_tied(column) | (pl.col(SIZE) < 2))
    placed = _placed(skill.draws)
    draws = placed.with_columns(
        pl.col("group_id").hash().alias(GROUP),
        _when(placed).alias("when"),
        problem_hash(names) if "problem_id" in names else pl.col("group_id").hash().alias(PROBLEM),
    ).join(ties, on=GROUP, how="left")
    right = pl.col("right").fill_null(False)
    keys = ["arm", "purpose", "when", "in_skill", "mapping", PROBLEM]
    table = draws.group_by(keys).agg(
        pl.col("right").count().cast(pl.Int64).alias("draws"),
        right.cast(pl.Int64).sum().alias("right"),
        (right & pl.col("tied")).cast(pl.Int64).sum().alias("right_tied"),
    )
    return counted(table.collect(engine="streaming"), keys)


def _when(placed: pl.LazyFrame) -> pl.Expr:
    """The part of its arm's course a draw stands at: `last` of training; `start` and `end` of evaluations."""
    steps = placed.select("arm", "purpose", "step").unique().drop_nulls().collect(engine="streaming")
    parts = [pl.lit(None, pl.String)]
    for (arm, purpose), own in steps.partition_by(["arm", "purpose"], as_dict=True).items():
        here = (pl.col("arm") == arm) & (pl.col("purpose") == purpose)
        first, last = own["step"].min(), own["step"].max()
        if purpose == "train":
            parts.append(pl.when(here & (pl.col("step") > pl.lit(last) - WINDOW_STEPS)).then(pl.lit("last")))
        elif purpose == "eval" and first != last:
            parts += [
                pl.when(here & (pl.col("step") == step)).then(pl.lit(name))
                for step, name in ((first, "start"), (last, "end"))
            ]
    return pl.coalesce(*parts[::-1])


def count_symbols(skill: Skill) -> Counts:
    """Training draws by arm, step, channel and the symbol that was drawn."""
    keys = ["arm", "step", "in_skill", "symbol"]
    if skill.how != "slots":
        return counted(pl.DataFrame(schema=dict.fromkeys(keys, pl.String) | {"draws": pl.Int64}), keys)
    trained = _placed(skill.draws).filter(pl.col("purpose") == "train").drop_nulls("symbol")
    return counted(trained.group_by(keys).agg(pl.len().cast(pl.Int64).alias("draws")).collect(engine="streaming"), keys)


def count_strings(skill: Skill) -> Counts:
    """Whole rollouts by arm, purpose, part of the course, problem and whether any of their slots is of the skill."""
    names = columns_of(skill.draws)
    keys = ["arm", "purpose", "when", "in_skill", PROBLEM]
    if skill.how != "slots" or "correct" not in names:
        schema = dict.fromkeys(keys, pl.String) | {"n": pl.Int64, "right": pl.Int64}
        return counted(pl.DataFrame(schema=schema), keys)
    placed = _placed(skill.draws)
    own = problem_hash(names) if "problem_id" in names else pl.col("group_id").hash().alias(PROBLEM)
    rollout = [name for name in ("group_id", "sample") if name in names]
    whole = (
        placed.with_columns(_when(placed).alias("when"), own)
        .group_by("arm", "purpose", "when", PROBLEM, "step", *rollout)
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
    level = options.level
    channels, mappings, whole = [], [], []
    held = {place: held_out(own, "draws", level) for place, own in _by_channel(draws)}
    for (arm, in_skill), own in _by_channel(draws):
        drawn = (
            symbols.table.filter((pl.col("arm") == arm) & (pl.col("in_skill") == in_skill))
            if symbols.table.height
            else None
        )
        control = held.get((arm, False)) if in_skill else None
        channels.append(_channel((arm, in_skill), own, drawn, skill, (held[arm, in_skill], control), level))
        if skill.how == "slots":
            mappings += [
                _mapping(arm, in_skill, str(name), part, level)
                for (name,), part in own.partition_by(["mapping"], as_dict=True, maintain_order=True).items()
            ]
    for (arm, in_skill), own in _by_channel(strings):
        whole.append(_strings(arm, in_skill, own, level))
    return FrozenSkill(
        skill=skill.name,
        how=skill.how,
        column=column,
        channels=tuple(sorted(channels, key=lambda c: (c.arm, c.channel != "skill"))),
        mappings=tuple(mappings),
        strings=tuple(whole),
    )


def _by_channel(counts: Counts) -> list[tuple[tuple[str, bool], pl.DataFrame]]:
    parts = counts.table.partition_by(["arm", "in_skill"], as_dict=True, maintain_order=True)
    return [((str(arm), bool(in_skill)), own) for (arm, in_skill), own in parts.items()]


def _channel(
    place: tuple[str, bool],
    own: pl.DataFrame,
    drawn: pl.DataFrame | None,
    skill: Skill,
    held: "tuple[HeldOut | None, HeldOut | None]",  # its own, and its control's
    level: float,
) -> Channel:
    trained, left = (own.filter(pl.col("purpose") == purpose) for purpose in ("train", "not-kept"))
    tied, last = share_over(trained, "right_tied", "right", level=level), trained.filter(pl.col("when") == "last")
    right = share_over(trained, "right", "draws", level=level)
    bits = (None, None) if drawn is None or not drawn.height else window_bits(drawn)
    guesses = sorted(2.0**-h for h in bits if h is not None)
    inside = guesses[0] <= right.estimate <= guesses[-1] if guesses and right is not None else None
    mappings = own.filter(pl.col("mapping") != "")["mapping"].n_unique()
    mine, control = held
    short = None if mine is None or control is None else shortfall(mine, control)
    return Channel(
        arm=place[0],
        channel="skill" if place[1] else "control",
        num_draws=int(trained["draws"].sum()),
        right=right,
        tied=tied,
        tied_last=share_over(last, "right_tied", "right", level=level),
        not_kept=_not_kept(trained, left, level) if left.height else None,
        start=None if mine is None else mine.start,
        end=None if mine is None else mine.end,
        climb=None if mine is None else mine.climb,
        shortfall=short,
        reading=read_pair(tied, None if mine is None else mine.climb, short),
        entropy_first_bits=bits[0],
        entropy_last_bits=bits[1],
        guess_low=guesses[0] if guesses else None,
        guess_high=guesses[-1] if guesses else None,
        structural_guess=1 / mappings if skill.how == "slots" and mappings else None,
        in_window=inside,
    )


def _not_kept(trained: pl.DataFrame, left: pl.DataFrame, level: float) -> Interval | None:
    """Of all right draws, those not learned from."""
    sums = [part.select(PROBLEM, "right", other=of * pl.col("right")) for part, of in ((trained, 0), (left, 1))]
    return share_over(pl.concat(sums), "other", "right", level=level)


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
    held = held_out(own, "draws", level)
    return MappingRead(
        arm=arm,
        channel="skill" if in_skill else "control",
        mapping=name,
        right=share_over(trained, "right", "draws", level=level),
        tied=share_over(trained, "right_tied", "right", level=level),
        start=None if held is None else held.start,
        end=None if held is None else held.end,
    )


def _strings(arm: str, in_skill: bool, own: pl.DataFrame, level: float) -> Strings:
    held = held_out(own, "n", level)
    return Strings(
        arm=arm,
        kind="with the skill" if in_skill else "without it",
        right=share_over(own.filter(pl.col("purpose") == "train"), "right", "n", level=level),
        start=None if held is None else held.start,
        end=None if held is None else held.end,
    )

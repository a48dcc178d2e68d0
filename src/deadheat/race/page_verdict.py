"""The sections of report.html that judge: verdict, gains, other readings, what differs between the arms."""

from collections.abc import Sequence

from deadheat.race.config import RaceConfig
from deadheat.race.coupling import flat_settings
from deadheat.race.readings import Reading
from deadheat.race.verdict import ByClock, PairVerdict, RaceVerdict
from deadheat.race.words import (
    bounds_words,
    coupling_words,
    fact_pairs,
    gain_lines,
    gain_words,
    notes_of,
    pair_sentence,
    skill_lines,
    warnings_of,
)
from deadheat.reports import Section
from deadheat.reports.floors import Difference, difference_against_floor
from deadheat.reports.formats import format_p, format_signed
from deadheat.reports.ink import figure_block
from deadheat.reports.page import Align, Block, Callout, Cell, Column, FigureBlock, KeyValues, Prose, Table
from deadheat.reports.verdict_words import level_words
from deadheat.stats import Effect, Interval, SignTest, Tally
from deadheat.stats.effect import leaves_zero
from deadheat.tasks import SubSkill

_NUMBER = Align.NUMBER


def verdict_section(verdict: RaceVerdict, pair: PairVerdict) -> Section:
    """Two arms: per-seed table, difference against the smallest gap, and what stands beside the words."""
    shares = f"{pair.arm_a} {_share(pair.share_a)}, {pair.arm_b} {_share(pair.share_b)} % right, over seeds and items, "
    shares += f"{level_words(pair.share_a.level)} intervals cut to 0–100, on the answers graded in both"
    beside = (("shares", shares), *fact_pairs(pair, always_smallest=True))
    facts = KeyValues(pairs=(("verdict", pair.words), *beside), code=False)
    lead = pair_sentence(pair) if len(verdict.pairs) > 1 else None
    blocks = (_seed_table(pair), _difference_figure(pair), facts)
    return Section(heading=f"{pair.arm_a} against {pair.arm_b}", lead=lead, blocks=blocks)


def _seed_table(pair: PairVerdict) -> Table:
    effect, votes = pair.verdict.effect, pair.verdict.votes
    level = level_words(effect.level)
    rows = [
        _row(
            f"{gap.seed} (copy)" if gap.is_copy else str(gap.seed),
            (gap.share_a, gap.share_b),
            gap.difference,
            gap.votes.tally,
            gap.votes.test,
        )
        for gap in pair.seed_gaps
    ]
    together = _row("all", (pair.share_a, pair.share_b), effect, votes.pooled, votes.test)
    return Table(
        columns=(
            Column(heading="seed"),
            Column(heading=pair.arm_a, unit="% right", align=_NUMBER),
            Column(heading=pair.arm_b, unit="% right", align=_NUMBER),
            Column(heading="difference", unit=f"pp [{level}]", align=_NUMBER),
            Column(heading="won–lost–tied", unit="items", align=_NUMBER),
            Column(heading="p", unit="exact, of votes", align=_NUMBER),
        ),
        rows=tuple(rows),
        totals=(together,) if len(rows) > 1 else (),
        caption=(
            f"Both arms on the same answers: {effect.n:,} items, {effect.left_out:,} left out. One seed's interval is "
            "over items only, that of all seeds over seeds and items, the widest of three readings. An item's pooled vote "
            "is the sign of its sum over seeds."
        ),
    )


def _row(label: str, shares: tuple[Interval, Interval], gap: Effect, tally: Tally, test: SignTest) -> tuple[str, ...]:
    votes = f"{tally.wins}–{tally.losses}–{tally.ties}"
    percents = (f"{100 * share.estimate:.1f}" for share in shares)
    return (label, *percents, _difference(gap), votes, format_p(test.p_value, test.log10_p))


def _difference_figure(pair: PairVerdict) -> FigureBlock:
    effect, adjusted = pair.verdict.effect, pair.verdict.decision.interval
    smallest, power = pair.verdict.instrument.smallest, pair.verdict.terms.power
    gap_pp = None if smallest is None or smallest.gap is None else 100 * smallest.gap
    rows = [_bar(f"seed {gap.seed}", gap.difference) for gap in pair.seed_gaps if len(pair.seed_gaps) > 1]
    rows.append(_bar("all", effect, pooled=True))
    if adjusted.level != effect.level:
        rows.append(_bar(f"all, {level_words(adjusted.level)}", adjusted, pooled=True))
    band = (
        ""
        if gap_pp is None
        else f" The band: gaps that this design calls with less than {power:.0%} power at equal seeds."
    )
    return figure_block(
        lambda width: difference_against_floor(
            rows,
            arms=(pair.arm_a, pair.arm_b),
            catchable_gap_pp=gap_pp,
            verdict=pair.words,
            level=effect.level,
            power=power,
            width_in=width,
        ),
        label=f"Difference of {pair.arm_a} and {pair.arm_b} per seed and over all, against the smallest gap called",
        caption=f"Difference on {effect.n:,} held-out items. Seeds: over items only. All: {effect.method}.{band}",
    )


def _bar(label: str, gap: Effect, *, pooled: bool = False) -> Difference:
    return Difference(
        label=label,
        diff_pp=100 * gap.estimate,
        low_pp=100 * gap.low,
        high_pp=100 * gap.high,
        num_items=gap.n,
        pooled=pooled,
    )


def gain_section(verdict: RaceVerdict, race: RaceConfig) -> Section:
    """Every run: held-out share at step 0 and at its end, named checkpoints, how it ended."""
    unit = f"% right [{level_words(1 - race.verdict.alpha)}]"
    rows = [
        (
            arm.arm,
            str(run.seed),
            _share(run.start_share),
            _share(run.share),
            str(run.step),
            "–" if run.outcome.peak_step is None else str(run.outcome.peak_step),
            "–" if run.outcome.converged_step is None else str(run.outcome.converged_step),
            run.outcome.ending.value,
        )
        for arm in verdict.arms
        for run in arm.runs
    ]
    table = Table(
        columns=(
            Column(heading="arm"),
            Column(heading="seed", align=_NUMBER),
            Column(heading="step 0", unit=unit, align=_NUMBER),
            Column(heading="last evaluation", unit=unit, align=_NUMBER),
            Column(heading="at step", align=_NUMBER),
            Column(heading="peak step", align=_NUMBER),
            Column(heading="converged step", align=_NUMBER),
            Column(heading="ended by"),
        ),
        rows=tuple(rows),
        caption=(
            f"n = {verdict.pool} held-out items; intervals over items only. Peak and converged checkpoints are selected on "
            "this very pool. An arm learned, or lost, where its gain over seeds and items leaves 0."
        ),
        sortable=True,
    )
    said = [Callout(text=note, warning=True) for note in warnings_of(verdict)]
    said += [Callout(text=note) for note in notes_of(verdict, race)]
    return Section(heading="Did each arm learn?", lead=" · ".join(gain_lines(verdict)), blocks=(table, *said))


def readings_section(verdict: RaceVerdict, by_clock: ByClock, alpha: float) -> Section:
    """The same pairs at other checkpoints and budgets."""
    rows = []
    for pair in verdict.pairs:
        timed = by_clock.get((pair.arm_a, pair.arm_b))
        for reading in (*pair.contrasts, *([timed] if timed else []), *pair.checkpoints):
            rows.append(_reading_row(f"{pair.arm_a} − {pair.arm_b}", reading))
    table = Table(
        columns=(
            Column(heading="arms"),
            Column(heading="reading"),
            Column(heading="steps read"),
            Column(heading="difference", unit=f"pp [{level_words(1 - alpha)}]", align=_NUMBER),
            Column(heading="0"),
        ),
        rows=tuple(rows),
        caption=(
            "The verdict is made at 'final' alone, where its interval is adjusted for the contrasts judged together. The "
            "intervals here are plain, each for itself: 'clear' leaves 0, and calls nothing. 'Peak' and 'converged' choose "
            "a checkpoint on the pool they are read on. Equal tokens and equal seconds take the last evaluation within the "
            "smaller arm's budget."
        ),
    )
    return Section(heading="Other readings of the same race", blocks=(table,))


def _reading_row(arms: str, reading: Reading) -> tuple[str, ...]:
    gap = reading.difference
    steps = _steps(reading.steps_a)
    if reading.steps_a != reading.steps_b:
        steps = f"{steps} | {_steps(reading.steps_b)}"
    selected = " (selected on this pool)" if reading.selected_on else ""
    items_only = " (items only)" if gap.num_seeds == 1 else ""
    clear = f"clear{items_only}" if leaves_zero(gap.low, gap.high) else "not clear"
    return arms, reading.reading + selected, steps, _difference(gap), clear


def _steps(steps_S: Sequence[int]) -> str:
    return str(steps_S[0]) if len(set(steps_S)) == 1 else ", ".join(map(str, steps_S))


def _difference(gap: Effect) -> str:
    return f"{format_signed(100 * gap.estimate)} {bounds_words(gap)}"


def _share(interval: Interval | None) -> str:
    """A share with its interval where the heading says the unit and the level, and the caption the n."""
    if interval is None:
        return "nothing graded"
    return f"{100 * interval.estimate:.1f} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def arms_section(race: RaceConfig, verdict: RaceVerdict) -> Section:
    """The settings that differ, and how the arms share their draws."""
    settings = {arm: flat_settings(config.model_dump(mode="json")) for arm, config in race.arms.items()}
    names = sorted({name for table in settings.values() for name in table})
    differing = [n for n in names if len({str(table.get(n)) for table in settings.values()}) > 1]
    table = Table(
        columns=(Column(heading="setting"), *(Column(heading=arm) for arm in race.arms)),
        rows=tuple((name, *(str(settings[arm].get(name, "–")) for arm in race.arms)) for name in differing)
        or (("nothing differs", *("" for _ in race.arms)),),
        caption="Everything else is equal in all arms: adapter initialisation, data order and keys within a seed too.",
    )
    blocks: list[Block] = [table, *(Prose(text=f"{sentence}.") for sentence in coupling_words(verdict.couplings))]
    return Section(heading="What differs between the arms", blocks=tuple(blocks))


def skills_section(verdict: RaceVerdict) -> list[Section]:
    """What the task counts beside accuracy, per run and per arm; no section where it counts nothing."""
    rows = [
        (arm.arm, str(run.seed), skill.name, _of(skill.start), _of(skill.end), "")
        for arm in verdict.arms
        for run in arm.runs
        for skill in run.skills
    ]
    if not rows:
        return []
    totals = [
        (
            arm.arm,
            "all",
            skill.reading.name,
            _of(skill.reading.start),
            _of(skill.reading.end),
            "no item" if skill.gain is None else gain_words(skill.gain.effect),
        )
        for arm in verdict.arms
        for skill in arm.skills
    ]
    table = Table(
        columns=(
            Column(heading="arm"),
            Column(heading="seed", align=_NUMBER),
            Column(heading="sub-skill"),
            Column(heading="step 0", unit="right of all", align=_NUMBER),
            Column(heading="last evaluation", unit="right of all", align=_NUMBER),
            Column(heading="gain", unit="over seeds and items", align=_NUMBER),
        ),
        rows=tuple(rows),
        totals=tuple(totals),
        caption=(
            "A gain is that of the mean over items of the share right in each: slots of one answer move together and are "
            "one item. Its interval is plain."
        ),
        sortable=True,
    )
    return [Section(heading="Sub-skills", lead=" · ".join(skill_lines(verdict)), blocks=(table,))]


def _of(skill: SubSkill) -> Cell:
    share = skill.num_right / skill.num_all if skill.num_all else 0.0
    return Cell(text=f"{skill.num_right} of {skill.num_all}", order=share)

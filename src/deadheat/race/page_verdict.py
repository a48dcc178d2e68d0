"""The sections of report.html that judge: verdict, gains, other readings, what differs between the arms."""

from collections.abc import Sequence

from deadheat.race.config import RaceConfig
from deadheat.race.coupling import flat_settings
from deadheat.race.screen import gain_lines, pooled_line, seed_lines, skill_lines
from deadheat.race.verdict import ByClock, Contrast, PairVerdict, RaceVerdict
from deadheat.race.words import (
    coupling_words,
    floor_words,
    notes_of,
    pair_sentence,
)
from deadheat.reports import (
    Section,
    SeedLine,
)
from deadheat.reports.floors import Difference, difference_against_floor
from deadheat.reports.formats import format_p, format_pp, format_signed
from deadheat.reports.ink import figure_block
from deadheat.reports.page import Align, Block, Callout, Cell, Column, KeyValues, Prose, Table
from deadheat.stats import BootstrapInterval, Interval
from deadheat.tasks import SubSkill

_NUMBER = Align.NUMBER


def verdict_section(verdict: RaceVerdict, pair: PairVerdict) -> Section:
    """Two arms: per-seed table, difference against the smallest catchable gap, what the rule saw."""
    lines = seed_lines(verdict, pair)
    final = pair.final.verdict
    catchable = final.catchable
    gap_pp = None if catchable is None or catchable.gap_frac is None else 100 * catchable.gap_frac
    differences = [_seed_difference(line, pair) for line in lines]
    d = pair.final.difference
    differences.append(
        Difference(
            label="pooled",
            diff_pp=100 * d.estimate,
            low_pp=100 * d.low,
            high_pp=100 * d.high,
            num_items=d.n,
            pooled=True,
        )
    )
    band = "" if gap_pp is None else " The band is the smallest gap this very table would call four times out of five."
    figure = figure_block(
        lambda width: difference_against_floor(
            differences,
            arms=(pair.arm_a, pair.arm_b),
            catchable_gap_pp=gap_pp,
            verdict=pair.words,
            level=d.level,
            width_in=width,
        ),
        label=f"Difference of {pair.arm_a} and {pair.arm_b} per seed and pooled, against the smallest catchable gap",
        caption=(
            f"Difference on {d.n} held-out items, {len(lines)} seed{'s' if len(lines) > 1 else ''}. Per seed: paired normal "
            f"interval over items. Pooled: {d.method}.{band}"
        ),
    )
    table = Table(
        columns=(
            Column(heading="seed"),
            Column(heading=pair.arm_a, unit="% right [95%]", align=_NUMBER),
            Column(heading=pair.arm_b, unit="% right [95%]", align=_NUMBER),
            Column(heading="difference", unit="pp", align=_NUMBER),
            Column(heading="won–lost–tied", unit="items", align=_NUMBER),
            Column(heading="p", unit="exact", align=_NUMBER),
        ),
        rows=tuple(_seed_row(line) for line in lines),
        totals=(_seed_row(pooled_line(verdict, pair)),),
        caption=(
            f"Two-part rule: pooled votes significant at {final.alpha:g}, and every seed's net on the winner's side. "
            f"An item's pooled vote is the sign of its sum over seeds. {final.n} items, {final.left_out} left out."
        ),
    )
    homogeneity = final.homogeneity
    facts = KeyValues(
        pairs=(
            ("verdict", pair.words),
            (
                "pooled votes",
                f"{final.pooled.wins}–{final.pooled.losses}, {final.pooled.ties} tied; p = {format_p(final.test.p_value)}",
            ),
            (
                "decided items",
                f"{final.pooled.decided} seen, {final.expected_decided:.0f} expected at discordance "
                f"{final.discordance_frac:.3f}",
            ),
            ("seeds alike?", f"χ² p = {format_p(homogeneity.p_value)}, spread τ̂ = {100 * homogeneity.tau_frac:.1f} pp"),
            (
                "paired floor, one seed",
                format_pp(100 * pair.final.floor.floor_frac).lstrip("+") if pair.final.floor else "none decided",
            ),
            ("smallest gap called", floor_words(pair)),
        ),
        code=False,
    )
    lead = pair_sentence(pair) if len(verdict.pairs) > 1 else None
    return Section(heading=f"{pair.arm_a} against {pair.arm_b}", lead=lead, blocks=(table, figure, facts))


def _seed_difference(line: SeedLine, pair: PairVerdict) -> Difference:
    n = line.wins + line.losses + line.ties
    d, gap = (line.wins + line.losses) / n, (line.wins - line.losses) / n
    half = 1.959964 * ((d - gap * gap) / n) ** 0.5
    return Difference(
        label=line.label,
        diff_pp=line.diff_pp,
        low_pp=line.diff_pp - 100 * half,
        high_pp=line.diff_pp + 100 * half,
        num_items=n,
    )


def _seed_row(line: SeedLine) -> tuple[str, ...]:
    tally = f"{line.wins}–{line.losses}–{line.ties}"
    difference = format_signed(line.diff_pp)
    return (line.label, _share(line.first), _share(line.second), difference, tally, format_p(line.p_value))


def gain_section(verdict: RaceVerdict, race: RaceConfig) -> Section:
    """Every run: held-out share at step 0 and at its end, named checkpoints, how it ended."""
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
            Column(heading="step 0", unit="% right [95%]", align=_NUMBER),
            Column(heading="last evaluation", unit="% right [95%]", align=_NUMBER),
            Column(heading="at step", align=_NUMBER),
            Column(heading="peak step", align=_NUMBER),
            Column(heading="converged step", align=_NUMBER),
            Column(heading="ended by"),
        ),
        rows=tuple(rows),
        caption=f"n = {verdict.pool} held-out items. Peak and converged checkpoints are selected on this very pool.",
        sortable=True,
    )
    notes = [Callout(text=note, warning="diverged" in note or "no outcome" in note) for note in notes_of(verdict, race)]
    return Section(heading="Did each arm learn?", lead=" · ".join(gain_lines(verdict)), blocks=(table, *notes))


def readings_section(verdict: RaceVerdict, by_clock: ByClock) -> Section:
    """The same pairs at other checkpoints and budgets."""
    rows = []
    for pair in verdict.pairs:
        timed = by_clock.get((pair.arm_a, pair.arm_b))
        for contrast in (*pair.contrasts, *([timed] if timed else [])):
            rows.append(_reading_row(pair, contrast))
        for point in pair.checkpoints:
            arms = f"{pair.arm_a} − {pair.arm_b}"
            rows.append((arms, f"step {point.step}", "", _difference(point.difference), "–"))
    table = Table(
        columns=(
            Column(heading="arms"),
            Column(heading="reading"),
            Column(heading="steps read"),
            Column(heading="difference", unit="pp, crossed 95%", align=_NUMBER),
            Column(heading="two-part rule"),
        ),
        rows=tuple(rows),
        caption=(
            "The verdict is the reading 'final'. 'Peak' and 'converged' choose a checkpoint on the pool they are read on. "
            "Readings at equal tokens and equal seconds take the last evaluation within the smaller arm's budget."
        ),
    )
    return Section(heading="Other readings of the same race", blocks=(table,))


def _reading_row(pair: PairVerdict, contrast: Contrast) -> tuple[str, ...]:
    steps = f"{_steps(contrast.steps_a)} | {_steps(contrast.steps_b)}"
    selected = " (selected on this pool)" if contrast.selected_on else ""
    words = contrast.verdict.words.value.replace("(A)", f"({pair.arm_a})").replace("(B)", f"({pair.arm_b})")
    return (
        f"{pair.arm_a} − {pair.arm_b}",
        contrast.reading + selected,
        steps,
        _difference(contrast.difference),
        words,
    )


def _steps(steps_S: Sequence[int]) -> str:
    return str(steps_S[0]) if len(set(steps_S)) == 1 else ", ".join(map(str, steps_S))


def _difference(difference: BootstrapInterval) -> str:
    low, high = format_signed(100 * difference.low), format_signed(100 * difference.high)
    return f"{format_signed(100 * difference.estimate)} [{low}, {high}]"


def _share(interval: Interval | None) -> str:
    """A share with its interval where the heading says the unit and the caption the n."""
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
    """What the task counts beside accuracy, per run; no section where it counts nothing."""
    rows = [
        (arm.arm, str(run.seed), skill.name, _of(skill.start), _of(skill.end))
        for arm in verdict.arms
        for run in arm.runs
        for skill in run.skills
    ]
    if not rows:
        return []
    table = Table(
        columns=(
            Column(heading="arm"),
            Column(heading="seed", align=_NUMBER),
            Column(heading="sub-skill"),
            Column(heading="step 0", unit="right of all", align=_NUMBER),
            Column(heading="last evaluation", unit="right of all", align=_NUMBER),
        ),
        rows=tuple(rows),
        caption="Slots of one mapping are not independent trials: they move together when the mapping is learned.",
        sortable=True,
    )
    return [Section(heading="Sub-skills", lead=" · ".join(skill_lines(verdict)), blocks=(table,))]


def _of(skill: SubSkill) -> Cell:
    share = skill.num_right / skill.num_all if skill.num_all else 0.0
    return Cell(text=f"{skill.num_right} of {skill.num_all}", order=share)

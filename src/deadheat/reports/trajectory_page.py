"""A trajectory as one self-contained HTML page: the figure, every pair, the summaries, the four readings."""

from deadheat.reports import ink
from deadheat.reports.formats import format_p, format_signed
from deadheat.reports.instruments import trajectory_figure
from deadheat.reports.page import Align, Block, Callout, Column, Page, Section, Table, Tone
from deadheat.reports.verdict_words import plural
from deadheat.stats.curves import TrajectoryReport
from deadheat.stats.effect import Effect
from deadheat.stats.trajectory import FourReadings

_N = Align.NUMBER


def trajectory_page(report: TrajectoryReport) -> Page:
    """The page."""
    first = report.reading.pairs[0]
    figure = ink.figure_block(
        lambda width_in: trajectory_figure(report.reading.pairs, width_in=width_in),
        label="differences between arms at every checkpoint",
        caption=f"Difference at each checkpoint with its {first.level:.0%} interval over seeds and items, "
        f"n = {first.n:,} items × {plural(len(report.seeds), 'seed')}.",
    )
    sections = [Section(heading="Along training", blocks=(figure, _pairs(report)))]
    if report.reading.scores:
        sections.append(
            Section(
                heading="What an early look foretells",
                lead="Share of pair × checkpoint cells before convergence in which a summary has the converged sign.",
                blocks=(_scores(report),),
            )
        )
    if report.four is not None:
        lead = (
            f"{first.arm_a} against {first.arm_b}; {report.num_selection:,} items select, "
            f"{report.n - report.num_selection:,} are fresh."
        )
        sections.append(Section(heading="The same runs, read four ways", lead=lead, blocks=(_four(report.four),)))
    notes: tuple[Block, ...] = tuple(Callout(text=note) for note in report.notes)
    sections.append(Section(heading="Notes", blocks=notes))
    return Page(
        title="Trajectory",
        kicker="Deadheat trajectory",
        question="Would an earlier look have said the same?",
        verdict_sentence=f"{first.arm_a} − {first.arm_b}: {first.flips} of {len(first.readings)} checkpoints point away "
        f"from the converged reading, {_pp(first.converged)} pp; {first.separated} clear of zero.",
        verdict_tone=Tone.PLAIN,
        sections=tuple(sections),
        footer=f"Intervals: {first.converged.method}, {first.level:.0%}.",
    )


def _pairs(report: TrajectoryReport) -> Table:
    names = ("pair", "converged, pp", "flips", "converged side", "clear of zero", "opposed pairs")
    return Table(
        columns=tuple(Column(heading=name, align=_N if place else Align.TEXT) for place, name in enumerate(names)),
        rows=tuple(
            (
                f"{pair.arm_a} − {pair.arm_b}",
                _pp(pair.converged),
                f"{pair.flips} of {len(pair.readings)}",
                str(pair.on_converged_side),
                str(pair.separated),
                str(pair.opposed_pairs),
            )
            for pair in report.reading.pairs
        ),
    )


def _scores(report: TrajectoryReport) -> Table:
    return Table(
        columns=(Column(heading="summary"), Column(heading="right", align=_N), Column(heading="share", align=_N)),
        rows=tuple(
            (
                score.summary.value,
                f"{score.right} of {score.cells}",
                f"{100 * score.share.estimate:.0f}% [{100 * score.share.low:.0f}, {100 * score.share.high:.0f}]",
            )
            for score in report.reading.scores
        ),
    )


def _four(four: FourReadings) -> Table:
    named = (four.converged_whole_pool, four.shared_step_selection_pool, four.selected_then_fresh, four.final_fresh)
    names = ("reading", "difference, pp", "won–lost", "p", "pool", "selected on")
    return Table(
        columns=tuple(
            Column(heading=name, align=_N if 0 < place < 4 else Align.TEXT) for place, name in enumerate(names)
        ),
        rows=tuple(
            (
                reading.name,
                _pp(reading.effect),
                f"{reading.pooled.wins}–{reading.pooled.losses}",
                format_p(reading.test.p_value, reading.test.log10_p),
                reading.pool.value,
                reading.selected_on or "nothing",
            )
            for reading in named
        ),
    )


def _pp(interval: Effect) -> str:
    low, high = format_signed(100 * interval.low), format_signed(100 * interval.high)
    return f"{format_signed(100 * interval.estimate)} [{low}, {high}]"

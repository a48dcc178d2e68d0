"""The page of an audit: what was read, the gate with its figures, every other answer, what is missing, groups to read."""

import math
from collections.abc import Sequence

from deadheat.audit.draw import interval_text, record_blocks
from deadheat.audit.gate import Gate
from deadheat.audit.lengths import Lengths
from deadheat.audit.questions import AUDITS, AuditReport
from deadheat.audit.records import AuditRecord
from deadheat.reports import ink
from deadheat.reports.figures import Bar, BarPanel, GateCurve, bars, gate_curves
from deadheat.reports.page import (
    Block,
    Callout,
    Column,
    FigureBlock,
    KeyValues,
    Page,
    Prose,
    Section,
    Table,
    Tone,
    Transcript,
)

_MOST_ARMS = 6  # drawn in one gate figure
_FOOTER = (
    "Shares carry 95% intervals: Wilson's where every problem stands in one group, and where one stands in several Wilson's "
    "at the effective number of groups, by a jackknife over problems. The audits words, caps, opening, siblings, rescored "
    "and stuck read groups and rollouts as independent. n is what an interval rests on. Everything here, with the method of "
    "each interval, is in `deadheat audit PATH --json` too."
)


def audit_page(report: AuditReport, examples: Sequence[Transcript] = ()) -> Page:
    """The page of a report, and groups to read."""
    sections = [_read_section(report)]
    sections += [_section(name, record) for name, record in report.answered.items()]
    for part in report.parts:
        heading = ", ".join(f"{name} {value}" for name, value in part.where.items())
        lines = tuple((name, record.sentence) for name, record in part.found.items())
        sections.append(Section(heading=heading, blocks=(KeyValues(pairs=lines, code=False),)))
    if report.missing:
        sections.append(_missing_section(report))
    if examples:
        lead = "A few groups of each kind, chosen by a hash of their ids. Open one to read its attempts."
        sections.append(Section(heading="Groups", lead=lead, blocks=tuple(examples)))
    gate = report.found.get("gate")
    answered = next(iter(report.answered.values()), None)
    head = gate if isinstance(gate, Gate) else answered
    return Page(
        title=f"Audit of {report.read.path}",
        question="What did the groups teach, what did they cost, and what is a bug?",
        verdict_sentence="Nothing could be asked of this log." if head is None else _sentence(head),
        verdict_tone=Tone.PLAIN,
        sections=tuple(sections),
        footer=_FOOTER,
        kicker="Deadheat audit",
    )


def _read_section(report: AuditReport) -> Section:
    first, *others = report.read.lines()
    blocks: list[Block] = [Prose(text="\n\n".join((first, others[0])) if others else first)]
    blocks += [Callout(text=line, warning=line.startswith("refused")) for line in others[1:]]
    return Section(heading="What was read", blocks=tuple(blocks))


def _section(name: str, record: AuditRecord) -> Section:
    figures: list[Block] = []
    if isinstance(record, Gate):
        figures = _gate_figures(record)
    elif isinstance(record, Lengths) and record.readings:
        figures = [_length_figure(record)]
    return Section(
        heading=name.capitalize(),
        lead=AUDITS[name].question,
        blocks=(Prose(text=_sentence(record) + "."), *figures, *record_blocks(record)),
    )


def _sentence(record: AuditRecord) -> str:
    sentence = record.sentence
    return sentence[:1].upper() + sentence[1:].removesuffix(".")


def _gate_figures(gate: Gate) -> list[Block]:
    figures: list[Block] = []
    shares = [("all right", gate.all_right), ("all wrong", gate.all_wrong), ("tied otherwise", gate.tied_other)]
    known = [(label, share) for label, share in shares if share is not None]
    if known:
        rows = tuple(
            Bar(
                label=label,
                value=100 * share.estimate,
                low=100 * share.low,
                high=100 * share.high,
                text=f"{100 * share.estimate:.1f}%",
            )
            for label, share in known
        )
        panel = BarPanel(title="tied groups by kind (% of groups)", bars=rows)
        caption = (
            f"Composition of the tied groups, with 95% intervals ({known[0][1].method}); n = {known[0][1].n:,} groups."
        )
        figures.append(_figure([panel], caption))
    arms = list(dict.fromkeys(point.arm for point in gate.curve))[:_MOST_ARMS]
    curves = [_curve(gate, arm) for arm in arms]
    if curves:
        caption = "Share of groups that were live, all right, all wrong or tied otherwise, step by step."
        figures.append(
            ink.figure_block(
                lambda width_in: gate_curves(curves, width_in=width_in), label="gate over steps", caption=caption
            )
        )
    return figures


def _curve(gate: Gate, arm: str) -> GateCurve:
    points = [point for point in gate.curve if point.arm == arm]
    return GateCurve(
        arm=arm or "this run",
        seed=0,
        steps=tuple(point.step for point in points),
        live=tuple(point.live for point in points),
        all_right=tuple(point.all_right for point in points),
        all_wrong=tuple(point.all_wrong for point in points),
        tied_other=tuple(point.tied_other for point in points),
    )


def _length_figure(lengths: Lengths) -> FigureBlock:
    rows = tuple(
        Bar(
            label=" ".join((reading.purpose, f"{reading.outcome}, {reading.stop}")).strip(),
            value=reading.mean_tokens.estimate,
            low=reading.mean_tokens.low if math.isfinite(reading.mean_tokens.low) else None,
            high=reading.mean_tokens.high if math.isfinite(reading.mean_tokens.high) else None,
            text=interval_text(reading.mean_tokens),
        )
        for reading in lengths.readings
    )
    caption = "Mean length by outcome and stop reason, with 95% intervals."
    return _figure([BarPanel(title="mean length (tokens)", bars=rows)], caption)


def _figure(panels: Sequence[BarPanel], caption: str) -> FigureBlock:
    return ink.figure_block(lambda width_in: bars(panels, width_in=width_in), label=caption, caption=caption)


def _missing_section(report: AuditReport) -> Section:
    rows = tuple((name, AUDITS[name].question, record.sentence) for name, record in report.missing.items())
    columns = (Column(heading="audit"), Column(heading="it asks"), Column(heading="and needs"))
    return Section(heading="Not asked", blocks=(Table(columns=columns, rows=rows),))

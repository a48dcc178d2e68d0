"""The sixteen audits: what each asks, what it needs, and one call that asks all of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from deadheat.archive import Archive, LogFormat, ReadReport
from deadheat.audit.accounting import Accounting, accounting, with_ledger
from deadheat.audit.caps import caps
from deadheat.audit.clones import clones
from deadheat.audit.cold import cold
from deadheat.audit.contamination import contamination
from deadheat.audit.contested import contested
from deadheat.audit.dilution import Dilution, dilution, with_divisor
from deadheat.audit.drift import drift
from deadheat.audit.frozen import frozen
from deadheat.audit.gate import gate
from deadheat.audit.lengths import lengths
from deadheat.audit.opening import opening
from deadheat.audit.records import AuditOptions, AuditRecord, Missing
from deadheat.audit.rescored import rescored
from deadheat.audit.siblings import siblings
from deadheat.audit.stuck import stuck
from deadheat.audit.table import columns_of, lacking
from deadheat.audit.words import words
from deadheat.errors import ConfigError

_SCORE = "reward|correct"
MOST_PARTS = 200  # of `--by`

Observer = Callable[[int, str], None]  # audits done, a few words
Ask = Callable[[str, Archive, AuditOptions], AuditRecord]  # the name of an audit, and what it is asked of


@dataclass(frozen=True, kw_only=True)
class Audit:
    """One question asked of an archive."""

    ask: Callable[[pl.LazyFrame, AuditOptions], AuditRecord]
    needs: tuple[str, ...]  # columns; `a|b`: either will do
    question: str  # in a line
    summaries: bool = False  # whether group summaries can answer it, without `needs`
    wants: tuple[str, ...] = ()  # options it cannot do without, as the command names them


AUDITS: Mapping[str, Audit] = {
    "gate": Audit(
        ask=gate, needs=("group_id", _SCORE), summaries=True, question="How many groups agree, and what does it cost?"
    ),
    "dilution": Audit(
        ask=dilution,
        needs=("group_id", _SCORE, "step"),
        summaries=True,
        question="How much of each batch carried signal, and what did the steps lose?",
    ),
    "frozen": Audit(
        ask=frozen,
        needs=("group_id", _SCORE),
        wants=("--skill",),
        question="Why does a sub-skill not move while the headline climbs?",
    ),
    "stuck": Audit(
        ask=stuck, needs=("group_id", "correct"), question="Who stays all wrong when drawn again, and who was unlucky?"
    ),
    "caps": Audit(ask=caps, needs=("group_id", _SCORE), question="How many failures are answers cut by the token cap?"),
    "contested": Audit(
        ask=contested,
        needs=("group_id", "answer", "correct"),
        question="Where does a group agree against its reference?",
    ),
    "clones": Audit(
        ask=clones,
        needs=("group_id", "token_ids|completion"),
        question="Are rollouts of a group one draw written down twice?",
    ),
    "words": Audit(
        ask=words, needs=("group_id", "completion", _SCORE), question="How often do different words earn one grade?"
    ),
    "drift": Audit(
        ask=drift,
        needs=("problem_id", "step", _SCORE),
        wants=("--noise-floor",),
        question="Does a frozen scorer's score climb while nothing improves?",
    ),
    "rescored": Audit(
        ask=rescored, needs=("group_id", _SCORE), question="What would another scorer make of the same rollouts?"
    ),
    "contamination": Audit(
        ask=contamination, needs=("prompt", "purpose"), question="Are held-out problems among the trained ones?"
    ),
    "lengths": Audit(ask=lengths, needs=("length",), question="How long are right and wrong rollouts?"),
    "accounting": Audit(
        ask=accounting, needs=("group_id", "length"), question="What was generated, and does it all add up?"
    ),
    "siblings": Audit(
        ask=siblings,
        needs=("group_id", _SCORE, "token_ids|completion"),
        question="What do failed rollouts share with siblings that passed?",
    ),
    "opening": Audit(
        ask=opening, needs=("length",), question="Do answers come without working, and how do they begin?"
    ),
    "cold": Audit(
        ask=cold, needs=("group_id", "reference_logprob"), question="How likely is the exact reference before training?"
    ),
}


@dataclass(frozen=True, kw_only=True)
class AuditPart:
    """The answers of one part of the archive."""

    where: Mapping[str, str]  # column to value
    found: Mapping[str, AuditRecord]  # those that had what they need


@dataclass(frozen=True, kw_only=True)
class AuditReport:
    """Every question that was asked, with its answer or what it lacks."""

    read: ReadReport  # what was read
    found: Mapping[str, AuditRecord]  # by the audit's name, in the table's order
    parts: tuple[AuditPart, ...] = ()  # the same by the values of `AuditOptions.by`; empty: it names nothing

    @property
    def answered(self) -> dict[str, AuditRecord]:
        """The audits that had what they need."""
        return {name: record for name, record in self.found.items() if not isinstance(record, Missing)}

    @property
    def missing(self) -> dict[str, Missing]:
        """The audits that lacked something."""
        return {name: record for name, record in self.found.items() if isinstance(record, Missing)}


def ask(name: str, archive: Archive, options: AuditOptions) -> AuditRecord:
    """One audit of an archive."""
    lacks = lacks_of(name, archive, options)
    if lacks:
        return Missing(audit=name, lacks=lacks)
    return AUDITS[name].ask(archive.rows if archive.summaries is None else archive.summaries, options)


def lacks_of(name: str, archive: Archive, options: AuditOptions) -> tuple[str, ...]:
    """What an audit needs that the archive or the options do not have."""
    question = AUDITS[name]
    if archive.summaries is not None:
        return () if question.summaries else lacking([], question.needs)
    given = {"--skill": options.skill, "--noise-floor": options.noise_floor}
    wanted = [option for option in question.wants if given[option] is None]
    return (*lacking(columns_of(archive.rows), question.needs), *wanted)


def audit(
    archive: Archive,
    *,
    options: AuditOptions = AuditOptions(),  # noqa: B008 - a frozen record
    only: Iterable[str] = (),
    observe: Observer = lambda done, note: None,
    ask: Ask = ask,
) -> AuditReport:
    """Ask the archive every question, or those of `only`; what a question lacks, its record names."""
    wanted = list(only) or list(AUDITS)
    unknown = [name for name in wanted if name not in AUDITS]
    if unknown:
        raise ConfigError(f"no audit is called {unknown[0]!r}; wanted some of {', '.join(AUDITS)}")
    found = {}
    for name in AUDITS:
        if name in wanted:
            observe(0, name)
            found[name] = _beside(ask(name, archive, options), archive.report)
            observe(1, name)
    return AuditReport(read=archive.report, found=found, parts=_parts(archive, options, list(found), observe, ask))


def _beside(record: AuditRecord, report: ReadReport) -> AuditRecord:
    """The record with what only files beside the rollouts say: a run folder's step ledger, and its config."""
    if report.format is not LogFormat.OWN:
        return record
    if isinstance(record, Accounting):
        return with_ledger(record, Path(report.path))
    if isinstance(record, Dilution):
        return with_divisor(record, Path(report.path))
    return record


def _of_part(record: AuditRecord, report: ReadReport) -> AuditRecord:
    """The record of a part with what the config says; a ledger is of the whole."""
    return record if isinstance(record, Accounting) else _beside(record, report)


def _parts(
    archive: Archive, options: AuditOptions, asked: Sequence[str], observe: Observer, ask: Ask
) -> tuple[AuditPart, ...]:
    """Every question again, of each combination of the values of `options.by`."""
    if not options.by:
        return ()
    table = archive.rows if archive.summaries is None else archive.summaries
    lacks = lacking(columns_of(table), options.by)
    if lacks:
        raise ConfigError(
            f"--by {','.join(options.by)}: there is no column {lacks[0]!r}; wanted some of {', '.join(columns_of(table))}"
        )
    values = table.select(options.by).unique().sort(options.by).collect(engine="streaming")
    if values.height > MOST_PARTS:
        raise ConfigError(
            f"--by {','.join(options.by)} makes {values.height:,} parts; wanted at most {MOST_PARTS}: name fewer columns "
            "(the gate's course over the steps is in its own record)"
        )
    whole, parts = replace(options, by=()), []
    for row in values.iter_rows(named=True):
        where = {name: "none" if value is None else str(value) for name, value in row.items()}
        observe(0, " ".join(where.values()))
        part = archive.where(pl.all_horizontal(pl.col(name).eq_missing(pl.lit(value)) for name, value in row.items()))
        answers = {name: _of_part(ask(name, part, whole), archive.report) for name in asked}
        parts.append(AuditPart(where=where, found={n: r for n, r in answers.items() if not isinstance(r, Missing)}))
    return tuple(parts)

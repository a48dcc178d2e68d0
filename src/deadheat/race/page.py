"""report.html: a race's verdict as one page, composed from the records in the folder."""

from collections.abc import Sequence
from pathlib import Path

from deadheat.archive import read_json, sha256_file
from deadheat.race.config import RaceConfig
from deadheat.race.page_examples import examples_section
from deadheat.race.page_training import cost_section, drawing_section, drift_section, gate_section, learning_section
from deadheat.race.page_verdict import arms_section, gain_section, readings_section, skills_section, verdict_section
from deadheat.race.tables import read_runs
from deadheat.race.verdict import ByClock, PairVerdict, RaceVerdict, run_seconds
from deadheat.race.words import (
    cost_words,
    names_of,
    race_sentence,
    warnings_of,
)
from deadheat.reports import Page, Section, Tone, write_page
from deadheat.reports.page import KeyValues
from deadheat.reports.verdict_words import false_call_words, smallest_words, tone, vote_words


def write_report(path: Path, race_folder: Path, race: RaceConfig, verdict: RaceVerdict, *, by_clock: ByClock) -> None:
    """Write the page; `by_clock` are the contrasts at equal seconds."""
    runs = read_runs(race_folder, race)
    flat = [run for arm in runs.values() for run in arm]
    seconds = run_seconds(race_folder, race)
    sections = [verdict_section(verdict, pair) for pair in verdict.pairs]
    sections += [gain_section(verdict, race), *skills_section(verdict)]
    if any(run.steps for run in flat):
        sections += [
            learning_section(flat, race.verdict.alpha),
            gate_section(flat),
            *drawing_section(race, flat),
            *drift_section(flat),
        ]
    sections += [readings_section(verdict, by_clock, race.verdict.alpha), cost_section(verdict, flat, seconds)]
    sections += [arms_section(race, verdict), *examples_section(race_folder, flat), _environment_section(race_folder)]
    write_page(_page(race, verdict, sections, seconds), path)


def _page(race: RaceConfig, verdict: RaceVerdict, sections: Sequence[Section], seconds: float) -> Page:
    first = verdict.pairs[0] if verdict.pairs else None
    incomplete = bool(verdict.missing) or first is None
    return Page(
        kicker="Deadheat race",
        title=race.name,
        question=race.question or "Which arm is better?",
        verdict_sentence=race_sentence(verdict) or "No two arms have finished a seed in common.",
        verdict_detail=_detail(verdict, first) if first else "",
        verdict_tone=Tone.INCOMPLETE if incomplete or first is None else tone(first.verdict),
        sections=tuple(sections),
        footer=f"{cost_words(verdict, seconds)}.\nEvery figure is recomputed from this folder by: deadheat verify.",
    )


def _detail(verdict: RaceVerdict, pair: PairVerdict) -> str:
    """What must not be missed beside the words, for the first contrast."""
    about = f"{pair.arm_a} against {pair.arm_b}, " if len(verdict.pairs) > 1 else ""
    said = [
        *warnings_of(verdict),
        f"{about}two-part rule: {vote_words(pair.verdict, names_of(pair))}",
        false_call_words(pair.verdict, names_of(pair)),
    ]
    said += [] if pair.verdict.called else [smallest_words(pair.verdict)]
    return " ".join(f"{text[0].upper()}{text[1:]}." for text in said)


def _environment_section(race_folder: Path) -> Section:
    held = read_json(race_folder / "environment.json")
    packages = ", ".join(f"{name} {version}" for name, version in held["packages"].items())
    pairs = [(key, str(value)) for key, value in held.items() if key != "packages" and value not in (None, [])]
    pairs += [("packages", packages)]
    pairs += [
        (f"sha256 of {name}", sha256_file(race_folder / name))
        for name in ("race.toml", "resolved.json", "verdict.json")
    ]
    return Section(
        heading="Environment and digests",
        blocks=(KeyValues(pairs=tuple(pairs), caption="manifest.json holds the SHA-256 of every file of the run."),),
    )

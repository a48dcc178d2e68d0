"""report.html: a race's verdict as one page, drawn from the records in the folder."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import polars as pl

from deadheat.archive import read_json, read_table, sha256_file
from deadheat.race.config import RaceConfig
from deadheat.race.coupling import flat_settings
from deadheat.race.screen import gain_lines, pooled_line, seed_lines, share_words
from deadheat.race.tables import RunData
from deadheat.race.verdict import Contrast, PairVerdict, RaceVerdict, equal_seconds, read_runs, run_seconds
from deadheat.race.words import (
    cost_words,
    coupling_words,
    floor_words,
    notes_of,
    pair_sentence,
    pair_tone,
    reasons_words,
)
from deadheat.reports import (
    Page,
    Section,
    SeedLine,
    Tone,
    write_page,
)
from deadheat.reports.figures import (
    Bar,
    BarPanel,
    Curve,
    GateCurve,
    StepSizes,
    bars,
    denominators,
    gate_curves,
    learning_curves,
)
from deadheat.reports.floors import Difference, difference_against_floor
from deadheat.reports.formats import format_count, format_p, format_pp, format_quantity, format_seconds, format_signed
from deadheat.reports.ink import figure_block
from deadheat.reports.page import Align, Attempt, Block, Callout, Column, Grade, KeyValues, Prose, Table, Transcript
from deadheat.stats import BootstrapInterval, Interval, wilson
from deadheat.train import ROLLOUTS, step_file

_NUMBER = Align.NUMBER

Number = TypeVar("Number", int, float)


def write_report(path: Path, race_folder: Path, race: RaceConfig, verdict: RaceVerdict) -> None:
    """Write the page."""
    runs = read_runs(race_folder, race)
    flat = [run for arm in runs.values() for run in arm]
    seconds = run_seconds(race_folder, race)
    sections = [_verdict_section(verdict, pair) for pair in verdict.pairs]
    sections += [_gain_section(verdict, race)]
    if any(run.steps for run in flat):
        sections += [_learning_section(flat), _gate_section(flat)]
    sections += [_readings_section(race_folder, race, verdict), _cost_section(verdict, flat, seconds)]
    sections += [_arms_section(race, verdict), *_examples_section(race_folder, flat), _environment_section(race_folder)]
    write_page(_page(race, verdict, sections, seconds), path)


def _page(race: RaceConfig, verdict: RaceVerdict, sections: Sequence[Section], seconds: float) -> Page:
    first = verdict.pairs[0] if verdict.pairs else None
    incomplete = bool(verdict.missing) or first is None
    return Page(
        kicker="Deadheat race",
        title=race.name,
        question=race.question or "Which arm is better?",
        verdict_sentence="\n".join(map(pair_sentence, verdict.pairs)) or "No two arms have finished a seed in common.",
        verdict_detail=_detail(first) if first else "",
        verdict_tone=Tone.INCOMPLETE if incomplete or first is None else pair_tone(first),
        sections=tuple(sections),
        footer=f"{cost_words(verdict, seconds)}.\nEvery figure is recomputed from this folder by: deadheat verify.",
    )


def _detail(pair: PairVerdict) -> str:
    reasons = reasons_words(pair)
    floor = floor_words(pair)
    return f"{'Why not: ' + reasons + '. ' if reasons else ''}{floor[0].upper()}{floor[1:]}."


def _verdict_section(verdict: RaceVerdict, pair: PairVerdict) -> Section:
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
            f"Difference on {d.n} held-out items, {len(lines)} seeds. Per seed: paired normal interval over items. Pooled: "
            f"{d.method}. The band is the smallest gap this very table would call four times out of five."
        ),
    )
    table = Table(
        columns=(
            Column(heading="seed"),
            Column(heading=pair.arm_a, unit="% right [95%]", align=_NUMBER),
            Column(heading=pair.arm_b, unit="% right [95%]", align=_NUMBER),
            Column(heading="difference", unit="pp", align=_NUMBER),
            Column(heading="won–lost–tied", unit="items", align=_NUMBER),
            Column(heading="p", unit="exact binomial", align=_NUMBER),
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


def _share(interval: Interval | None) -> str:
    """A share with its interval where the heading says the unit and the caption the n."""
    if interval is None:
        return "nothing graded"
    return f"{100 * interval.estimate:.1f} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def _difference(difference: BootstrapInterval) -> str:
    low, high = format_signed(100 * difference.low), format_signed(100 * difference.high)
    return f"{format_signed(100 * difference.estimate)} [{low}, {high}]"


def _gain_section(verdict: RaceVerdict, race: RaceConfig) -> Section:
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


def _learning_section(runs: Sequence[RunData]) -> Section:
    curves = [_curve(run) for run in runs]
    figure = figure_block(
        lambda width: learning_curves(curves, width_in=width, reward_label="mean raw training reward"),
        label="Learning curves per arm and seed, with held-out points",
        caption=(
            f"Held-out share right on {len(runs[0].items)} items with Wilson 95% intervals, and mean raw reward of training "
            "rollouts, per arm and seed. Held-out answers and training rollouts are drawn under different settings."
        ),
    )
    return Section(heading="Learning", blocks=(figure,))


def _curve(run: RunData) -> Curve:
    shares = {step: share for step in run.eval_steps if (share := run.share(step)) is not None}
    return Curve(
        arm=run.identity.arm,
        seed=run.identity.seed,
        steps=tuple(record.step for record in run.steps),
        train_reward=tuple(record.mean_raw_reward for record in run.steps),
        eval_steps=tuple(shares),
        eval_shares=tuple(shares.values()),
    )


def _gate_section(runs: Sequence[RunData]) -> Section:
    trained = [run for run in runs if run.steps]
    gates = [
        GateCurve(
            arm=run.identity.arm,
            seed=run.identity.seed,
            steps=tuple(r.step for r in run.steps),
            live=tuple(r.num_live for r in run.steps),
            all_right=tuple(r.num_all_right for r in run.steps),
            all_wrong=tuple(r.num_all_wrong for r in run.steps),
            tied_other=tuple(r.num_tied_other + r.num_unscored_groups for r in run.steps),
        )
        for run in trained
    ]
    sizes = [
        StepSizes(
            arm=run.identity.arm,
            seed=run.identity.seed,
            steps=tuple(r.step for r in run.steps),
            all_groups=tuple(r.grad_norm_all_groups if r.units_signal_groups else None for r in run.steps),
            signal_groups=tuple(r.grad_norm_signal_groups if r.units_signal_groups else None for r in run.steps),
        )
        for run in trained
    ]
    gate = figure_block(
        lambda width: gate_curves(gates, width_in=width),
        label="Share of live, all-right and all-wrong groups per step and arm",
        caption=f"What the groups of each step were: {_gate_words(trained)}. A tied group has zero advantage everywhere.",
    )
    size = figure_block(
        lambda width: denominators(sizes, width_in=width),
        label="Gradient norm under both denominators per step and arm",
        caption=(
            "Gradient norm before clipping if the loss is divided by the sequences of every group, and by those of live "
            "groups only. Their ratio is the dilution; steps without a live group have none."
        ),
    )
    return Section(heading="What the groups taught", blocks=(gate, size))


def _gate_words(runs: Sequence[RunData]) -> str:
    words = []
    for arm in dict.fromkeys(run.identity.arm for run in runs):
        records = [r for run in runs if run.identity.arm == arm for r in run.steps]
        groups, live = sum(r.num_groups for r in records), sum(r.num_live for r in records)
        shut = wilson(groups - live, groups)
        words.append(f"{arm} {share_words(shut)} groups tied")
    return "; ".join(words)


def _readings_section(race_folder: Path, race: RaceConfig, verdict: RaceVerdict) -> Section:
    by_clock = equal_seconds(race_folder, race)
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


def _cost_section(verdict: RaceVerdict, runs: Sequence[RunData], seconds: float) -> Section:
    by_run = {run.identity: max(run.seconds.values(), default=0.0) for run in runs}
    rows = []
    for run in runs:
        padded, unshared = sum(r.tokens_padded for r in run.steps), sum(r.tokens_unshared for r in run.steps)
        backward = sum(r.tokens_backward for r in run.steps)
        rows.append(
            (
                run.identity.arm,
                str(run.identity.seed),
                f"{sum(r.tokens_prefilled for r in run.steps):,}",
                f"{sum(r.tokens_generated for r in run.steps):,}",
                f"{backward:,}",
                f"{padded:,}",
                f"{unshared:,}",
                f"{sum(r.flop for r in run.steps) / 1e12:.2f}",
                format_seconds(by_run[run.identity]),
            )
        )
    table = Table(
        columns=(
            Column(heading="arm"),
            Column(heading="seed", align=_NUMBER),
            Column(heading="prefilled", unit="tokens", align=_NUMBER),
            Column(heading="generated", unit="tokens", align=_NUMBER),
            Column(heading="in backward", unit="tokens", align=_NUMBER),
            Column(heading="padding", unit="tokens", align=_NUMBER),
            Column(heading="one by one", unit="tokens", align=_NUMBER),
            Column(heading="FLOP proxy", unit="TFLOP", align=_NUMBER),
            Column(heading="run time", align=_NUMBER),
        ),
        rows=tuple(rows),
        caption=(
            "Tokens are those of training; run time includes evaluations. 'One by one' is what backward would have run "
            "without shared prefixes and with tied groups. FLOP proxy: 2·P per token forward, 6·P per token in backward."
        ),
        sortable=True,
    )
    arms = [arm for arm in verdict.arms if arm.runs]
    seconds_of = {arm.arm: sum(s for identity, s in by_run.items() if identity.arm == arm.arm) for arm in arms}
    tokens_of = {arm.arm: sum(run.tokens_generated for run in arm.runs) for arm in arms}
    backward_of = {arm.arm: sum(run.tokens_backward for run in arm.runs) for arm in arms}
    flop_of = {arm.arm: sum(run.flop for run in arm.runs) for arm in arms}
    panel = [
        _cost_panel("generated tokens", tokens_of, format_count),
        _cost_panel("tokens in backward", backward_of, format_count),
        _cost_panel("FLOP (proxy)", flop_of, lambda flop: format_quantity(flop, "FLOP")),
        _cost_panel("run time", seconds_of, format_seconds),
    ]
    figure = figure_block(
        lambda width: bars(panel, width_in=width), label="Cost of each arm", caption="All seeds of an arm together."
    )
    return Section(heading="Cost", lead=f"{format_seconds(seconds)} of run time in all.", blocks=(figure, table))


def _cost_panel(title: str, values: Mapping[str, Number], words: Callable[[Number], str]) -> BarPanel:
    return BarPanel(title=title, bars=tuple(Bar(label=a, value=float(v), text=words(v)) for a, v in values.items()))


def _arms_section(race: RaceConfig, verdict: RaceVerdict) -> Section:
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


def _examples_section(race_folder: Path, runs: Sequence[RunData]) -> list[Section]:
    shown = [t for run in runs[:1] for t in _examples(race_folder, run)]
    if not shown:
        return []
    return [
        Section(
            heading="Three groups in text",
            lead="One that teaches, one that agrees on right, one that agrees on wrong, where the run has them.",
            blocks=tuple(shown),
        )
    ]


def _examples(race_folder: Path, run: RunData) -> list[Transcript]:
    found: dict[str, Transcript] = {}
    for record in run.steps:
        wanted = [k for k, n in _kinds(record).items() if n and k not in found]
        if wanted:
            rows = read_table(step_file(race_folder / run.identity.folder, ROLLOUTS, record.step))
            for kind in wanted:
                group = rows.filter(pl.col("kind") == kind)
                first = group.filter(pl.col("group_id") == group["group_id"][0])
                found[kind] = _transcript(run, record.step, kind, first)
    return [found[kind] for kind in ("live", "all_right", "all_wrong", "tied_other") if kind in found][:3]


def _kinds(record: object) -> dict[str, int]:
    return {kind: getattr(record, f"num_{kind}") for kind in ("live", "all_right", "all_wrong", "tied_other")}


def _transcript(run: RunData, step: int, kind: str, rows: pl.DataFrame) -> Transcript:
    attempts = tuple(
        Attempt(
            text=row["completion"],
            grade=_grade(row),
            reward=row["reward"],
            advantage=row["advantage"],
            stop=row["stop"],
            answer=row["answer"],
        )
        for row in rows.iter_rows(named=True)
    )
    return Transcript(
        title=f"{kind.replace('_', ' ')}: {run.identity.arm}, seed {run.identity.seed}, step {step}",
        prompt=rows["prompt"][0],
        attempts=attempts,
        reference=rows["reference"][0],
        note=None,
    )


def _grade(row: dict[str, object]) -> Grade:
    if row["unscored"] is not None:
        return Grade.UNSCORED
    if not row["parsed"]:
        return Grade.UNPARSED
    return Grade.RIGHT if row["correct"] else Grade.WRONG


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

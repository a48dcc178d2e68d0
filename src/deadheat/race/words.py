"""A race's verdict in sentences: what the page and the terminal both say."""

from collections.abc import Sequence

from deadheat.race.config import RaceConfig
from deadheat.race.coupling import Coupling
from deadheat.race.verdict import Contrast, PairVerdict, RaceVerdict
from deadheat.reports import Tone
from deadheat.reports.formats import format_pp, format_pp_with_interval, format_quantity
from deadheat.stats import CatchableGap, Interval, Words, wilson


def pair_tone(pair: PairVerdict) -> Tone:
    """The verdict as a tone."""
    words = pair.final.verdict.words
    if words is Words.NOTHING_TO_RANK:
        return Tone.NOTHING_LEARNED
    return Tone.CALLED if pair.final.verdict.called else Tone.NOT_CALLED


def pair_sentence(pair: PairVerdict) -> str:
    """The verdict of a pair, with difference, interval, n and unit."""
    verdict = pair.final.verdict
    seeds = f"{verdict.num_seeds} seed{'s' if verdict.num_seeds > 1 else ''}"
    measured = f"{pair.arm_a} − {pair.arm_b} = {difference_words(pair.final)} held-out items × {seeds}"
    if verdict.words is Words.NOTHING_TO_RANK:
        return f"Nothing learned, nothing to rank: no arm's gain over step 0 clears zero. {measured}."
    if verdict.called:
        winner, loser = (pair.arm_a, pair.arm_b) if verdict.words is Words.CALLED_A else (pair.arm_b, pair.arm_a)
        return f"Called: {winner} beats {loser}. {measured}."
    return f"Not called. {measured}."


def difference_words(contrast: Contrast) -> str:
    """Difference with crossed-bootstrap interval and n."""
    d = contrast.difference
    return format_pp_with_interval(100 * d.estimate, 100 * d.low, 100 * d.high, d.n)


def floor_words(pair: PairVerdict) -> str:
    """The smallest gap this table could have called, at equal seeds and at the seeds' measured spread."""
    verdict = pair.final.verdict
    if verdict.catchable is None:
        return "no item was decided, so this table says nothing of the gap it could call"
    if verdict.catchable.gap_frac is None:
        decided = verdict.pooled.decided
        return (
            f"none: only {decided} of {verdict.n} items {'was' if decided == 1 else 'were'} decided, too few for any gap, "
            "however one-sided, to be called 4 times in 5"
        )
    words = f"smallest gap called 4 times in 5: {_gap(verdict.catchable.gap_frac)} with equal seeds"
    tau_frac = verdict.homogeneity.tau_frac
    return f"{words}; {_gap_at_spread(verdict.catchable_tau, tau_frac)}" if tau_frac > 0 else words


def reasons_words(pair: PairVerdict) -> str:
    """Why the rule did not call; empty when it did."""
    return "; ".join(reason.value for reason in pair.final.verdict.reasons)


def cost_words(verdict: RaceVerdict, seconds: float) -> str:
    """Tokens, FLOPs and seconds of the whole race."""
    runs = [run for arm in verdict.arms for run in arm.runs]
    tokens = sum(run.tokens_generated for run in runs)
    flop = sum(run.flop for run in runs)
    from_clock = f", {seconds:.0f} s of run time" if seconds else ""
    return (
        f"{tokens:,} tokens generated, {sum(run.tokens_backward for run in runs):,} in backward, "
        f"{format_quantity(flop, 'FLOP')} (proxy){from_clock}, {len(runs)} runs"
    )


def coupling_words(couplings: Sequence[Coupling]) -> list[str]:
    """How each pair of arms shares its draws, one sentence a pair."""
    sentences = []
    for a, b in dict.fromkeys((c.arm_a, c.arm_b) for c in couplings):
        rows = [c for c in couplings if (c.arm_a, c.arm_b) == (a, b)]
        shared = sum(c.num_shared for c in rows)
        if not rows[0].differing:
            seeds = f"{len(rows)} seed{'s' if len(rows) > 1 else ''}"
            sentences.append(f"{a} and {b} are coupled: {shared} step-one rollouts over {seeds} are token-identical")
        else:
            sentences.append(
                f"{a} and {b} are partly coupled, differing in {', '.join(rows[0].differing)}: {shared} step-one rollouts "
                "with a shared address are identical where settings agree"
            )
    return sentences


def notes_of(verdict: RaceVerdict, race: RaceConfig) -> list[str]:
    """What a reader must know beside the verdict: left-out answers, diverged and missing runs, coupling, selection."""
    notes = coupling_words(verdict.couplings)
    notes += [f"{name} diverged and is read at its last evaluation" for name in verdict.diverged]
    notes += [f"{name} has no outcome yet and is left out" for name in verdict.missing]
    runs = [run for arm in verdict.arms for run in arm.runs]
    unscored, unparsed = sum(r.num_unscored for r in runs), sum(r.num_unparsed for r in runs)
    answers = sum(arm.eval.pool * arm.eval.samples for arm in race.arms.values()) * len(race.seeds)
    if unscored:
        notes.append(
            f"{unscored:,} of {answers:,} final held-out answers are unscored and left out, never counted as wrong"
        )
    if unparsed:
        notes.append(f"{unparsed:,} of {answers:,} final held-out answers had nothing to parse; they count as wrong")
    return notes


def pooled_share(shares: Sequence[Interval]) -> Interval:
    """All seeds' answers together; seeds share items, so this interval is narrower than fresh items would give."""
    counts = [round(share.estimate * share.n) for share in shares]
    return wilson(sum(counts), sum(share.n for share in shares), left_out=sum(share.left_out for share in shares))


def _gap(gap_frac: float) -> str:
    return format_pp(100 * gap_frac).lstrip("+")


def _gap_at_spread(catchable: CatchableGap | None, tau_frac: float) -> str:
    spread = f"at the seeds' own spread τ̂ = {100 * tau_frac:.1f} pp"
    if catchable is None or catchable.gap_frac is None:
        return f"none {spread}, where seeds agree on a winner too seldom"
    return f"{_gap(catchable.gap_frac)} {spread}"

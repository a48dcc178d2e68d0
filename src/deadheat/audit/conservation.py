"""Does the step ledger of a run folder add up, in itself and against the rollouts that lie beside it?

`deadheat race` writes <run>/steps.parquet, one row per step, and <run>/rollouts/step-*.parquet, one row per attempt. Each
rule below says what must hold at every step; a step that breaks one is named with the figures that were seen. Counts and
token sums are exact. Figures that were divided are held to one part in 10⁹. The ledger of an unfinished run ends at its last
checkpoint: rollouts after it are not held against it. `deadheat verify` goes further and needs the race's config: it
grades every answer again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from deadheat.archive import read_table
from deadheat.reports.formats import format_count

LEDGER = "steps.parquet"
_ROLLOUTS = "rollouts"
_MOST_BREACHES = 50
_KINDS = ("live", "all_right", "all_wrong", "tied_other", "unscored")
_CLOSE = 1e-9  # relative: sums of floats in another order


@dataclass(frozen=True, kw_only=True)
class Breach:
    """One step whose figures do not add up."""

    run: str  # its folder below what was audited
    step: int
    rule: str  # what should hold
    seen: Mapping[str, float | None]  # the figures of the rule; `rows:` before those counted in the rollouts

    @property
    def sentence(self) -> str:
        """Where, what should hold, what was seen."""
        seen = ", ".join(f"{name} {'none' if value is None else f'{value:.10g}'}" for name, value in self.seen.items())
        return f"{self.run} step {self.step}: {self.rule}; seen {seen}"


@dataclass(frozen=True, kw_only=True)
class LedgerCheck:
    """Every rule at every step of every run."""

    num_runs: int
    skipped: tuple[str, ...]  # ledgers that another version of deadheat wrote, and what they lack
    num_steps: int  # steps that were checked
    num_rules: int
    num_breaches: int  # of a rule at a step
    breaches: tuple[Breach, ...]  # the first of them, in order of run and step

    @property
    def sentence(self) -> str:
        """Whether it adds up, and what does not."""
        asked = f"{format_count(self.num_steps)} ledger steps of {self.num_runs} runs"
        if self.skipped:
            asked = f"not checked, of another version: {'; '.join(self.skipped)}; {asked}"
        if not self.num_breaches:
            return f"{asked} keep all {self.num_rules} rules"
        shown = "; ".join(breach.sentence for breach in self.breaches[:3])
        more = "; …" if self.num_breaches > 3 else ""
        return f"{asked} break a rule {format_count(self.num_breaches)} times: {shown}{more}"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What must hold at every step."""

    says: str
    of: tuple[str, ...]  # the figures it is about
    holds: pl.Expr  # null where a figure that may be missing is: not broken


def check_ledgers(place: Path) -> LedgerCheck | None:
    """The ledgers in a run folder, or in a folder of them; None: there is none."""
    found = sorted(place.rglob(LEDGER)) if place.is_dir() else []
    if not found:
        return None
    breaches: list[Breach] = []
    skipped: list[str] = []
    num_steps = 0
    for path in found:
        run, ledger = str(path.parent.relative_to(place)), read_table(path)
        lacks = sorted(_LEDGER_FIGURES - set(ledger.columns))
        if lacks:
            skipped.append(f"{run} has no {', '.join(lacks[:3])}{', …' if len(lacks) > 3 else ''}")
            continue
        steps = _joined(path, ledger)
        num_steps += steps.height
        breaches += _breaches(run, steps)
    return LedgerCheck(
        num_runs=len(found) - len(skipped),
        skipped=tuple(skipped),
        num_steps=num_steps,
        num_rules=len(RULES),
        num_breaches=len(breaches),
        breaches=tuple(breaches[:_MOST_BREACHES]),
    )


def _joined(path: Path, ledger: pl.DataFrame) -> pl.DataFrame:
    """The ledger beside what its rollouts say, and what is the same for a whole run."""
    files = sorted((path.parent / _ROLLOUTS).glob("step-*.parquet"))
    rows = [count_step(read_table(file)) for file in files]
    counted = pl.concat(rows) if rows else pl.DataFrame(schema={"step": pl.Int64})
    joined = ledger.join(counted, on="step", how="left").sort("step")
    if not rows:
        joined = joined.with_columns(
            pl.lit(None, pl.Int64).alias(name) for name in _FIGURES if name.startswith("rows:")
        )
    silent = pl.col("units_signal_groups") == 0
    forward = pl.col("tokens_prefilled") + pl.col("tokens_generated") + pl.col("tokens_reference")
    work = 2 * forward + 6 * pl.col("tokens_backward")
    return joined.with_columns(
        pl.int_range(1, pl.len() + 1).alias("run:place"),
        pl.col("stepped").filter(silent).n_unique().alias("run:answers to no signal"),
        (pl.col("flop") / work).first().alias("run:parameters"),
        (pl.col("flop") / work).alias("run:parameters here"),
    )


def count_step(rows: pl.DataFrame) -> pl.DataFrame:
    """What the rollouts of one step say of it: one row, its figures named `rows:`."""
    learned, left = rows.filter(pl.col("purpose") == "train"), rows.filter(pl.col("purpose") != "train")
    pulls = pl.col("advantage").fill_null(0.0) != 0.0
    scored = pl.col("advantage").filter(pl.col("reward").is_not_null())
    groups = learned.group_by("group_id").agg(
        pl.len().alias("size"),
        pl.col("length").sum().alias("tokens"),
        pl.col("kind").first(),
        pulls.any().alias("signal"),
        (scored.max() != scored.min()).fill_null(False).alias("uneven"),
    )
    signal, tied = groups.filter("signal"), groups.filter(pl.col("kind") != "live")
    figures: dict[str, float | None] = {
        "groups": groups.height,
        "smallest group": _number(groups["size"].min()),
        "largest group": _number(groups["size"].max()),
        "rollouts": learned.height,
        "not kept": left.height,
        "scored": learned["reward"].count(),
        "correct": int(learned["correct"].sum()),
        "unparsed": int((~learned["parsed"]).sum()),
        "capped": int((learned["stop"] == "cap").sum()),
        "tokens": int(learned["length"].sum()),
        "tokens not kept": int(left["length"].sum()),
        "tokens delivered": int(learned.filter(pulls)["length"].sum()),
        "signal rollouts": int(signal["size"].sum()),
        "signal tokens": int(signal["tokens"].sum()),
        "uneven ties": int(tied["uneven"].sum()),
        "raw reward": _number(learned["raw_reward"].sum()),
        "reward": _number(learned["reward"].sum()),
        **{kind: groups.filter(pl.col("kind") == kind).height for kind in _KINDS},
    }
    floats = ("raw reward", "reward")
    return pl.DataFrame(
        {"step": [int(rows["step"][0])], **{f"rows:{name}": [value] for name, value in figures.items()}},
        schema={"step": pl.Int64, **{f"rows:{name}": pl.Float64 if name in floats else pl.Int64 for name in figures}},
    )


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) else None


def _breaches(run: str, steps: pl.DataFrame) -> list[Breach]:
    found = []
    for place, rule in enumerate(RULES):
        for row in steps.filter(~rule.holds.fill_null(True)).iter_rows(named=True):
            seen = {name: None if row[name] is None else float(row[name]) for name in rule.of}
            found.append((row["step"], place, Breach(run=run, step=row["step"], rule=rule.says, seen=seen)))
    return [breach for _, _, breach in sorted(found, key=lambda item: item[:2])]


def _equal(left: str, right: str) -> Rule:
    return Rule(says=f"{left} is what the rollouts say", of=(left, right), holds=pl.col(left) == pl.col(right))


def _at_most(small: str, large: str) -> Rule:
    return Rule(says=f"{small} ≤ {large}", of=(small, large), holds=pl.col(small) <= pl.col(large))


def _close(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    return (left - right).abs() <= _CLOSE * pl.max_horizontal(left.abs(), right.abs(), pl.lit(1e-9))


def _sum(names: Sequence[str]) -> pl.Expr:
    return pl.sum_horizontal(pl.col(name) for name in names)


_GROUPS = ("num_live", "num_all_right", "num_all_wrong", "num_tied_other", "num_unscored_groups")
_NO_SIGNAL = pl.col("units_signal_groups") == 0
_NO_KL = pl.col("kl_reference").is_null()
_IDLE = (pl.col("num_updates") == 0) & (pl.col("tokens_backward") == 0) & (pl.col("grad_norm") == 0)

RULES: tuple[Rule, ...] = (
    Rule(
        says="steps count 1, 2, … and each has its rollouts",
        of=("step", "run:place", "rows:rollouts"),
        holds=(pl.col("step") == pl.col("run:place")) & pl.col("rows:rollouts").is_not_null(),
    ),
    *(_equal(name, f"rows:{kind}") for name, kind in zip(_GROUPS, _KINDS, strict=True)),
    Rule(
        says="groups by kind add up to the groups",
        of=(*_GROUPS, "rows:groups"),
        holds=_sum(_GROUPS) == pl.col("rows:groups"),
    ),
    Rule(
        says="rollouts = groups × size",
        of=("num_rollouts", "rows:groups", "rows:smallest group", "rows:largest group"),
        holds=(pl.col("num_rollouts") == pl.col("rows:groups") * pl.col("rows:largest group"))
        & (pl.col("rows:smallest group") == pl.col("rows:largest group")),
    ),
    _equal("num_rollouts", "rows:rollouts"),
    Rule(
        says="rollouts drawn = learned from + not kept",
        of=("num_rollouts_drawn", "rows:rollouts", "rows:not kept"),
        holds=pl.col("num_rollouts_drawn") == pl.col("rows:rollouts") + pl.col("rows:not kept"),
    ),
    _equal("num_scored", "rows:scored"),
    _equal("num_correct", "rows:correct"),
    _equal("num_unparsed", "rows:unparsed"),
    _equal("num_capped", "rows:capped"),
    Rule(
        says="mean_length is the rollouts' own",
        of=("mean_length", "rows:tokens", "rows:rollouts"),
        holds=_close(pl.col("mean_length") * pl.col("rows:rollouts"), pl.col("rows:tokens").cast(pl.Float64)),
    ),
    *(
        Rule(
            says=f"{mean} is the rollouts' own",
            of=(mean, total, "rows:scored"),
            holds=_close(pl.col(mean) * pl.col("rows:scored"), pl.col(total)),
        )
        for mean, total in (("mean_raw_reward", "rows:raw reward"), ("mean_reward", "rows:reward"))
    ),
    Rule(
        says="tokens generated = those of rollouts learned from + not kept",
        of=("tokens_generated", "rows:tokens", "rows:tokens not kept"),
        holds=pl.col("tokens_generated") == pl.col("rows:tokens") + pl.col("rows:tokens not kept"),
    ),
    _equal("tokens_not_kept", "rows:tokens not kept"),
    _equal("tokens_delivered", "rows:tokens delivered"),
    _at_most("tokens_delivered", "tokens_generated"),
    _at_most("tokens_backward", "tokens_unshared"),
    _at_most("tokens_reference", "tokens_unshared"),
    _at_most("units_signal_groups", "units_all_groups"),
    Rule(
        says="both divisors count rollouts, or both count tokens",
        of=(
            "units_all_groups", "units_signal_groups", "rows:rollouts", "rows:signal rollouts", "rows:tokens",
            "rows:signal tokens",
        ),
        holds=(
            (pl.col("units_all_groups") == pl.col("rows:rollouts"))
            & (pl.col("units_signal_groups") == pl.col("rows:signal rollouts"))
        )
        | (
            (pl.col("units_all_groups") == pl.col("rows:tokens"))
            & (pl.col("units_signal_groups") == pl.col("rows:signal tokens"))
        ),
    ),
    Rule(
        says="step sizes are to each other as the divisors are",
        of=("grad_norm_all_groups", "units_all_groups", "grad_norm_signal_groups", "units_signal_groups"),
        holds=_NO_SIGNAL
        | _close(
            pl.col("grad_norm_all_groups") * pl.col("units_all_groups"),
            pl.col("grad_norm_signal_groups") * pl.col("units_signal_groups"),
        ),
    ),
    Rule(
        says="the step that was taken is one of the two",
        of=("grad_norm", "grad_norm_all_groups", "grad_norm_signal_groups"),
        holds=pl.any_horizontal(
            _close(pl.col("grad_norm"), pl.col(name)).fill_null(False)
            for name in ("grad_norm_all_groups", "grad_norm_signal_groups")
        ),
    ),
    Rule(
        says="a tied group's advantages are alike: zero, or one figure under a batch-wide baseline",
        of=("rows:uneven ties",),
        holds=pl.col("rows:uneven ties") == 0,
    ),
    Rule(
        says="without signal and without a KL term there is no loss, gradient or delivered token",
        of=("units_signal_groups", "loss", "grad_norm", "tokens_delivered"),
        holds=~(_NO_SIGNAL & _NO_KL)
        | ((pl.col("loss") == 0) & (pl.col("grad_norm") == 0) & (pl.col("tokens_delivered") == 0)),
    ),
    Rule(
        says="a batch with signal makes a step",
        of=("units_signal_groups", "stepped", "num_updates"),
        holds=_NO_SIGNAL | (pl.col("stepped") & (pl.col("num_updates") > 0)),
    ),
    Rule(
        says="no step, no update, no backward and no gradient",
        of=("stepped", "num_updates", "tokens_backward", "grad_norm"),
        holds=(pl.col("stepped") & (pl.col("num_updates") > 0)) | (~pl.col("stepped") & _IDLE),
    ),
    Rule(
        says="a run answers every batch without signal alike: a step, or none",
        of=("units_signal_groups", "stepped", "run:answers to no signal"),
        holds=~_NO_SIGNAL | (pl.col("run:answers to no signal") <= 1),
    ),
    Rule(
        says="ratios are positive, KL estimates not negative, clipped shares within 0 and 1",
        of=("mean_ratio", "kl_drawn", "kl_reference", "clip_low_frac", "clip_high_frac", "clip_dual_frac"),
        holds=pl.all_horizontal(
            (pl.col("mean_ratio") > 0).fill_null(True),
            *((pl.col(name) >= -_CLOSE).fill_null(True) for name in ("kl_drawn", "kl_reference")),
            *(pl.col(f"clip_{side}_frac").is_between(0, 1).fill_null(True) for side in ("low", "high", "dual")),
        ),
    ),
    Rule(
        says="FLOP proxy = (2·forward + 6·backward)·P with one P for the run",
        of=("flop", "run:parameters here", "run:parameters"),
        holds=_close(pl.col("run:parameters here"), pl.col("run:parameters")),
    ),
)  # fmt: skip
_FIGURES = {name for rule in RULES for name in rule.of}
_LEDGER_FIGURES = {name for name in _FIGURES if ":" not in name} | {"tokens_prefilled", "tokens_reference"}

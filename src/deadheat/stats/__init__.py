"""When is a gap real: effects, floors, tests, the rule that calls a winner, and its power. Arrays in, records out.

Names load with the module that holds them: a floor on the command line pays for no more than a floor.
"""

import typing as _typing

from deadheat.lazy import lookups as _lookups

if _typing.TYPE_CHECKING:
    from deadheat.stats.effect import Effect, Spread, paired_effect, uncoupled_effect
    from deadheat.stats.floors import Floor, detection_floor, paired_floor, read_margin
    from deadheat.stats.gains import PairedGain, paired_gain
    from deadheat.stats.intervals import Interval, clopper_pearson, wilson, win_share
    from deadheat.stats.power import CatchRate, SmallestGap, catch_rate, smallest_gap
    from deadheat.stats.rules import Reason, VoteReading, VoteWords, per_seed_rule, pooled_rule, two_part_rule
    from deadheat.stats.significance import SignTest, binomial_two_sided
    from deadheat.stats.verdict import Terms, Verdict, Words, judge
    from deadheat.stats.vote_models import Design, IidVotes
    from deadheat.stats.votes import Rule, SeedHomogeneity, Tally, seed_homogeneity, votes_from_scores

_HOMES = {
    "effect": ("Effect", "Spread", "paired_effect", "uncoupled_effect"),
    "floors": ("Floor", "detection_floor", "paired_floor", "read_margin"),
    "gains": ("PairedGain", "paired_gain"),
    "intervals": ("Interval", "clopper_pearson", "wilson", "win_share"),
    "power": ("CatchRate", "SmallestGap", "catch_rate", "smallest_gap"),
    "rules": ("Reason", "VoteReading", "VoteWords", "per_seed_rule", "pooled_rule", "two_part_rule"),
    "significance": ("SignTest", "binomial_two_sided"),
    "verdict": ("Terms", "Verdict", "Words", "judge"),
    "vote_models": ("Design", "IidVotes"),
    "votes": ("Rule", "SeedHomogeneity", "Tally", "seed_homogeneity", "votes_from_scores"),
}

__all__ = [
    "CatchRate",
    "Design",
    "Effect",
    "Floor",
    "IidVotes",
    "Interval",
    "PairedGain",
    "Reason",
    "Rule",
    "SeedHomogeneity",
    "SignTest",
    "SmallestGap",
    "Spread",
    "Tally",
    "Terms",
    "Verdict",
    "VoteReading",
    "VoteWords",
    "Words",
    "binomial_two_sided",
    "catch_rate",
    "clopper_pearson",
    "detection_floor",
    "judge",
    "paired_effect",
    "paired_floor",
    "paired_gain",
    "per_seed_rule",
    "pooled_rule",
    "read_margin",
    "seed_homogeneity",
    "smallest_gap",
    "two_part_rule",
    "uncoupled_effect",
    "votes_from_scores",
    "wilson",
    "win_share",
]

__getattr__, __dir__ = _lookups(__name__, _HOMES)

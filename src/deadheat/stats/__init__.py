"""When is a gap real: floors, intervals, tests, the rule that calls a winner, and its power. Arrays in, records out."""

from deadheat.stats.bootstrap import BootstrapInterval, Level, bootstrap
from deadheat.stats.floors import Floor, detection_floor, paired_floor, read_margin
from deadheat.stats.gains import NOTHING_TO_RANK, PairedGain, paired_gain
from deadheat.stats.intervals import Interval, clopper_pearson, wilson, win_share
from deadheat.stats.power import CatchableGap, CatchRate, catch_rate, smallest_catchable_gap
from deadheat.stats.rules import Reason, Verdict, Words, per_seed_rule, pooled_rule, two_part_rule
from deadheat.stats.significance import SignTest, binomial_two_sided
from deadheat.stats.vote_models import Design, IidVotes
from deadheat.stats.votes import Rule, SeedHomogeneity, Tally, seed_homogeneity, votes_from_scores

__all__ = [
    "NOTHING_TO_RANK",
    "BootstrapInterval",
    "CatchRate",
    "CatchableGap",
    "Design",
    "Floor",
    "IidVotes",
    "Interval",
    "Level",
    "PairedGain",
    "Reason",
    "Rule",
    "SeedHomogeneity",
    "SignTest",
    "Tally",
    "Verdict",
    "Words",
    "binomial_two_sided",
    "bootstrap",
    "catch_rate",
    "clopper_pearson",
    "detection_floor",
    "paired_floor",
    "paired_gain",
    "per_seed_rule",
    "pooled_rule",
    "read_margin",
    "seed_homogeneity",
    "smallest_catchable_gap",
    "two_part_rule",
    "votes_from_scores",
    "wilson",
    "win_share",
]

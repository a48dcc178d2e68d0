"""Arms × seeds under shared keys, and the verdict."""

from deadheat.race.config import RaceConfig, bundled_races, load_race, parse_race, read_race_text
from deadheat.race.executors import Failure
from deadheat.race.run import RaceResult, run_race
from deadheat.race.verdict import RaceVerdict, judge
from deadheat.race.verify import Verification, verify_race

__all__ = [
    "Failure",
    "RaceConfig",
    "RaceResult",
    "RaceVerdict",
    "Verification",
    "bundled_races",
    "judge",
    "load_race",
    "parse_race",
    "read_race_text",
    "run_race",
    "verify_race",
]

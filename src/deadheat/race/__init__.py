"""Arms × seeds under shared keys, and the verdict."""

from deadheat.race.config import RaceConfig, bundled_races, load_race, parse_race, read_race_text
from deadheat.race.executors import Failure
from deadheat.race.record import as_record
from deadheat.race.run import RaceResult, run_race
from deadheat.race.verdict import RaceVerdict, judge, look_again
from deadheat.race.verify import Verification, verify_race

__all__ = [
    "Failure",
    "RaceConfig",
    "RaceResult",
    "RaceVerdict",
    "Verification",
    "as_record",
    "bundled_races",
    "judge",
    "load_race",
    "look_again",
    "parse_race",
    "read_race_text",
    "run_race",
    "verify_race",
]

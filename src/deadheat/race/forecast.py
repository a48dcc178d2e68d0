"""The `[forecast]` table of a race file: locked into the run folder before the first step, never after.

A resumed race must bring the very forecast that was locked; a forecast that appears once a step has run is refused.
"""

from pathlib import Path

from deadheat.archive.arms import steps_run
from deadheat.stats.forecast import lock_forecast
from deadheat.stats.forecast_file import check_locked, parse_forecast

LEDGER = "forecast.jsonl"


def lock_in_folder(folder: Path, text: str) -> None:
    """Lock the forecast of a race file's text, or check that it is the one that was locked; none is fine."""
    forecast = parse_forecast(text, source="the race file")
    if forecast is None:
        return
    ledger = folder / LEDGER
    if ledger.is_file():
        check_locked(ledger, forecast)
    else:
        lock_forecast(ledger, forecast, steps_run=steps_run(folder))

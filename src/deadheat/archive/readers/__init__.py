"""Readers of other tools' logs: whatever wrote it, one row per rollout in our columns."""

from deadheat.archive.readers.reading import read
from deadheat.archive.readers.record import (
    ARCHIVE_SCHEMA,
    SUMMARY_SCHEMA,
    Archive,
    LogFormat,
    ReadOptions,
    ReadReport,
    Recovered,
    Refused,
    Scan,
    Shard,
)

__all__ = [
    "ARCHIVE_SCHEMA",
    "SUMMARY_SCHEMA",
    "Archive",
    "LogFormat",
    "ReadOptions",
    "ReadReport",
    "Recovered",
    "Refused",
    "Scan",
    "Shard",
    "read",
]

"""Rollouts on disk: Parquet rows, run folders, manifests.

Names load with the module that holds them: who reads two files of results pays for no reader of rollouts.
"""

import typing as _typing

from deadheat.lazy import lookups as _lookups

if _typing.TYPE_CHECKING:
    from deadheat.archive.conversion import Converted, convert, shards_of
    from deadheat.archive.files import (
        append_line,
        read_json,
        sha256_file,
        system_errors,
        write_folder_atomic,
        write_json,
        write_text,
    )
    from deadheat.archive.folder import Claim, check_manifest, claim_folder, refuse_used, seal
    from deadheat.archive.plain_data import differences, plain
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
    from deadheat.archive.rollouts import (
        ROLLOUT_SCHEMA,
        Credited,
        RolloutSource,
        groups_of,
        problem_of,
        read_table,
        read_tables,
        rollout_frame,
        write_table,
    )

_HOMES = {
    "conversion": ("Converted", "convert", "shards_of"),
    "files": (
        "append_line",
        "read_json",
        "sha256_file",
        "system_errors",
        "write_folder_atomic",
        "write_json",
        "write_text",
    ),
    "folder": ("Claim", "check_manifest", "claim_folder", "refuse_used", "seal"),
    "plain_data": ("differences", "plain"),
    "readers.reading": ("read",),
    "readers.record": (
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
    ),
    "rollouts": (
        "ROLLOUT_SCHEMA",
        "Credited",
        "RolloutSource",
        "groups_of",
        "problem_of",
        "read_table",
        "read_tables",
        "rollout_frame",
        "write_table",
    ),
}

__all__ = [
    "ARCHIVE_SCHEMA",
    "ROLLOUT_SCHEMA",
    "SUMMARY_SCHEMA",
    "Archive",
    "Claim",
    "Converted",
    "Credited",
    "LogFormat",
    "ReadOptions",
    "ReadReport",
    "Recovered",
    "Refused",
    "RolloutSource",
    "Scan",
    "Shard",
    "append_line",
    "check_manifest",
    "claim_folder",
    "convert",
    "differences",
    "groups_of",
    "plain",
    "problem_of",
    "read",
    "read_json",
    "read_table",
    "read_tables",
    "refuse_used",
    "rollout_frame",
    "seal",
    "sha256_file",
    "shards_of",
    "system_errors",
    "write_folder_atomic",
    "write_json",
    "write_table",
    "write_text",
]

__getattr__, __dir__ = _lookups(__name__, _HOMES)
